/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building element-wise programs, from nodes and by hand. */
#include "codegen/cpu/point/pointwise_internal.h"

#include "ir/strided_view.h"
#include "ir/support/bug.h"
#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <string.h>

PointProgram *point_program(Pool *pool, const Type *space)
{
    PointProgram *p = POOL_NEW(pool, PointProgram);
    p->pool = pool;
    p->rank = space->rank;
    for (int i = 0; i < space->rank; i++)
        p->dim[i] = space->dim[i];
    return p;
}

/* Numpy's rule: dims are aligned at the last, dims of size 1 repeat. */
static PointAccess strided_access(const PointProgram *p, int buf, const Type *type, int axis,
                                  const int64_t *stride)
{
    PointAccess a = {.buf = buf, .dtype = type->dtype};
    if (axis >= 0)
        a.stride[axis] = stride[0];
    for (int i = 0; i < type->rank && axis < 0; i++) {
        int d = p->rank - type->rank + i;
        if (d >= 0)
            a.stride[d] = type->dim[i] == 1 ? 0 : stride[i];
    }
    return a;
}

PointAccess point_access(const PointProgram *p, int buf, const Type *type, int axis)
{
    int64_t stride[TYPE_MAX_RANK] = {1}, step = 1;
    for (int i = type->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= type->dim[i];
    }
    return strided_access(p, buf, type, axis, stride);
}

PointAccess point_access_value(const PointProgram *p, int buf, const Graph *g, ValueId v, int axis)
{
    StridedView view = value_view(g, v);
    return strided_access(p, buf, value_type(g, v), axis, view.stride);
}

CallBuf point_buf(const Graph *g, ValueId v)
{
    int64_t bytes = (int64_t)dtype_bytes(value_type(g, v)->dtype);
    return (CallBuf){v, value_view(g, v).base * bytes};
}

int point_push(PointProgram *p, PointInstr instr)
{
    vec_push(p->pool, &p->instr, instr);
    return (int)p->instr.len - 1;
}

static int add_access(PointProgram *p, PointAccess a)
{
    vec_push(p->pool, &p->access, a);
    return (int)p->access.len - 1;
}

int point_load(PointProgram *p, PointAccess access)
{
    PointInstr i = {.op = POINT_LOAD, .dtype = access.dtype, .access = add_access(p, access)};
    return point_push(p, i);
}

int point_coordinate(PointProgram *p, PointAccess place, bool high)
{
    place.buf = -1;
    place.dtype = DTYPE_I32;
    PointInstr i = {.op = high ? POINT_COORDINATE_HIGH : POINT_COORDINATE,
                    .dtype = DTYPE_I32,
                    .access = add_access(p, place)};
    return point_push(p, i);
}

int point_const(PointProgram *p, DType dtype, double value)
{
    PointInstr i = {.op = OP_const, .dtype = dtype, .a = value};
    return point_push(p, i);
}

static DType dtype_of(const PointProgram *p, int reg)
{
    return p->instr.data[reg].dtype;
}

static int add_number(PointProgram *p, DType dtype, int32_t word)
{
    vec_push(p->pool, &p->number, (uint32_t)word);
    PointInstr i = {.op = POINT_NUMBER, .dtype = dtype, .k = (int)p->number.len - 1};
    return point_push(p, i);
}

int32_t point_word(DType dtype, double value)
{
    float f = (float)value;
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return dtype == DTYPE_F32 ? bits : dtype == DTYPE_BOOL ? -(value != 0) : (int32_t)value;
}

int point_number(PointProgram *p, DType dtype, double value)
{
    return add_number(p, dtype, point_word(dtype, value));
}

int point_unary(PointProgram *p, OpKind op, int a)
{
    DType t = dtype_of(p, a);
    PointInstr i = {.op = op, .dtype = t, .from = t, .n_in = 1, .in = {a}};
    return point_push(p, i);
}

int point_binary(PointProgram *p, OpKind op, int a, int b)
{
    DType t = dtype_of(p, a);
    PointInstr i = {.op = op, .dtype = t, .from = t, .n_in = 2, .in = {a, b}};
    return point_push(p, i);
}

void point_store(PointProgram *p, int reg, PointAccess at)
{
    PointStore s = {.reg = reg, .at = at};
    vec_push(p->pool, &p->store, s);
}

/* --- from nodes --- */

/* The instruction of a POINT node (or const): operation, types, attributes; no inputs. */
static PointInstr instr_of(const Graph *g, const Node *n)
{
    PointInstr i = {.op = n->op, .dtype = value_type(g, n->out[0])->dtype};
    i.from = n->n_in ? value_type(g, n->in[0])->dtype : i.dtype;
    if (n->op == OP_const)
        i.a = node_float(n, ATTR_value, 0);
    else if (point_codes[n->op]->describe)
        point_codes[n->op]->describe(g, n, &i);
    return i;
}

int channel_axis(const Type *x, const Node *n)
{
    int64_t axis = node_int(n, ATTR_axis, node_flag(n, ATTR_nhwc) ? -1 : 1);
    return (int)(axis < 0 ? axis + x->rank : axis);
}

/* How operand `in` of n lies when n's result lies as `axis` says. */
static int operand_axis(const Graph *g, const Node *n, int in, int axis)
{
    bool apply = n->op == OP_bn_apply && in >= 1, grad = n->op == OP_bn_grad_x && in >= 2;
    if (!apply && !grad)
        return axis;
    /* Both kinds of operation need their image at full shape: its axis is an axis of the space when
     * it is aligned. */
    if (axis >= 0)
        BUG("%s of a vector along an axis", op_name(n->op));
    return channel_axis(value_type(g, n->in[0]), n);
}

/* --- a body --- */

/* Registers of values, by (value, axis + 1). */
struct BodyMap {
    PointProgram *p;
    const Graph *g;
    const Node *only; /* NULL: every POINT node of the graph is computed */
    int *reg;         /* [value * slots + axis + 1]: register + 1 */
    PointLeaf *leaf;  /* loads what the body does not compute */
    void *user;
};

enum { AXIS_SLOTS = TYPE_MAX_RANK + 1 };

static int body_value(BodyMap *m, ValueId v, int axis);

/* The result's own row-major places, for dropout's index and causal_mask's coordinates. */
static PointAccess own_place(const BodyMap *m, const Type *t)
{
    return point_access(m->p, -1, t, -1);
}

static PointAccess coordinate_of(const PointProgram *p, int from_last)
{
    PointAccess a = {.buf = -1};
    a.stride[p->rank - from_last] = 1;
    return a;
}

static int input_word(BodyMap *m, ValueId v, int word)
{
    return m->leaf(m->user, m->p, v, -1, word);
}

static int rng_key(PointProgram *p, PointSpecial op, const int *seed, const int *add)
{
    PointInstr i = {.op = op,
                    .dtype = DTYPE_I32,
                    .from = DTYPE_I32,
                    .n_in = 4,
                    .in = {seed[0], seed[1], add[0], add[1]}};
    return point_push(p, i);
}

void generator_operands(BodyMap *m, const Node *n, PointInstr *i)
{
    int word[4];
    PointAccess place = own_place(m, value_type(m->g, n->out[0]));
    for (int k = 0; k < 4; k++)
        word[k] = input_word(m, n->in[1], k);
    uint64_t step = (uint64_t)node_int(n, ATTR_key, 0) * 0x9E3779B97F4A7C15u;
    const int add[] = {add_number(m->p, DTYPE_I32, (int32_t)(uint32_t)step),
                       add_number(m->p, DTYPE_I32, (int32_t)(uint32_t)(step >> 32))};
    i->in[1] = rng_key(m->p, POINT_RNG_KEY_LOW, word, add);
    i->in[2] = rng_key(m->p, POINT_RNG_KEY_HIGH, word, add);
    i->in[3] = word[2];
    i->in[4] = word[3];
    i->in[5] = point_coordinate(m->p, place, false);
    i->in[6] = point_coordinate(m->p, place, true);
    i->n_in = 7;
}

/* A word's load names the buffer; the bits lie as the result does. */
void mask_operands(BodyMap *m, const Node *n, PointInstr *mask)
{
    int reg = input_word(m, n->in[1], 0);
    PointInstr *i = &m->p->instr.data[reg];
    PointAccess *at = &m->p->access.data[i->access],
                place = own_place(m, value_type(m->g, n->out[0]));
    i->op = POINT_BIT;
    i->dtype = DTYPE_BOOL;
    place.buf = at->buf;
    place.dtype = DTYPE_I32;
    *at = place;
    mask->in[1] = reg;
}

void coordinate_operands(BodyMap *m, const Node *n, PointInstr *i)
{
    (void)n;
    i->in[1] = point_coordinate(m->p, coordinate_of(m->p, 2), false);
    i->in[2] = point_coordinate(m->p, coordinate_of(m->p, 1), false);
    i->n_in = 3;
}

static int rstd_of(PointProgram *p, int var, double eps)
{
    int sum = point_binary(p, OP_add, var, point_const(p, DTYPE_F32, eps));
    return point_unary(p, OP_rsqrt, sum);
}

/* (x, mean, var, gamma, beta): the factor of a channel is an instruction of its own, so that it is
 * computed once per channel. */
static int add_bn_apply(PointProgram *p, const PointInstr *i)
{
    const int *in = i->in;
    int factor = point_binary(p, OP_mul, rstd_of(p, in[2], i->a), in[3]);
    int centred = point_binary(p, OP_sub, in[0], in[1]);
    return point_binary(p, OP_add, point_binary(p, OP_mul, centred, factor), in[4]);
}

/* (dy, x, mean, var, gamma, dgamma, dbeta):
 * gamma * rstd * (dy - dbeta/m - (x - mean) * rstd * dgamma/m) */
static int add_bn_grad_x(PointProgram *p, const PointInstr *i)
{
    const int *in = i->in;
    int share = point_const(p, DTYPE_F32, 1 / i->b), rstd = rstd_of(p, in[3], i->a);
    int slope = point_binary(p, OP_mul, point_binary(p, OP_mul, in[5], share), rstd);
    int factor = point_binary(p, OP_mul, in[4], rstd);
    int d = point_binary(p, OP_sub, in[0], point_binary(p, OP_mul, in[6], share));
    int centred = point_binary(p, OP_sub, in[1], in[2]);
    d = point_binary(p, OP_sub, d, point_binary(p, OP_mul, centred, slope));
    return point_binary(p, OP_mul, d, factor);
}

static void describe_norm(const Graph *g, const Node *n, PointInstr *i)
{
    const Type *x = value_type(g, n->in[0]);
    i->a = node_float(n, ATTR_eps, 1e-5);
    i->b = (double)type_elements(x) / (double)x->dim[channel_axis(x, n)];
}

const PointCode point_code_bn_apply = {.describe = describe_norm, .expand = add_bn_apply};
const PointCode point_code_bn_grad_x = {.describe = describe_norm, .expand = add_bn_grad_x};

bool point_known_exponent(const Graph *g, const Node *n, double *e)
{
    if (n->op != OP_pow || value_node(g, n->in[1])->op != OP_const)
        return false;
    *e = node_float(value_node(g, n->in[1]), ATTR_value, 0);
    return point_has_power(*e);
}

static int body_node(BodyMap *m, const Node *n, int axis)
{
    const PointCode *code = point_codes[n->op];
    PointInstr i = instr_of(m->g, n);
    i.n_in = n->n_in;
    i.flag |= point_known_exponent(m->g, n, &i.a);
    for (int k = 0; k < n->n_in; k++)
        if (op_table[n->op].access->in_step(m->g, n, k))
            i.in[k] = i.op == OP_pow && i.flag && k == 1
                          ? point_const(m->p, DTYPE_F32, i.a)
                          : body_value(m, n->in[k], operand_axis(m->g, n, k, axis));
    if (code->expand)
        return code->expand(m->p, &i);
    if (code->operands)
        code->operands(m, n, &i);
    return point_push(m->p, i);
}

static int body_value(BodyMap *m, ValueId v, int axis)
{
    int *slot = &m->reg[v * AXIS_SLOTS + (uint32_t)(axis + 1)];
    if (*slot)
        return *slot - 1;
    const Node *n = value_node(m->g, v);
    bool point = op_table[n->op].op_class == OP_CLASS_POINT && (!m->only || n == m->only);
    int reg = point ? body_node(m, n, axis) : m->leaf(m->user, m->p, v, axis, -1);
    *slot = reg + 1;
    return reg;
}

static void add_values(BodyMap *m, const ValueId *wanted, int n_wanted, int *reg)
{
    m->reg = POOL_ARRAY(m->p->pool, m->g->values.len * AXIS_SLOTS, int);
    for (int i = 0; i < n_wanted; i++)
        reg[i] = body_value(m, wanted[i], -1);
}

void point_add_body(PointProgram *p, const Graph *g, const ValueId *wanted, int n_wanted, int *reg,
                    PointLeaf *leaf, void *user)
{
    BodyMap m = {.p = p, .g = g, .leaf = leaf, .user = user};
    add_values(&m, wanted, n_wanted, reg);
}

int point_add_node(PointProgram *p, const Graph *g, const Node *n, PointLeaf *leaf, void *user)
{
    BodyMap m = {.p = p, .g = g, .only = n, .leaf = leaf, .user = user};
    int reg;
    add_values(&m, n->out, 1, &reg);
    return reg;
}

/* --- canonical form --- */

static bool walks_as_one(const PointAccess *a, int d, int64_t inner_dim)
{
    return a->stride[d] == a->stride[d + 1] * inner_dim;
}

static bool may_merge(const PointProgram *p, int d)
{
    for (size_t i = 0; i < p->access.len; i++)
        if (!walks_as_one(&p->access.data[i], d, p->dim[d + 1]))
            return false;
    for (size_t i = 0; i < p->store.len; i++)
        if (!walks_as_one(&p->store.data[i].at, d, p->dim[d + 1]))
            return false;
    return true;
}

static void drop_stride(PointAccess *a, int d, int rank)
{
    for (int i = d; i + 1 < rank; i++)
        a->stride[i] = a->stride[i + 1];
    a->stride[rank - 1] = 0;
}

static void drop_dim(PointProgram *p, int d)
{
    for (size_t i = 0; i < p->access.len; i++)
        drop_stride(&p->access.data[i], d, p->rank);
    for (size_t i = 0; i < p->store.len; i++)
        drop_stride(&p->store.data[i].at, d, p->rank);
    for (int i = d; i + 1 < p->rank; i++)
        p->dim[i] = p->dim[i + 1];
    p->rank--;
}

void point_collapse(PointProgram *p)
{
    for (int d = p->rank - 1; d >= 0; d--)
        if (p->dim[d] == 1)
            drop_dim(p, d);
    for (int d = p->rank - 2; d >= 0; d--)
        if (may_merge(p, d)) {
            p->dim[d + 1] *= p->dim[d];
            drop_dim(p, d);
        }
    if (p->rank == 0) {
        p->dim[0] = 1;
        p->rank = 1;
    }
}

/* The next access of a buffer's elements behind number *at, which it moves on; NULL: no more. */
static PointAccess *next_access(PointProgram *p, int buf, size_t *at)
{
    while (*at < p->access.len + p->store.len) {
        size_t k = (*at)++;
        PointAccess *a =
            k < p->access.len ? &p->access.data[k] : &p->store.data[k - p->access.len].at;
        if (a->buf == buf)
            return a;
    }
    return NULL;
}

static bool reads_bits(const PointProgram *p, int buf)
{
    for (size_t k = 0; k < p->instr.len; k++)
        if (p->instr.data[k].op == POINT_BIT && p->access.data[p->instr.data[k].access].buf == buf)
            return true;
    return false;
}

int64_t point_move_base(PointProgram *p, int buf)
{
    int64_t least = INT64_MAX;
    DType dtype = DTYPE_U8;
    PointAccess *a;
    for (size_t at = 0; (a = next_access(p, buf, &at)); dtype = a->dtype)
        least = a->base < least ? a->base : least;
    if (least == INT64_MAX || reads_bits(p, buf))
        return 0;
    for (size_t at = 0; (a = next_access(p, buf, &at));)
        a->base -= least;
    return least * (int64_t)dtype_bytes(dtype);
}

/* What no instruction or store says: the space and the buffers. */
const char *point_key(const PointProgram *p)
{
    StrBuf key = strbuf_new(p->pool);
    strbuf_printf(&key, "point %d ", p->n_bufs);
    desc_key(&key, "dims", p->dim, (size_t)p->rank * sizeof *p->dim);
    desc_key(&key, " code", p->instr.data, p->instr.len * DESC_BYTES(PointInstr));
    desc_key(&key, " access", p->access.data, p->access.len * sizeof *p->access.data);
    desc_key(&key, " store", p->store.data, p->store.len * DESC_BYTES(PointStore));
    return key.text;
}
