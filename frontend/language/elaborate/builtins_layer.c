/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layers: what owns parameters, and pooling. */
#include "frontend/language/elaborate/builtins_table.h"

#include "ir/support/bug.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const InitSpec init_zeros = {.kind = INIT_ZEROS}, init_ones = {.kind = INIT_ONES};

static const InitSpec init_linear = {.kind = INIT_FAN_IN};
static const InitSpec init_embedding = {.kind = INIT_NORMAL, .a = 1.0};

static const InitSpec *weight_init(const BuiltinCall *c, int arg, const InitSpec *otherwise)
{
    if (arg_given(c, arg))
        return c->arg[arg].init;
    return c->l->init && c->l->init->weight ? c->l->init->weight : otherwise;
}

static const InitSpec *bias_init(const BuiltinCall *c)
{
    return c->l->init && c->l->init->bias ? c->l->init->bias : &init_linear;
}

static ValueId vector_param(BuiltinCall *c, OpKind op, const char *name, int64_t n,
                            const InitSpec *init, int64_t fan_in)
{
    return elab_parameter(c->l, op, name, type_make(DTYPE_F32, 1, &n), init, fan_in, n, c->span);
}

static bool positive(BuiltinCall *c, int arg)
{
    if (arg_int(c, arg) > 0)
        return true;
    elab_error(c->l, c->arg_span[arg], "E105", "must be at least 1, got %" PRId64, arg_int(c, arg));
    return false;
}

/* The shape rules give the message; asked before parameters are made from a shape that is wrong. */
static bool rank_at_least(BuiltinCall *c, int rank, const char *wanted)
{
    const Type *x = elab_type(c->l, arg_tensor(c, 0));
    if (x->rank >= rank)
        return true;
    elab_error(c->l, c->span, "E103", "%s needs %s, got %s", c->fn->name, wanted,
               type_shape_text(c->l->pool, x));
    return false;
}

/* Whether v is an image of [N,C,H,W] as an operation on images made it. */
static bool is_image(const Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    while (n->op == OP_bn_apply || (n->n_in == 1 && op_table[n->op].op_class == OP_CLASS_POINT))
        n = value_node(g, n->in[0]);
    switch ((int)n->op) {
    case OP_conv2d:
    case OP_deconv2d:
    case OP_maxpool:
    case OP_avgpool:
    case OP_adaptive_avgpool:
    case OP_resize:
    case OP_lrn:
        return true;
    default:
        return false;
    }
}

/* `linear` reads the last dimension, which of an image is its width: flatten() was forgotten. */
static bool want_rows(BuiltinCall *c)
{
    if (!rank_at_least(c, 2, "at least 2 dims"))
        return false;
    const Type *x = elab_type(c->l, arg_tensor(c, 0));
    if (x->rank == 4 && is_image(c->l->g, arg_tensor(c, 0))) {
        diag_warning(c->l->diag, c->span, "W204", "%s over the width of an image %s", c->fn->name,
                     type_shape_text(c->l->pool, x));
        diag_help(c->l->diag, "|> flatten() joins channels, height and width");
    }
    return true;
}

Val builtin_linear(BuiltinCall *c)
{
    Elab *l = c->l;
    if (!call_needs_label(c) || !positive(c, 1) || !want_rows(c))
        return val_poison();
    Type x = *elab_type(l, arg_tensor(c, 0));
    int64_t in = x.dim[x.rank - 1], out = arg_int(c, 1);
    bool in_out = call_word_is(c, 3, "in_out");
    const int64_t dims[] = {in_out ? in : out, in_out ? out : in};
    ValueId v[3] = {arg_tensor(c, 0)};
    v[1] = elab_parameter(l, OP_param, "weight", type_make(DTYPE_F32, 2, dims),
                          weight_init(c, 4, &init_linear), in, out, c->span);
    if (arg_bool(c, 2))
        v[2] = vector_param(c, OP_param, "bias", out, bias_init(c), in);
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_in_out, in_out);
    return call_node(c, OP_linear, v, arg_bool(c, 2) ? 3 : 2, &attrs);
}

Val builtin_affine(BuiltinCall *c)
{
    if (!want_rows(c))
        return val_poison();
    const ValueId v[] = {arg_tensor(c, 0), arg_tensor(c, 1), arg_tensor(c, 2)};
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_in_out, false);
    return call_node(c, OP_linear, v, arg_given(c, 2) ? 3 : 2, &attrs);
}

static bool want_images(BuiltinCall *c)
{
    Elab *l = c->l;
    const Type *x = elab_type(l, arg_tensor(c, 0));
    if (x->rank == 4)
        return true;
    elab_error(l, c->span, "E103", "%s needs images [N,C,H,W], got %s", c->fn->name,
               type_shape_text(l->pool, x));
    return false;
}

/* A convolution's parameters: `channels` is dims 0 and 1 of the weight, before the division by
 * groups, and the arguments from `groups` on are groups, bias and init.  fan_in counts dim 1 of the
 * weight, which is what PyTorch does for ConvTranspose2d, too. */
static bool conv_weight(BuiltinCall *c, const int64_t kernel[2], const int64_t channels[2],
                        int groups, ValueId v[3])
{
    Elab *l = c->l;
    int64_t n = arg_int(c, groups), taps, fan_in, fan_out;
    int64_t in = elab_type(l, v[0])->dim[1], out = arg_int(c, 1);
    if (in % n || out % n) {
        elab_error(l, c->arg_span[groups], "E105",
                   "groups = %" PRId64 " must divide the channels, %" PRId64 " in and %" PRId64
                   " out",
                   n, in, out);
        return false;
    }
    if (!size_mul(kernel[0], kernel[1], &taps) || !size_mul(channels[1] / n, taps, &fan_in) ||
        !size_mul(channels[0] / n, taps, &fan_out)) {
        elab_error(l, c->span, "E108", "this convolution is too large");
        return false;
    }
    const int64_t dims[] = {channels[0], channels[1] / n, kernel[0], kernel[1]};
    v[1] = elab_parameter(l, OP_param, "weight", type_make(DTYPE_F32, 4, dims),
                          weight_init(c, groups + 2, &init_linear), fan_in, fan_out, c->span);
    if (arg_bool(c, groups + 1))
        v[2] = vector_param(c, OP_param, "bias", out, bias_init(c), fan_in);
    return v[1] != VALUE_NONE;
}

/* The windows of conv and deconv, whose dilation is argument `dilation`; reads them in the order of
 * the signature. */
typedef struct WindowArgs {
    int64_t kernel[2], stride[2], pad[2], dilation[2];
} WindowArgs;

static bool conv_window(BuiltinCall *c, int dilation, WindowArgs *w)
{
    return call_needs_label(c) && want_images(c) && positive(c, 1) && positive(c, dilation + 1) &&
           call_pair(c, 2, 1, w->kernel) && call_pair(c, 3, 1, w->stride) &&
           call_pair(c, 4, 0, w->pad) && call_pair(c, dilation, 1, w->dilation);
}

static AttrList conv_attrs(const BuiltinCall *c, int dilation, const WindowArgs *w)
{
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_stride, w->stride, 2);
    attrs_ints(&attrs, ATTR_padding, w->pad, 2);
    attrs_ints(&attrs, ATTR_dilation, w->dilation, 2);
    attrs_int(&attrs, ATTR_groups, arg_int(c, dilation + 1));
    return attrs;
}

Val builtin_conv(BuiltinCall *c)
{
    WindowArgs w;
    ValueId v[3] = {arg_tensor(c, 0)};
    if (!conv_window(c, 5, &w))
        return val_poison();
    const int64_t channels[2] = {arg_int(c, 1), elab_type(c->l, v[0])->dim[1]};
    if (!conv_weight(c, w.kernel, channels, 6, v))
        return val_poison();
    AttrList attrs = conv_attrs(c, 5, &w);
    return call_node(c, OP_conv2d, v, arg_bool(c, 7) ? 3 : 2, &attrs);
}

Val builtin_convolve(BuiltinCall *c)
{
    WindowArgs w;
    if (!want_images(c) || !positive(c, 6) || !call_pair(c, 3, 1, w.stride) ||
        !call_pair(c, 4, 0, w.pad) || !call_pair(c, 5, 1, w.dilation))
        return val_poison();
    const ValueId v[] = {arg_tensor(c, 0), arg_tensor(c, 1), arg_tensor(c, 2)};
    AttrList attrs = conv_attrs(c, 5, &w);
    return call_node(c, OP_conv2d, v, arg_given(c, 2) ? 3 : 2, &attrs);
}

Val builtin_deconv(BuiltinCall *c)
{
    WindowArgs w;
    int64_t extra[2];
    ValueId v[3] = {arg_tensor(c, 0)};
    if (!conv_window(c, 6, &w) || !call_pair(c, 5, 0, extra))
        return val_poison();
    const int64_t channels[2] = {elab_type(c->l, v[0])->dim[1], arg_int(c, 1)};
    if (!conv_weight(c, w.kernel, channels, 7, v))
        return val_poison();
    AttrList attrs = conv_attrs(c, 6, &w);
    if (extra[0] || extra[1])
        attrs_ints(&attrs, ATTR_output_padding, extra, 2);
    return call_node(c, OP_deconv2d, v, arg_bool(c, 8) ? 3 : 2, &attrs);
}

/* ---- normalization ---- */

static void add_update(Elab *l, const RunningUpdate *u, ValueId running)
{
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_momentum, u->momentum);
    attrs_float(&attrs, ATTR_scale, u->scale);
    ValueId v = elab_node2(l, OP_bn_running, running, u->statistic, &attrs, u->name, u->span);
    if (v != VALUE_NONE)
        graph_value(l->g, v)->writes = u->buffer;
}

/* A step's update of a buffer that a later use updates again: only the last one may write. */
static ValueId update_between(Elab *l, const RunningUpdate *u, ValueId running)
{
    ValueId keep = elab_constant(l, DTYPE_F32, 1 - u->momentum, u->span);
    ValueId take = elab_constant(l, DTYPE_F32, u->momentum * u->scale, u->span);
    ValueId old = elab_node2(l, OP_mul, running, keep, NULL, NULL, u->span);
    ValueId new = elab_node2(l, OP_mul, u->statistic, take, NULL, NULL, u->span);
    return elab_node2(l, OP_add, old, new, NULL, NULL, u->span);
}

/* By update: the next one of the same buffer + 1, 0 for the last; by buffer: its first + 1. */
typedef struct UpdateChains {
    size_t *next, *first;
} UpdateChains;

static UpdateChains chain_updates(const Elab *l)
{
    UpdateChains c = {POOL_ARRAY(l->pool, l->updates.len + 1, size_t),
                      POOL_ARRAY(l->pool, l->g->values.len + 1, size_t)};
    for (size_t i = l->updates.len; i-- > 0;) {
        size_t *first = &c.first[l->updates.data[i].buffer];
        c.next[i] = *first;
        *first = i + 1;
    }
    return c;
}

void builtin_finish(Elab *l)
{
    UpdateChains c = chain_updates(l);
    for (size_t i = 0; i < l->updates.len; i++) {
        if (c.next[i])
            continue;
        ValueId buffer = l->updates.data[i].buffer, running = buffer;
        for (size_t k = c.first[buffer] - 1; k != i; k = c.next[k] - 1)
            running = update_between(l, &l->updates.data[k], running);
        add_update(l, &l->updates.data[i], running);
    }
}

static void running_update(BuiltinCall *c, ValueId buffer, ValueId statistic, double scale,
                           const char *name)
{
    Elab *l = c->l;
    const RunningUpdate u = {.buffer = buffer,
                             .statistic = statistic,
                             .momentum = arg_float(c, 2),
                             .scale = scale,
                             .name = pool_printf(l->pool, "%%%s.%s", l->path, name),
                             .span = c->span};
    if (l->invocation)
        vec_push(l->pool, &l->updates, u);
    else
        add_update(l, &u, buffer);
}

/* Batch statistics, and the updates of the running ones with the unbiased variance. */
static bool batch_statistics(BuiltinCall *c, const Type *x, const ValueId buffers[2],
                             ValueId stats[2])
{
    Elab *l = c->l;
    if (l->loop) {
        if (elab_error(l, c->span, "E205", "a scan cannot hold bn(), which updates its statistics"))
            diag_help(l->diag, "layernorm() keeps none");
        return false;
    }
    ValueId mean = elab_node1(l, OP_bn_stats, arg_tensor(c, 0), NULL,
                              pool_printf(l->pool, "%%%s.stats", l->path), c->span);
    if (mean == VALUE_NONE)
        return false;
    NodeId node = graph_value(l->g, mean)->def;
    stats[0] = mean;
    stats[1] = graph_node(l->g, node)->out[1];
    double n = (double)type_elements(x) / (double)x->dim[1];
    if (n < 2 && !l->count) {
        elab_error(l, c->span, "E105",
                   "batch normalization in training needs more than one value per channel");
        return false;
    }
    running_update(c, buffers[0], stats[0], 1.0, "running_mean");
    running_update(c, buffers[1], stats[1], n > 1 ? n / (n - 1) : 1, "running_var");
    return true;
}

Val builtin_bn(BuiltinCall *c)
{
    if (!call_needs_label(c) || !rank_at_least(c, 2, "input with channels [N,C,...]"))
        return val_poison();
    Type x = *elab_type(c->l, arg_tensor(c, 0));
    int64_t channels = x.dim[1];
    const InitSpec *scale = arg_given(c, 3) ? c->arg[3].init : &init_ones;
    ValueId gamma = vector_param(c, OP_param, "weight", channels, scale, channels);
    ValueId beta = vector_param(c, OP_param, "bias", channels, &init_zeros, channels);
    ValueId running[2] = {
        vector_param(c, OP_buffer, "running_mean", channels, &init_zeros, channels),
        vector_param(c, OP_buffer, "running_var", channels, &init_ones, channels)};
    ValueId stats[2] = {running[0], running[1]};
    if (c->l->mode == FRONTEND_TRAIN && !batch_statistics(c, &x, running, stats))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_eps, arg_float(c, 1));
    const ValueId in[] = {arg_tensor(c, 0), stats[0], stats[1], gamma, beta};
    return call_node(c, OP_bn_apply, in, 5, &attrs);
}

/* Krizhevsky, Sutskever and Hinton 2012, section 3.3, where k = 2 and a = alpha. */
Val builtin_lrn(BuiltinCall *c)
{
    int64_t size = arg_int(c, 1);
    if (!positive(c, 1) || !rank_at_least(c, 2, "input with channels [N,C,...]"))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_window, size);
    attrs_float(&attrs, ATTR_alpha, arg_float(c, 2) / (arg_bool(c, 5) ? (double)size : 1));
    attrs_float(&attrs, ATTR_beta, arg_float(c, 3));
    attrs_float(&attrs, ATTR_k, arg_float(c, 4));
    const ValueId x = arg_tensor(c, 0);
    return call_node(c, OP_lrn, &x, 1, &attrs);
}

Val builtin_layernorm(BuiltinCall *c)
{
    bool given = arg_given(c, 5), affine = !given && arg_bool(c, 3);
    bool bias = affine && arg_bool(c, 2);
    if ((affine && !call_needs_label(c)) || !rank_at_least(c, 1, "at least one dimension"))
        return val_poison();
    const Type *x = elab_type(c->l, arg_tensor(c, 0));
    int64_t n = x->dim[x->rank - 1];
    ValueId v[3] = {arg_tensor(c, 0)};
    if (given)
        v[1] = arg_tensor(c, 5);
    if (affine)
        v[1] = vector_param(c, OP_param, "weight", n, &init_ones, n);
    if (bias)
        v[2] = vector_param(c, OP_param, "bias", n, &init_zeros, n);
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_eps, arg_float(c, 1));
    if (!arg_bool(c, 4))
        attrs_int(&attrs, ATTR_rms, 1);
    return call_node(c, OP_layernorm, v, 1 + given + affine + bias, &attrs);
}

/* Numbers that are known now: positions.  Those of the data are checked when it is opened. */
static bool positions_fit(BuiltinCall *c)
{
    const Node *ids = value_node(c->l->g, arg_tensor(c, 0));
    if (ids->op != OP_iota)
        return true;
    int64_t n = type_elements(elab_type(c->l, arg_tensor(c, 0))), rows = arg_int(c, 1);
    if (n <= rows)
        return true;
    elab_error(c->l, c->span, "E105", "a table of %lld rows has none for %lld positions",
               (long long)rows, (long long)n);
    return false;
}

Val builtin_embedding(BuiltinCall *c)
{
    if (!call_needs_label(c) || !positive(c, 1) || !positive(c, 2) || !positions_fit(c))
        return val_poison();
    const int64_t dims[] = {arg_int(c, 1), arg_int(c, 2)};
    ValueId table = elab_parameter(c->l, OP_param, "weight", type_make(DTYPE_F32, 2, dims),
                                   weight_init(c, 3, &init_embedding), dims[1], dims[0], c->span);
    const ValueId in[] = {arg_tensor(c, 0), table};
    return call_node(c, OP_embedding, in, 2, NULL);
}

/* ---- pooling ---- */

static Val pool(BuiltinCall *c, OpKind op)
{
    int64_t kernel[2], stride[2], pad[2];
    if (!want_images(c) || !call_pair(c, 1, 1, kernel) || !call_pair(c, 3, 0, pad))
        return val_poison();
    memcpy(stride, kernel, sizeof stride);
    if (arg_given(c, 2) && !call_pair(c, 2, 1, stride))
        return val_poison();
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_kernel, kernel, 2);
    attrs_ints(&attrs, ATTR_stride, stride, 2);
    attrs_ints(&attrs, ATTR_padding, pad, 2);
    attrs_int(&attrs, ATTR_ceil, arg_bool(c, 4));
    if (op == OP_avgpool)
        attrs_int(&attrs, ATTR_count_pad, arg_bool(c, 5));
    ValueId x = arg_tensor(c, 0);
    return call_node(c, op, &x, 1, &attrs);
}

Val builtin_maxpool(BuiltinCall *c)
{
    return pool(c, OP_maxpool);
}

Val builtin_avgpool(BuiltinCall *c)
{
    return pool(c, OP_avgpool);
}

/* Windows that lie side by side without overlap. */
static Val even_avgpool(BuiltinCall *c, const int64_t window[2])
{
    const int64_t zero[] = {0, 0};
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_kernel, window, 2);
    attrs_ints(&attrs, ATTR_stride, window, 2);
    attrs_ints(&attrs, ATTR_padding, zero, 2);
    attrs_int(&attrs, ATTR_count_pad, true);
    ValueId in = arg_tensor(c, 0);
    return call_node(c, OP_avgpool, &in, 1, &attrs);
}

Val builtin_global_avgpool(BuiltinCall *c)
{
    if (!want_images(c))
        return val_poison();
    const Type *x = elab_type(c->l, arg_tensor(c, 0));
    return even_avgpool(c, &x->dim[2]);
}

Val builtin_adaptive_avgpool(BuiltinCall *c)
{
    int64_t size[2];
    if (!want_images(c) || !call_pair(c, 1, 1, size))
        return val_poison();
    ValueId in = arg_tensor(c, 0);
    const Type *x = elab_type(c->l, in);
    if (x->dim[2] % size[0] == 0 && x->dim[3] % size[1] == 0)
        return even_avgpool(c, (const int64_t[]){x->dim[2] / size[0], x->dim[3] / size[1]});
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_hw, size, 2);
    return call_node(c, OP_adaptive_avgpool, &in, 1, &attrs);
}

Val builtin_resize(BuiltinCall *c)
{
    int64_t size[2];
    bool nearest = call_word_is(c, 2, "nearest");
    if (!want_images(c) || !call_pair(c, 1, 1, size))
        return val_poison();
    if (nearest && arg_bool(c, 3)) {
        if (elab_error(c->l, c->arg_span[3], "E105", "resize to the nearest has no align_corners"))
            diag_help(c->l->diag, "mode = bilinear, or leave align_corners out");
        return val_poison();
    }
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_hw, size, 2);
    attrs_int(&attrs, ATTR_nearest, nearest);
    attrs_int(&attrs, ATTR_align_corners, arg_bool(c, 3));
    ValueId in = arg_tensor(c, 0);
    return call_node(c, OP_resize, &in, 1, &attrs);
}
