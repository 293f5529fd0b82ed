/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The whole training step that autodiff makes, evaluated in double, against an implementation that
 * shares nothing with it: gradients by central differences of the forward graph, optimizers of
 * tests/support/reference_optim.c. */
#include "check.h"

#include "ir/eval.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "tests/support/reference_optim.h"

#include <math.h>
#include <string.h>

static const Loc nowhere = {0};
static const uint64_t first_seed = 20260722;

enum { MAX_TENSORS = 24, STEPS = 3 };

/* Building models */

typedef struct Model {
    Pool *pool;
    Graph *g;
    uint64_t rng;
    const char *name;
} Model;

static double uniform(Model *m, double low, double high)
{
    m->rng = m->rng * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
    return low + (high - low) * (double)(m->rng >> 11) * 0x1p-53;
}

static Type f32(int rank, const int64_t *dims)
{
    return type_make(DTYPE_F32, rank, dims);
}
#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define F32(...) f32(DIMS(__VA_ARGS__))
#define INTS(attrs, key, ...)                                                                      \
    attrs_ints(attrs, key, (int64_t[]){__VA_ARGS__},                                               \
               (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static ValueId param(Model *m, const char *name, Type t)
{
    return graph_add_source(m->g, OP_param, t, NULL, name, nowhere);
}

static ValueId batch(Model *m, const char *field, Type t)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_role, pool_printf(m->pool, "batch.%s", field));
    return graph_add_source(m->g, OP_input, t, &attrs, pool_printf(m->pool, "%%%s", field),
                            nowhere);
}

static ValueId node(Model *m, OpKind op, const AttrList *attrs, int n, const ValueId *in)
{
    return graph_add(m->g, op, in, n, attrs, NULL, nowhere);
}
#define NODE(m, op, attrs, ...)                                                                    \
    node(m, OP_##op, attrs, (int)(sizeof((ValueId[]){__VA_ARGS__}) / sizeof(ValueId)),             \
         (const ValueId[]){__VA_ARGS__})

static ValueId second(const Model *m, ValueId v)
{
    return value_node(m->g, v)->out[1];
}

static void finish_loss(Model *m, ValueId logits, ValueId labels, double smoothing)
{
    AttrList attrs = {0};
    if (smoothing > 0)
        attrs_float(&attrs, ATTR_smoothing, smoothing);
    graph_add_output(m->g, "loss", NODE(m, cross_entropy, &attrs, logits, labels));
    graph_add_output(m->g, "accuracy", NODE(m, accuracy, NULL, logits, labels));
}

static ValueId labels_of(Model *m, Type t)
{
    t.dtype = DTYPE_I32;
    return batch(m, "label", t);
}

static void build_mlp(Model *m)
{
    ValueId x = batch(m, "x", F32(4, 3)), labels = labels_of(m, F32(4));
    ValueId w1 = param(m, "$fc1.weight", F32(5, 3)), b1 = param(m, "$fc1.bias", F32(5));
    ValueId w2 = param(m, "$fc2.weight", F32(3, 5));
    param(m, "$unused", F32(2)); /* PyTorch leaves what has no gradient alone */
    ValueId h = NODE(m, silu, NULL, NODE(m, linear, NULL, x, w1, b1));
    finish_loss(m, NODE(m, linear, NULL, h, w2), labels, 0);
}

static void add_running(Model *m, ValueId buffer, ValueId statistic, double scale)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_momentum, 0.1);
    attrs_float(&attrs, ATTR_scale, scale);
    ValueId v = NODE(m, bn_running, &attrs, buffer, statistic);
    graph_value(m->g, v)->writes = buffer;
}

static void build_conv(Model *m)
{
    ValueId x = batch(m, "x", F32(2, 2, 5, 5)), labels = labels_of(m, F32(2));
    ValueId w = param(m, "$conv.weight", F32(3, 2, 3, 3));
    ValueId gamma = param(m, "$bn.weight", F32(3)), beta = param(m, "$bn.bias", F32(3));
    ValueId fc = param(m, "$fc.weight", F32(4, 12));
    ValueId mean = graph_add_source(m->g, OP_buffer, F32(3), NULL, "$bn.running_mean", nowhere);
    ValueId var = graph_add_source(m->g, OP_buffer, F32(3), NULL, "$bn.running_var", nowhere);
    AttrList conv = {0}, pool = {0}, flat = {0};
    INTS(&conv, ATTR_padding, 1, 1);
    INTS(&pool, ATTR_kernel, 2, 2);
    INTS(&flat, ATTR_shape, 2, 12);
    ValueId y = NODE(m, conv2d, &conv, x, w), stats = NODE(m, bn_stats, NULL, y);
    add_running(m, mean, stats, 1);
    add_running(m, var, second(m, stats), 50.0 / 49);
    y = NODE(m, bn_apply, NULL, y, stats, second(m, stats), gamma, beta);
    y = NODE(m, avgpool, &pool, NODE(m, tanh, NULL, y));
    finish_loss(m, NODE(m, linear, NULL, NODE(m, reshape, &flat, y), fc), labels, 0.1);
}

/* Head `part` (q, k or v) of a joint projection: [2,4,3*6] -> [2,2,4,3] */
static ValueId take_head(Model *m, ValueId qkv, int64_t part)
{
    AttrList cut = {0}, shape = {0}, perm = {0};
    INTS(&cut, ATTR_start, 0, 0, part * 6);
    INTS(&cut, ATTR_limit, 2, 4, part * 6 + 6);
    INTS(&shape, ATTR_shape, 2, 4, 2, 3);
    INTS(&perm, ATTR_perm, 0, 2, 1, 3);
    return NODE(m, transpose, &perm, NODE(m, reshape, &shape, NODE(m, slice, &cut, qkv)));
}

static ValueId attend(Model *m, ValueId x, bool with_dropout)
{
    ValueId w = param(m, "$attn.weight", F32(6, 18)), out = param(m, "$proj.weight", F32(6, 6));
    AttrList in_out = {0}, tb = {0}, perm = {0}, shape = {0}, drop = {0}, scale = {0};
    attrs_int(&in_out, ATTR_in_out, 1);
    attrs_int(&tb, ATTR_tb, 1);
    attrs_float(&scale, ATTR_value, 0.57735);
    INTS(&perm, ATTR_perm, 0, 2, 1, 3);
    INTS(&shape, ATTR_shape, 2, 4, 6);
    ValueId qkv = NODE(m, linear, &in_out, x, w);
    ValueId q = take_head(m, qkv, 0), k = take_head(m, qkv, 1), v = take_head(m, qkv, 2);
    ValueId c = graph_add_source(m->g, OP_const, type_scalar(DTYPE_F32), &scale, "%scale", nowhere);
    ValueId a = NODE(m, mul, NULL, NODE(m, matmul, &tb, q, k), c);
    a = NODE(m, softmax, NULL, NODE(m, causal_mask, NULL, a));
    if (with_dropout) {
        AttrList rng = {0};
        attrs_string(&rng, ATTR_role, "rng");
        attrs_float(&drop, ATTR_p, 0.25);
        attrs_int(&drop, ATTR_key, 77);
        Type four = type_make(DTYPE_I32, DIMS(4));
        a = NODE(m, dropout, &drop, a,
                 graph_add_source(m->g, OP_input, four, &rng, "%rng", nowhere));
    }
    ValueId y = NODE(m, transpose, &perm, NODE(m, matmul, NULL, a, v));
    return NODE(m, linear, NULL, NODE(m, reshape, &shape, y), out);
}

static void build_transformer(Model *m)
{
    Type tokens = type_make(DTYPE_I32, DIMS(2, 4));
    ValueId ids = batch(m, "x", tokens), labels = labels_of(m, tokens);
    ValueId wte = param(m, "$wte.weight", F32(5, 6)), wpe = param(m, "$wpe.weight", F32(4, 6));
    ValueId gain = param(m, "$ln.weight", F32(6)), shift = param(m, "$ln.bias", F32(6));
    AttrList tb = {0};
    attrs_int(&tb, ATTR_tb, 1);
    ValueId x = NODE(m, add, NULL, NODE(m, embedding, NULL, ids, wte), wpe);
    ValueId normed = NODE(m, layernorm, NULL, x, gain, shift);
    x = NODE(m, add, NULL, x, attend(m, normed, strcmp(m->name, "dropout") == 0));
    x = NODE(m, gelu, NULL, NODE(m, layernorm, NULL, x, gain));
    finish_loss(m, NODE(m, matmul, &tb, x, wte), labels, 0); /* tied head */
}

typedef struct World {
    Model *model;
    const Graph *forward;
    int64_t micro;
    Tensor param[MAX_TENSORS], buffer[MAX_TENSORS],
        input[MAX_TENSORS]; /* input: all micro-batches */
    int n_param, n_buffer, n_input;
} World;

static double draw(Model *m, const Node *n, const Type *t)
{
    if (t->dtype == DTYPE_I32) /* the random state, token ids, labels */
        return floor(uniform(m, 0, strcmp(node_string(n, ATTR_role, ""), "rng") ? 3 : 1000));
    return n->op == OP_buffer ? uniform(m, 0.5, 1.5) : uniform(m, -1, 1);
}

static void add_tensor(World *w, const Node *n)
{
    const Type *t = value_type(w->forward, n->out[0]);
    bool is_batch = strncmp(node_string(n, ATTR_role, ""), "batch.", 6) == 0;
    Tensor a = {.name = graph_value(w->forward, n->out[0])->name, .matrix = t->rank >= 2};
    a.count = type_elements(t) * (is_batch ? w->micro : 1);
    a.rows = t->rank >= 2 ? t->dim[t->rank - 2] : 1;
    a.columns = t->rank >= 1 ? t->dim[t->rank - 1] : 1;
    a.first = t->rank >= 1 ? t->dim[0] : 1;
    a.average = POOL_ARRAY(w->model->pool, (size_t)a.count, double);
    a.a = POOL_ARRAY(w->model->pool, (size_t)a.count, double);
    a.data = POOL_ARRAY(w->model->pool, (size_t)a.count, double);
    a.m = POOL_ARRAY(w->model->pool, (size_t)a.count, double);
    a.v = POOL_ARRAY(w->model->pool, (size_t)a.count, double);
    for (int64_t i = 0; i < a.count; i++)
        a.data[i] = draw(w->model, n, t);
    if (n->op == OP_param)
        w->param[w->n_param++] = a;
    else if (n->op == OP_buffer)
        w->buffer[w->n_buffer++] = a;
    else
        w->input[w->n_input++] = a;
}

static void add_tensors(World *w)
{
    for (size_t i = 0; i < w->forward->order.len; i++) {
        const Node *n = graph_node(w->forward, w->forward->order.data[i]);
        if (node_is_source(n) && n->op != OP_const)
            add_tensor(w, n);
    }
}

/* Puts micro-batch j into a state of the forward graph. */
static void set_forward(const World *w, EvalState *s, int64_t j)
{
    for (int i = 0; i < w->n_input; i++) {
        ValueId v = graph_find(w->forward, w->input[i].name);
        int64_t count = type_elements(value_type(w->forward, v));
        bool all = count == w->input[i].count;
        eval_set(s, v, w->input[i].data + (all ? 0 : j * count));
    }
    for (int i = 0; i < w->n_param; i++)
        eval_set(s, graph_find(w->forward, w->param[i].name), w->param[i].data);
    for (int i = 0; i < w->n_buffer; i++)
        eval_set(s, graph_find(w->forward, w->buffer[i].name), w->buffer[i].data);
}

/* The reference */

/* Mean over the micro-batches; the running statistics pass through them in turn when keep is set.
 */
static double reference_loss(World *w, EvalState *s, bool keep)
{
    double sum = 0;
    for (int64_t j = 0; j < w->micro; j++) {
        set_forward(w, s, j);
        eval_run(s, false);
        sum += eval_get(s, graph_output(w->forward, "loss"))[0];
        if (!keep)
            continue;
        eval_commit(s);
        for (int i = 0; i < w->n_buffer; i++) {
            ValueId v = graph_find(w->forward, w->buffer[i].name);
            memcpy(w->buffer[i].data, eval_get(s, v), (size_t)w->buffer[i].count * sizeof(double));
        }
    }
    return sum / (double)w->micro;
}

static double difference(World *w, EvalState *s, double *x)
{
    double kept = *x, h = 1e-5;
    *x = kept + h;
    double up = reference_loss(w, s, false);
    *x = kept - h;
    double down = reference_loss(w, s, false);
    *x = kept;
    return (up - down) / (2 * h);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* Which of `mixed` a parameter belongs to, decided without patterns; -1: none. */
static int group_by_name(const TrainSpec *t, const Tensor *p)
{
    if (t->n_groups < 2) /* the only group is of vectors */
        return t->n_groups && !p->matrix ? 0 : -1;
    if (ends_with(p->name, ".bias"))
        return 0;
    if (!strcmp(p->name, "$fc2.weight") || !strcmp(p->name, "$attn.weight") ||
        !strcmp(p->name, "$bn.weight"))
        return 1;
    bool first = !strcmp(p->name, "$fc1.weight") || !strcmp(p->name, "$conv.weight") ||
                 !strcmp(p->name, "$wte.weight");
    return first ? 2 : -1;
}

static const UpdateRule *rule_by_name(const TrainSpec *t, const Tensor *p)
{
    int group = group_by_name(t, p);
    return group < 0 ? &t->rule : &t->group[group].rule;
}

static bool is_trained(const TrainSpec *t, const Tensor *p)
{
    int group = group_by_name(t, p);
    return strcmp(p->name, "$unused") != 0 && (group < 0 || !t->group[group].frozen);
}

enum { CLIPPED_ALONE = 2, GROUP_RATE = 3 }; /* a group of `mixed`; how much faster group 0 is */

/* What differences leave of a gradient that is 0, whose sign some optimizers would take. */
static const double NOISE = 1e-9;

/* One step of the reference; *norm is the gradient's before clipping. */
static double reference_step(World *w, EvalState *s, double lr, int t, double *norm)
{
    const TrainSpec *o = &w->forward->train;
    double *grads[MAX_TENSORS], squares[2] = {0}; /* of all others, of the group clipped alone */
    for (int i = 0; i < w->n_param; i++) {
        grads[i] = POOL_ARRAY(w->model->pool, (size_t)w->param[i].count, double);
        for (int64_t k = 0; k < w->param[i].count && is_trained(o, &w->param[i]); k++) {
            grads[i][k] = difference(w, s, &w->param[i].data[k]);
            if (fabs(grads[i][k]) < NOISE)
                grads[i][k] = 0;
            squares[group_by_name(o, &w->param[i]) == CLIPPED_ALONE] += grads[i][k] * grads[i][k];
        }
    }
    double loss = reference_loss(w, s, true);
    *norm = sqrt(squares[0] + squares[1]);
    for (int i = 0; i < w->n_param; i++) {
        int group = group_by_name(o, &w->param[i]);
        const UpdateRule *rule = rule_by_name(o, &w->param[i]);
        double max = group == CLIPPED_ALONE ? rule->clip : o->rule.clip;
        double length = sqrt(squares[group == CLIPPED_ALONE]);
        double clip = max > 0 && length > max ? max / (length + 1e-6) : 1;
        double bound = rule->clip_value > 0 ? rule->clip_value : (double)INFINITY;
        for (int64_t k = 0; k < w->param[i].count; k++)
            grads[i][k] = fmax(fmin(grads[i][k] * clip, bound), -bound);
        bool own_rate = group >= 0 && o->group[group].own_lr;
        if (is_trained(o, &w->param[i]))
            reference_tensor(rule, &w->param[i], grads[i], own_rate ? GROUP_RATE * lr : lr, t);
    }
    return loss;
}

/* The step under test */

static void set_named(EvalState *s, const char *name, const double *data)
{
    ValueId v = graph_find(s->graph, name);
    if (v != VALUE_NONE)
        eval_set(s, v, data);
}

static void set_step(const World *w, EvalState *s)
{
    for (int i = 0; i < w->n_input; i++)
        set_named(s, w->input[i].name, w->input[i].data);
    for (int i = 0; i < w->n_param; i++)
        set_named(s, w->param[i].name, w->param[i].data);
    for (int i = 0; i < w->n_buffer; i++)
        set_named(s, w->buffer[i].name, w->buffer[i].data);
    for (size_t i = 0; i < s->graph->order.len; i++) {
        const Node *n = graph_node(s->graph, s->graph->order.data[i]);
        if (n->op != OP_state)
            continue;
        int64_t count = type_elements(value_type(s->graph, n->out[0]));
        double *start = POOL_ARRAY(w->model->pool, (size_t)count, double), value = 0;
        sscanf(node_string(n, ATTR_init, ""), "value(%lf)", &value);
        for (int64_t k = 0; k < count; k++)
            start[k] = value;
        eval_set(s, n->out[0], start);
    }
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 2e-7 * (1 + fabs(b));
}

static void check_tensor(const World *w, const EvalState *s, const char *name, const double *data,
                         int64_t count)
{
    ValueId v = graph_find(s->graph, name);
    if (v == VALUE_NONE)
        return;
    for (int64_t i = 0; i < count; i++)
        if (!near(eval_get(s, v)[i], data[i])) {
            CHECK_MSG(false, "%s: %s[%lld] is %.10g, expected %.10g", w->model->name, name,
                      (long long)i, eval_get(s, v)[i], data[i]);
            return;
        }
}

/* Who has which state, and which of the reference's it is. */
typedef struct State {
    const char *prefix;
    char which;
    bool (*used)(const UpdateRule *o, const Tensor *p);
} State;

#define USED(name, condition)                                                                      \
    static bool used_##name(const UpdateRule *o, const Tensor *p)                                  \
    {                                                                                              \
        (void)p;                                                                                   \
        return condition;                                                                          \
    }
USED(momentum, o->optim == OPTIM_MUON ||
                   ((o->optim == OPTIM_SGD || o->optim == OPTIM_RMSPROP) && o->momentum != 0))
USED(adam, o->optim == OPTIM_ADAM || o->optim == OPTIM_ADAMW)
USED(rmsprop, o->optim == OPTIM_RMSPROP)
USED(centered, o->optim == OPTIM_RMSPROP && o->centered)
USED(adagrad, o->optim == OPTIM_ADAGRAD)
USED(lion, o->optim == OPTIM_LION)
USED(lamb, o->optim == OPTIM_LAMB)
USED(factors, o->optim == OPTIM_ADAFACTOR && p->matrix)
USED(squares, o->optim == OPTIM_ADAFACTOR && !p->matrix)

enum { N_STATES = 12 };
static const State states[N_STATES] = {{"$m.", 'm', used_momentum},
                                       {"$adam_m.", 'm', used_adam},
                                       {"$adam_v.", 'v', used_adam},
                                       {"$rms_v.", 'v', used_rmsprop},
                                       {"$rms_mean.", 'a', used_centered},
                                       {"$adagrad_sum.", 'v', used_adagrad},
                                       {"$lion_m.", 'm', used_lion},
                                       {"$lamb_m.", 'm', used_lamb},
                                       {"$lamb_v.", 'v', used_lamb},
                                       {"$adafactor_row.", 'm', used_factors},
                                       {"$adafactor_col.", 'v', used_factors},
                                       {"$adafactor_v.", 'v', used_squares}};

/* The running mean after update t, from all weights before: w1, then w1 + (1 - d)(w2 - w1), ... */
static void check_average(const World *w, const EvalState *s, Tensor *p, int t)
{
    double d = w->forward->train.ema;
    const char *name = pool_printf(w->model->pool, "$ema.%s", p->name + 1);
    CHECK_MSG((graph_find(s->graph, name) != VALUE_NONE) ==
                  (d > 0 && is_trained(&w->forward->train, p)),
              "%s", name);
    for (int64_t i = 0; i < p->count; i++)
        p->average[i] = t == 1 ? p->data[i] : d * p->average[i] + (1 - d) * p->data[i];
    if (d > 0)
        check_tensor(w, s, name, p->average, p->count);
}

static void check_state(const World *w, const EvalState *s, const Tensor *p)
{
    const UpdateRule *o = rule_by_name(&w->forward->train, p);
    bool trained = is_trained(&w->forward->train, p);
    CHECK(trained ==
          (graph_find(s->graph, pool_printf(w->model->pool, "$d.%s", p->name + 1)) != VALUE_NONE));
    for (int i = 0; i < N_STATES; i++) {
        const State *state = &states[i];
        bool expected = trained && state->used(o, p);
        const double *data = state->which == 'm' ? p->m : state->which == 'v' ? p->v : p->a;
        const char *name = pool_printf(w->model->pool, "%s%s", state->prefix, p->name + 1);
        ValueId v = graph_find(s->graph, name);
        CHECK_MSG((v != VALUE_NONE) == expected, "%s", name);
        if (v != VALUE_NONE && expected)
            check_tensor(w, s, name, data, type_elements(value_type(s->graph, v)));
    }
}

static void run_steps(World *w, const Graph *step)
{
    EvalState *ours = eval_new(w->model->pool, step);
    EvalState *reference = eval_new(w->model->pool, w->forward);
    set_step(w, ours);
    for (int t = 1; t <= STEPS; t++) {
        double lr = 0.1 / t, group_lr = GROUP_RATE * lr, number = t, norm;
        set_named(ours, "%lr", &lr);
        set_named(ours, "%lr.0", &group_lr);
        set_named(ours, "%step", &number);
        eval_run(ours, false);
        double loss = reference_step(w, reference, lr, t, &norm);
        CHECK_MSG(near(eval_get(ours, graph_output(step, "loss"))[0], loss), "%s: loss",
                  w->model->name);
        CHECK_MSG(near(eval_get(ours, graph_output(step, "grad_norm"))[0], norm), "%s: norm %g %g",
                  w->model->name, eval_get(ours, graph_output(step, "grad_norm"))[0], norm);
        eval_commit(ours);
        for (int i = 0; i < w->n_param; i++) {
            check_tensor(w, ours, w->param[i].name, w->param[i].data, w->param[i].count);
            check_state(w, ours, &w->param[i]);
            check_average(w, ours, &w->param[i], t);
        }
        for (int i = 0; i < w->n_buffer; i++)
            check_tensor(w, ours, w->buffer[i].name, w->buffer[i].data, w->buffer[i].count);
    }
}

static void check_step(void (*build)(Model *), const char *name, const TrainSpec *train)
{
    Pool *pool = pool_new();
    Model m = {pool, graph_new(pool, name), first_seed, name};
    build(&m);
    m.g->train = *train;
    World w = {.model = &m, .micro = train->accumulate};
    w.forward = graph_copy(pool, m.g);
    add_tensors(&w);
    PassContext ctx = {.graph = m.g, .pool = pool};
    bool made = pass_autodiff(&ctx);
    CHECK_MSG(made, "%s", ctx.error.message);
    const char *message = NULL;
    bool well_formed = made && graph_verify(ctx.graph, &message);
    CHECK_MSG(well_formed, "%s: %s", name, message);
    if (well_formed)
        run_steps(&w, ctx.graph);
    pool_free(pool);
}

/* See group_by_name. */
static const ParamGroup mixed_groups[] = {
    {.pattern = "*.bias",
     .own_lr = true,
     .rule = {.optim = OPTIM_SGD, .momentum = 0.9, .clip_value = 0.01}},
    {.pattern = "fc2.weight\nat?n.w*\nbn.weight", .frozen = true},
    {.pattern = "*c1.*\nconv.*\nwte.weight\n*.bias",
     .matrices_only = true,
     .own_clip = true,
     .rule = {.optim = OPTIM_ADAM, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-2, .clip = 0.05}}};

static const ParamGroup vector_group[] = {
    {.pattern = "*", .vectors_only = true, .rule = {.optim = OPTIM_SGD, .momentum = 0.5}}};

int main(void)
{
    const TrainSpec base = {.present = true,
                            .accumulate = 1,
                            .rule = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-2, .optim = OPTIM_SGD}};
    TrainSpec plain = base, momentum = base, nesterov = base, adam = base, adamw = base;
    momentum.rule.momentum = 0.9, momentum.rule.dampening = 0.5, momentum.rule.weight_decay = 0.01;
    nesterov.rule.momentum = 0.8, nesterov.rule.nesterov = true, nesterov.rule.clip = 0.3;
    nesterov.rule.decay_matrices_only = true, nesterov.rule.weight_decay = 0.1;
    adam.rule.optim = OPTIM_ADAM, adam.rule.weight_decay = 0.1, adam.rule.clip = 1e6;
    adamw.rule.optim = OPTIM_ADAMW, adamw.rule.weight_decay = 0.1;
    adamw.rule.decay_matrices_only = true, adamw.rule.clip = 0.1;
    plain.rule.clip_value = 0.02;
    momentum.ema = 0.9; /* which asks for the number of the step itself */
    TrainSpec mixed = adamw;
    mixed.ema = 0.75;
    mixed.group = mixed_groups;
    mixed.n_groups = 3;
    TrainSpec rmsprop = base, centered = base, adagrad = base, lion = base, lamb = base,
              adafactor = base, muon = base, matched = base;
    rmsprop.rule.optim = centered.rule.optim = OPTIM_RMSPROP;
    rmsprop.rule.alpha = 0.9, rmsprop.rule.weight_decay = 0.1, rmsprop.rule.clip = 0.3;
    centered.rule.alpha = 0.8, centered.rule.centered = true, centered.rule.momentum = 0.9;
    adagrad.rule.optim = OPTIM_ADAGRAD, adagrad.rule.lr_decay = 0.5, adagrad.rule.initial = 0.1;
    adagrad.rule.weight_decay = 0.2;
    lion.rule.optim = OPTIM_LION, lion.rule.weight_decay = 0.1, lion.rule.clip = 0.1;
    lion.rule.decay_matrices_only = true;
    lamb.rule.optim = OPTIM_LAMB, lamb.rule.weight_decay = 0.1, lamb.rule.clip_value = 0.02;
    adafactor.rule = (UpdateRule){.optim = OPTIM_ADAFACTOR,
                                  .beta2_decay = -0.8,
                                  .eps = 1e-3,
                                  .clip_update = 0.9,
                                  .weight_decay = 0.1};
    muon.rule = (UpdateRule){.optim = OPTIM_MUON,
                             .momentum = 0.9,
                             .nesterov = true,
                             .ns_steps = 5,
                             .eps = 1e-7,
                             .weight_decay = 0.1};
    matched.rule = muon.rule, matched.rule.nesterov = false, matched.rule.match_rms = true;
    muon.group = matched.group = vector_group;
    muon.n_groups = matched.n_groups = 1;
    const TrainSpec *const all[] = {&plain, &momentum,  &nesterov, &adam,    &adamw,
                                    &mixed, &rmsprop,   &centered, &adagrad, &lion,
                                    &lamb,  &adafactor, &muon,     &matched};
    printf("seed %llu\n", (unsigned long long)first_seed);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int64_t micro = 1; micro <= 3; micro += 2) {
            TrainSpec spec = *all[i];
            spec.accumulate = micro;
            check_step(build_mlp, "mlp", &spec);
            check_step(build_conv, "conv", &spec);
            check_step(build_transformer, "transformer", &spec);
            if (micro == 1) /* with more, every micro-batch has masks of its own */
                check_step(build_transformer, "dropout", &spec);
        }
    return test_result();
}
