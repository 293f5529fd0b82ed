/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise programs from nodes of a graph and from bodies of fused groups. */
#include "codegen/forms/point.h"

#include "ir/random.h"
#include "ir/support/bug.h"

#include <math.h>

/* What building a program needs to know of an operation beside its inputs; most need nothing. */
typedef struct BodyMap BodyMap;
typedef struct PointForm {
    /* Attributes that the code depends on. */
    void (*describe)(const Graph *g, const Node *n, PointInstr *i);
    /* Operands besides the inputs that are read element by element. */
    void (*operands)(BodyMap *m, const Node *n, PointInstr *i);
    /* Instructions that it consists of; their last register.  NULL: it is one itself. */
    int (*expand)(PointProgram *p, const PointInstr *i);
} PointForm;
static const PointForm forms[OP_COUNT];

/* --- attributes that change the code --- */

static void describe_gelu(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->flag = node_flag(n, ATTR_approx);
}

static void describe_slope(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->flag = node_attr(n, ATTR_alpha) != NULL;
    i->a = node_float(n, ATTR_alpha, 0);
}

static void describe_softplus(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->a = node_float(n, ATTR_beta, 0);
}

static void describe_clamp(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->flag = node_flag(n, ATTR_open);
    i->a = node_float(n, ATTR_min, -(double)INFINITY);
    i->b = node_float(n, ATTR_max, (double)INFINITY);
}

static void describe_causal_mask(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->a = node_float(n, ATTR_value, -(double)INFINITY);
}

static void describe_dropout(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->a = node_float(n, ATTR_p, 0.5);
}

/* k: which numbers; a: below what integers are. */
static void describe_random(const Graph *g, const Node *n, PointInstr *i)
{
    (void)g;
    i->k = (int)random_kind(n);
    i->a = (double)node_int(n, ATTR_below, 0);
}

static void describe_norm(const Graph *g, const Node *n, PointInstr *i)
{
    const Type *x = value_type(g, n->in[0]);
    i->a = node_float(n, ATTR_eps, 1e-5);
    i->b = (double)type_elements(x) / (double)x->dim[channel_axis(x, n)];
}

/* The instruction of a POINT node (or const): operation, types, attributes; no inputs. */
static PointInstr instr_of(const Graph *g, const Node *n)
{
    PointInstr i = {.op = n->op, .dtype = point_lane_type(value_type(g, n->out[0])->dtype)};
    i.from = n->n_in ? point_lane_type(value_type(g, n->in[0])->dtype) : i.dtype;
    if (n->op == OP_const)
        i.a = node_float(n, ATTR_value, 0);
    else if (forms[n->op].describe)
        forms[n->op].describe(g, n, &i);
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

/* The result's own row-major places, for the index of dropout and random. */
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

uint64_t random_key(const Node *n)
{
    return (uint64_t)node_int(n, ATTR_key, 0) * 0x9E3779B97F4A7C15u;
}

uint32_t dropout_threshold(double p)
{
    double bits = ceil(p * 0x1p32);
    return bits < (double)UINT32_MAX ? (uint32_t)bits : UINT32_MAX;
}

/* Key and counter of each element, from operand `first` on, where rng is the generator's state. */
static void generator_operands(BodyMap *m, const Node *n, ValueId rng, PointInstr *i, int first)
{
    int word[4];
    PointAccess place = own_place(m, value_type(m->g, n->out[0]));
    for (int k = 0; k < 4; k++)
        word[k] = input_word(m, rng, k);
    uint64_t step = random_key(n);
    const int add[] = {point_number(m->p, DTYPE_I32, (double)(int32_t)(uint32_t)step),
                       point_number(m->p, DTYPE_I32, (double)(int32_t)(uint32_t)(step >> 32))};
    i->in[first] = rng_key(m->p, POINT_RNG_KEY_LOW, word, add);
    i->in[first + 1] = rng_key(m->p, POINT_RNG_KEY_HIGH, word, add);
    i->in[first + 2] = word[2];
    i->in[first + 3] = word[3];
    i->in[first + 4] = point_coordinate(m->p, place, false);
    i->in[first + 5] = point_coordinate(m->p, place, true);
    i->n_in = first + 6;
}

static void dropout_operands(BodyMap *m, const Node *n, PointInstr *i)
{
    generator_operands(m, n, n->in[1], i, 1);
}

static void random_operands(BodyMap *m, const Node *n, PointInstr *i)
{
    generator_operands(m, n, n->in[0], i, 0);
}

/* A word's load names the buffer; the bits lie as the result does. */
static void mask_operands(BodyMap *m, const Node *n, PointInstr *mask)
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

static void coordinate_operands(BodyMap *m, const Node *n, PointInstr *i)
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

/* Exponents in use have exact forms; the rest goes through exp and log. */
bool point_has_power(double e)
{
    double size = fabs(e);
    return size <= 64 && size * 2 == floor(size * 2);
}

bool point_known_exponent(const Graph *g, const Node *n, double *e)
{
    if (n->op != OP_pow || value_node(g, n->in[1])->op != OP_const)
        return false;
    *e = node_float(value_node(g, n->in[1]), ATTR_value, 0);
    return point_has_power(*e);
}

/* What takes one of its operands as it is: nothing is to be rounded where these are bf16. */
static bool only_picks(const Node *n)
{
    OpKind op = n->op;
    if (node_attr(n, ATTR_alpha))
        return false;
    return op == OP_clamp_grad || op == OP_neg || op == OP_abs || op == OP_relu ||
           op == OP_maximum || op == OP_minimum || op == OP_relu_grad || op == OP_relu_mask_grad;
}

static int rounded(BodyMap *m, const Node *n, int reg)
{
    bool exact = only_picks(n);
    for (int k = 0; k < n->n_in && exact; k++)
        exact = value_type(m->g, n->in[k])->dtype != DTYPE_F32;
    return exact ? reg : point_round(m->p, reg, value_type(m->g, n->out[0])->dtype);
}

static int body_node(BodyMap *m, const Node *n, int axis)
{
    const PointForm *form = &forms[n->op];
    PointInstr i = instr_of(m->g, n);
    i.n_in = n->n_in;
    i.flag |= point_known_exponent(m->g, n, &i.a);
    for (int k = 0; k < n->n_in; k++)
        if (op_table[n->op].access->in_step(m->g, n, k))
            i.in[k] = i.op == OP_pow && i.flag && k == 1
                          ? point_const(m->p, DTYPE_F32, i.a)
                          : body_value(m, n->in[k], operand_axis(m->g, n, k, axis));
    if (form->expand)
        return rounded(m, n, form->expand(m->p, &i));
    if (form->operands)
        form->operands(m, n, &i);
    return rounded(m, n, point_push(m->p, i));
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

/* --- the table --- */

static const PointForm forms[OP_COUNT] = {
    [OP_gelu] = {.describe = describe_gelu},
    [OP_gelu_grad] = {.describe = describe_gelu},
    [OP_leaky_relu] = {.describe = describe_slope},
    [OP_relu_grad] = {.describe = describe_slope},
    [OP_elu] = {.describe = describe_slope},
    [OP_elu_grad] = {.describe = describe_slope},
    [OP_softplus] = {.describe = describe_softplus},
    [OP_softplus_grad] = {.describe = describe_softplus},
    [OP_clamp] = {.describe = describe_clamp},
    [OP_clamp_grad] = {.describe = describe_clamp},
    [OP_dropout] = {.describe = describe_dropout, .operands = dropout_operands},
    [OP_random] = {.describe = describe_random, .operands = random_operands},
    [OP_relu_mask_grad] = {.describe = describe_slope, .operands = mask_operands},
    [OP_causal_mask] = {.describe = describe_causal_mask, .operands = coordinate_operands},
    [OP_bn_apply] = {.describe = describe_norm, .expand = add_bn_apply},
    [OP_bn_grad_x] = {.describe = describe_norm, .expand = add_bn_grad_x},
};
