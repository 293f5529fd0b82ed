/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention and its gradient by cuDNN's fused kernels, in bf16.
 *
 * Of each row they have one number, the logarithm of the sum of its scores' exponentials.  Forward,
 * it is written as the row's largest score, and ones as its sum; the gradient reads the largest
 * score and the logarithm of the sum, added up in its workspace: each of the two understands the
 * other's, whoever computed it.
 *
 * The gradient needs memory for the scores of a head.  Where that of all heads is more than the
 * node reads and writes, it is computed in several calls for some of the heads each. */
#include "codegen/cuda/library/cudnn_attention.h"

#include "codegen/cuda/library/cudnn_ask.h"
#include "codegen/cuda/library/library.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"
#include "ir/attention.h"
#include "ir/strided_view.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"

#include <string.h>

enum {
    WIDTH_UNIT = 8, /* elements of a head, and the most of them */
    WIDTH_MOST = 128,
    HEADS_MOST = 65535,      /* a dim of a grid */
    SCORES_MOST = 128 << 20, /* of a call, in bytes */
    WORKSPACE_MOST = SCORES_MOST + (4 << 20),
    ROW_TILE = 64, /* of which the library's scores are made */
    KEY_TILE = 128,
    THREADS = 256 /* as device/attention_rows.cuh has them */
};

int64_t cudnn_attention_workspace_most(void)
{
    return WORKSPACE_MOST;
}

/* --- problems --- */

static bool is_bf16(const Graph *g, ValueId v)
{
    return value_type(g, v)->dtype == DTYPE_BF16;
}

static int64_t float_bits(double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static bool has_width(int64_t width)
{
    return width % WIDTH_UNIT == 0 && width <= WIDTH_MOST;
}

/* In the order of CudnnProblem.at. */
static const char letters[] = "qkvogQKV";

static int tensors_of(const CudnnProblem *p)
{
    return p->part == CUDNN_ATTENTION ? CUDNN_FORWARD_TENSORS : CUDNN_TENSORS;
}

/* As the tensor lies; as it is not there before the node is marked, a result of the forward
 * operation that a gradient is to read lies like the gradient's operand. */
static CudnnStrides strides_of(const Graph *g, const Node *n, char tensor)
{
    ValueId v = attention_tensor(n, tensor);
    if (v == VALUE_NONE)
        v = attention_tensor(n, tensor = 'g');
    const StridedView view = value_view(g, v);
    const AttentionStrides s = attention_strides(n, tensor, value_type(g, v), view.stride);
    return (CudnnStrides){s.batch, s.head, s.row};
}

static bool describe(const Graph *g, const Node *n, CudnnProblem *out)
{
    if (n->op != OP_attention && n->op != OP_attention_grad)
        return false;
    const AttentionShape a = attention_shape(g, n);
    const int64_t inner = a.n_batch ? a.batch[a.n_batch - 1] : 1;
    *out = (CudnnProblem){.part = a.grad ? CUDNN_ATTENTION_GRAD : CUDNN_ATTENTION,
                          .arithmetic = CUDNN_BF16,
                          .batch = a.heads / inner,
                          .heads = inner,
                          .rows = a.rows,
                          .keys = a.keys,
                          .width = a.width,
                          .value_width = a.value_width,
                          .causal = a.causal,
                          .scale = float_bits(a.scale),
                          .align = CUDNN_TENSOR_ALIGN,
                          .workspace = WORKSPACE_MOST};
    for (int i = 0; i < tensors_of(out); i++)
        out->at[i] = strides_of(g, n, letters[i]);
    bool half = is_bf16(g, n->in[a.q]) && is_bf16(g, n->in[a.k]) && is_bf16(g, n->in[a.v]);
    bool single = a.grad && a.rows == 1 && a.keys == 1; /* which cudnn-frontend refuses */
    return half && (!a.grad || is_bf16(g, n->in[a.dout])) && a.bias < 0 && !a.drops &&
           a.group == 1 && has_width(a.width) && has_width(a.value_width) &&
           a.heads <= HEADS_MOST && !single;
}

/* Of a head, as the library keeps them. */
static double scores_bytes(const CudnnProblem *p)
{
    double rows = (double)(divide_up(p->rows, ROW_TILE) * ROW_TILE);
    return 2 * rows * (double)(divide_up(p->keys, KEY_TILE) * KEY_TILE);
}

/* Of q, k, v, the result, and the gradients of all of them. */
static double tensor_bytes(const CudnnProblem *p)
{
    return 4.0 * (double)(p->batch * p->heads) *
           (double)((p->rows + p->keys) * (p->width + p->value_width));
}

static int64_t largest_divisor(int64_t n, int64_t most)
{
    int64_t d = most < n ? most : n;
    while (d > 1 && n % d)
        d--;
    return d;
}

/* A call's part of all heads: some of the batch, or some of the heads of one; false where the
 * scores of a single head are too many. */
static bool make_part(CudnnProblem *p)
{
    double room = tensor_bytes(p), head = scores_bytes(p);
    if (p->part == CUDNN_ATTENTION || head > SCORES_MOST)
        return p->part == CUDNN_ATTENTION;
    int64_t fit = (int64_t)((room < SCORES_MOST ? room : SCORES_MOST) / head);
    if (fit >= p->heads) {
        p->batch = largest_divisor(p->batch, fit / p->heads);
        return true;
    }
    p->batch = 1;
    p->heads = largest_divisor(p->heads, fit > 1 ? fit : 1);
    return true;
}

static int64_t row_floats(const CudnnProblem *p)
{
    int64_t unit = MEMPLAN_ALIGN / 4;
    return divide_up(p->batch * p->heads * p->rows, unit) * unit;
}

static int64_t parts_of(const CudnnProblem *all, const CudnnProblem *part)
{
    return all->batch * all->heads / (part->batch * part->heads);
}

/* What lies before the library's own workspace: for a gradient a number for each row of all parts,
 * and room for one for each row of a part. */
static int64_t bytes_before(const CudnnProblem *all, const CudnnProblem *part)
{
    return part->part == CUDNN_ATTENTION ? 0 : 4 * row_floats(part) * (parts_of(all, part) + 1);
}

bool cudnn_takes_attention(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    const bool grad = n->op == OP_attention_grad;
    CudnnProblem all, part;
    if (!describe(g, n, &all) || (grad && ask->result == VALUE_NONE))
        return false;
    part = all;
    if (!make_part(&part) || (cudnn_version() && cudnn_version() < CUDNN_ATTENTION_OLDEST))
        return false;
    int64_t workspace = cudnn_workspace(&part, ask->archs);
    *use = (LibraryUse){.library = cudnn_library.name,
                        .workspace = bytes_before(&all, &part) + workspace + CUDNN_WORKSPACE_SLACK,
                        .as_they_are = true,
                        .reads_result = grad,
                        .missing = cudnn_attention_missing()};
    return workspace >= 0 || use->missing;
}

/* --- calls --- */

/* Rows of all heads; of a part, and how far parts lie from each other. */
KERNEL_DESC_BEGIN
typedef struct RowsKernel {
    int64_t rows, part, pitch;
    int64_t logs; /* flag: sums are read */
} RowsKernel;
KERNEL_DESC(RowsKernel)

static void write_rows(StrBuf *out, const char *symbol, const void *desc)
{
    const RowsKernel *k = desc;
    text_begin(out, k->logs ? 3 : 1, (const char *const[]){"common", "math", NULL});
    text_define(out, "ROWS", k->rows);
    text_define(out, "PART", k->part);
    text_define(out, "PITCH", k->pitch);
    text_include(out, "attention_rows");
    text_kernel(out, symbol, THREADS, k->logs ? "attention_logs" : "attention_ones");
}

static void add_rows(Lowering *l, const CudnnProblem *all, const CudnnProblem *part,
                     const CallBuf *bufs, int n_bufs)
{
    RowsKernel k = {.rows = all->batch * all->heads * all->rows,
                    .part = part->batch * part->heads * part->rows,
                    .pitch = row_floats(part),
                    .logs = n_bufs == 3};
    CallDraft call = pod_call(l, "rows of attention", &k, DESC_BYTES(RowsKernel),
                              divide_up(k.rows, THREADS), bufs, n_bufs);
    call.bytes = 4 * (double)k.rows * n_bufs;
    cuda_call(l, &call, write_rows, THREADS);
}

static void add_attention(Lowering *l, const CudnnProblem *p, int64_t parts, const CallBuf *bufs,
                          int n_bufs)
{
    CudnnProblem *problem = POOL_NEW(l->pool, CudnnProblem);
    const Node *n = graph_node(l->graph, l->node);
    StrBuf key = strbuf_new(l->pool);
    *problem = *p;
    desc_key(&key, cudnn_library.name, problem, sizeof *problem);
    CallDraft call = {.key = key.text, .desc = problem, .n_bufs = n_bufs, .n_tasks = 1};
    memcpy(call.buf, bufs, (size_t)n_bufs * sizeof *bufs);
    call.label = op_name(n->op);
    pod_count_work(l, &call);
    call.flops /= (double)parts;
    call.bytes /= (double)parts;
    call.text = cudnn_write_problem;
    call.library = cudnn_library.name;
    lower_call(l, call);
}

/* A tensor, from this one of all heads on. */
static CallBuf from_head(const Graph *g, const Node *n, const CudnnProblem *all, int tensor,
                         int64_t head)
{
    const ValueId v = attention_tensor(n, letters[tensor]);
    const CudnnStrides *at = &all->at[tensor];
    const int64_t first = head / all->heads * at->batch + head % all->heads * at->head;
    return (CallBuf){v, 2 * (value_view(g, v).base + first)};
}

static void find_tensors(const Graph *g, const Node *n, const CudnnProblem *all, int64_t head,
                         CallBuf *bufs)
{
    for (int t = 0; t < tensors_of(all); t++)
        bufs[t] = from_head(g, n, all, t, head);
}

static void lower_forward(Lowering *l, const Node *n, const CudnnProblem *p)
{
    CallBuf of[CUDNN_TENSORS];
    find_tensors(l->graph, n, p, 0, of);
    const CallBuf bufs[] = {of[CUDNN_Q], of[CUDNN_K],    of[CUDNN_V],
                            of[CUDNN_O], {n->out[1], 0}, {VALUE_NONE, 0}};
    add_attention(l, p, 1, bufs, 6);
    add_rows(l, p, p, &(CallBuf){n->out[2], 0}, 1);
}

/* Part i's buffers, in the order of cudnn_tensors. */
static void part_bufs(const Graph *g, const Node *n, const CudnnProblem *all,
                      const CudnnProblem *part, int64_t i, CallBuf *bufs)
{
    const int64_t pitch = 4 * row_floats(part), before = bytes_before(all, part);
    CallBuf of[CUDNN_TENSORS];
    find_tensors(g, n, all, i * part->batch * part->heads, of);
    const CallBuf in_order[] = {of[CUDNN_Q],         of[CUDNN_K],
                                of[CUDNN_V],         of[CUDNN_O],
                                of[CUDNN_DO],        {VALUE_NONE, i * pitch},
                                of[CUDNN_DQ],        of[CUDNN_DK],
                                of[CUDNN_DV],        {VALUE_NONE, before - pitch},
                                {VALUE_NONE, before}};
    memcpy(bufs, in_order, sizeof in_order);
}

static void lower_gradient(Lowering *l, const Node *n, const CudnnProblem *all,
                           const CudnnProblem *part)
{
    CallBuf bufs[CUDNN_TENSORS_MOST + 1];
    const CallBuf rows[] = {{n->in[4], 0}, {n->in[5], 0}, {VALUE_NONE, 0}};
    const int64_t parts = parts_of(all, part);
    add_rows(l, all, part, rows, 3);
    for (int64_t i = 0; i < parts; i++) {
        part_bufs(l->graph, n, all, part, i, bufs);
        add_attention(l, part, parts, bufs, CUDNN_TENSORS_MOST + 1);
    }
}

void cudnn_lower_attention(Lowering *l, const Node *n)
{
    CudnnProblem all, part;
    if (!describe(l->graph, n, &all))
        BUG("%s is not for cuDNN", op_name(n->op));
    part = all;
    make_part(&part);
    part.workspace =
        node_workspace_bytes(l->graph, n) - bytes_before(&all, &part) - CUDNN_WORKSPACE_SLACK;
    if (part.part == CUDNN_ATTENTION)
        lower_forward(l, n, &part);
    else
        lower_gradient(l, n, &all, &part);
}
