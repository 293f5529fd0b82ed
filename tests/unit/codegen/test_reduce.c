/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reductions that are cut into chunks, along rows and columns, against the reference evaluator:
 * sums, means, sums of squares, and maxima of numbers that are all negative.  Operands and counts
 * are such that every sum and mean is exact. */
#include "check.h"
#include "tests/support/run/exact_case.h"

static const Loc nowhere = {0};

typedef struct Shape {
    int rank, n_axes;
    int64_t dim[3], axes[3];
} Shape;

static const Shape shapes[] = {
    {1, 1, {32768}, {0}},         /* one row, in ranges of it */
    {2, 1, {3, 8192}, {1}},       /* several rows */
    {3, 2, {128, 3, 64}, {0, 2}}, /* rows, in ranges of the outer dim */
    {2, 1, {8192, 5}, {0}},       /* columns */
    {3, 2, {3, 64, 256}, {0, 1}}  /* columns under two dims */
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static ValueId reduced(ExactCase *c, OpKind op, ValueId x, const Shape *s)
{
    AttrList attrs = {0};
    if (op != OP_sumsq)
        attrs_ints(&attrs, ATTR_axes, s->axes, s->n_axes);
    return graph_add(c->g, op, &x, 1, &attrs, NULL, nowhere);
}

static ValueId cast(ExactCase *c, ValueId x, const char *dtype)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_dtype, dtype);
    return graph_add(c->g, OP_cast, &x, 1, &attrs, NULL, nowhere);
}

/* The inputs, from -1.5 to 1.5, lowered by 4. */
static ValueId negative(ExactCase *c, ValueId x, const Shape *s)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, s->dim, s->rank);
    attrs_float(&attrs, ATTR_value, -4);
    ValueId in[2] = {x, graph_add(c->g, OP_full, NULL, 0, &attrs, NULL, nowhere)};
    return graph_add(c->g, OP_add, in, 2, NULL, NULL, nowhere);
}

static void test_sum(OpKind op, int shape)
{
    ExactCase c = exact_case_new();
    const Shape *s = &shapes[shape];
    ValueId out = reduced(&c, op, exact_case_input(&c, s->rank, s->dim), s);
    exact_case_check(&c, out, target_find(NULL),
                     pool_printf(c.pool, "%s of %d", op_name(op), shape));
}

static void test_max(int shape, bool integers)
{
    ExactCase c = exact_case_new();
    const Shape *s = &shapes[shape];
    ValueId x = negative(&c, exact_case_input(&c, s->rank, s->dim), s);
    ValueId out = reduced(&c, OP_reduce_max, integers ? cast(&c, x, "i32") : x, s);
    exact_case_check(&c, integers ? cast(&c, out, "f32") : out, target_find(NULL),
                     pool_printf(c.pool, "reduce_max of %d, integers %d", shape, integers));
}

int main(void)
{
    for (int i = 0; i < N_SHAPES; i++) {
        test_sum(OP_sum, i);
        test_sum(OP_sumsq, i);
        if (i < 4) /* the last divides by 192 */
            test_sum(OP_mean, i);
        test_max(i, false);
        test_max(i, true);
    }
    return test_result();
}
