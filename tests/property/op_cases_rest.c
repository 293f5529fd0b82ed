/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases of norms, losses, movement, updates and fused groups; see op_cases.h. */
#include "op_cases.h"
#include "tests/support/fused.h"

#include <string.h>

/* --- normalisation --- */

Type op_channelled(OpCase *c, AttrList *attrs, int64_t *channels)
{
    Type t = op_shape(c, 2, 4);
    t.dim[0] += 2;
    int64_t axis = op_int(c, 1, t.rank - 1);
    bool flat = op_coin(c); /* nothing but 1 behind the channels: rows, as if they were last */
    for (int64_t d = axis + 1; flat && d < t.rank; d++)
        t.dim[d] = 1;
    *channels = t.dim[axis];
    if (axis != 1 || op_coin(c))
        attrs_int(attrs, ATTR_axis, axis);
    return t;
}

void op_bn_stats(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    double offset = op_coin(c) ? 0 : 300;
    op_floats(c, t, offset - 2, offset + 3);
    op_done(c, OP_bn_stats, &attrs);
}

static void op_vectors(OpCase *c, int64_t n, int count)
{
    for (int i = 0; i < count; i++)
        op_normal(c, DIMS(n));
}

void op_bn_apply(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    op_normal(c, op_channelled(c, &attrs, &channels));
    op_vectors(c, channels, 1);
    op_floats(c, DIMS(channels), 0.2, 3);
    op_vectors(c, channels, 2);
    op_done(c, OP_bn_apply, &attrs);
}

void op_bn_grad_sums(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    op_normal(c, t);
    op_normal(c, t);
    op_vectors(c, channels, 1);
    op_floats(c, DIMS(channels), 0.2, 3);
    op_done(c, OP_bn_grad_sums, &attrs);
}

void op_bn_grad_x(OpCase *c)
{
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    op_normal(c, t);
    op_normal(c, t);
    op_vectors(c, channels, 1);
    op_floats(c, DIMS(channels), 0.2, 3);
    op_vectors(c, channels, 3);
    op_done(c, OP_bn_grad_x, &attrs);
}

/* A persistent tensor and its update. */
static ValueId op_persistent(OpCase *c, OpKind kind, Type t, double low, double high)
{
    ValueId v = op_floats(c, t, low, high);
    value_node(c->g, v)->op = kind;
    return v;
}

void op_bn_running(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 1);
    attrs_float(&attrs, ATTR_momentum, 0.1);
    attrs_float(&attrs, ATTR_scale, 1.25);
    op_persistent(c, OP_buffer, t, -3, 3);
    op_normal(c, t);
    op_done(c, OP_bn_running, &attrs);
}

/* Windows of odd and even size and larger than there are channels; the usual exponent, the others
 * that have a short form, and one that has none. */
static void op_lrn_like(OpCase *c, OpKind op)
{
    static const int64_t windows[] = {1, 2, 3, 4, 5, 5, 9, 20};
    static const double exponents[] = {0.75, 0.75, 0.5, 1, 0.6};
    AttrList attrs = {0};
    int64_t channels;
    Type t = op_channelled(c, &attrs, &channels);
    attrs_int(&attrs, ATTR_window, windows[op_int(c, 0, 7)]);
    attrs_float(&attrs, ATTR_alpha, op_uniform(c, 1e-4, 0.2));
    attrs_float(&attrs, ATTR_beta, exponents[op_int(c, 0, 4)]);
    attrs_float(&attrs, ATTR_k, op_uniform(c, 0.5, 2));
    if (op == OP_lrn_grad)
        op_normal(c, t);
    op_normal(c, t);
    op_done(c, op, &attrs);
}
void op_lrn(OpCase *c)
{
    op_lrn_like(c, OP_lrn);
}
void op_lrn_grad(OpCase *c)
{
    op_lrn_like(c, OP_lrn_grad);
}

static void op_layernorm_done(OpCase *c, OpKind op)
{
    AttrList attrs = {0};
    if (op_coin(c))
        attrs_int(&attrs, ATTR_rms, 1);
    op_done(c, op, &attrs);
}

void op_layernorm(OpCase *c)
{
    Type t = op_shape(c, 1, 4);
    int affine = (int)op_int(c, 0, 2);
    /* Two or three numbers near 50 may be so close that their difference is mostly rounding. */
    double offset = op_coin(c) || t.dim[t.rank - 1] < 8 ? 0 : 50;
    op_floats(c, t, offset - 2, offset + 3);
    op_vectors(c, t.dim[t.rank - 1], affine);
    op_layernorm_done(c, OP_layernorm);
}

static void op_layernorm_inputs(OpCase *c, int64_t *length)
{
    Type t = op_shape(c, 1, 4);
    *length = t.dim[t.rank - 1];
    op_normal(c, t);
    op_normal(c, t);
    t.rank--;
    op_floats(c, t, -1, 1);
    op_floats(c, t, 0.3, 2);
}

void op_layernorm_grad(OpCase *c)
{
    int64_t length;
    op_layernorm_inputs(c, &length);
    op_vectors(c, length, op_coin(c));
    op_layernorm_done(c, OP_layernorm_grad);
}

void op_layernorm_grad_sums(OpCase *c)
{
    int64_t length;
    op_layernorm_inputs(c, &length);
    op_done(c, OP_layernorm_grad_sums, NULL);
}

/* --- losses --- */

static void op_labelled(OpCase *c, AttrList *attrs, bool smooth)
{
    Type t = op_shape(c, 1, 4), labels = {.dtype = DTYPE_I32};
    int64_t axis = op_coin(c) ? t.rank - 1 : op_int(c, 0, t.rank - 1);
    if (axis != t.rank - 1)
        attrs_int(attrs, ATTR_axis, axis);
    if (op_coin(c))
        attrs_int(attrs, ATTR_ignore_index, 0);
    if (smooth && op_coin(c))
        attrs_float(attrs, ATTR_smoothing, 0.1);
    for (int i = 0; i < t.rank; i++)
        if (i != axis)
            labels.dim[labels.rank++] = t.dim[i];
    op_floats(c, t, -6, 6);
    DType type = t.dim[axis] < 256 && op_coin(c) ? DTYPE_U8 : DTYPE_I32;
    op_integers(c, labels, type, 0, t.dim[axis] - 1);
}

static bool op_reduction_attr(OpCase *c, AttrList *attrs)
{
    static const char *const names[] = {"mean", "sum", "none"};
    const char *name = names[op_int(c, 0, 2)];
    attrs_string(attrs, ATTR_reduction, name);
    return strcmp(name, "none") == 0;
}

static int64_t op_classes(const OpCase *c, const AttrList *attrs)
{
    const Type *t = value_type(c->g, c->in[0]);
    for (int i = 0; i < attrs->n; i++)
        if (attrs->items[i].key == ATTR_axis)
            return t->dim[attrs->items[i].u.i];
    return t->dim[t->rank - 1];
}

void op_cross_entropy(OpCase *c)
{
    AttrList attrs = {0};
    op_labelled(c, &attrs, true);
    op_reduction_attr(c, &attrs);
    if (op_coin(c))
        op_floats(c, DIMS(op_classes(c, &attrs)), 0.2, 3);
    op_done(c, OP_cross_entropy, &attrs);
}

void op_cross_entropy_grad(OpCase *c)
{
    AttrList attrs = {0};
    op_labelled(c, &attrs, true);
    if (op_reduction_attr(c, &attrs))
        op_floats(c, *value_type(c->g, c->in[1]), 0.5, 2);
    else
        op_scalar(c, 0.5, 2);
    bool none = op_int(c, 0, 4) == 0; /* all classes weigh nothing */
    if (op_coin(c))
        op_floats(c, DIMS(op_classes(c, &attrs)), none ? 0 : 0.2, none ? 0 : 3);
    op_done(c, OP_cross_entropy_grad, &attrs);
}

void op_accuracy(OpCase *c)
{
    AttrList attrs = {0};
    op_labelled(c, &attrs, false);
    if (op_coin(c))
        attrs_string(&attrs, ATTR_reduction, "sum");
    op_done(c, OP_accuracy, &attrs);
}

/* --- embedding --- */

void op_embedding(OpCase *c)
{
    int64_t rows = op_dim(c), width = op_dim(c);
    op_integers(c, op_shape(c, 0, 2), DTYPE_I32, 0, rows - 1);
    op_normal(c, DIMS(rows, width));
    op_done(c, OP_embedding, NULL);
}

void op_embedding_grad(OpCase *c)
{
    int64_t rows = op_dim(c) + 60 * op_int(c, 0, 1), width = op_int(c, 1, 40);
    AttrList attrs = {0};
    Type ids = op_shape(c, 0, 2);
    attrs_ints(&attrs, ATTR_shape, (const int64_t[]){rows, width}, 2);
    op_integers(c, ids, DTYPE_I32, 0, rows - 1);
    ids.dim[ids.rank++] = width;
    op_normal(c, ids);
    if (op_int(c, 0, 1))
        op_normal(c, DIMS(rows, width));
    op_done(c, OP_embedding_grad, &attrs);
}

/* --- movement --- */

static ValueId op_any_type(OpCase *c, Type t)
{
    switch (c->small ? 3 : op_int(c, 0, 3)) {
    case 0:
        return op_integers(c, t, DTYPE_I32, -100000, 100000);
    case 1:
        return op_integers(c, t, op_coin(c) ? DTYPE_U8 : DTYPE_BOOL, 0, 1);
    default:
        return op_normal(c, t);
    }
}

void op_transpose(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 5);
    int64_t perm[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        int64_t k = op_int(c, 0, i);
        perm[i] = perm[k];
        perm[k] = i;
    }
    attrs_ints(&attrs, ATTR_perm, perm, t.rank);
    op_any_type(c, t);
    op_done(c, OP_transpose, &attrs);
}

void op_broadcast(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 4);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    op_any_type(c, op_smaller(c, t));
    op_done(c, OP_broadcast, &attrs);
}

void op_slice(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 5);
    int64_t start[TYPE_MAX_RANK], limit[TYPE_MAX_RANK], step[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        start[i] = op_coin(c) ? 0 : op_int(c, 0, t.dim[i] - 1);
        limit[i] = op_coin(c) ? t.dim[i] : op_int(c, start[i] + 1, t.dim[i]);
        step[i] = op_coin(c) ? 1 : op_int(c, 1, 3);
    }
    attrs_ints(&attrs, ATTR_start, start, t.rank);
    attrs_ints(&attrs, ATTR_limit, limit, t.rank);
    attrs_ints(&attrs, ATTR_step, step, t.rank);
    op_any_type(c, t);
    op_done(c, OP_slice, &attrs);
}

void op_concat(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    int64_t axis = op_int(c, 0, t.rank - 1), n = op_int(c, 1, 4);
    attrs_int(&attrs, ATTR_axis, axis);
    for (int i = 0; i < n; i++) {
        t.dim[axis] = op_int(c, 1, 20);
        op_normal(c, t);
    }
    op_done(c, OP_concat, &attrs);
}

void op_pad(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 1, 4);
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        lo[i] = op_int(c, 0, 2);
        hi[i] = op_int(c, 0, 2);
    }
    attrs_ints(&attrs, ATTR_lo, lo, t.rank);
    attrs_ints(&attrs, ATTR_hi, hi, t.rank);
    attrs_float(&attrs, ATTR_value, 1);
    op_any_type(c, t);
    op_done(c, OP_pad, &attrs);
}

/* --- updates --- */

void op_sgd_step(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 3);
    bool momentum = op_coin(c);
    if (op_coin(c))
        attrs_float(&attrs, ATTR_weight_decay, 0.01);
    if (momentum)
        attrs_float(&attrs, ATTR_momentum, 0.9);
    if (momentum && op_coin(c))
        attrs_int(&attrs, ATTR_nesterov, 1);
    if (momentum && op_coin(c))
        attrs_float(&attrs, ATTR_dampening, 0.2);
    op_persistent(c, OP_param, t, -3, 3);
    op_normal(c, t);
    if (momentum)
        op_persistent(c, OP_state, t, -1, 1);
    op_scalar(c, 0.01, 0.1);
    op_scalar(c, 0.2, 1);
    op_done(c, OP_sgd_step, &attrs);
}

void op_adam_step(OpCase *c)
{
    AttrList attrs = {0};
    Type t = op_shape(c, 0, 3);
    if (op_coin(c))
        attrs_float(&attrs, ATTR_weight_decay, 0.1);
    if (op_coin(c))
        attrs_int(&attrs, ATTR_decoupled, 1);
    attrs_float(&attrs, ATTR_beta1, 0.9);
    attrs_float(&attrs, ATTR_beta2, op_coin(c) ? 0.999 : 0.99);
    op_persistent(c, OP_param, t, -3, 3);
    op_normal(c, t);
    op_persistent(c, OP_state, t, -1, 1);
    op_persistent(c, OP_state, t, 0, 1);
    op_scalar(c, 0.001, 0.1);
    op_scalar(c, 0.2, 1);
    op_integers(c, type_scalar(DTYPE_F32), DTYPE_F32, 1, op_coin(c) ? 3 : 5000);
    op_done(c, OP_adam_step, &attrs);
}

void op_clip_scale(OpCase *c)
{
    AttrList attrs = {0};
    attrs_float(&attrs, ATTR_max_norm, 1);
    op_scalar(c, 0, 3);
    op_done(c, OP_clip_scale, &attrs);
}

void op_checksum(OpCase *c)
{
    op_normal(c, op_shape(c, 0, 3));
    op_done(c, OP_checksum, NULL);
}

/* --- groups --- */

/* x + dropout(tanh(x) * 2^s), with s per column or whole: one output. */
static void op_fused_dropout(OpCase *c)
{
    Graph *body = graph_new(c->pool, "body");
    Loc none = {0};
    AttrList attrs = {0}, two = {0};
    Type t = op_shape(c, 1, 4), part = op_smaller(c, t), rng = DIMS(4);
    rng.dtype = DTYPE_I32;
    attrs_float(&attrs, ATTR_p, 0.3);
    attrs_int(&attrs, ATTR_key, (int64_t)op_bits(c));
    attrs_float(&two, ATTR_value, 2);
    ValueId x = op_inner(c, body, op_normal(c, t));
    ValueId r = op_inner(c, body, op_integers(c, rng, DTYPE_I32, INT32_MIN, INT32_MAX));
    ValueId s = op_inner(c, body, op_normal(c, part));
    ValueId k = graph_add_source(body, OP_const, type_scalar(DTYPE_F32), &two, "%k", none);
    ValueId h = graph_add(body, OP_tanh, &x, 1, NULL, NULL, none);
    ValueId e = graph_add(body, OP_pow, (const ValueId[]){k, s}, 2, NULL, NULL, none);
    h = graph_add(body, OP_mul, (const ValueId[]){h, e}, 2, NULL, NULL, none);
    h = graph_add(body, OP_dropout, (const ValueId[]){h, r}, 2, &attrs, NULL, none);
    h = graph_add(body, OP_add, (const ValueId[]){x, h}, 2, NULL, NULL, none);
    graph_add_output(body, "y", h);
    c->node = graph_add_fused(c->g, body, c->in, c->n_in, "%out", none);
}

/* tanh(mask(x)) * s */
static void op_fused_mask(OpCase *c)
{
    Graph *body = graph_new(c->pool, "body");
    Loc none = {0};
    Type t = op_shape(c, 1, 4), part = op_smaller(c, t), mask = DIMS((type_elements(&t) + 31) / 32);
    mask.dtype = DTYPE_I32;
    ValueId x = op_inner(c, body, op_normal(c, t));
    ValueId m = op_inner(c, body, op_integers(c, mask, DTYPE_I32, INT32_MIN, INT32_MAX));
    ValueId s = op_inner(c, body, op_normal(c, part));
    ValueId h = graph_add(body, OP_relu_mask_grad, (const ValueId[]){x, m}, 2, NULL, NULL, none);
    h = graph_add(body, OP_tanh, &h, 1, NULL, NULL, none);
    h = graph_add(body, OP_mul, (const ValueId[]){h, s}, 2, NULL, NULL, none);
    graph_add_output(body, "y", h);
    c->node = graph_add_fused(c->g, body, c->in, c->n_in, "%out", none);
}

/* relu(batch norm(x) + r) * mask(gelu(x)) - exp(c): statistics of channels, broadcast, two outputs.
 */
void op_fused(OpCase *c)
{
    int64_t kind = op_int(c, 0, 4);
    if (kind < 2) {
        kind ? op_fused_dropout(c) : op_fused_mask(c);
        return;
    }
    Graph *body = graph_new(c->pool, "body");
    AttrList axis = {0};
    Type t = op_channelled(c, &axis, &(int64_t){0}), part = op_smaller(c, t);
    int64_t a = axis.n ? axis.items[0].u.i : 1;
    Type types[] = {t, DIMS(t.dim[a]), DIMS(t.dim[a]), DIMS(t.dim[a]), DIMS(t.dim[a]), part};
    ValueId v[6];
    c->bf16 &= ~0x1eu; /* statistics and parameters are f32 */
    for (int i = 0; i < 6; i++)
        v[i] = op_inner(c, body, op_floats(c, types[i], i == 2 ? 0.2 : -2, 2));
    Loc none = {0};
    ValueId y = graph_add(body, OP_bn_apply, v, 5, &axis, NULL, none);
    ValueId e = graph_add(body, OP_exp, &v[5], 1, NULL, NULL, none);
    y = graph_add(body, OP_add, (const ValueId[]){y, e}, 2, NULL, NULL, none);
    ValueId r = graph_add(body, OP_relu, &y, 1, NULL, NULL, none);
    ValueId h = graph_add(body, OP_gelu, &v[0], 1, NULL, NULL, none);
    h = graph_add(body, OP_causal_mask, &h, 1, NULL, NULL, none);
    ValueId m = graph_add(body, OP_gt, (const ValueId[]){y, e}, 2, NULL, NULL, none);
    ValueId s = graph_add(body, OP_select, (const ValueId[]){m, r, h}, 3, NULL, NULL, none);
    graph_add_output(body, "r", r);
    graph_add_output(body, "s", s);
    c->node = graph_add_fused(c->g, body, c->in, c->n_in, "%out", none);
}
