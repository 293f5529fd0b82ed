/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What operations need only while they run. */
#include "ir/workspace.h"

#include "ir/attention.h"
#include "ir/conv_columns.h"
#include "ir/op_rules.h"
#include "ir/product.h"
#include "ir/support/divide.h"
#include "ir/winograd.h"

#include <string.h>

enum { WORKSPACE_ALIGN = 64 };

static int64_t round_up(int64_t n, int64_t to)
{
    return n > INT64_MAX - to ? INT64_MAX - to + 1 : (n + to - 1) / to * to;
}

/* Saturates: a workspace that no machine has is found infeasible by the plan. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return size_mul(a, b, &product) ? product : INT64_MAX / 2;
}

/* The transformed weights, or patches. */
static int64_t winograd_bytes(const Graph *g, const Node *n)
{
    WinogradShape s = winograd_shape(g, n, winograd_of(n));
    int64_t chain = winograd_chain(s.rows), chains = divide_up(s.rows, chain);
    if (winograd_keeps_patches(&s))
        return times(4 * s.points * chains, winograd_plane(times(winograd_kept_tiles(&s), chain)));
    int64_t columns = round_up(s.columns, WINOGRAD_LEAST_CHANNELS);
    return times(4 * s.points, times(s.rows + WINOGRAD_SPARE_ROWS, columns));
}

/* CONV_PANEL says how weights lie. */
static int64_t packed_bytes(const Graph *g, const Node *n)
{
    if (winograd_of(n))
        return winograd_bytes(g, n);
    if (node_attr(n, ATTR_pairs))
        return 0;
    int64_t columns = conv_columns_floats(g, n);
    if (columns)
        return 4 * columns;
    const Type *w = value_type(g, n->in[1]);
    bool nhwc = node_flag(n, ATTR_nhwc);
    int64_t groups = node_int(n, ATTR_groups, 1), k = w->dim[nhwc ? 3 : 0] / groups;
    int64_t c = w->dim[nhwc ? 2 : 1], taps = w->dim[nhwc ? 0 : 2] * w->dim[nhwc ? 1 : 3];
    int64_t panel = n->op == OP_conv2d ? k : c, rows = n->op == OP_conv2d ? c : k;
    return times(4, times(times(groups, taps), times(rows, round_up(panel, CONV_PANEL))));
}

static bool has_narrow_groups(const Graph *g, const Node *wgrad)
{
    const Type *dw = value_type(g, wgrad->out[0]);
    int64_t width = dw->dim[2], c = value_type(g, wgrad->in[0])->dim[3];
    return node_flag(wgrad, ATTR_nhwc) && c == dw->dim[3] &&
           (width == 1 || (width <= NARROW_GROUP && c % DEPTHWISE_PAD == 0));
}

/* Partial results take at most a quarter of what is read anyway when there are few channels, whose
 * images are the largest of a model; else so little that the plan hardly notices. */
int64_t conv_wgrad_chunks(const Graph *g, const Node *n)
{
    if (winograd_of(n)) {
        WinogradShape s = winograd_shape(g, n, winograd_of(n));
        return winograd_chunks(&s);
    }
    const Type *dy = value_type(g, n->in[1]), *dw = value_type(g, n->out[0]);
    bool depthwise = has_narrow_groups(g, n) && dw->dim[2] == 1;
    if (!node_flag(n, ATTR_nhwc) || depthwise || conv_is_pointwise(g, n))
        return 1;
    int64_t part = dw->dim[2] <= 4 ? 4 : 64;
    int64_t partial = times(part, times(WGRAD_CHUNKS, type_bytes(dw)));
    int64_t rows = times(dy->dim[0], dy->dim[1]);
    bool small = partial <= type_bytes(value_type(g, n->in[0])) + type_bytes(dy);
    return small && rows >= 2 * WGRAD_CHUNKS ? WGRAD_CHUNKS : 1;
}

int64_t conv_wgrad_band(int64_t ow, int64_t columns, int64_t channels)
{
    int64_t rows = ow ? divide_up(CONV_BAND_PIXELS, ow) : 1;
    while (rows > 1 && 4 * rows * columns * channels > CONV_BAND_BYTES)
        rows--;
    return rows;
}

/* DEPTHWISE_CHUNKS and conv_wgrad_chunks say how they lie. */
static int64_t wgrad_partial_bytes(const Graph *g, const Node *n)
{
    const Type *dw = value_type(g, n->out[0]);
    int64_t chunks = conv_wgrad_chunks(g, n), taps = times(dw->dim[0], dw->dim[1]);
    int64_t bytes = chunks > 1 ? times(chunks, type_bytes(dw)) : 0, narrow = 0;
    if (has_narrow_groups(g, n))
        narrow = times(4 * DEPTHWISE_CHUNKS,
                       times(times(taps, dw->dim[2]), round_up(dw->dim[3], DEPTHWISE_PAD)));
    return bytes > narrow ? bytes : narrow;
}

/* The axis of the input is reduced. */
static bool is_reduced(const Node *n, int axis, int rank)
{
    int count;
    const int64_t *axes = node_ints(n, ATTR_axes, &count);
    for (int i = 0; i < count; i++)
        if ((axes[i] < 0 ? axes[i] + rank : axes[i]) == axis)
            return true;
    return n->op == OP_sumsq || !node_attr(n, ATTR_axes);
}

/* Elements of the last dims that are all kept or all reduced. */
static int64_t last_dims(const Node *n, const Type *x, bool *kept)
{
    int64_t size = 1;
    bool any = false;
    *kept = true;
    for (int i = x->rank - 1; i >= 0; i--) {
        bool keeps = !is_reduced(n, i, x->rank);
        if (x->dim[i] == 1)
            continue;
        if (any && keeps != *kept)
            break;
        any = true;
        *kept = keeps;
        size *= x->dim[i];
    }
    return size;
}

/* Chunks cost a second call: they are for reductions whose results alone do not share out well. */
static bool worth_chunks(const Graph *g, const Node *n)
{
    enum { ENOUGH_TASKS = 64, MUCH = 16384 };
    bool kept;
    const Type *x = value_type(g, n->in[0]);
    int64_t results = type_elements(value_type(g, n->out[0])), inner = last_dims(n, x, &kept);
    int64_t each = results ? type_elements(x) / results : 0;
    if (!dtype_is_real(x->dtype) || results > REDUCE_CHUNKED_RESULTS || each < REDUCE_CHUNKS ||
        results * each < MUCH)
        return false;
    int64_t tasks =
        each >= REDUCE_TASK_ELEMENTS ? results : divide_up(results, REDUCE_TASK_ELEMENTS / each);
    if (kept)
        tasks = results / inner * divide_up(inner, REDUCE_TASK_COLUMNS);
    return tasks < ENOUGH_TASKS;
}

static bool always(const Graph *g, const Node *n)
{
    (void)g, (void)n;
    return true;
}

static bool is_summed(const Graph *g, const Node *n)
{
    (void)g;
    return strcmp(node_string(n, ATTR_reduction, "mean"), "none") != 0;
}

int reduce_chunks(const Graph *g, const Node *n)
{
    const OpWorkspace *w = op_table[n->op].workspace;
    if (!w->chunked || !w->chunked(g, n))
        return 0;
    int64_t data = type_bytes(value_type(g, n->in[0]));
    int64_t chunks = data / times(REDUCE_DATA_PER_PARTIAL, reduce_partial_bytes(g, n));
    if (chunks < 2)
        return w->whole_form ? 0 : 1;
    return chunks < REDUCE_CHUNKS ? (int)chunks : REDUCE_CHUNKS;
}

int64_t reduce_partial_bytes(const Graph *g, const Node *n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->n_out; i++)
        bytes += times(4, type_elements(value_type(g, n->out[i])));
    int64_t fixed = op_table[n->op].workspace->partial_bytes;
    return round_up(fixed ? fixed : bytes, WORKSPACE_ALIGN);
}

static int64_t partial_results(const Graph *g, const Node *n)
{
    return times(reduce_chunks(g, n), reduce_partial_bytes(g, n));
}

static int64_t kept_losses(const Graph *g, const Node *n)
{
    const Type *x = value_type(g, n->in[0]);
    int64_t axis = node_int(n, ATTR_axis, -1), classes = x->dim[x->rank - 1];
    bool last = axis == -1 || axis == x->rank - 1;
    if (!is_summed(g, n) || !last || classes < KEPT_LOSS_CLASSES)
        return 0;
    return type_elements(x) / classes < KEPT_LOSSES ? 0 : type_elements(x) / classes;
}

int64_t kept_losses_offset(const Graph *g, const Node *n)
{
    return kept_losses(g, n) ? partial_results(g, n) : 0;
}

static int64_t loss_bytes(const Graph *g, const Node *n)
{
    return partial_results(g, n) + times(4, kept_losses(g, n));
}

static int64_t no_bytes(const Graph *g, const Node *n)
{
    (void)g, (void)n;
    return 0;
}

/* Parts of tasks (ir/attention.h); or, in a gradient, a number for every row. */
static int64_t attention_bytes(const Graph *g, const Node *n)
{
    AttentionShape a = attention_shape(g, n);
    AttentionBlocks b = attention_blocks(&a);
    int64_t parts = times(4, times(b.parts, b.scores_floats + b.sums_floats));
    int64_t rows = a.grad ? times(4, times(a.heads, a.rows)) : 0;
    return parts > rows ? parts : rows;
}

int64_t sort_slots(const Graph *g, const Node *n)
{
    const Type *x = value_type(g, n->in[0]);
    int64_t length = x->dim[x->rank - 1], lines = type_elements(x) / length;
    return length <= SORT_IN_SCRATCH ? 0 : lines < SORT_SLOTS ? lines : SORT_SLOTS;
}

static int64_t sort_bytes(const Graph *g, const Node *n)
{
    const Type *x = value_type(g, n->in[0]);
    return times(8 * sort_slots(g, n), SORT_WORDS(x->dim[x->rank - 1]));
}

/* The operations of a body run one after the other. */
static int64_t body_workspace(const Graph *g, const Node *n)
{
    (void)g;
    int64_t most = 0;
    for (size_t i = 0; n->body && i < n->body->order.len; i++) {
        int64_t bytes = node_workspace_bytes(n->body, graph_node(n->body, n->body->order.data[i]));
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* As passes/loops.c has planned it; without a plan, what all values of the body take together. */
static int64_t loop_bytes(const Graph *g, const Node *n)
{
    (void)g;
    const Attr *planned = node_attr(n, ATTR_arena);
    int64_t bytes = 0;
    if (planned || !n->body)
        return planned ? planned->u.i : 0;
    for (size_t i = 0; i < n->body->order.len; i++) {
        const Node *inner = graph_node(n->body, n->body->order.data[i]);
        if (!size_add(bytes, node_workspace_bytes(n->body, inner), &bytes))
            return INT64_MAX / 2;
        for (int k = 0; k < inner->n_out; k++)
            if (!size_add(bytes,
                          round_up(type_bytes(value_type(n->body, inner->out[k])), WORKSPACE_ALIGN),
                          &bytes))
                return INT64_MAX / 2;
    }
    return bytes;
}

const OpWorkspace workspace_loop = {.bytes = loop_bytes};
const OpWorkspace workspace_none = {.bytes = no_bytes};
const OpWorkspace workspace_weights = {.bytes = packed_bytes};
const OpWorkspace workspace_weight_sums = {.bytes = wgrad_partial_bytes};
const OpWorkspace workspace_attention = {.bytes = attention_bytes};
const OpWorkspace workspace_sorting = {.bytes = sort_bytes};
const OpWorkspace workspace_group = {.bytes = body_workspace};
const OpWorkspace workspace_results = {.bytes = partial_results, .chunked = always};
const OpWorkspace workspace_few_results = {
    .bytes = partial_results, .chunked = worth_chunks, .whole_form = true};
/* A sum and a count, or 64 bits. */
const OpWorkspace workspace_totals = {
    .bytes = partial_results, .chunked = always, .partial_bytes = 16};
const OpWorkspace workspace_losses = {
    .bytes = loss_bytes, .chunked = is_summed, .partial_bytes = 16};

int64_t node_workspace_bytes(const Graph *g, const Node *n)
{
    const Attr *library = node_attr(n, ATTR_workspace);
    int64_t bytes = library ? library->u.i : op_table[n->op].workspace->bytes(g, n);
    return round_up(bytes, WORKSPACE_ALIGN);
}
