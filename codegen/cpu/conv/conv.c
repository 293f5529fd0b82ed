/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/conv/conv.h"

#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/point/prologue.h"
#include "ir/conv_columns.h"
#include "ir/product.h"
#include "ir/support/bug.h"
#include "ir/winograd.h"
#include "ir/workspace.h"

static void finish(const MatrixNode *m, CallDraft *call, const char *what, const ConvGeometry *q)
{
    call->label = conv_label(m->l->pool, what, q);
    call->contract = true;
    if (call->n_tasks)
        lower_call(m->l, *call);
}

/* Of an image that is made for the kernel. */
static void note_pieces(const MatrixNode *m, CallDraft *call)
{
    if (call->made && call->reads.spans)
        call->pieces = read_pieces_of_spans(m->l->pool, call->reads.spans, PROLOGUE_BAND);
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
    check_workspace(m, conv_narrow_chunks(&d->q) * conv_depthwise_chunk_floats(&d->q));
    call->emit = conv_depthwise_wgrad_emit;
    call->n_tasks = conv_narrow_chunks(&d->q);
    if (d->a_made)
        call->pieces = conv_depthwise_wgrad_pieces(m->l->pool, d);
    finish(m, call, "conv dw", &d->q);
    call->made = 0;
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
    d->a_made = call.made == d->a_buf + 1;
    if (d->a_made && part == CONV_WGRAD)
        d->steps = call_add_numbers(&call);
    if (part == CONV_WGRAD || (part == CONV_DGRAD && conv_group_in(q) > 1)) {
        d->partial_buf = call.n_bufs;
        call.buf[call.n_bufs++] = (CallBuf){VALUE_NONE, 0};
    }
    d->epilogue = matrix_epilogue(m, &call, 2);
    call.desc = d;
    call.flops = conv_flops(q);
    call.bytes = matrix_bytes(m);
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
    call.writes = (CallSpans){conv_depthwise_writes(m->l->pool, d), {d->out_buf}, 1};
    call.reads = (CallSpans){conv_depthwise_reads(m->l->pool, d), {d->a_buf}, 1};
    note_pieces(m, &call);
    finish(m, &call, what, q);
}

/* --- the simple kernel --- */

static void lower_plain(const MatrixNode *m, const ConvGeometry *q, ConvPart part, const char *what)
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
    call.bytes = matrix_bytes(m);
    finish(m, &call, what, q);
}

/* --- window passes --- */

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
    const Type *weights = value_type(m->l->graph, call.buf[w->weight_buf].value);
    conv_pack_call(m->l->pool, &pack, w, weights->dtype, m->l->target->vector_floats);
    pack.made = 0;
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
    call.bytes = matrix_bytes(m);
    call.writes = (CallSpans){conv_window_writes(m->l->pool, w, n), {w->out_buf}, 1};
    call.reads = (CallSpans){conv_window_reads(m->l->pool, w, n), {w->source_buf}, 1};
    note_pieces(m, &call);
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

/* Of all kernels of the node: it is known by its geometry and epilogue. */
static int variant_of(const MatrixNode *m, const KernelFamily *f, const ConvGeometry *q,
                      const char *what)
{
    StrBuf key = strbuf_new(m->l->pool);
    CallDraft unused = matrix_call(m);
    Epilogue e = matrix_epilogue(m, &unused, 2);
    desc_key(&key, what, q, DESC_BYTES(ConvGeometry));
    epilogue_key(&key, &e);
    return lower_variant(m->l, f, key.text);
}

static void lower_forward_window(const MatrixNode *m, const ConvGeometry *q)
{
    ConvWindow *w = POOL_NEW(m->l->pool, ConvWindow);
    *w = (ConvWindow){.q = *q,
                      .axis = {conv_forward_axis(q, 0), conv_forward_axis(q, 1)},
                      .red = conv_group_in(q),
                      .cols = conv_group_out(q),
                      .source_c = q->c,
                      .result_c = q->k,
                      .made = m->fused && group_prologue(m->graph) != VALUE_NONE};
    conv_window_plan(w, m->l->target, variant_of(m, &conv_window_family, q, "forward"));
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

/* One pass per phase of the stride. */
static void plan_phases(const MatrixNode *m, const ConvGeometry *q, ConvWindow *w)
{
    int64_t packed = 0;
    int variant = variant_of(m, &conv_window_family, q, "gradient");
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
        conv_window_plan(&w[p], m->l->target, variant);
        packed += conv_window_packed_floats(&w[p], m->l->target->vector_floats);
    }
    check_workspace(m, packed);
}

static void lower_gradient_windows(const MatrixNode *m, const ConvGeometry *q, const char *what)
{
    int64_t phases = q->stride[0] * q->stride[1];
    ConvWindow *w = POOL_ARRAY(m->l->pool, (size_t)phases, ConvWindow);
    plan_phases(m, q, w);
    lower_phases(m, w, phases, what);
}

/* --- weight gradients --- */

static void lower_weights(const MatrixNode *m, const ConvGeometry *q)
{
    ConvWgrad *w = POOL_NEW(m->l->pool, ConvWgrad);
    w->q = *q;
    w->chunks = conv_wgrad_chunks(m->graph, m->node);
    conv_wgrad_plan(w, m->l->target, variant_of(m, &conv_wgrad_family, q, "weights"));
    CallDraft call = matrix_call(m);
    w->x_buf = matrix_add_operand(m, &call, 0);
    w->dy_buf = matrix_add_operand(m, &call, 1);
    w->x_made = call.made == w->x_buf + 1;
    if (w->x_made)
        w->steps = call_add_numbers(&call);
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
    call.flops = conv_flops(q);
    call.bytes = matrix_bytes(m);
    if (w->x_made)
        call.pieces = conv_wgrad_pieces(m->l->pool, w);
    finish(m, &call, "conv dw", q);
    call.made = 0;
    if (w->chunks == 1)
        return;
    ConvJoin *join = POOL_NEW(m->l->pool, ConvJoin);
    conv_wgrad_join(join, w);
    lower_join(m, &call, join, q);
}

/* --- operations --- */

/* Vectors that are narrower than a narrow group take it as any other: these targets have no fused
 * multiply-add, so that their bits are their own anyway. */
static ConvForm form_of(const MatrixNode *m, const ConvGeometry *q, ConvPart part)
{
    ConvForm form = conv_form(q, part);
    bool wide = form == CONV_NARROW && m->l->target->vector_floats % conv_group_in(q) != 0;
    return wide ? conv_wide_form(q, part) : form;
}

/* One product, whose A is the image: of a data gradient the places of the kernel go backwards. */
static void lower_image(const MatrixNode *m, const ConvGeometry *q, ConvPart part, const char *what)
{
    bool forward = part == CONV_FORWARD;
    if (part == CONV_WGRAD)
        BUG("a weight gradient by pairs that is no product");
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    *g = (Gemm){.n = forward ? q->k : q->c,
                .pairs = PRODUCT_PAIRS_STEPS,
                .a_k = 1,
                .b_k = forward ? q->k : 1,
                .b_n = forward ? 1 : q->k};
    GemmImage *i = &g->image;
    i->y = forward ? conv_forward_axis(q, 0) : conv_gradient_axis(q, 0, 0);
    i->x = forward ? conv_forward_axis(q, 1) : conv_gradient_axis(q, 1, 0);
    i->channels = forward ? q->c : q->k;
    if (!forward) {
        i->b_tap = -q->c * q->k;
        i->b_origin = -i->b_tap * (q->r * q->s - 1);
    }
    g->a_row = i->channels;
    g->m = q->images * i->y.count * i->x.count;
    g->k = i->y.taps * i->x.taps * i->channels;
    g->a_bf16 = matrix_operand_type(m, 0)->dtype == DTYPE_BF16;
    g->b_bf16 = matrix_operand_type(m, 1)->dtype == DTYPE_BF16;
    CallDraft call = matrix_call(m);
    g->a_buf = matrix_add_operand(m, &call, 0);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->epilogue = matrix_epilogue(m, &call, 2);
    call.label = conv_label(m->l->pool, what, q);
    call.bytes = matrix_bytes(m);
    call.flops = conv_flops(q);
    gemm_lower(m->l, g, &call, what);
}

static void lower_part(const MatrixNode *m, ConvPart part, const char *what, const char *what_1x1)
{
    if (winograd_of(m->node)) {
        conv_winograd_lower(m, part);
        return;
    }
    ConvGeometry q = conv_geometry(m, part);
    ConvForm form = form_of(m, &q, part);
    Product product = conv_product(&q, part);
    product.pairs = node_flag(m->node, ATTR_pairs) ? PRODUCT_PAIRS_STEPS : 0;
    if (product.pairs && form != CONV_PRODUCT)
        lower_image(m, &q, part, what);
    else if (form == CONV_PRODUCT)
        gemm_lower_product(m, &product, what_1x1);
    else if (form == CONV_NARROW)
        lower_depthwise(m, &q, part, what);
    else if (form == CONV_PLAIN)
        lower_plain(m, &q, part, what);
    else if (part != CONV_WGRAD && conv_columns_floats(m->graph, m->node))
        conv_columns_lower(m, &q, part, what);
    else if (part == CONV_FORWARD)
        lower_forward_window(m, &q);
    else if (part == CONV_DGRAD)
        lower_gradient_windows(m, &q, what);
    else
        lower_weights(m, &q);
}

void matrix_lower_conv2d(const MatrixNode *m)
{
    lower_part(m, CONV_FORWARD, "conv", "conv 1x1");
}

void matrix_lower_conv2d_dgrad(const MatrixNode *m)
{
    lower_part(m, CONV_DGRAD, "conv dx", "conv 1x1 dx");
}

/* A transposed convolution is the data gradient of one, and may have a bias. */
void matrix_lower_deconv2d(const MatrixNode *m)
{
    lower_part(m, CONV_DGRAD, "deconv", "deconv 1x1");
}

void matrix_lower_conv2d_wgrad(const MatrixNode *m)
{
    lower_part(m, CONV_WGRAD, "conv dw", "conv 1x1 dw");
}
