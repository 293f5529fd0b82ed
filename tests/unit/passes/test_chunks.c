/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pass `chunks`: whose loss is made in chunks, whose is left alone, and that by the evaluator
 * in double the step computes what it computes without. */
#include "check.h"
#include "tests/support/graph_text.h"

#include "ir/eval.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- which --- */

typedef struct Case {
    const char *what, *lines;
    int chunks;           /* of one that is taken */
    const char *found[3]; /* what is printed afterwards */
    bool for_device, exact, no_chunks;
} Case;

/* What a layer of 2 numbers a row and 8 classes reads, and its labels. */
#define GIVEN(rows, labels)                                                                        \
    "  %x = input {role=\"batch.x\"} : f32[" rows ",2]\n"                                          \
    "  %y = input {role=\"batch.y\"} : " labels "\n"                                               \
    "  $w = param : f32[8,2]\n  $b = param : f32[8]\n"
#define ROWS(rows)  GIVEN(rows, "i32[" rows "]")
#define LAYER(rows) "  %l = linear %x, $w : f32[" rows ",8]\n"
#define LOSS(attrs) "  %loss = cross_entropy %l, %y" attrs " : f32[]\n"
#define OUT         "  output loss = %loss\n"
#define ENOUGH      ROWS("512") LAYER("512")

#define BF16(rows)                                                                                 \
    ROWS(rows)                                                                                     \
    "  %h = cast %x {dtype=\"bf16\"} : bf16[" rows ",2]\n"                                         \
    "  %l = linear %h, $w : bf16[" rows ",8]\n"

static const Case taken[] = {
    {.what = "rows of a matrix",
     .lines = ENOUGH LOSS("") OUT,
     .chunks = 2,
     .found = {"start=[256,0], limit=[512,2]", "limit=[256]} : i32[256]", "reduction=\"sum\""}},
    {.what = "logits of three dims",
     .lines = ROWS("2,256") LAYER("2,256") LOSS("") OUT,
     .chunks = 2,
     .found = {"{shape=[512,2]}", "{shape=[512]}", ", $w : f32[256,8]"}},
    {.what = "the last axis by its number",
     .lines = ROWS("2,256") LAYER("2,256") LOSS(" {axis=2}") OUT,
     .chunks = 2,
     .found = {"{axis=1, "}},
    {.what = "a bias",
     .lines = ROWS("512") "  %l = linear %x, $w, $b : f32[512,8]\n" LOSS("") OUT,
     .chunks = 2,
     .found = {", $w, $b : f32[256,8]"}},
    {.what = "weights the other way",
     .lines = "  %x = input {role=\"batch.x\"} : f32[512,2]\n"
              "  %y = input {role=\"batch.y\"} : i32[512]\n  $w = param : f32[2,8]\n"
              "  %l = linear %x, $w {in_out=true} : f32[512,8]\n" LOSS("") OUT,
     .chunks = 2,
     .found = {", $w {in_out=true} : f32[256,8]"}},
    {.what = "label smoothing and a label that takes no part",
     .lines = ENOUGH LOSS(" {ignore_index=3, smoothing=0.25}") OUT,
     .chunks = 2,
     .found = {"ignore_index=3", "smoothing=0.25", "{value=3} : i32[]"}},
    {.what = "small labels",
     .lines = GIVEN("512", "u8[512]") LAYER("512") LOSS("") OUT,
     .chunks = 2,
     .found = {": u8[256]"}},
    {.what = "a sum",
     .lines = ENOUGH LOSS(" {reduction=\"sum\"}") OUT,
     .chunks = 2,
     .found = {"output loss = %add.0\n"}},
    {.what = "bf16",
     .lines = ROWS("512") "  %l = linear %x, $w {dtype=\"bf16\"} : bf16[512,8]\n" LOSS("") OUT,
     .chunks = 2,
     .found = {", $w {dtype=\"bf16\"} : bf16[256,8]"}},
    {.what = "enough rows of bf16",
     .lines = BF16("4096") LOSS("") OUT,
     .chunks = 2,
     .found = {", $w : bf16[2048,8]"}},
    {.what = "logits that are reshaped",
     .lines = ROWS("2,256") LAYER("2,256") "  %r = reshape %l {shape=[512,8]} : f32[512,8]\n"
                                           "  %z = input {role=\"batch.z\"} : i32[512]\n"
                                           "  %loss = cross_entropy %r, %z : f32[]\n" OUT,
     .chunks = 2,
     .found = {"%l.chunk1 = linear", "%loss.chunk2 = cross_entropy"}},
    {.what = "chunks of which one has a row more",
     .lines = ROWS("515") LAYER("515") LOSS("") OUT,
     .chunks = 2,
     .found = {"limit=[257,2]} : f32[257,2]", "start=[257,0], limit=[515,2]} : f32[258,2]",
               "start=[257], limit=[515]} : i32[258]"}},
    {.what = "three chunks",
     .lines = ROWS("1023") LAYER("1023") LOSS("") OUT,
     .chunks = 3,
     .found = {"start=[682,0], limit=[1023,2]"}},
    {.what = "no more than 16",
     .lines = ROWS("16384") LAYER("16384") LOSS("") OUT,
     .chunks = 16,
     .found = {"start=[15360,0], limit=[16384,2]"}},
    {.what = "for a device, to the CPU's bits",
     .lines = ENOUGH LOSS("") OUT,
     .chunks = 2,
     .for_device = true,
     .exact = true},
    {.what = "for the CPU, exactly", .lines = ENOUGH LOSS("") OUT, .chunks = 2, .exact = true},
};

/* What else may read the logits, or be the matter with them. */
#define HINTED(layer, loss)                                                                        \
    ROWS("512")                                                                                    \
    "  %l = linear %x, $w : f32[512,8]" layer "\n"                                                 \
    "  %loss = cross_entropy %l, %y : f32[]" loss "\n" OUT
#define ACCURACY "  %a = accuracy %l, %y : f32[]\n  output a = %a\n"

static const Case left[] = {
    {.what = "too few rows", .lines = ROWS("511") LAYER("511") LOSS("") OUT},
    {.what = "too few rows of bf16", .lines = BF16("4095") LOSS("") OUT},
    {.what = "few rows of three dims", .lines = ROWS("2,255") LAYER("2,255") LOSS("") OUT},
    {.what = "classes not four times as many as what the layer reads",
     .lines = "  %x = input {role=\"batch.x\"} : f32[512,2]\n"
              "  %y = input {role=\"batch.y\"} : i32[512]\n  $w = param : f32[7,2]\n"
              "  %l = linear %x, $w : f32[512,7]\n" LOSS("") OUT},
    {.what = "class weights", .lines = ENOUGH "  %loss = cross_entropy %l, %y, $b : f32[]\n" OUT},
    {.what = "a loss of every row",
     .lines = ENOUGH "  %all = cross_entropy %l, %y {reduction=\"none\"} : f32[512]\n"
                     "  %loss = mean %all : f32[]\n" OUT},
    {.what = "logits that are a result", .lines = ENOUGH LOSS("") OUT "  output l = %l\n"},
    {.what = "logits that something else reads",
     .lines = ENOUGH LOSS("") OUT "  %n = mean %l : f32[]\n  output n = %n\n"},
    {.what = "an accuracy alone", .lines = ENOUGH ACCURACY},
    {.what = "an accuracy that keeps them whole",
     .lines = ENOUGH LOSS("") OUT "  %a = accuracy %l, %y : f32[]  @keep\n  output a = %a\n"},
    {.what = "a layer that is kept", .lines = HINTED("  @keep", "")},
    {.what = "a layer that is computed again", .lines = HINTED("  @recompute", "")},
    {.what = "a loss that is kept", .lines = HINTED("", "  @keep")},
    {.what = "a loss that is computed again", .lines = HINTED("", "  @recompute")},
    {.what = "classes along another axis",
     .lines = GIVEN("2,256", "i32[2,8]") LAYER("2,256") LOSS(" {axis=1}") OUT},
    {.what = "labels of 64 bits", .lines = GIVEN("512", "i64[512]") LAYER("512") LOSS("") OUT},
    {.what = "weights that are others when the loss is made",
     .lines = ENOUGH "  %m = mean $w : f32[]\n"
                     "  $n = minimize %m, $w {goal=0} : f32[8,2] -> $w\n" LOSS("") OUT},
    {.what = "gradients that are stored nowhere",
     .lines = "  train {optim=sgd, momentum=0.9, gradient_free=true, lr=constant, base=0.1, "
              "steps=1}\n" ENOUGH LOSS("") OUT},
    {.what = "rows of other numbers than the layer makes",
     .lines = ENOUGH "  %l4 = reshape %l {shape=[1024,4]} : f32[1024,4]\n"
                     "  %y2 = input {role=\"batch.z\"} : i32[1024]\n"
                     "  %loss = cross_entropy %l4, %y2 : f32[]\n" OUT},
    {.what = "logits that are read in two shapes",
     .lines = ENOUGH "  %r = reshape %l {shape=[2,256,8]} : f32[2,256,8]\n"
                     "  %n = mean %r : f32[]\n  output n = %n\n" LOSS("") OUT},
    {.what = "logits of a product of matrices",
     .lines = ROWS("512") "  %l = matmul %x, $w {tb=true} : f32[512,8]\n" LOSS("") OUT},
    {.what = "where it is not wanted", .lines = ENOUGH LOSS("") OUT, .no_chunks = true},
    {.what = "not wanted for a device, exactly",
     .lines = ENOUGH LOSS("") OUT,
     .for_device = true,
     .exact = true,
     .no_chunks = true},
    {.what = "for a device", .lines = ENOUGH LOSS("") OUT, .for_device = true},
};

/* NULL: the case cannot be read. */
static Graph *after(Pool *pool, const Case *c)
{
    const char *message = NULL;
    PassContext ctx = {.graph = graph_of(pool, "forward", c->lines),
                       .pool = pool,
                       .for_device = c->for_device,
                       .exact = c->exact,
                       .request.no_chunks = c->no_chunks};
    if (!ctx.graph)
        return NULL;
    CHECK(pass_chunks(&ctx));
    CHECK_MSG(graph_verify(ctx.graph, &message), "%s: %s", c->what, message);
    return ctx.graph;
}

static const char *printed(const Graph *g)
{
    StrBuf out = strbuf_new(g->pool);
    graph_print(g, (PrintOptions){0}, &out);
    return out.text;
}

static void check_taken(const Case *c)
{
    Pool *pool = pool_new();
    const Graph *g = after(pool, c);
    if (!g)
        return;
    int losses = graph_text_count(g, "= cross_entropy"), layers = graph_text_count(g, "= linear");
    CHECK_MSG(losses == c->chunks && layers == c->chunks, "%s: %d losses of %d layers", c->what,
              losses, layers);
    CHECK_MSG(graph_text_count(g, "= reshape") == 2,
              "%s: rows and labels become a matrix and a "
              "vector once:\n%s",
              c->what, printed(g));
    for (int i = 0; i < 3 && c->found[i]; i++)
        CHECK_MSG(strstr(printed(g), c->found[i]), "%s: no %s\n%s", c->what, c->found[i],
                  printed(g));
    pool_free(pool);
}

static void check_left(const Case *c)
{
    Pool *pool = pool_new();
    const Graph *before = graph_of(pool, "forward", c->lines), *g = after(pool, c);
    if (before && g)
        CHECK_MSG(strcmp(printed(before), printed(g)) == 0, "%s: it is not left alone\n%s", c->what,
                  printed(g));
    pool_free(pool);
}

/* How many of each there are afterwards. */
static void check_counts(const char *what, const char *lines, int layers, int losses, int accurate)
{
    const Case c = {.what = what, .lines = lines};
    Pool *pool = pool_new();
    const Graph *g = after(pool, &c);
    if (g)
        CHECK_MSG(graph_text_count(g, "= linear") == layers &&
                      graph_text_count(g, "= cross_entropy") == losses &&
                      graph_text_count(g, "= accuracy") == accurate,
                  "%s:\n%s", what, printed(g));
    pool_free(pool);
}

/* Whoever reads the same logits reads the same chunks. */
static void test_readers(void)
{
    check_counts("an accuracy beside the loss", ENOUGH LOSS("") OUT ACCURACY, 2, 2, 2);
    check_counts("an accuracy in front of it", ENOUGH ACCURACY LOSS("") OUT, 2, 2, 2);
    check_counts("two losses",
                 ENOUGH LOSS("") OUT
                 "  %s = cross_entropy %l, %y {smoothing=0.1} : f32[]\n  output s = %s\n",
                 2, 4, 0);
    check_counts("two layers",
                 ENOUGH LOSS("") OUT "  $v = param : f32[9,2]\n  %m = linear %x, $v : f32[512,9]\n"
                                     "  %s = cross_entropy %m, %y : f32[]\n  output s = %s\n",
                 4, 4, 0);
    check_counts("two layers, of one of which something else reads the logits",
                 ENOUGH LOSS("") OUT
                 "  $v = param : f32[9,2]\n  %m = linear %x, $v : f32[512,9]\n  output m = %m\n"
                 "  %s = cross_entropy %m, %y : f32[]\n  output s = %s\n",
                 3, 3, 0);
}

/* --- what it computes --- */

/* The label of row i. */
typedef int64_t LabelOf(int64_t i);

static int64_t any_class(int64_t i)
{
    return (int64_t)((uint32_t)i * 2654435761u >> 29);
}

static int64_t some_usual(int64_t i)
{
    return i % 5 == 1 ? -100 : any_class(i);
}

static int64_t none_usual(int64_t i)
{
    (void)i;
    return -100;
}

/* Every label of the first chunk is left out, and half of the others. */
static int64_t none_at_first(int64_t i)
{
    return i < 257 || i % 2 ? 255 : any_class(i);
}

static int64_t only_three(int64_t i)
{
    (void)i;
    return 3;
}

static double element(const char *name, int64_t i)
{
    return sin((double)hash_bytes(name, strlen(name), 5) * 1e-15 + 2.3 * (double)i);
}

/* The state of optimizers begins at 0: behind a step of plain momentum it is the gradient. */
static void set_sources(EvalState *s, LabelOf *label)
{
    const Graph *g = s->graph;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (n->op != OP_input && !node_is_persistent(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        const char *name = graph_value(g, n->out[0])->name;
        int64_t size = type_elements(t);
        double *data = POOL_ARRAY(s->pool, (size_t)size, double);
        for (int64_t i = 0; i < size; i++)
            data[i] = t->dtype == DTYPE_I32 || t->dtype == DTYPE_U8
                          ? (double)(strcmp(name, "%y") == 0 ? label(i) : any_class(i))
                      : strcmp(name, "%lr") == 0 ? 0.5
                      : n->op == OP_state        ? 0
                                                 : element(name, i);
        eval_set(s, n->out[0], data);
    }
}

/* The step behind these passes, once it is done; its results stay what they were. */
static EvalState *evaluated(Pool *pool, const char *lines, LabelOf *label, const char *pipeline)
{
    PassContext ctx = {.graph = graph_of(pool, "forward", lines), .pool = pool};
    ctx.request = (PlanRequest){.no_chunks = !strstr(pipeline, "chunks")};
    if (!ctx.graph)
        return NULL;
    bool ok = passes_run(&ctx, pipeline, NULL, NULL);
    CHECK_MSG(ok, "%s", ctx.error.message);
    CHECK(!strstr(pipeline, "plan") || ctx.plan);
    EvalState *s = eval_new(pool, ctx.graph);
    set_sources(s, label);
    eval_run(s, false);
    eval_commit(s);
    return s;
}

/* How far apart they are; a number that is none is infinitely far from any. */
static void check_near(const char *what, const char *name, const double *a, const double *b,
                       int64_t n, bool zero)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        apart = fmax(apart, isfinite(a[i]) && isfinite(b[i]) ? fabs(a[i] - b[i]) : HUGE_VAL);
        size = fmax(size, fabs(b[i]));
    }
    CHECK_MSG(apart <= 1e-12 * size, "%s: %s is %g apart of %g", what, name, apart, size);
    CHECK_MSG((size == 0) == zero, "%s: %s is up to %g", what, name, size);
}

/* All outputs, and every persistent tensor behind the step.  zero: of what the loss gives. */
static int check_equal(const char *what, const EvalState *a, const EvalState *b, bool zero)
{
    int compared = 0;
    for (size_t i = 0; i < b->graph->outputs.len; i++) {
        const Output *o = &b->graph->outputs.data[i];
        check_near(what, o->name, eval_get(a, graph_output(a->graph, o->name)),
                   eval_get(b, o->value), type_elements(value_type(b->graph, o->value)), zero);
    }
    for (size_t k = 0; k < b->graph->order.len; k++) {
        const Node *n = graph_node(b->graph, b->graph->order.data[k]);
        const char *name = graph_value(b->graph, n->out[0])->name;
        ValueId other = graph_find(a->graph, name);
        if (!node_is_persistent(n))
            continue;
        CHECK_MSG(other != VALUE_NONE, "%s: no %s", what, name);
        if (other == VALUE_NONE)
            continue;
        check_near(what, name, eval_get(a, other), eval_get(b, n->out[0]),
                   type_elements(value_type(b->graph, n->out[0])), zero && n->op == OP_state);
        compared += n->op == OP_state;
    }
    return compared;
}

#define TRAIN "  train {optim=sgd, lr=constant, momentum=0.9, accumulate=1}\n"
/* A layer in front of the last, so that the gradient of what that reads counts as well. */
#define STEP(labels, attrs)                                                                        \
    TRAIN "  %in = input {role=\"batch.x\"} : f32[515,2]\n"                                        \
          "  %y = input {role=\"batch.y\"} : " labels "[515]\n"                                    \
          "  $u = param : f32[2,2]\n  $w = param : f32[8,2]\n  $b = param : f32[8]\n"              \
          "  %v = linear %in, $u : f32[515,2]\n  %x = tanh %v : f32[515,2]\n"                      \
          "  %l = linear %x, $w, $b : f32[515,8]\n" LOSS(attrs) OUT
#define STEP_ACCURACY(attrs) "  %a = accuracy %l, %y" attrs " : f32[]\n  output a = %a\n"

typedef struct StepCase {
    const char *what, *lines;
    LabelOf *label;
    bool zero;
} StepCase;

static const StepCase steps[] = {
    {"all labels", STEP("i32", "") STEP_ACCURACY(""), any_class, false},
    {"some labels", STEP("i32", "") STEP_ACCURACY(""), some_usual, false},
    {"no labels", STEP("i32", "") STEP_ACCURACY(""), none_usual, true},
    {"no labels, smoothed", STEP("i32", " {smoothing=0.25}"), none_usual, true},
    {"a class takes no part", STEP("i32", " {ignore_index=3}") STEP_ACCURACY(" {ignore_index=3}"),
     any_class, false},
    {"a class takes no part in the loss alone", STEP("i32", " {ignore_index=3}") STEP_ACCURACY(""),
     any_class, false},
    {"a class takes no part in the accuracy alone",
     STEP("i32", "") STEP_ACCURACY(" {ignore_index=3}"), any_class, false},
    {"the only class there is takes no part",
     STEP("i32", " {ignore_index=3}") STEP_ACCURACY(" {ignore_index=3}"), only_three, true},
    {"a chunk without labels",
     STEP("i32", " {ignore_index=255}") STEP_ACCURACY(" {ignore_index=255}"), none_at_first, false},
    {"small labels", STEP("u8", "") STEP_ACCURACY(""), any_class, false},
    {"small labels, some that take no part", STEP("u8", " {ignore_index=255}"), none_at_first,
     false},
    {"label smoothing", STEP("i32", " {smoothing=0.25}"), some_usual, false},
    {"a sum", STEP("i32", " {reduction=\"sum\", smoothing=0.25}"), some_usual, false},
    {"a number of right answers", STEP("i32", "") STEP_ACCURACY(" {reduction=\"sum\"}"), some_usual,
     false},
    {"a table of which the last layer's weights are a use",
     TRAIN "  %in = input {role=\"batch.x\"} : i32[2,258]\n"
           "  %y = input {role=\"batch.y\"} : i32[2,258]\n"
           "  $w = param : f32[8,2]\n  %e = embedding %in, $w : f32[2,258,2]\n"
           "  %x = tanh %e : f32[2,258,2]\n  %l = linear %x, $w : f32[2,258,8]\n" LOSS("") OUT,
     some_usual, false},
};

#define BACKWARD "autodiff,fold,cse,dce"
#define PLANNED  BACKWARD ",fuse,order,loops,masks,remat(budget=min),sums,slopes,views,plan"

static void check_step(const StepCase *c)
{
    Pool *pool = pool_new();
    const EvalState *without = evaluated(pool, c->lines, c->label, BACKWARD);
    const EvalState *with = evaluated(pool, c->lines, c->label, "chunks," BACKWARD);
    if (without && with) {
        CHECK(graph_text_count(without->graph, "= cross_entropy_grad") == 1);
        CHECK(graph_text_count(with->graph, "= cross_entropy_grad") == 2);
        CHECK_MSG(check_equal(c->what, with, without, c->zero) > 0, "%s: no gradients", c->what);
    }
    pool_free(pool);
}

/* Nor does what comes behind it change the step: fusion, another order, recomputation, a plan. */
static void check_planned(const StepCase *c)
{
    Pool *pool = pool_new();
    const EvalState *without = evaluated(pool, c->lines, c->label, BACKWARD);
    const EvalState *with = evaluated(pool, c->lines, c->label, "chunks," PLANNED);
    if (without && with)
        check_equal(c->what, with, without, c->zero);
    pool_free(pool);
}

/* Numbers that are no classes take no part, which the evaluator's own loss refuses: what the pass
 * counts is looked at alone. */
static int64_t any_number(int64_t i)
{
    static const int64_t edge[] = {-1, 8, -100, INT32_MAX, INT32_MIN, 0, 7, 100};
    return i % 3 == 0 ? edge[i / 3 % 8] : i % 23 - 7;
}

static int64_t no_class(int64_t i)
{
    return i % 2 ? -1 - i : 8 + i;
}

static void check_count(const char *attrs, int64_t ignored, LabelOf *label)
{
    Pool *pool = pool_new();
    const Case c = {.what = "count",
                    .lines = pool_printf(pool, "%s  %%loss = cross_entropy %%l, %%y%s : f32[]\n%s",
                                         ROWS("515") LAYER("515"), attrs, OUT)};
    PassContext ctx = {.graph = after(pool, &c), .pool = pool};
    const Node *part = ctx.graph ? value_node(ctx.graph, graph_output(ctx.graph, "loss")) : NULL;
    CHECK(part && part->op == OP_div);
    if (!part || part->op != OP_div)
        return;
    graph_add_output(ctx.graph, "count", part->in[1]);
    ctx.graph->outputs.data[0] = ctx.graph->outputs.data[--ctx.graph->outputs.len];
    CHECK(pass_dce(&ctx) && graph_text_count(ctx.graph, "= cross_entropy") == 0);
    EvalState *s = eval_new(pool, ctx.graph);
    set_sources(s, label);
    eval_run(s, false);
    int64_t count = 0;
    for (int64_t i = 0; i < 515; i++)
        count += label(i) >= 0 && label(i) < 8 && label(i) != ignored;
    double got = eval_get(s, graph_output(ctx.graph, "count"))[0];
    CHECK_MSG(got == (double)(count ? count : 1), "%s: %g labels instead of %lld", attrs, got,
              (long long)count);
    pool_free(pool);
}

static void test_count(void)
{
    check_count("", -100, any_number);
    check_count(" {ignore_index=3}", 3, any_number);
    check_count(" {ignore_index=0}", 0, any_number);
    check_count(" {ignore_index=7}", 7, any_number);
    check_count(" {ignore_index=8}", 8, any_number);
    check_count("", -100, no_class);
    check_count("", -100, none_usual);
    check_count("", -100, any_class);
}

int main(void)
{
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        check_taken(&taken[i]);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        check_left(&left[i]);
    test_readers();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        check_step(&steps[i]);
    check_planned(&steps[1]);
    test_count();
    return test_result();
}
