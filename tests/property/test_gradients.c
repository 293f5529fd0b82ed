/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every gradient rule against central differences in double: each operation of the table that has a
 * rule, on random shapes.  An operation with a rule and no generator is a failure. */
#include "check.h"
#include "op_cases.h"

#include "ir/eval.h"
#include "ir/support/map.h"
#include "ir/verify.h"
#include "passes/autodiff/autodiff.h"
#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASES_PER_OP = 24, TRIES_PER_OP = 2000, ELEMENTS_PER_INPUT = 24 };
static const uint64_t first_seed = 20260721;
static const Loc nowhere = {0};

static OpCase case_new(Pool *pool, uint64_t seed)
{
    OpCase c = {.pool = pool,
                .g = graph_new(pool, "case"),
                .rng = seed,
                .small = true,
                .node = NODE_NONE,
                .out = VALUE_NONE};
    return c;
}

/* loss = sum(out * weights) */
static ValueId add_loss(OpCase *c)
{
    const Type t = *value_type(c->g, c->out);
    ValueId in[2] = {c->out, op_floats(c, t, -1, 1)};
    ValueId product = graph_add(c->g, OP_mul, in, 2, NULL, NULL, nowhere);
    return graph_add(c->g, OP_sum, &product, 1, NULL, "%loss", nowhere);
}

static EvalState *state_of(const OpCase *c, const Graph *g)
{
    EvalState *s = eval_new(c->pool, g);
    for (int i = 0; i < c->n_in; i++)
        eval_set(s, c->in[i], c->data[i]);
    return s;
}

static double loss_with(EvalState *s, const OpCase *c, ValueId loss, int input, int64_t at,
                        double x)
{
    double kept = c->data[input][at];
    c->data[input][at] = x;
    eval_set(s, c->in[input], c->data[input]);
    c->data[input][at] = kept;
    eval_run(s, false);
    double value = eval_get(s, loss)[0];
    eval_set(s, c->in[input], c->data[input]);
    return value;
}

/* Compares one input's gradient (zeros when analytic is NULL) at some of its elements. */
static bool check_input(OpCase *c, EvalState *s, ValueId loss, int input, const double *analytic,
                        double seed)
{
    int64_t count = type_elements(value_type(c->g, c->in[input]));
    for (int i = 0; i < ELEMENTS_PER_INPUT && i < count; i++) {
        int64_t at = count <= ELEMENTS_PER_INPUT ? i : op_int(c, 0, count - 1);
        double x = c->data[input][at], h = 1e-5;
        double numeric =
            seed *
            (loss_with(s, c, loss, input, at, x + h) - loss_with(s, c, loss, input, at, x - h)) /
            (2 * h);
        double given = analytic ? analytic[at] : 0;
        if (!(fabs(given - numeric) <= 2e-6 * (1 + fabs(numeric)))) {
            fprintf(stderr, "input %d element %lld: rule %.9g, differences %.9g\n", input,
                    (long long)at, given, numeric);
            return false;
        }
    }
    return true;
}

/* Differentiates the case with respect to some of its float inputs, most often all, and compares.
 */
static bool check_case(OpCase *c, bool all)
{
    ValueId wrt[OP_CASE_INPUTS], grad[OP_CASE_INPUTS], loss = add_loss(c);
    int index[OP_CASE_INPUTS], n = 0;
    for (int i = 0; i < c->n_in; i++)
        if (dtype_is_float(value_type(c->g, c->in[i])->dtype) && (all || op_coin(c))) {
            index[n] = i;
            grad[n] = VALUE_NONE;
            wrt[n++] = c->in[i];
        }
    const Graph *forward = graph_copy(c->pool, c->g);
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_value, 0.75);
    ValueId seed =
        graph_add_source(c->g, OP_const, type_scalar(DTYPE_F32), &attrs, "%seed", nowhere);
    const char *refused = autodiff_gradients(c->g, loss, seed, wrt, n, grad);
    CHECK_MSG(!refused, "%s", refused);
    EvalState *numeric = state_of(c, forward), *analytic = state_of(c, c->g);
    eval_run(analytic, false);
    bool ok = true;
    for (int i = 0; i < n && ok; i++) {
        bool same = grad[i] == VALUE_NONE ||
                    type_equal(value_type(c->g, grad[i]), value_type(c->g, wrt[i]));
        CHECK_MSG(same, "type of the gradient of input %d", index[i]);
        ok = same && check_input(c, numeric, loss, index[i],
                                 grad[i] == VALUE_NONE ? NULL : eval_get(analytic, grad[i]), 0.75);
    }
    const char *message = NULL;
    bool well_formed = graph_verify(c->g, &message);
    CHECK_MSG(well_formed, "%s", message);
    return ok && well_formed;
}

static void check_op(OpKind op)
{
    int done = 0;
    if (!grad_case_table[op]) {
        CHECK_MSG(false, "%s has a gradient rule and no generator", op_name(op));
        return;
    }
    for (uint64_t i = 0; i < TRIES_PER_OP && done < CASES_PER_OP; i++) {
        uint64_t seed = first_seed + hash_bytes(op_name(op), strlen(op_name(op)), 0) + i;
        Pool *pool = pool_new();
        OpCase c = case_new(pool, seed);
        grad_case_table[op](&c);
        if (c.out != VALUE_NONE) {
            bool right = check_case(&c, op_coin(&c));
            CHECK_MSG(right, "%s, seed %llu", op_name(op), (unsigned long long)seed);
            done++;
        }
        pool_free(pool);
    }
    CHECK_MSG(done == CASES_PER_OP, "%s: only %d of the drawn shapes fit", op_name(op), done);
}

/* Parts of values: split in three (the gradients make one concat), a gap (one concat with zeros), a
 * piece used twice, the whole beside its pieces. */
static ValueId piece(OpCase *c, ValueId x, int axis, const int64_t *cut)
{
    const Type t = *value_type(c->g, x);
    AttrList attrs = {0};
    int64_t start[2] = {0}, limit[2] = {t.dim[0], t.dim[1]};
    start[axis] = cut[0];
    limit[axis] = cut[1];
    attrs_ints(&attrs, ATTR_start, start, 2);
    attrs_ints(&attrs, ATTR_limit, limit, 2);
    return graph_add(c->g, OP_slice, &x, 1, &attrs, NULL, nowhere);
}

static ValueId product(OpCase *c, ValueId a, ValueId b)
{
    return graph_add(c->g, OP_mul, (const ValueId[]){a, b}, 2, NULL, NULL, nowhere);
}

static int count_op(const Graph *g, OpKind op)
{
    int n = 0;
    for (size_t i = 0; i < g->order.len; i++)
        n += graph_node(g, g->order.data[i])->op == op;
    return n;
}

/* cuts: first and last+1 along one axis of a square. */
static void check_pieces(int axis, const int64_t (*cuts)[2], int n, bool whole_too, int concats)
{
    Pool *pool = pool_new();
    OpCase c = case_new(pool, first_seed);
    const int64_t dims[2] = {6, 6};
    ValueId x = op_floats(&c, type_make(DTYPE_F32, 2, dims), -2, 2);
    ValueId y = graph_add(c.g, OP_tanh, &x, 1, NULL, NULL, nowhere);
    c.out = piece(&c, y, axis, cuts[0]);
    for (int i = 1; i < n; i++)
        c.out = product(&c, c.out, piece(&c, y, axis, cuts[i]));
    if (whole_too)
        c.out = product(&c, c.out, graph_add(c.g, OP_sum, &y, 1, NULL, NULL, nowhere));
    bool right = check_case(&c, true);
    CHECK_MSG(right, "pieces of a value, axis %d, %d cuts", axis, n);
    CHECK_MSG(count_op(c.g, OP_concat) == concats, "%d concats", count_op(c.g, OP_concat));
    pool_free(pool);
}

static void check_slices(void)
{
    const int64_t split[3][2] = {{4, 6}, {0, 2}, {2, 4}}, gap[2][2] = {{0, 2}, {4, 6}};
    const int64_t twice[2][2] = {{1, 3}, {1, 3}}, all[1][2] = {{0, 6}};
    for (int axis = 0; axis < 2; axis++) {
        check_pieces(axis, split, 3, false, 1);
        check_pieces(axis, split, 3, true, 1);
        check_pieces(axis, gap, 2, false, 1);
        check_pieces(axis, twice, 2, false, 0);
        check_pieces(axis, all, 1, false, 0);
    }
}

/* A slice of any range in every dim, of step 1 or 2. */
static ValueId random_box(OpCase *c, ValueId x)
{
    const Type t = *value_type(c->g, x);
    AttrList attrs = {0};
    int64_t start[3], limit[3], step[3];
    for (int d = 0; d < 3; d++) {
        bool whole = op_coin(c);
        start[d] = whole ? 0 : op_int(c, 0, t.dim[d] - 1);
        limit[d] = whole ? t.dim[d] : op_int(c, start[d] + 1, t.dim[d]);
        step[d] = op_int(c, 0, 9) ? 1 : 2;
    }
    attrs_ints(&attrs, ATTR_start, start, 3);
    attrs_ints(&attrs, ATTR_limit, limit, 3);
    attrs_ints(&attrs, ATTR_step, step, 3);
    return graph_add(c->g, OP_slice, &x, 1, &attrs, NULL, nowhere);
}

/* Slices that overlap, leave gaps, cut one dim or several. */
static void check_boxes(uint64_t seed)
{
    Pool *pool = pool_new();
    OpCase c = case_new(pool, first_seed + seed);
    const int64_t dims[3] = {3, 4, 5};
    ValueId x = op_floats(&c, type_make(DTYPE_F32, 3, dims), -2, 2);
    ValueId y = graph_add(c.g, OP_tanh, &x, 1, NULL, NULL, nowhere);
    int n = (int)op_int(&c, 1, 9);
    for (int i = 0; i < n; i++) {
        ValueId box = random_box(&c, y), squares = product(&c, box, box);
        ValueId sum = graph_add(c.g, OP_sum, &squares, 1, NULL, NULL, nowhere);
        c.out = i ? product(&c, c.out, sum) : sum;
    }
    bool right = check_case(&c, true);
    CHECK_MSG(right, "boxes of a value, seed %llu", (unsigned long long)seed);
    pool_free(pool);
}

/* The elements of all gradients when `count` steps read a row each, or a window of rows, of a value
 * of count + width rows; axis: what a row is. */
static int64_t gradient_elements(int axis, int64_t count, int64_t width)
{
    Pool *pool = pool_new();
    OpCase c = case_new(pool, first_seed);
    int64_t dims[2] = {3, 3}, sum = 0;
    dims[axis] = count + width;
    ValueId x = op_floats(&c, type_make(DTYPE_F32, 2, dims), -2, 2);
    ValueId y = graph_add(c.g, OP_tanh, &x, 1, NULL, NULL, nowhere), last = VALUE_NONE;
    for (int64_t i = 0; i < count; i++) {
        ValueId row = piece(&c, y, axis, (const int64_t[]){i, i + width});
        last = i ? product(&c, last, row) : row;
    }
    ValueId loss = graph_add(c.g, OP_sum, &last, 1, NULL, NULL, nowhere), grad = VALUE_NONE;
    ValueId one = op_scalar(&c, 1, 1);
    size_t before = c.g->values.len;
    autodiff_gradients(c.g, loss, one, &x, 1, &grad);
    for (size_t v = before; v < c.g->values.len; v++)
        sum += type_elements(value_type(c.g, (ValueId)v));
    pool_free(pool);
    return sum;
}

/* Twice the steps, twice the work: not a padded copy of everything for each of them. */
static void check_many_slices(void)
{
    for (int axis = 0; axis < 2; axis++)
        for (int64_t width = 1; width <= 3; width++) {
            int64_t once = gradient_elements(axis, 100, width),
                    twice = gradient_elements(axis, 200, width);
            CHECK_MSG(twice < 2 * once + 100, "axis %d, width %lld: %lld elements, then %lld", axis,
                      (long long)width, (long long)once, (long long)twice);
        }
}

/* Growing lists of features, each joined anew, as cse nests them. */
static void check_lists(int axis, int length)
{
    Pool *pool = pool_new();
    OpCase c = case_new(pool, first_seed + (uint64_t)length);
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, axis);
    ValueId features[OP_CASE_INPUTS], sum = VALUE_NONE;
    for (int i = 0; i < length; i++) {
        int64_t dims[2] = {3, 3};
        dims[axis] = 1 + i % 3;
        ValueId x = op_floats(&c, type_make(DTYPE_F32, 2, dims), -2, 2);
        features[i] = graph_add(c.g, OP_tanh, &x, 1, NULL, NULL, nowhere);
        if (i == 0)
            continue;
        ValueId all = graph_add(c.g, OP_concat, features, i + 1, &attrs, NULL, nowhere);
        all = product(&c, all, all);
        all = graph_add(c.g, OP_sum, &all, 1, NULL, NULL, nowhere);
        sum = i == 1 ? all : product(&c, sum, all);
    }
    graph_add_output(c.g, "product", sum);
    PassContext ctx = {.graph = c.g, .pool = pool};
    CHECK(passes_run(&ctx, "cse", NULL, NULL));
    c.out = graph_output(c.g, "product");
    int pairs = 0;
    for (size_t i = 0; i < c.g->order.len; i++) {
        const Node *n = graph_node(c.g, c.g->order.data[i]);
        pairs += n->op == OP_concat && n->n_in == 2;
    }
    CHECK_MSG(pairs == length - 1, "%d of %d lists are pairs", pairs, length - 1);
    CHECK_MSG(check_case(&c, true), "lists, axis %d, length %d", axis, length);
    pool_free(pool);
}

static const char *const grad_rules[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, ...) [OP_##name] = #grad,
#include "ir/ops.def"
#undef OP
};

int main(void)
{
    printf("seed %llu\n", (unsigned long long)first_seed);
    for (int op = 0; op < OP_COUNT; op++)
        if (strcmp(grad_rules[op], "none") != 0)
            check_op((OpKind)op);
    check_slices();
    check_many_slices();
    for (uint64_t seed = 0; seed < 100; seed++)
        check_boxes(seed);
    for (int length = 2; length < 7; length++)
        for (int axis = 0; axis < 2; axis++)
            check_lists(axis, length);
    return test_result();
}
