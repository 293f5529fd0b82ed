/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `check` accepts runs: small models of one call each (sweep_model.h), every function and
 * operator with drawn element types, shapes and options, through the passes and code generation,
 * and one training step against ir/eval's doubles.  Nothing that a user can write may end in an
 * internal error, a signal or a hang, be refused later, or give other numbers.
 *
 * Every case runs in a child process, so that an internal error names its model.  SCRIMP_CASES sets
 * how many, SCRIMP_FIRST_CASE where to begin, SCRIMP_CASE=ROW:SEED prints and runs one. */
#include "check.h"
#include "codegen/jit/jit.h"
#include "runtime/rng.h"
#include "sweep_model.h"
#include "tests/support/run/kernel_farm.h"
#include "tests/support/run/step_compare.h"

#include "codegen/build/supports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CASES = 160, FARM_CASES = 600, ATTEMPTS = 400, CASE_SECONDS = 60, MOST_ELEMENTS = 200000 };

typedef enum CaseState {
    CASE_NOT_FOUND,
    CASE_TRYING,
    CASE_READY,
    CASE_FAILED,
    CASE_DONE
} CaseState;

/* Written by children. */
typedef struct Case {
    CaseState state;
    int row;
    uint64_t seed;
    bool compared; /* what it computes is finite */
} Case;

typedef struct Sweep {
    Pool *pool;
    SweepTable table;
    Case *cases; /* shared memory */
    int n_cases;
} Sweep;

static const char *case_text(Pool *pool, const Sweep *s, const Case *c)
{
    return sweep_model(pool, &s->table, c->row, c->seed);
}

/* --- children --- */

typedef void CaseWork(const Sweep *s, Case *c, void *user);

/* Works on cases [from, to) until one ends the process; the child's checks fail by its status. */
static _Noreturn void child(const Sweep *s, int from, int to, CaseWork *work, void *user, int *at)
{
    check_failures = 0;
    for (*at = from; *at < to; ++*at) {
        alarm(CASE_SECONDS);
        work(s, &s->cases[*at], user);
    }
    fflush(NULL);
    _exit(check_failures ? 1 : 0);
}

static void report_death(const Sweep *s, Case *c, int status)
{
    Pool *pool = pool_new();
    CHECK_MSG(false, "case %d:%llu (%s) ended by %s %d:\n%s", c->row, (unsigned long long)c->seed,
              sweep_row_name(&s->table, c->row), WIFSIGNALED(status) ? "signal" : "exit status",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), case_text(pool, s, c));
    c->state = CASE_FAILED;
    pool_free(pool);
}

static void in_children(const Sweep *s, int from, int to, CaseWork *work, void *user)
{
    int *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        abort();
    while (from < to) {
        int status = 0;
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            child(s, from, to, work, user, at);
        waitpid(pid, &status, 0);
        bool finished = WIFEXITED(status) && *at == to;
        if (finished)
            check_failures += WEXITSTATUS(status);
        else
            report_death(s, &s->cases[*at], status);
        from = finished ? to : *at + 1;
    }
    munmap(at, sizeof *at);
}

/* --- what is accepted --- */

static Graph *lowered(Pool *pool, const char *text)
{
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, "sweep.scrimp", text, strlen(text));
    FrontendOptions o = {.mode = FRONTEND_TRAIN, .supports = codegen_supports};
    Graph *g = ast ? frontend_lower(pool, diag, ast, &o) : NULL;
    return g && !diag_error_count(diag) ? g : NULL;
}

/* Few enough numbers for the reference. */
static bool is_small(const Graph *g)
{
    int64_t elements = 0;
    for (size_t v = 0; v < g->values.len && elements < MOST_ELEMENTS; v++) {
        int64_t n = type_elements(&g->values.data[v].type);
        elements += n < MOST_ELEMENTS ? n : MOST_ELEMENTS;
    }
    return elements < MOST_ELEMENTS;
}

/* As the verb `check` looks at a file. */
static Graph *accepted(Pool *pool, const char *text)
{
    PassContext ctx = {.pool = pool, .graph = lowered(pool, text)};
    bool ok = ctx.graph && passes_run(&ctx, "dce,autodiff", NULL, NULL) &&
              !codegen_unsupported(pool, ctx.graph);
    return ok && is_small(ctx.graph) ? lowered(pool, text) : NULL;
}

/* The code of every kernel, written by libgccjit's front end and thrown away. */
static void try_code(Pool *pool, const Graph *g)
{
    Lowering l = {.pool = pool, .graph = g, .target = target_find(NULL), .backend = &cpu_backend};
    lower_graph(&l);
    for (size_t i = 0; i < l.calls.len; i++) {
        const Call *call = &l.calls.data[i];
        Jit *j = jit_new(l.target, call->contract);
        jit_kernel_begin(j, "k");
        call_emit(call, j);
        jit_kernel_end(j);
        jit_free(j);
    }
}

static void run_passes(const Sweep *s, Case *c, Pool *pool, Graph *g)
{
    PassContext ctx = {.pool = pool, .graph = g};
    bool ok = passes_run(&ctx, pipeline_train, NULL, NULL);
    CHECK_MSG(ok, "case %d:%llu is accepted, then refused: %s\n%s", c->row,
              (unsigned long long)c->seed, ctx.error.message, case_text(pool, s, c));
    const char *missing = ok ? codegen_unsupported(pool, ctx.graph) : NULL;
    CHECK_MSG(!missing, "case %d:%llu: %s\n%s", c->row, (unsigned long long)c->seed, missing,
              case_text(pool, s, c));
    c->state = ok && !missing ? CASE_READY : CASE_FAILED;
    if (c->state == CASE_READY)
        try_code(pool, ctx.graph);
}

/* The first model of the row that is accepted, through the passes and the code generator. */
static void find_case(const Sweep *s, Case *c, void *user)
{
    int index = (int)(c - s->cases);
    const uint64_t *first = user;
    for (int attempt = 0; attempt < ATTEMPTS && c->state != CASE_READY; attempt++) {
        Pool *pool = pool_new();
        c->seed = *first * ATTEMPTS + (uint64_t)index * ATTEMPTS + (uint64_t)attempt;
        Graph *g = accepted(pool, case_text(pool, s, c));
        if (g) {
            c->state = CASE_TRYING;
            run_passes(s, c, pool, g);
        }
        pool_free(pool);
        if (c->state == CASE_FAILED)
            return;
    }
}

/* --- running --- */

typedef struct Ready {
    Case *c;
    Built built;
    Lowering *calls;
} Ready;

typedef struct Batch {
    Farm farm;
    VEC(Ready) ready;
} Batch;

/* Integers are below what indexes with them needs; 0: nothing does. */
static int64_t index_limit(const Graph *g)
{
    int64_t limit = 0;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        int64_t most = 0;
        if (n->op == OP_embedding)
            most = value_type(g, n->in[1])->dim[0];
        if (n->op == OP_cross_entropy || n->op == OP_accuracy) {
            const Type *t = value_type(g, n->in[0]);
            most = t->dim[node_int(n, ATTR_axis, t->rank - 1)];
        }
        if (most && (!limit || most < limit))
            limit = most;
    }
    return limit;
}

static double sweep_element(const Type *t, const char *name, uint64_t seed, int64_t k,
                            int64_t limit)
{
    uint32_t bits = rt_rng_bits(seed, 7, rt_name_key(name), (uint64_t)k);
    if (t->dtype == DTYPE_F32)
        return (double)(float)((double)bits * 0x1p-30 - 2.0);
    if (t->dtype == DTYPE_BOOL)
        return bits & 1;
    if (limit)
        return (double)(bits % (uint64_t)limit);
    return t->dtype == DTYPE_U8 ? (double)(bits % 200) : (double)(bits % 7) - 3;
}

static void store_element(const Type *t, void *data, int64_t k, double x)
{
    if (t->dtype == DTYPE_I64)
        ((int64_t *)data)[k] = (int64_t)x;
    else
        put_element(t, data, k, x);
}

/* Overwrites what run_fill and eval_from_run have put into the batch. */
static void fill_batch(Running *r, EvalState *s, uint64_t seed)
{
    const Graph *g = s->graph, *h = r->built->graph;
    int64_t limit = index_limit(g);
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!is_batch(n))
            continue;
        const Type *t = value_type(g, n->out[0]);
        const char *name = graph_value(g, n->out[0])->name;
        ValueId v = graph_find(h, name);
        int64_t count = type_elements(t);
        double *data = POOL_ARRAY(r->built->pool, (size_t)count + 1, double);
        for (int64_t k = 0; k < count; k++)
            data[k] = sweep_element(t, name, seed, k, limit);
        eval_set(s, n->out[0], data);
        for (int64_t k = 0; v != VALUE_NONE && k < count && r->built->plan->offset[v] >= 0; k++)
            store_element(t, run_at(r, v), k, data[k]);
    }
}

static void run_kernels(Running *r, const Farm *f, const Lowering *calls)
{
    const MemPlan *plan = r->built->plan;
    for (size_t i = 0; i < calls->calls.len; i++) {
        const Call *c = &calls->calls.data[i];
        char *buf[CALL_MAX_BUFS];
        for (int k = 0; k < c->n_bufs; k++) {
            ValueId v = c->buf[k].value;
            char *base = v == CALL_NUMBER  ? NULL
                         : v == VALUE_NONE ? r->arena.base + plan->workspace_offset[c->node]
                                           : r->arena.base + plan->offset[v];
            buf[k] = call_argument(&c->buf[k], base);
        }
        r->context.run(&r->context, (int32_t)i, f->kernels.data[*map_find(&f->index, c->key)].run,
                       buf, c->n_tasks);
    }
}

/* NULL, or what differs after one step; *compared: the reference's numbers are finite. */
static const char *one_step(const Farm *f, const Ready *ready, const Graph *plain, uint64_t seed,
                            bool *compared)
{
    const double tolerance = 3e-4;
    Running r;
    if (!run_open(&r, &ready->built, 2))
        return "no memory";
    run_initialize(&r, seed);
    EvalState *s = eval_new(ready->built.pool, plain);
    eval_from_run(s, &r, seed, 0);
    run_fill(&r, seed, 0);
    fill_batch(&r, s, seed);
    run_kernels(&r, f, ready->calls);
    eval_run(s, false);
    double loss = eval_get(s, graph_output(plain, "loss"))[0];
    *compared = isfinite(loss) && fabs(loss) < 1e30;
    const char *fault = *compared ? compare_numbers(&r, s, tolerance) : NULL;
    eval_commit(s);
    if (!fault && *compared)
        fault = compare_state(&r, s, lr_at(&plain->train.rule.lr, 0, 10, 5), tolerance);
    run_close(&r);
    return fault;
}

/* Masks of dropout are drawn by the place of an element in memory. */
static const Graph *reference_step(Pool *pool, const char *text)
{
    Built built;
    BuildOptions o = {.pipeline = strstr(text, "dropout(") ? "layout,autodiff" : "autodiff"};
    return model_plan(pool, text, &o, &built) ? built.graph : NULL;
}

/* A difference shows on other data too: ties and kinks may fall between two roundings. */
static void run_case(const Sweep *s, Case *c, void *user)
{
    const Batch *b = user;
    const Ready *ready = NULL;
    for (size_t i = 0; i < b->ready.len; i++)
        if (b->ready.data[i].c == c)
            ready = &b->ready.data[i];
    if (!ready)
        return;
    const char *text = case_text(s->pool, s, c), *fault = NULL;
    const Graph *plain = reference_step(s->pool, text);
    for (uint64_t seed = 11; plain && seed < 14 && (seed == 11 || fault); seed++)
        fault = one_step(&b->farm, ready, plain, seed, &c->compared);
    CHECK_MSG(!fault, "case %d:%llu: %s\n%s", c->row, (unsigned long long)c->seed, fault, text);
    c->state = CASE_DONE;
}

static void run_batch(const Sweep *s, int from, int to)
{
    Pool *pool = pool_new();
    Batch b = {.farm = farm_new(pool, target_find(NULL))};
    for (int i = from; i < to; i++) {
        Ready r = {.c = &s->cases[i]};
        if (r.c->state != CASE_READY ||
            !model_plan(pool, case_text(pool, s, r.c), &(BuildOptions){0}, &r.built))
            continue;
        r.calls = farm_lower(&b.farm, r.built.graph);
        vec_push(pool, &b.ready, r);
    }
    bool ok = farm_compile(&b.farm) && farm_load(&b.farm);
    CHECK_MSG(ok, "kernels do not compile");
    if (ok)
        in_children(s, from, to, run_case, &b);
    farm_free(&b.farm);
    pool_free(pool);
}

/* --- all --- */

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static Sweep sweep_new(Pool *pool, int n_cases, int first)
{
    Sweep s = {.pool = pool, .table = sweep_table(pool), .n_cases = n_cases};
    s.cases = mmap(NULL, (size_t)n_cases * sizeof *s.cases, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.cases == MAP_FAILED)
        abort();
    for (int i = 0; i < n_cases; i++)
        s.cases[i] = (Case){.row = (first + i) % s.table.n_rows};
    return s;
}

static void report(const Sweep *s)
{
    int found = 0, compared = 0;
    bool *seen = POOL_ARRAY(s->pool, (size_t)s->table.n_rows, bool);
    for (int i = 0; i < s->n_cases; i++) {
        const Case *c = &s->cases[i];
        found += c->state != CASE_NOT_FOUND;
        compared += c->compared;
        seen[c->row] |= c->state != CASE_NOT_FOUND || s->n_cases < s->table.n_rows;
    }
    for (int row = 0; row < s->table.n_rows; row++)
        CHECK_MSG(seen[row], "no model of %s is accepted", sweep_row_name(&s->table, row));
    CHECK_MSG(2 * compared >= found, "%d of %d steps are finite and compared", compared, found);
    printf("%d draws, %d accepted, %d compared with the reference\n", s->n_cases, found, compared);
}

static void run_one(const char *which)
{
    Pool *pool = pool_new();
    Sweep s = sweep_new(pool, 1, 0);
    char *end;
    s.cases[0].row = (int)strtol(which, &end, 10);
    s.cases[0].seed = strtoull(end + 1, NULL, 10);
    const char *text = case_text(pool, &s, &s.cases[0]);
    puts(text);
    Graph *g = accepted(pool, text);
    if (g)
        run_passes(&s, &s.cases[0], pool, g);
    run_batch(&s, 0, 1);
    printf("%s\n", s.cases[0].compared ? "compared" : "not compared");
}

int main(void)
{
    const char *one = getenv("SCRIMP_CASE");
    if (one) {
        run_one(one);
        return test_result();
    }
    Pool *pool = pool_new();
    uint64_t first = (uint64_t)number_of("SCRIMP_FIRST_CASE", 0);
    Sweep s = sweep_new(pool, number_of("SCRIMP_CASES", CASES), (int)first);
    in_children(&s, 0, s.n_cases, find_case, &first);
    for (int from = 0; from < s.n_cases; from += FARM_CASES)
        run_batch(&s, from, from + FARM_CASES < s.n_cases ? from + FARM_CASES : s.n_cases);
    report(&s);
    return test_result();
}
