/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise operations inside of other kernels' loops. */
#include "codegen/cpu/point/point_jit.h"

#include "ir/support/bug.h"

/* Leaves are loads whose access carries (value, axis, word) in (buf, stride[0], stride[1]).  The
 * sum of a product is no value in memory: it is rounded here. */
static int leaf(void *user, PointProgram *p, ValueId v, int axis, int word)
{
    const Graph *g = user;
    const Type *t = value_type(g, v);
    PointAccess a = {.buf = (int)v, .dtype = t->dtype, .stride = {axis, word}};
    bool sum = op_table[value_node(g, v)->op].op_class == OP_CLASS_MATRIX;
    return point_round(p, point_load(p, a), sum ? t->dtype : DTYPE_F32);
}

static JitValue load(Jit *j, const PointAccess *a, const PointSource *s)
{
    ValueId v = (ValueId)a->buf;
    if (a->stride[1] >= 0)
        return jit_tmp(j, jit_splat(j, s->word(s->user, v, (int)a->stride[1])));
    return s->value(s->user, v, (int)a->stride[0]);
}

typedef enum Place { PLACE_LINEAR, PLACE_ROW, PLACE_COLUMN } Place;

/* Which of the places that a PointSource knows an access is. */
static Place place_of(const PointProgram *p, const PointAccess *a)
{
    int last = p->rank - 1;
    int64_t step = 1;
    bool linear = true, others = false;
    for (int d = last; d >= 0; d--) {
        linear &= p->dim[d] == 1 || a->stride[d] == step;
        others |= d < last && a->stride[d] != 0;
        step *= p->dim[d];
    }
    if (linear)
        return PLACE_LINEAR;
    if (!others)
        return PLACE_COLUMN;
    if (a->stride[last] == 0 && a->stride[last - 1] == 1)
        return PLACE_ROW;
    BUG("random numbers for a broadcast value in the body of a matrix kernel");
}

static JitValue coordinate(Jit *j, const PointProgram *p, const PointInstr *i, const PointSource *s)
{
    const JitTypes *t = jit_types(j);
    Place kind = place_of(p, &p->access.data[i->access]);
    if (kind == PLACE_ROW)
        return jit_tmp(j, jit_splat(j, jit_cast(j, s->row(s->user), t->i32)));
    JitValue at = jit_tmp(j, kind == PLACE_LINEAR ? s->linear(s->user) : s->column(s->user));
    return point_place_word(j, at, true, i->op == POINT_COORDINATE_HIGH);
}

static JitValue emit(Jit *j, const PointProgram *p, const PointInstr *i, const JitValue *value,
                     const PointSource *s)
{
    JitValue in[POINT_MAX_IN];
    if (i->op == POINT_LOAD)
        return load(j, &p->access.data[i->access], s);
    if (i->op == POINT_NUMBER)
        BUG("a number in the body of a matrix kernel");
    if (i->op == POINT_BIT && place_of(p, &p->access.data[i->access]) != PLACE_LINEAR)
        BUG("bits of a broadcast value in the body of a matrix kernel");
    if (i->op == POINT_BIT)
        return s->bits(s->user, (ValueId)p->access.data[i->access].buf);
    if (i->op == POINT_COORDINATE || i->op == POINT_COORDINATE_HIGH)
        return coordinate(j, p, i, s);
    for (int k = 0; k < i->n_in; k++)
        in[k] = value[i->in[k]];
    return point_apply(j, i, in);
}

void point_emit_body(Jit *j, const Graph *body, const ValueId *wanted, int n_wanted,
                     const PointSource *source, JitValue *result)
{
    Pool *pool = pool_new();
    if (!pool)
        BUG("out of memory");
    union {
        const Graph *in;
        void *out;
    } user = {body};
    PointProgram *p = point_program(pool, value_type(body, wanted[0]));
    int *reg = POOL_ARRAY(pool, (size_t)n_wanted, int);
    point_add_body(p, body, wanted, n_wanted, reg, leaf, user.out);
    JitValue *value = POOL_ARRAY(pool, p->instr.len, JitValue);
    jit_round_products(j, true); /* as where the operations stand alone */
    for (size_t i = 0; i < p->instr.len; i++)
        value[i] = emit(j, p, &p->instr.data[i], value, source);
    for (int i = 0; i < n_wanted; i++)
        result[i] = value[reg[i]];
    jit_round_products(j, false);
    pool_free(pool);
}
