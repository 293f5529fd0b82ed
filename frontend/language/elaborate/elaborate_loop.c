/* SPDX-License-Identifier: GPL-3.0-or-later */
/* scan: a block becomes the body of a loop.  Its operations are added to a graph of their own; what
 * it uses of the graph around it (parameters, the state of random numbers) is handed in. */
#include "frontend/language/elaborate/builtins_table.h"

#include "ir/loop.h"

#include <inttypes.h>
#include <string.h>

/* What is elaborated while a loop's body is: its graph, and the one around it. */
struct LoopScope {
    LoopScope *outer;
    Graph *g; /* around the loop; while that one is elaborated (swap), the body */
    Map constants;
    SpanVec node_spans;
    ValueId rng;
    int64_t steps;
    VEC(ValueId) captured, inner; /* of the graph around, and as inputs of the body */
    ValueId numbers,
        inner_numbers; /* the states of random numbers, a row a step; VALUE_NONE: none */
};

/* From the body to the graph around it, and back. */
static void swap_graphs(Elab *l, LoopScope *s)
{
    Graph *g = l->g;
    Map constants = l->constants;
    SpanVec node_spans = l->node_spans;
    ValueId rng = l->rng;
    l->g = s->g;
    l->constants = s->constants;
    l->node_spans = s->node_spans;
    l->rng = s->rng;
    s->g = g;
    s->constants = constants;
    s->node_spans = node_spans;
    s->rng = rng;
}

static void go_out(Elab *l)
{
    LoopScope *s = l->loop;
    swap_graphs(l, s);
    l->loop = s->outer;
}

static void go_in(Elab *l, LoopScope *s)
{
    swap_graphs(l, s);
    l->loop = s;
}

static ValueId body_input(Elab *l, const Type *type, const char *name, Span span)
{
    AttrList none = {.n = 0};
    return elab_source(l, OP_input, *type, &none, name, span);
}

/* The body's input for a value of the graph around it. */
static ValueId capture(Elab *l, LoopScope *s, ValueId outer, Span span)
{
    if (outer == VALUE_NONE)
        return VALUE_NONE;
    for (size_t i = 0; i < s->captured.len; i++)
        if (s->captured.data[i] == outer)
            return s->inner.data[i];
    const Value *v = graph_value(s->g, outer);
    const Type type = v->type;
    ValueId inner = body_input(l, &type, pool_printf(l->pool, "%%%s", v->name + 1), span);
    vec_push(l->pool, &s->captured, outer);
    vec_push(l->pool, &s->inner, inner);
    return inner;
}

ValueId loop_outer_parameter(Elab *l, OpKind op, const char *name, Type type, const InitSpec *init,
                             int64_t fan_in, int64_t fan_out, Span span)
{
    LoopScope *s = l->loop;
    go_out(l);
    ValueId v = elab_parameter(l, op, name, type, init, fan_in, fan_out, span);
    go_in(l, s);
    return capture(l, s, v, span);
}

ValueId loop_outer_find(Elab *l, const char *full, Span span)
{
    LoopScope *s = l->loop;
    go_out(l);
    ValueId v = elab_find(l, full, span);
    go_in(l, s);
    return capture(l, s, v, span);
}

/* i32[steps, 4]: the state of random numbers with the number of the step in its highest part, which
 * steps of training do not reach.  Numbers of nested loops are digits of one number. */
static ValueId states_of_steps(Elab *l, const LoopScope *s, Span span)
{
    int64_t digit = 1, all = 0;
    bool fits = true;
    for (const LoopScope *o = l->loop; o && fits; o = o->outer)
        fits = size_mul(digit, o->steps, &digit);
    if (!fits || !size_mul(digit, s->steps, &all) || all > INT32_MAX) {
        elab_error(l, span, "E108",
                   "random numbers in more than 2,147,483,647 steps of scans in each other");
        return VALUE_NONE;
    }
    ValueId rng = elab_rng(l, span);
    const int64_t column[] = {s->steps, 1}, row[] = {s->steps};
    AttrList count = {.n = 0}, place = {.n = 0};
    attrs_ints(&count, ATTR_shape, row, 1);
    ValueId steps = elab_node(l, OP_iota, NULL, 0, &count, NULL, span);
    ValueId unit = elab_constant(l, DTYPE_I32, (double)digit, span);
    steps = elab_node2(l, OP_mul, steps, unit, NULL, NULL, span);
    steps = elab_reshape(l, steps, column, 2, NULL, span);
    attrs_ints(&place, ATTR_lo, (const int64_t[]){0, 3}, 2);
    attrs_ints(&place, ATTR_hi, (const int64_t[]){0, 0}, 2);
    ValueId high = elab_node1(l, OP_pad, steps, &place, NULL, span);
    return elab_node2(l, OP_add, high, rng, NULL, NULL, span);
}

ValueId loop_rng(Elab *l, Span span)
{
    LoopScope *s = l->loop;
    const int64_t dims[] = {4};
    const Type state = type_make(DTYPE_I32, 1, dims);
    if (s->inner_numbers != VALUE_NONE)
        return s->inner_numbers;
    go_out(l);
    s->numbers = states_of_steps(l, s, span);
    go_in(l, s);
    if (s->numbers == VALUE_NONE)
        return VALUE_NONE;
    return s->inner_numbers = body_input(l, &state, "%rng", span);
}

/* ---- the call ---- */

typedef struct ScanCall {
    BuiltinCall *c;
    LoopScope scope;
    VEC(ValueId) in; /* of the graph around: carries, slices, constants */
    VEC(Val) args;   /* of the block */
    VEC(Span) arg_spans;
    int carries, slices;
    ValList constants;
} ScanCall;

/* A tensor or a list of tensors; false after a message. */
static bool take_tensors(ScanCall *s, int arg, const char *what, int *count)
{
    Elab *l = s->c->l;
    const Val given = s->c->arg[arg];
    const ValList list = given.kind == VAL_LIST     ? given.list
                         : given.kind == VAL_TENSOR ? (ValList){&given, 1}
                                                    : (ValList){NULL, 0};
    if (given.kind != VAL_LIST && given.kind != VAL_TENSOR && given.kind != VAL_NONE)
        return want_tensor(l, given, s->c->arg_span[arg], what);
    for (int i = 0; i < list.len; i++) {
        if (!want_tensor(l, list.data[i], s->c->arg_span[arg], what))
            return false;
        vec_push(l->pool, &s->in, list.data[i].tensor);
    }
    *count = list.len;
    return true;
}

/* The body gets constants of most kinds; tensors become inputs of the loop. */
static void take_constants(ScanCall *s)
{
    const Val given = s->c->arg[3];
    if (given.kind == VAL_LIST)
        s->constants = given.list;
    else if (given.kind != VAL_NONE)
        s->constants = (ValList){&s->c->arg[3], 1};
}

static bool read_steps(ScanCall *s)
{
    BuiltinCall *c = s->c;
    int64_t steps = arg_given(c, 4) ? arg_int(c, 4) : 0;
    for (int i = s->carries; i < s->carries + s->slices; i++) {
        const Type *t = elab_type(c->l, s->in.data[i]);
        int64_t n = t->rank ? t->dim[0] : 0;
        if (!n || (steps && steps != n)) {
            elab_error(c->l, c->arg_span[2], "E101",
                       n ? "scan goes over dimension 0 of its slices: %s, and %" PRId64 " steps"
                         : "scan goes over dimension 0 of its slices, and %s has none",
                       type_text(c->l->pool, t), steps);
            return false;
        }
        steps = n;
    }
    if (steps < 1 || steps > INT32_MAX) {
        if (elab_error(c->l, c->span, "E206", "scan does not know how many steps there are"))
            diag_help(c->l->diag, "give it slices, or steps = 10");
        return false;
    }
    s->scope.steps = steps;
    return true;
}

static Type element_type(const Type *t)
{
    return type_make(t->dtype, t->rank - 1, t->dim + 1);
}

/* A constant as the body sees it: its tensors are inputs of the body. */
static Val constant_inside(ScanCall *s, Val v)
{
    Elab *l = s->c->l;
    if (v.kind == VAL_TENSOR)
        return val_tensor(capture(l, l->loop, v.tensor, s->c->span));
    if (v.kind == VAL_SEQ || v.kind == VAL_SOURCE) { /* what they know are tensors from outside */
        elab_error(l, s->c->arg_span[3], "E205", "%s cannot go into a scan; a block can",
                   val_kind_name(v.kind));
        return val_poison();
    }
    if (v.kind != VAL_LIST)
        return v;
    Val *items = POOL_ARRAY(l->pool, (size_t)v.list.len + 1, Val);
    for (int i = 0; i < v.list.len; i++)
        items[i] = constant_inside(s, v.list.data[i]);
    return val_list(items, v.list.len);
}

/* The graph of the body, with its inputs, is what is elaborated from here on. */
static void begin_body(ScanCall *s)
{
    Elab *l = s->c->l;
    s->scope.outer = l->loop;
    s->scope.g = graph_new(l->pool, "body");
    s->scope.g->kind = "body";
    s->scope.constants = map_new(l->pool);
    s->scope.rng = s->scope.numbers = s->scope.inner_numbers = VALUE_NONE;
    LoopScope *scope = &s->scope;
    Graph *around = l->g;
    swap_graphs(l, scope);
    l->loop = scope;
    for (size_t i = 0; i < s->in.len; i++) {
        const Value *v = graph_value(around, s->in.data[i]);
        bool slice = (int)i >= s->carries && (int)i < s->carries + s->slices;
        Type type = slice ? element_type(&v->type) : v->type;
        ValueId inner = body_input(l, &type, pool_printf(l->pool, "%%%s", v->name + 1), s->c->span);
        vec_push(l->pool, &s->args, val_tensor(inner));
        vec_push(l->pool, &s->arg_spans, s->c->span);
    }
    for (int i = 0; i < s->constants.len; i++) {
        vec_push(l->pool, &s->args, constant_inside(s, s->constants.data[i]));
        vec_push(l->pool, &s->arg_spans, s->c->arg_span[3]);
    }
}

/* The inputs of the body in the order of the loop's: carries, slices, constants. */
static void order_inputs(ScanCall *s, Graph *body)
{
    Pool *pool = s->c->l->pool;
    VEC(NodeId) order = {0};
    VEC(ValueId) in = {0};
    int split = s->carries + s->slices;
    for (int i = 0; i < split; i++) {
        vec_push(pool, &order, graph_value(body, s->args.data[i].tensor)->def);
        vec_push(pool, &in, s->in.data[i]);
    }
    if (s->scope.inner_numbers != VALUE_NONE) {
        vec_push(pool, &order, graph_value(body, s->scope.inner_numbers)->def);
        vec_push(pool, &in, s->scope.numbers);
        s->slices++;
    }
    for (size_t i = 0; i < s->scope.captured.len; i++) {
        vec_push(pool, &order, graph_value(body, s->scope.inner.data[i])->def);
        vec_push(pool, &in, s->scope.captured.data[i]);
    }
    for (size_t k = 0; k < body->order.len; k++)
        if (graph_node(body, body->order.data[k])->op != OP_input)
            vec_push(pool, &order, body->order.data[k]);
    memcpy(body->order.data, order.data, order.len * sizeof *order.data);
    s->in.len = 0;
    for (size_t i = 0; i < in.len; i++)
        vec_push(pool, &s->in, in.data[i]);
}

/* What the block returns: the next carries, then results. */
static bool take_results(ScanCall *s, Val returned, Graph *body)
{
    Elab *l = s->c->l;
    const Val single = returned;
    const ValList list = returned.kind == VAL_LIST ? returned.list : (ValList){&single, 1};
    if (returned.kind == VAL_POISON)
        return false;
    for (int i = 0; i < list.len; i++)
        if (!want_tensor(l, list.data[i], s->c->span, "what the block of a scan returns"))
            return false;
    if (list.len < s->carries) {
        elab_error(l, s->c->span, "E206",
                   "the block of this scan returns %d tensor%s, and has %d to carry", list.len,
                   list.len == 1 ? "" : "s", s->carries);
        return false;
    }
    for (int i = 0; i < list.len; i++) {
        const Type *now = elab_type(l, list.data[i].tensor);
        const Type *first = i < s->carries ? elab_type(l, s->args.data[i].tensor) : now;
        if (!type_equal(now, first)) {
            if (elab_error(l, s->c->span, "E101", "a scan carries %s and its block makes %s of it",
                           type_text(l->pool, first), type_text(l->pool, now)))
                diag_help(l->diag, "what the block returns first has the types of `carry`");
            return false;
        }
        graph_add_output(body, pool_printf(l->pool, "out%d", i), list.data[i].tensor);
    }
    return true;
}

static Val add_loop(ScanCall *s, Graph *body)
{
    BuiltinCall *c = s->c;
    const LoopShape shape = {.steps = s->scope.steps,
                             .carries = s->carries,
                             .slices = s->slices,
                             .reverse = arg_bool(c, 5)};
    NodeId n = elab_loop(c->l, s->in.data, (int)s->in.len, &shape, body,
                         elab_label_name(c->l, c->labelled), c->span);
    if (n == NODE_NONE)
        return val_poison();
    const Node *node = graph_node(c->l->g, n);
    Val *out = POOL_ARRAY(c->l->pool, (size_t)node->n_out, Val);
    for (int i = 0; i < node->n_out; i++)
        out[i] = val_tensor(node->out[i]);
    return node->n_out == 1 ? out[0] : val_list(out, node->n_out);
}

Val builtin_scan(BuiltinCall *c)
{
    Elab *l = c->l;
    ScanCall s = {.c = c};
    if (c->arg[0].kind != VAL_BLOCK) {
        if (elab_error(l, c->arg_span[0], "E205", "`body` of 'scan' must be a block, got %s",
                       val_kind_name(c->arg[0].kind)))
            diag_help(l->diag, "block Cell(h, x) { ...; return h, y }   scan(Cell, h0, xs)");
        return val_poison();
    }
    if (!take_tensors(&s, 1, "what a scan carries", &s.carries) ||
        !take_tensors(&s, 2, "a slice of a scan", &s.slices) || !read_steps(&s))
        return val_poison();
    take_constants(&s);
    int depth = 0;
    for (const LoopScope *o = l->loop; o; o = o->outer)
        depth++;
    if (depth == LOOP_MAX_NESTING) {
        elab_error(l, c->span, "E105", "scans nest at most %d deep", LOOP_MAX_NESTING);
        return val_poison();
    }
    int n_args = (int)s.in.len + s.constants.len;
    if (n_args > c->arg[0].block->n_params) {
        elab_error(l, c->span, "E206", "'%s' takes %d argument%s, and this scan has %d for it",
                   c->arg[0].block->name.text, c->arg[0].block->n_params,
                   c->arg[0].block->n_params == 1 ? "" : "s", n_args);
        return val_poison();
    }
    begin_body(&s);
    Val returned =
        call_block(l, c->arg[0].block, s.args.data, s.arg_spans.data, (int)s.args.len, c->span);
    Graph *body = l->g;
    bool ok = take_results(&s, returned, body);
    LoopScope *scope = &s.scope;
    swap_graphs(l, scope);
    l->loop = scope->outer;
    if (!ok)
        return val_poison();
    order_inputs(&s, body);
    return add_loop(&s, body);
}
