/* Random small graphs: shapes and inputs to draw from.  Included by one file of a test; everything
 * is static. */
#ifndef SCRIMP_TESTS_CASE_INPUTS_H
#define SCRIMP_TESTS_CASE_INPUTS_H

#include "ir/graph.h"

#include <string.h>

enum { CASE_MAX_INPUTS = 8 };

/* A small graph with random inputs; `ok` is false when the drawn shapes do not fit. */
typedef struct Case {
    Pool *pool;
    Graph *g;
    uint64_t rng;
    bool ok;
    int n_in;
    ValueId in[CASE_MAX_INPUTS];
    double *data[CASE_MAX_INPUTS];
    ValueId out; /* what the loss weighs and adds up */
} Case;

typedef void CaseGenerator(Case *c);
static const Loc case_nowhere = {0, 0};

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t case_bits(Case *c)
{
    uint64_t z = c->rng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* low..high inclusive */
static int64_t case_int(Case *c, int64_t low, int64_t high)
{
    return low + (int64_t)(case_bits(c) % (uint64_t)(high - low + 1));
}

static bool case_coin(Case *c)
{
    return case_bits(c) & 1;
}

static double case_uniform(Case *c, double low, double high)
{
    return low + (high - low) * (double)(case_bits(c) >> 11) * 0x1p-53;
}

static ValueId add_input(Case *c, Type t, double **data)
{
    ValueId v = graph_add_source(c->g, OP_input, t, NULL, "%in", case_nowhere);
    c->in[c->n_in] = v;
    *data = c->data[c->n_in++] = POOL_ARRAY(c->pool, (size_t)type_elements(&t), double);
    return v;
}

/* A new input filled with uniform numbers. */
static ValueId case_input(Case *c, Type t, double low, double high)
{
    double *data;
    ValueId v = add_input(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = case_uniform(c, low, high);
    return v;
}

static ValueId normal_input(Case *c, Type t)
{
    return case_input(c, t, -2, 2);
}

/* Values off a kink at 0. */
static ValueId kinkless_input(Case *c, Type t)
{
    double *data;
    ValueId v = add_input(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = case_uniform(c, 0.1, 2) * (case_coin(c) ? 1 : -1);
    return v;
}

/* Multiples of 0.1, plus `shift`, all different, in random order. */
static ValueId distinct_input(Case *c, Type t, double shift)
{
    double *data;
    ValueId v = add_input(c, t, &data);
    int64_t n = type_elements(&t);
    for (int64_t i = 0; i < n; i++) {
        int64_t j = case_int(c, 0, i);
        data[i] = data[j];
        data[j] = 0.1 * (double)(i - n / 2) + shift;
    }
    return v;
}

static ValueId integer_input(Case *c, Type t, DType dtype, int64_t low, int64_t high)
{
    double *data;
    t.dtype = dtype;
    ValueId v = add_input(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = (double)case_int(c, low, high);
    return v;
}

/* Rank low..high, dims 1..4. */
static Type any_shape(Case *c, int low, int high)
{
    Type t = {.dtype = DTYPE_F32, .rank = (int)case_int(c, low, high)};
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = case_int(c, 1, 4);
    return t;
}

/* A shape that broadcasts to t: some leading dims dropped, some dims 1. */
static Type smaller_shape(Case *c, Type t)
{
    int drop = case_coin(c) ? 0 : (int)case_int(c, 0, t.rank);
    memmove(t.dim, t.dim + drop, (size_t)(t.rank - drop) * sizeof *t.dim);
    t.rank -= drop;
    for (int i = 0; i < t.rank; i++)
        if (case_int(c, 0, 2) == 0)
            t.dim[i] = 1;
    return t;
}

/* Two shapes that broadcast together, neither of them always the larger. */
static void two_shapes(Case *c, Type *a, Type *b)
{
    Type t = any_shape(c, 0, 4);
    *a = case_coin(c) ? t : smaller_shape(c, t);
    *b = case_coin(c) ? t : smaller_shape(c, t);
}

static Type shape_of(int rank, const int64_t *dims)
{
    return type_make(DTYPE_F32, rank, dims);
}
#define SHAPE(...)                                                                                 \
    shape_of((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* Adds the operation under test. */
static void finish(Case *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs)
{
    ShapeError err;
    NodeId n = graph_try_add(c->g, op, in, n_in, attrs, NULL, case_nowhere, &err);
    c->ok = n != NODE_NONE;
    if (c->ok)
        c->out = graph_node(c->g, n)->out[0];
}

static void finish_on_inputs(Case *c, OpKind op, const AttrList *attrs)
{
    finish(c, op, c->in, c->n_in, attrs);
}

#endif
