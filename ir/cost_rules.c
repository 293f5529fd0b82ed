/* What operations cost.  A multiply-add is two flops; a transcendental or otherwise heavy
 * element-wise operation counts HEAVY_FLOPS, about what its vectorised polynomial costs. */
#include "ir/cost_rules.h"

#include "ir/op_rules.h"
#include "ir/place.h"

#include <string.h>

enum { HEAVY_FLOPS = 10, NORM_FLOPS = 5, WORKSPACE_ALIGN = 64 };

static double elements(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= (double)t->dim[i];
    return n;
}

/* Elements of the largest operand: the result of element-wise operations, the input of reductions.
 */
static double touched(const Graph *g, const Node *n)
{
    double most = 0;
    for (int i = 0; i < n->n_in; i++) {
        double e = elements(g, n->in[i]);
        most = e > most ? e : most;
    }
    for (int i = 0; i < n->n_out; i++) {
        double e = elements(g, n->out[i]);
        most = e > most ? e : most;
    }
    return most;
}

double flops_zero(const Graph *g, const Node *n)
{
    (void)g, (void)n;
    return 0;
}

double flops_point(const Graph *g, const Node *n)
{
    return touched(g, n);
}

double flops_heavy(const Graph *g, const Node *n)
{
    return HEAVY_FLOPS * touched(g, n);
}

double flops_bn(const Graph *g, const Node *n)
{
    return NORM_FLOPS * elements(g, n->in[0]);
}

double flops_matmul(const Graph *g, const Node *n)
{
    const Type *a = value_type(g, n->in[0]);
    int64_t k = a->dim[a->rank - (node_flag(n, ATTR_ta) ? 2 : 1)];
    return 2 * elements(g, n->out[0]) * (double)k;
}

double flops_linear(const Graph *g, const Node *n)
{
    const Type *x = value_type(g, n->in[0]);
    double bias = n->n_in > 2 ? 1 : 0;
    return elements(g, n->out[0]) * (2 * (double)x->dim[x->rank - 1] + bias);
}

/* Multiply-adds for one output channel at one place: C/groups * R * S. */
static double filter_taps(const Node *n, const Type *w)
{
    double taps = 1;
    int k_axis = node_flag(n, ATTR_nhwc) ? 3 : 0;
    for (int i = 0; i < 4; i++)
        taps *= i == k_axis ? 1 : (double)w->dim[i];
    return taps;
}

double flops_conv2d(const Graph *g, const Node *n)
{
    double bias = n->n_in > 2 ? 1 : 0;
    return elements(g, n->out[0]) * (2 * filter_taps(n, value_type(g, n->in[1])) + bias);
}

double flops_conv2d_dgrad(const Graph *g, const Node *n)
{
    return 2 * elements(g, n->in[0]) * filter_taps(n, value_type(g, n->in[1]));
}

/* Every element of the input meets the whole filter. */
double flops_deconv2d(const Graph *g, const Node *n)
{
    return flops_conv2d_dgrad(g, n) + (n->n_in > 2 ? elements(g, n->out[0]) : 0);
}

double flops_conv2d_wgrad(const Graph *g, const Node *n)
{
    return 2 * elements(g, n->in[1]) * filter_taps(n, value_type(g, n->out[0]));
}

/* One operation for each element of each window. */
double flops_pool(const Graph *g, const Node *n)
{
    bool forward = n->op == OP_maxpool || n->op == OP_maxpool_index || n->op == OP_avgpool;
    double windows = elements(g, forward ? n->out[0] : n->in[0]);
    return windows * (double)node_ints_at(n, ATTR_kernel, 0, 1) *
           (double)node_ints_at(n, ATTR_kernel, 1, 1);
}

/* Height (axis 0) or width of an image. */
static int64_t image_size(const Graph *g, const Node *n, ValueId v, int axis)
{
    return value_type(g, v)->dim[(node_flag(n, ATTR_nhwc) ? 1 : 2) + axis];
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* One operation for each element of each window.  Where the end of one of `to` windows is not an
 * end of an element, that element lies in two windows. */
double flops_adaptive(const Graph *g, const Node *n)
{
    bool forward = n->op == OP_adaptive_avgpool;
    ValueId x = forward ? n->in[0] : n->out[0], y = forward ? n->out[0] : n->in[0];
    double sum = elements(g, y);
    for (int axis = 0; axis < 2; axis++) {
        int64_t from = image_size(g, n, x, axis), to = image_size(g, n, y, axis);
        double shared = (double)(to - common_divisor(from, to));
        sum *= ((double)from + shared) / (double)to;
    }
    return sum;
}

/* A multiply-add for each of the four neighbours; nearest only copies, or adds in its gradient. */
double flops_resize(const Graph *g, const Node *n)
{
    double pixels = elements(g, n->op == OP_resize ? n->out[0] : n->in[0]);
    if (node_flag(n, ATTR_nearest))
        return n->op == OP_resize ? 0 : pixels;
    return 8 * pixels;
}

/* A power, and the sum over a window, or two of them. */
double flops_lrn(const Graph *g, const Node *n)
{
    double window = (double)node_int(n, ATTR_window, 5);
    return elements(g, n->out[0]) * (HEAVY_FLOPS + (n->op == OP_lrn ? 1 : 2) * window);
}

double flops_fused(const Graph *g, const Node *n)
{
    (void)g;
    return n->body ? graph_flops(n->body) : 0;
}

double node_flops(const Graph *g, const Node *n)
{
    return op_table[n->op].flops(g, n);
}

double graph_flops(const Graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->order.len; i++)
        sum += node_flops(g, graph_node(g, g->order.data[i]));
    return sum;
}

int64_t node_bytes_moved(const Graph *g, const Node *n)
{
    int64_t bytes = 0;
    OpClass c = op_table[n->op].op_class;
    if (c == OP_CLASS_SOURCE || c == OP_CLASS_VIEW)
        return 0;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        ValueId v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        if (!size_add(bytes, type_bytes(value_type(g, v)), &bytes))
            return INT64_MAX;
    }
    return bytes;
}

/* Workspaces */

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

/* CONV_PANEL says how they lie. */
static int64_t packed_weight_bytes(const Graph *g, const Node *n)
{
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

bool conv_wgrad_is_product(const Graph *g, const Node *n)
{
    const Type *dw = value_type(g, n->out[0]);
    bool plain =
        node_flag(n, ATTR_nhwc) && dw->dim[0] * dw->dim[1] == 1 && node_int(n, ATTR_groups, 1) == 1;
    for (int i = 0; i < 2; i++)
        plain &= node_ints_at(n, ATTR_stride, i, 1) == 1 && !node_ints_at(n, ATTR_padding, i, 0);
    return plain;
}

/* Partial results take at most a quarter of what is read anyway when there are few channels, whose
 * images are the largest of a model; else so little that the plan hardly notices. */
int64_t conv_wgrad_chunks(const Graph *g, const Node *n)
{
    const Type *dy = value_type(g, n->in[1]), *dw = value_type(g, n->out[0]);
    bool depthwise = has_narrow_groups(g, n) && dw->dim[2] == 1;
    if (!node_flag(n, ATTR_nhwc) || depthwise || conv_wgrad_is_product(g, n))
        return 1;
    int64_t part = dw->dim[2] <= 4 ? 4 : 64;
    int64_t partial = times(part, times(WGRAD_CHUNKS, type_bytes(dw)));
    int64_t rows = times(dy->dim[0], dy->dim[1]);
    bool small = partial <= type_bytes(value_type(g, n->in[0])) + type_bytes(dy);
    return small && rows >= 2 * WGRAD_CHUNKS ? WGRAD_CHUNKS : 1;
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

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
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
    if (x->dtype != DTYPE_F32 || results > REDUCE_CHUNKED_RESULTS || each < REDUCE_CHUNKS ||
        results * each < MUCH)
        return false;
    int64_t tasks =
        each >= REDUCE_TASK_ELEMENTS ? results : divide_up(results, REDUCE_TASK_ELEMENTS / each);
    if (kept)
        tasks = results / inner * divide_up(inner, REDUCE_TASK_COLUMNS);
    return tasks < ENOUGH_TASKS;
}

/* Whether a reduction without chunks has code. */
static bool has_whole_form(const Node *n)
{
    return n->op == OP_sum || n->op == OP_mean || n->op == OP_reduce_max || n->op == OP_sumsq;
}

static bool has_chunked_form(const Graph *g, const Node *n)
{
    switch ((int)n->op) {
    case OP_bn_stats:
    case OP_bn_grad_sums:
    case OP_layernorm_grad_sums:
    case OP_checksum:
    case OP_accuracy:
        return true;
    case OP_cross_entropy:
        return strcmp(node_string(n, ATTR_reduction, "mean"), "none") != 0;
    case OP_sumsq:
    case OP_sum:
    case OP_mean:
    case OP_reduce_max:
        return worth_chunks(g, n);
    default:
        return false;
    }
}

int reduce_chunks(const Graph *g, const Node *n)
{
    if (!has_chunked_form(g, n))
        return 0;
    int64_t data = type_bytes(value_type(g, n->in[0]));
    int64_t chunks = data / times(REDUCE_DATA_PER_PARTIAL, reduce_partial_bytes(g, n));
    if (chunks < 2)
        return has_whole_form(n) ? 0 : 1;
    return chunks < REDUCE_CHUNKS ? (int)chunks : REDUCE_CHUNKS;
}

int64_t reduce_partial_bytes(const Graph *g, const Node *n)
{
    int64_t bytes = 0;
    for (int i = 0; i < n->n_out; i++)
        bytes += times(4, type_elements(value_type(g, n->out[i])));
    if (n->op == OP_cross_entropy || n->op == OP_accuracy || n->op == OP_checksum)
        bytes = 16;
    return round_up(bytes, WORKSPACE_ALIGN);
}

static int64_t body_workspace(const Graph *body)
{
    int64_t most = 0;
    for (size_t i = 0; i < body->order.len; i++) {
        int64_t bytes = node_workspace_bytes(body, graph_node(body, body->order.data[i]));
        most = bytes > most ? bytes : most;
    }
    return most;
}

int64_t node_workspace_bytes(const Graph *g, const Node *n)
{
    int64_t bytes = 0;
    if (n->body)
        bytes = body_workspace(n->body);
    else if (n->op == OP_conv2d || n->op == OP_conv2d_dgrad || n->op == OP_deconv2d)
        bytes = packed_weight_bytes(g, n);
    else if (n->op == OP_conv2d_wgrad)
        bytes = wgrad_partial_bytes(g, n);
    else
        bytes = times(reduce_chunks(g, n), reduce_partial_bytes(g, n));
    return round_up(bytes, WORKSPACE_ALIGN);
}

/* Writing over an input */

ValueId body_input(const Graph *body, int i)
{
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        if (n->op == OP_input && i-- == 0)
            return n->out[0];
    }
    return VALUE_NONE;
}

bool point_reads_elsewhere(const Node *n, int in)
{
    return (n->op == OP_dropout || n->op == OP_relu_mask_grad) && in == 1;
}

enum { BODY_VALUES = 1024 };

/* Everything in the body that depends on v must be element-wise at v's shape: then v's element is
 * read at the one index at which the result's is written.  False for bodies past BODY_VALUES, which
 * no pass makes. */
static bool element_wise_in_body(const Graph *body, ValueId v)
{
    bool depends[BODY_VALUES] = {0};
    if (v == VALUE_NONE || body->values.len > BODY_VALUES)
        return false;
    depends[v] = true;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        bool reads = false, elsewhere = false;
        for (int i = 0; i < n->n_in; i++) {
            reads |= depends[n->in[i]];
            elsewhere |= depends[n->in[i]] && point_reads_elsewhere(n, i);
        }
        if (!reads)
            continue;
        if (elsewhere || op_table[n->op].op_class != OP_CLASS_POINT ||
            !type_same_shape(value_type(body, n->out[0]), value_type(body, v)))
            return false;
        depends[n->out[0]] = true;
    }
    return true;
}

static bool reads_in_step(const Node *n, int in)
{
    switch ((int)n->op) {
    case OP_softmax:
    case OP_log_softmax:
    case OP_softmax_grad:
    case OP_log_softmax_grad:
    case OP_lrn:
    case OP_lrn_grad:
        return true;
    case OP_layernorm_grad:
    case OP_cross_entropy_grad:
        return in == 0;
    default:
        return op_table[n->op].op_class == OP_CLASS_POINT && !point_reads_elsewhere(n, in);
    }
}

static bool input_fits(const Graph *g, const Node *n, int out, int in)
{
    const Type *a = value_type(g, n->in[in]), *b = value_type(g, n->out[out]);
    if (!type_same_shape(a, b) || dtype_bytes(a->dtype) != dtype_bytes(b->dtype) ||
        !value_is_dense(g, n->in[in]) || !value_is_dense(g, n->out[out]))
        return false;
    return n->body ? element_wise_in_body(n->body, body_input(n->body, in)) : reads_in_step(n, in);
}

/* Other inputs that are the same memory, directly, through views or as parts, must fit as well. */
bool node_may_overwrite(const Graph *g, const Node *n, int out, int in)
{
    ValueId root = value_root(g, n->in[in]);
    if (!input_fits(g, n, out, in))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (i != in && value_root(g, n->in[i]) == root && !input_fits(g, n, out, i))
            return false;
    return true;
}
