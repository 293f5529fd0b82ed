/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/conv/conv.h"

#include "codegen/cpu/gemm/gemm.h"
#include "ir/support/bug.h"
#include "ir/workspace.h"

/* --- geometry --- */

/* Logical dims of an image type or of weights. */
static int64_t image_dim(const Type *t, bool nhwc, int logical)
{
    static const int at[4] = {0, 3, 1, 2};
    return t->dim[nhwc ? at[logical] : logical];
}

static void set_x(ConvGeometry *q, const Type *t)
{
    q->images = t->dim[0];
    q->c = image_dim(t, q->nhwc, 1);
    q->h = image_dim(t, q->nhwc, 2);
    q->w = image_dim(t, q->nhwc, 3);
}

static void set_y(ConvGeometry *q, const Type *t)
{
    q->k = image_dim(t, q->nhwc, 1);
    q->oh = image_dim(t, q->nhwc, 2);
    q->ow = image_dim(t, q->nhwc, 3);
}

static ConvGeometry geometry(const MatrixNode *m, ConvPart part)
{
    const Node *n = m->node;
    ConvGeometry q = {.nhwc = node_flag(n, ATTR_nhwc), .groups = node_int(n, ATTR_groups, 1)};
    for (int i = 0; i < 2; i++) {
        q.stride[i] = node_ints_at(n, ATTR_stride, i, 1);
        q.pad[i] = node_ints_at(n, ATTR_padding, i, 0);
        q.dilation[i] = node_ints_at(n, ATTR_dilation, i, 1);
    }
    const Type *a = matrix_operand_type(m, 0), *b = matrix_operand_type(m, 1);
    const Type *out = matrix_result_type(m);
    set_x(&q, part == CONV_DGRAD ? out : a);
    set_y(&q, part == CONV_FORWARD ? out : part == CONV_DGRAD ? a : b);
    const Type *w = part == CONV_WGRAD ? out : b;
    q.r = w->dim[q.nhwc ? 0 : 2];
    q.s = w->dim[q.nhwc ? 1 : 3];
    return q;
}

static double conv_flops(const ConvGeometry *q)
{
    return 2.0 * (double)(q->images * q->oh * q->ow * q->k) *
           (double)(conv_group_in(q) * q->r * q->s);
}

static double conv_bytes(const ConvGeometry *q)
{
    return 4.0 *
           ((double)(q->images * q->h * q->w * q->c) + (double)(q->images * q->oh * q->ow * q->k) +
            (double)(q->r * q->s * conv_group_in(q) * q->k));
}

static const char *conv_label(Pool *pool, const char *what, const ConvGeometry *q)
{
    return pool_printf(pool, "%s %lldx%lld/%lld %lldx%lldx%lldx%lld>%lld", what, (long long)q->r,
                       (long long)q->s, (long long)q->stride[0], (long long)q->images,
                       (long long)q->h, (long long)q->w, (long long)q->c, (long long)q->k);
}

static void finish(const MatrixNode *m, CallDraft *call, const char *what, const ConvGeometry *q)
{
    call->label = conv_label(m->l->pool, what, q);
    call->contract = true;
    if (call->n_tasks)
        lower_call(m->l, *call);
}

/* --- as a matrix product --- */

static bool is_plain_product(const ConvGeometry *q)
{
    return q->nhwc && q->groups == 1 && q->r == 1 && q->s == 1 && q->stride[0] == 1 &&
           q->stride[1] == 1 && !q->pad[0] && !q->pad[1] && q->h == q->oh && q->w == q->ow;
}

static void lower_product(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                          const char *what)
{
    int64_t pixels = q->images * q->h * q->w;
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    if (part == CONV_FORWARD) /* y = x w */
        *g = (Gemm){
            .m = pixels, .n = q->k, .k = q->c, .a_row = q->c, .a_k = 1, .b_k = q->k, .b_n = 1};
    else if (part == CONV_DGRAD) /* dx = dy w' */
        *g = (Gemm){
            .m = pixels, .n = q->c, .k = q->k, .a_row = q->k, .a_k = 1, .b_k = 1, .b_n = q->k};
    else /* dw = x' dy */
        *g = (Gemm){
            .m = q->c, .n = q->k, .k = pixels, .a_row = 1, .a_k = q->c, .b_k = q->k, .b_n = 1};
    CallDraft call = matrix_call(m);
    g->a_buf = matrix_add_operand(m, &call, 0);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->epilogue = matrix_epilogue(m, &call, 2);
    gemm_lower(m->l, g, &call, what);
}

/* --- depthwise --- */

static void check_workspace(const MatrixNode *m, int64_t floats)
{
    if (floats * 4 > node_workspace_bytes(m->graph, m->node))
        BUG("a convolution uses %lld bytes of workspace, planned are %lld", (long long)floats * 4,
            (long long)node_workspace_bytes(m->graph, m->node));
}

/* The second call of a weight gradient with partial sums; its work was counted with the first. */
static void lower_join(const MatrixNode *m, CallDraft *call, const ConvJoin *join,
                       const ConvGeometry *q)
{
    call->key = MATRIX_KEY(m->l->pool, "conv_join", ConvJoin, join);
    call->desc = join;
    call->emit = conv_join_emit;
    call->n_tasks = conv_join_tasks(join);
    call->flops = 0;
    call->bytes = (double)node_workspace_bytes(m->graph, m->node);
    finish(m, call, "conv dw join", q);
}

static void lower_depthwise_wgrad(const MatrixNode *m, CallDraft *call, ConvDepth *d)
{
    call->key = MATRIX_KEY(m->l->pool, "depthwise_wgrad", ConvDepth, d);
    check_workspace(m, conv_depthwise_chunks(d) * conv_depthwise_chunk_floats(&d->q));
    call->emit = conv_depthwise_wgrad_emit;
    call->n_tasks = conv_depthwise_chunks(d);
    finish(m, call, "conv dw", &d->q);
    ConvJoin *join = POOL_NEW(m->l->pool, ConvJoin);
    conv_depthwise_join(join, d, m->l->target->vector_floats);
    lower_join(m, call, join, &d->q);
}

/* The weights of the data gradient go to the workspace, transposed within their groups. */
static void lower_depthwise_pack(const MatrixNode *m, CallDraft call, ConvDepth *d)
{
    check_workspace(m, conv_depthwise_weights(&d->q));
    d->weight_buf = d->partial_buf;
    call.key = MATRIX_KEY(m->l->pool, "depthwise_pack", ConvDepth, d);
    call.emit = conv_depthwise_pack_emit;
    call.n_tasks = conv_depthwise_pack_tasks(d);
    call.flops = 0;
    call.bytes = 8.0 * (double)conv_depthwise_weights(&d->q);
    finish(m, &call, "conv weights", &d->q);
}

static void lower_depthwise(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                            const char *what)
{
    ConvDepth *d = POOL_NEW(m->l->pool, ConvDepth);
    *d = (ConvDepth){.q = *q, .part = part};
    CallDraft call = matrix_call(m);
    d->a_buf = matrix_add_operand(m, &call, 0);
    d->b_buf = matrix_add_operand(m, &call, 1);
    if (part == CONV_WGRAD || (part == CONV_DGRAD && conv_group_in(q) > 1)) {
        d->partial_buf = call.n_bufs;
        call.buf[call.n_bufs++] = (CallBuf){VALUE_NONE, 0};
    }
    d->epilogue = matrix_epilogue(m, &call, 2);
    call.desc = d;
    call.flops = conv_flops(q);
    call.bytes = conv_bytes(q);
    if (part == CONV_WGRAD) {
        lower_depthwise_wgrad(m, &call, d);
        return;
    }
    d->weight_buf = d->b_buf;
    if (part == CONV_DGRAD && conv_group_in(q) > 1)
        lower_depthwise_pack(m, call, d);
    conv_depthwise_plan(d);
    call.key = MATRIX_KEY(m->l->pool, "depthwise", ConvDepth, d);
    call.emit = conv_depthwise_emit;
    call.n_tasks = conv_depthwise_tasks(d);
    finish(m, &call, what, q);
}

/* --- the simple kernel --- */

static void lower_simple(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                         const char *what)
{
    ConvSimple *s = POOL_NEW(m->l->pool, ConvSimple);
    *s = (ConvSimple){.q = *q, .part = part, .bias_buf = -1};
    CallDraft call = matrix_call(m);
    s->a_buf = matrix_add_operand(m, &call, 0);
    s->b_buf = matrix_add_operand(m, &call, 1);
    s->epilogue = matrix_epilogue(m, &call, 2);
    /* The bias runs along the channels, which need not be the columns. */
    s->bias_buf = s->epilogue.bias_buf;
    s->epilogue.bias_buf = -1;
    call.key = MATRIX_KEY(m->l->pool, "conv_plain", ConvSimple, s);
    call.emit = conv_plain_emit;
    call.desc = s;
    call.n_tasks = conv_plain_tasks(s);
    call.flops = conv_flops(q);
    call.bytes = conv_bytes(q);
    finish(m, &call, what, q);
}

/* --- window passes --- */

ConvAxis conv_forward_axis(const ConvGeometry *q, int i)
{
    ConvAxis x = {.source = i ? q->w : q->h,
                  .result = i ? q->ow : q->oh,
                  .count = i ? q->ow : q->oh,
                  .step = 1,
                  .origin = -q->pad[i],
                  .source_step = q->stride[i],
                  .taps = i ? q->s : q->r,
                  .tap_step = q->dilation[i],
                  .weight_step = 1};
    return x;
}

static int64_t floor_mod(int64_t a, int64_t b)
{
    return (a % b + b) % b;
}

/* Places of x congruent to `phase` modulo the stride.  Weight t reaches x[first + stride * i] from
 * dy[i + d] with stride * d = first + pad - dilation * t, for those t for which d is whole; they
 * are evenly spaced, and d falls as t grows, so taps run from the last such t to the first. */
ConvAxis conv_gradient_axis(const ConvGeometry *q, int i, int64_t phase)
{
    int64_t stride = q->stride[i], size = i ? q->w : q->h, kernel = i ? q->s : q->r;
    int64_t t_first = -1, t_last = -1, taps = 0;
    for (int64_t t = 0; t < kernel; t++)
        if (floor_mod(phase + q->pad[i] - q->dilation[i] * t, stride) == 0) {
            t_first = taps++ ? t_first : t;
            t_last = t;
        }
    int64_t t_step = taps > 1 ? (t_last - t_first) / (taps - 1) : 1;
    ConvAxis x = {.source = i ? q->ow : q->oh,
                  .result = size,
                  .count = phase < size ? (size - phase + stride - 1) / stride : 0,
                  .first = phase,
                  .step = stride,
                  .source_step = 1,
                  .taps = taps,
                  .tap_step = t_step * q->dilation[i] / stride,
                  .weight_first = t_last,
                  .weight_step = -t_step};
    if (taps)
        x.origin = (phase + q->pad[i] - q->dilation[i] * t_last) / stride;
    return x;
}

/* The operands of a window pass, workspace included. */
static CallDraft window_call(const MatrixNode *m, ConvWindow *w)
{
    CallDraft call = matrix_call(m);
    w->source_buf = matrix_add_operand(m, &call, 0);
    w->weight_buf = matrix_add_operand(m, &call, 1);
    w->packed_buf = call.n_bufs;
    call.buf[call.n_bufs++] = (CallBuf){VALUE_NONE, 0};
    w->epilogue = matrix_epilogue(m, &call, 2);
    return call;
}

/* Fills in the window's buffers and epilogue, and packs its weights. */
static CallDraft lower_pack(const MatrixNode *m, ConvWindow *w)
{
    CallDraft call = window_call(m, w), pack = call;
    StrBuf key = strbuf_new(m->l->pool);
    desc_key(&key, "conv_pack", w, DESC_BYTES_BEFORE(ConvWindow, epilogue));
    pack.key = key.text;
    pack.desc = w;
    pack.emit = conv_pack_emit;
    pack.n_tasks = conv_pack_tasks(w);
    pack.bytes = 8.0 * (double)(w->q.r * w->q.s * conv_group_in(&w->q) * w->q.k);
    finish(m, &pack, "conv weights", &w->q);
    return call;
}

/* One call for n passes of equally many tasks, whose weights are packed. */
static void lower_passes(const MatrixNode *m, CallDraft call, const ConvWindow *w, int64_t n,
                         const char *what)
{
    const ConvGeometry *q = &w->q;
    ConvPhases *all = POOL_NEW(m->l->pool, ConvPhases);
    *all = (ConvPhases){n, w};
    StrBuf key = strbuf_new(m->l->pool);
    double taps = 0;
    for (int64_t i = 0; i < n; i++) {
        desc_key(&key, "conv_window", &w[i], DESC_BYTES_BEFORE(ConvWindow, epilogue));
        taps += (double)(w[i].axis[0].taps * w[i].axis[1].taps);
    }
    epilogue_key(&key, &w->epilogue);
    call.key = key.text;
    call.desc = all;
    call.emit = conv_phases_emit;
    call.n_tasks = conv_window_tasks(w);
    call.flops = conv_flops(q) * taps / (double)(q->r * q->s);
    call.bytes = conv_bytes(q);
    finish(m, &call, what, q);
}

static void lower_window(const MatrixNode *m, ConvWindow *w, const char *what)
{
    if (conv_window_tasks(w))
        lower_passes(m, lower_pack(m, w), w, 1, what);
}

/* The passes of a stride, as one kernel if they were planned for it and have the same tasks, which
 * is so where the stride divides the size. */
static void lower_phases(const MatrixNode *m, ConvWindow *w, int64_t n, const char *what)
{
    bool together = w->phase && conv_window_tasks(w);
    for (int64_t i = 1; i < n; i++)
        together &= conv_window_tasks(&w[i]) == conv_window_tasks(w);
    if (!together) {
        for (int64_t i = 0; i < n; i++)
            lower_window(m, &w[i], what);
        return;
    }
    CallDraft call = {0};
    for (int64_t i = 0; i < n; i++)
        call = lower_pack(m, &w[i]);
    lower_passes(m, call, w, n, what);
}

void matrix_lower_conv2d(const MatrixNode *m)
{
    ConvGeometry q = geometry(m, CONV_FORWARD);
    if (is_plain_product(&q)) {
        lower_product(m, &q, CONV_FORWARD, "conv 1x1");
        return;
    }
    if (conv_depthwise_fits(&q, m->l->target->vector_floats)) {
        lower_depthwise(m, &q, CONV_FORWARD, "conv");
        return;
    }
    ConvWindow *w = POOL_NEW(m->l->pool, ConvWindow);
    *w = (ConvWindow){.q = q,
                      .axis = {conv_forward_axis(&q, 0), conv_forward_axis(&q, 1)},
                      .red = conv_group_in(&q),
                      .cols = conv_group_out(&q),
                      .source_c = q.c,
                      .result_c = q.k};
    if (!q.nhwc || !conv_window_plan(w, m->l->target)) {
        lower_simple(m, &q, CONV_FORWARD, "conv");
        return;
    }
    check_workspace(m, conv_window_packed_floats(w, m->l->target->vector_floats));
    lower_window(m, w, "conv");
}

/* All weights must stay in the second-level cache from band to band.  TOGETHER_MOST: code size. */
static bool phases_together(const ConvGeometry *q)
{
    enum { TOGETHER_MOST = 16, WEIGHT_BYTES_MOST = 1 << 20 };
    int64_t n = q->stride[0] * q->stride[1];
    return n > 1 && n <= TOGETHER_MOST &&
           q->r * q->s * conv_group_in(q) * q->k * 4 <= WEIGHT_BYTES_MOST;
}

/* One pass per phase of the stride; false when one does not fit into scratch. */
static bool plan_phases(const MatrixNode *m, const ConvGeometry *q, ConvWindow *w)
{
    int64_t packed = 0;
    for (int64_t p = 0; p < q->stride[0] * q->stride[1]; p++) {
        w[p] = (ConvWindow){.q = *q,
                            .transposed = true,
                            .phase = phases_together(q),
                            .axis = {conv_gradient_axis(q, 0, p / q->stride[1]),
                                     conv_gradient_axis(q, 1, p % q->stride[1])},
                            .red = conv_group_out(q),
                            .cols = conv_group_in(q),
                            .source_c = q->k,
                            .result_c = q->c,
                            .packed_offset = packed};
        if (!conv_window_plan(&w[p], m->l->target))
            return false;
        packed += conv_window_packed_floats(&w[p], m->l->target->vector_floats);
    }
    check_workspace(m, packed);
    return true;
}

static void lower_dgrad(const MatrixNode *m, const char *what, const char *what_1x1)
{
    ConvGeometry q = geometry(m, CONV_DGRAD);
    if (is_plain_product(&q)) {
        lower_product(m, &q, CONV_DGRAD, what_1x1);
        return;
    }
    if (conv_depthwise_fits(&q, m->l->target->vector_floats)) {
        lower_depthwise(m, &q, CONV_DGRAD, what);
        return;
    }
    int64_t phases = q.stride[0] * q.stride[1];
    enum { PHASES_MOST = 64 };
    bool simple = !q.nhwc || phases > PHASES_MOST;
    ConvWindow *w = simple ? NULL : POOL_ARRAY(m->l->pool, (size_t)phases, ConvWindow);
    if (simple || !plan_phases(m, &q, w)) {
        lower_simple(m, &q, CONV_DGRAD, what);
        return;
    }
    lower_phases(m, w, phases, what);
}

void matrix_lower_conv2d_dgrad(const MatrixNode *m)
{
    lower_dgrad(m, "conv dx", "conv 1x1 dx");
}

/* A transposed convolution is the data gradient of one, and may have a bias. */
void matrix_lower_deconv2d(const MatrixNode *m)
{
    lower_dgrad(m, "deconv", "deconv 1x1");
}

void matrix_lower_conv2d_wgrad(const MatrixNode *m)
{
    ConvGeometry q = geometry(m, CONV_WGRAD);
    if (is_plain_product(&q)) {
        lower_product(m, &q, CONV_WGRAD, "conv 1x1 dw");
        return;
    }
    if (conv_depthwise_fits(&q, m->l->target->vector_floats)) {
        lower_depthwise(m, &q, CONV_WGRAD, "conv dw");
        return;
    }
    ConvWgrad *w = POOL_NEW(m->l->pool, ConvWgrad);
    w->q = q;
    w->chunks = conv_wgrad_chunks(m->graph, m->node);
    if (!q.nhwc || !conv_wgrad_plan(w, m->l->target)) {
        lower_simple(m, &q, CONV_WGRAD, "conv dw");
        return;
    }
    CallDraft call = matrix_call(m);
    w->x_buf = matrix_add_operand(m, &call, 0);
    w->dy_buf = matrix_add_operand(m, &call, 1);
    if (w->chunks > 1) {
        check_workspace(m, w->chunks * type_elements(matrix_result_type(m)));
        w->partial_buf = call.n_bufs;
        call.buf[call.n_bufs++] = (CallBuf){VALUE_NONE, 0};
    }
    w->epilogue = matrix_epilogue(m, &call, -1);
    call.key = MATRIX_KEY(m->l->pool, "conv_wgrad", ConvWgrad, w);
    call.emit = conv_wgrad_emit;
    call.desc = w;
    call.n_tasks = conv_wgrad_tasks(w);
    call.flops = conv_flops(&q);
    call.bytes = conv_bytes(&q);
    finish(m, &call, "conv dw", &q);
    if (w->chunks == 1)
        return;
    ConvJoin *join = POOL_NEW(m->l->pool, ConvJoin);
    conv_wgrad_join(join, w);
    lower_join(m, &call, join, &q);
}
