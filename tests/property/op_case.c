/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "op_case.h"

#include "ir/eval.h"

#include <string.h>

uint64_t op_bits(OpCase *c)
{
    uint64_t z = c->rng += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

int64_t op_int(OpCase *c, int64_t low, int64_t high)
{
    return low + (int64_t)(op_bits(c) % (uint64_t)(high - low + 1));
}

bool op_coin(OpCase *c)
{
    return op_bits(c) & 1;
}

double op_uniform(OpCase *c, double low, double high)
{
    return low + (high - low) * (double)(op_bits(c) >> 11) * 0x1p-53;
}

ValueId op_source(OpCase *c, Type t, double **data)
{
    ValueId v = graph_add_source(c->g, OP_input, t, NULL, "%in", (Loc){0});
    c->in[c->n_in] = v;
    *data = c->data[c->n_in++] = POOL_ARRAY(c->pool, (size_t)type_elements(&t), double);
    return v;
}

ValueId op_floats(OpCase *c, Type t, double low, double high)
{
    double *data;
    t.dtype = c->bf16 >> c->n_in & 1 ? DTYPE_BF16 : DTYPE_F32;
    ValueId v = op_source(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++) {
        double x = op_uniform(c, low, high);
        data[i] = t.dtype == DTYPE_BF16 ? eval_round_bf16(x) : (double)(float)x;
    }
    return v;
}

ValueId op_inner(OpCase *c, Graph *body, ValueId outer)
{
    return graph_add_source(body, OP_input, *value_type(c->g, outer), NULL, "%inner", (Loc){0});
}

ValueId op_normal(OpCase *c, Type t)
{
    return op_floats(c, t, -3, 3);
}

ValueId op_integers(OpCase *c, Type t, DType dtype, int64_t low, int64_t high)
{
    double *data;
    t.dtype = dtype;
    ValueId v = op_source(c, t, &data);
    for (int64_t i = 0; i < type_elements(&t); i++)
        data[i] = (double)op_int(c, low, high);
    return v;
}

ValueId op_scalar(OpCase *c, double low, double high)
{
    return op_floats(c, type_scalar(DTYPE_F32), low, high);
}

int64_t op_dim(OpCase *c)
{
    static const int64_t dims[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 48, 65};
    if (c->small)
        return op_int(c, 1, 4);
    return dims[op_int(c, 0, (int64_t)(sizeof dims / sizeof *dims) - 1)];
}

Type op_shape(OpCase *c, int low, int high)
{
    Type t = {.dtype = DTYPE_F32, .rank = (int)op_int(c, low, high)};
    int64_t room = 6000;
    for (int i = t.rank - 1; i >= 0; i--) {
        int64_t d = op_dim(c);
        t.dim[i] = d <= room ? d : room;
        room /= t.dim[i];
    }
    if (!c->small && t.rank > 0 && op_int(c, 0, 9) == 0)
        t.dim[op_int(c, 0, t.rank - 1)] *= room > 1 ? room : 1;
    return t;
}

Type op_smaller(OpCase *c, Type t)
{
    int drop = op_coin(c) ? 0 : (int)op_int(c, 0, t.rank);
    memmove(t.dim, t.dim + drop, (size_t)(t.rank - drop) * sizeof *t.dim);
    t.rank -= drop;
    for (int i = 0; i < t.rank; i++)
        if (op_int(c, 0, 2) == 0)
            t.dim[i] = 1;
    return t;
}

void op_pair(OpCase *c, Type t, Type *a, Type *b)
{
    *a = op_coin(c) ? t : op_smaller(c, t);
    *b = op_coin(c) ? t : op_smaller(c, t);
}

Type op_dims(int rank, const int64_t *dims)
{
    return type_make(DTYPE_F32, rank, dims);
}

void op_on(OpCase *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs)
{
    ShapeError err;
    AttrList all = attrs ? *attrs : (AttrList){0};
    if (c->bf16 && op_chooses_result(op) && op_coin(c))
        attrs_string(&all, ATTR_dtype, op_coin(c) ? "bf16" : "f32");
    c->node = graph_try_add(c->g, op, in, n_in, &all, "%out", (Loc){0}, &err);
    c->out = c->node == NODE_NONE ? VALUE_NONE : graph_node(c->g, c->node)->out[0];
}

void op_done(OpCase *c, OpKind op, const AttrList *attrs)
{
    op_on(c, op, c->in, c->n_in, attrs);
}

void op_case_bytes(const Type *t, const double *from, char *to)
{
    int64_t n = type_elements(t);
    for (int64_t i = 0; i < n; i++) {
        float f = (float)from[i];
        int32_t w = t->dtype == DTYPE_I32 ? (int32_t)from[i] : 0;
        unsigned char b =
            t->dtype == DTYPE_F32 || t->dtype == DTYPE_I32 ? 0 : (unsigned char)from[i];
        if (t->dtype == DTYPE_BF16)
            memcpy(to + i * 2, (char *)&f + 2, 2);
        else if (t->dtype == DTYPE_F32)
            memcpy(to + i * 4, &f, 4);
        else if (t->dtype == DTYPE_I32)
            memcpy(to + i * 4, &w, 4);
        else
            memcpy(to + i, &b, 1);
    }
}
