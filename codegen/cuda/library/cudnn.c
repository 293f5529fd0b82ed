/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions by cuDNN; cudnn_attention.c has what it does beside them.
 *
 * It wants weights as [k, r, s, c / groups]; ours, [r, s, c / groups, k], are copied into the
 * workspace before it runs, or for their gradient out of it afterwards.  The node's workspace is
 * that copy, then what the library wants. */
#include "codegen/cuda/library/library.h"

#include "codegen/cuda/library/cudnn_ask.h"
#include "codegen/cuda/library/cudnn_attention.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/convolution.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "passes/memplan/memplan.h"

#include <string.h>

enum {
    WORKSPACE_FREE = 4 << 20, /* beyond what it reads and writes */
    TURN_THREADS = 256,
    TURN_SIDE = 32 /* as device/turn.cuh has them */
};

/* --- problems --- */

_Static_assert((int)CONV_FORWARD == (int)CUDNN_FORWARD && (int)CONV_DGRAD == (int)CUDNN_DGRAD &&
                   (int)CONV_WGRAD == (int)CUDNN_WGRAD,
               "a part has another number in a plan");

static int64_t weights_of(const CudnnProblem *p)
{
    return p->r * p->s * (p->c / p->groups) * p->k;
}

static int64_t element_bytes(const CudnnProblem *p)
{
    return p->arithmetic == CUDNN_BF16 ? 2 : 4;
}

static int64_t copy_bytes(const CudnnProblem *p)
{
    int64_t unit = CUDNN_WORKSPACE_ALIGN;
    return (weights_of(p) * element_bytes(p) + unit - 1) / unit * unit;
}

/* Of both images and the weights. */
static int64_t tensor_bytes(const CudnnProblem *p)
{
    int64_t images = p->images * (p->h * p->w * p->c + p->oh * p->ow * p->k);
    return (images + weights_of(p)) * element_bytes(p);
}

/* Some engines bring both images into another order first; more than that is not worth the memory.
 */
static int64_t workspace_most(const CudnnProblem *p)
{
    return tensor_bytes(p) + WORKSPACE_FREE;
}

static CudnnProblem problem_of(const ConvGeometry *q, ConvPart part, int64_t arithmetic)
{
    CudnnProblem p = {.part = part,
                      .arithmetic = arithmetic,
                      .images = q->images,
                      .h = q->h,
                      .w = q->w,
                      .c = q->c,
                      .oh = q->oh,
                      .ow = q->ow,
                      .k = q->k,
                      .r = q->r,
                      .s = q->s,
                      .groups = q->groups,
                      .align = CUDNN_TENSOR_ALIGN};
    memcpy(p.stride, q->stride, sizeof p.stride);
    memcpy(p.pad, q->pad, sizeof p.pad);
    memcpy(p.dilation, q->dilation, sizeof p.dilation);
    p.workspace = workspace_most(&p);
    return p;
}

/* What it computes in, by the types of the node; false where cuDNN has nothing of the kind.  Its
 * weight gradients are bf16 with bf16 images, and become f32 when they are copied. */
static bool arithmetic_of(const Graph *g, const Node *n, int64_t *out)
{
    DType a = value_type(g, n->in[0])->dtype, b = value_type(g, n->in[1])->dtype;
    DType result = value_type(g, n->out[0])->dtype;
    bool weights = n->op == OP_conv2d_wgrad;
    const char *precision = g->train.precision;
    if (a == DTYPE_F32 && b == DTYPE_F32 && result == DTYPE_F32) {
        *out = precision && strcmp(precision, "tf32") == 0 ? CUDNN_TF32 : CUDNN_F32;
        return true;
    }
    *out = CUDNN_BF16;
    return a == DTYPE_BF16 && (weights ? b == DTYPE_BF16 : result == DTYPE_BF16);
}

static bool describe(const Graph *g, const Node *n, CudnnProblem *out)
{
    int64_t arithmetic;
    const MatrixNode m = {.graph = g, .node = n};
    if (n->op == OP_matmul || n->op == OP_linear || op_table[n->op].op_class != OP_CLASS_MATRIX)
        return false;
    ConvPart part = conv_part(n->op);
    ConvGeometry q = conv_geometry(&m, part);
    if (!q.nhwc || !arithmetic_of(g, n, &arithmetic) || !q.groups)
        return false;
    *out = problem_of(&q, part, arithmetic);
    return out->images && out->h && out->w && out->oh && out->ow && weights_of(out);
}

static bool takes(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use)
{
    CudnnProblem p;
    if (cudnn_takes_attention(g, n, ask, use))
        return true;
    if (!describe(g, n, &p))
        return false;
    int64_t workspace = cudnn_workspace(&p, ask->archs);
    *use = (LibraryUse){.library = cudnn_library.name,
                        .workspace = copy_bytes(&p) + workspace + CUDNN_WORKSPACE_SLACK,
                        .as_they_are = true, /* weights are converted when they are copied */
                        .bias_apart = true,
                        .missing = cudnn_missing()};
    return workspace >= 0 || use->missing;
}

static const char *version(Pool *pool)
{
    return pool_printf(pool, "cuDNN %lld", (long long)cudnn_version());
}

/* --- plans --- */

void cudnn_write_problem(StrBuf *out, const char *symbol, const void *desc)
{
    (void)symbol;
    library_write(out, cudnn_lines(((const CudnnProblem *)desc)->part), desc);
}

static const char *make_plan(Pool *pool, const void *desc, const char *arch, const char **error)
{
    CudnnProblem p = *(const CudnnProblem *)desc;
    CudnnChoice choice;
    StrBuf out = strbuf_new(pool);
    cudnn_write_problem(&out, NULL, &p);
    int64_t reserved = p.workspace; /* else as it was asked for when the step was planned: */
    p.workspace = cudnn_is_attention(&p) ? cudnn_attention_workspace_most() : workspace_most(&p);
    if (!cudnn_ask(&p, arch, &choice) || choice.workspace > reserved) {
        *error = "cuDNN has no engine for what it was planned for: with --exact scrimp's own "
                 "kernels are used";
        return NULL;
    }
    library_write(&out, &cudnn_choice_lines, &choice);
    for (int i = 0; i < choice.n_knobs; i++)
        library_write(&out, &cudnn_knob_lines, &choice.knob[i]);
    return out.text;
}

/* --- calls --- */

/* [rows, columns] becomes [columns, rows]. */
KERNEL_DESC_BEGIN
typedef struct Turn {
    int64_t rows, columns;
    int64_t workspace_buf, workspace_bf16; /* 0 or 1: from, to */
} Turn;
KERNEL_DESC(Turn)

static void write_turn(StrBuf *out, const char *symbol, const void *desc)
{
    const Turn *t = desc;
    if (t->workspace_bf16)
        strbuf_printf(out, "#define BF16_%lld 1\n", (long long)t->workspace_buf);
    text_begin(out, 2, (const char *const[]){"common", NULL});
    text_define(out, "ROWS", t->rows);
    text_define(out, "COLUMNS", t->columns);
    text_include(out, "turn");
    text_kernel(out, symbol, TURN_THREADS, "turn");
}

static void add_turn(const MatrixNode *m, const CudnnProblem *p, CallBuf from, CallBuf to)
{
    bool forwards = from.value != VALUE_NONE;
    int64_t taps = weights_of(p) / p->k;
    Turn *t = POOL_NEW(m->l->pool, Turn);
    StrBuf key = strbuf_new(m->l->pool);
    *t = (Turn){.rows = forwards ? taps : p->k,
                .columns = forwards ? p->k : taps,
                .workspace_buf = forwards,
                .workspace_bf16 = p->arithmetic == CUDNN_BF16};
    desc_key(&key, "turn", t, DESC_BYTES(Turn));
    CallDraft call = {.key = key.text, .label = "weights of conv", .desc = t, .n_bufs = 2};
    call.buf[0] = from;
    call.buf[1] = to;
    call.n_tasks = divide_up(t->rows, TURN_SIDE) * divide_up(t->columns, TURN_SIDE);
    DType outside = value_type(m->graph, forwards ? from.value : to.value)->dtype;
    call.bytes = (double)(weights_of(p) * (element_bytes(p) + dtype_bytes(outside)));
    cuda_call(m->l, &call, write_turn, TURN_THREADS);
}

static void add_convolution(const MatrixNode *m, const CudnnProblem *p, const CallBuf *bufs,
                            const char *what)
{
    CudnnProblem *problem = POOL_NEW(m->l->pool, CudnnProblem);
    StrBuf key = strbuf_new(m->l->pool);
    ConvGeometry q = conv_geometry(m, conv_part(m->node->op));
    *problem = *p;
    desc_key(&key, cudnn_library.name, problem, sizeof *problem);
    CallDraft call = {.key = key.text, .desc = problem, .n_bufs = 4, .n_tasks = 1};
    memcpy(call.buf, bufs, 4 * sizeof *bufs);
    call.label = conv_label(m->l->pool, what, &q);
    call.flops = conv_flops(&q);
    call.bytes = (double)tensor_bytes(problem);
    call.text = cudnn_write_problem;
    call.library = cudnn_library.name;
    lower_call(m->l, call);
}

static void lower(const MatrixNode *m, const char *what)
{
    CudnnProblem p;
    const Node *n = m->node;
    if (op_table[n->op].op_class != OP_CLASS_MATRIX) {
        cudnn_lower_attention(m->l, n);
        return;
    }
    if (!describe(m->graph, n, &p))
        BUG("%s is not for cuDNN", op_name(n->op));
    p.workspace = node_workspace_bytes(m->graph, n) - copy_bytes(&p) - CUDNN_WORKSPACE_SLACK;
    const CallBuf first = {n->in[0], 0}, second = {n->in[1], 0}, result = {n->out[0], 0};
    const CallBuf copy = {VALUE_NONE, 0}, workspace = {VALUE_NONE, copy_bytes(&p)};
    const CallBuf bufs[][4] = {[CUDNN_FORWARD] = {first, copy, result, workspace},
                               [CUDNN_DGRAD] = {result, copy, first, workspace},
                               [CUDNN_WGRAD] = {first, copy, second, workspace}};
    if (p.part != CUDNN_WGRAD)
        add_turn(m, &p, second, copy);
    add_convolution(m, &p, bufs[p.part], what);
    if (p.part == CUDNN_WGRAD)
        add_turn(m, &p, copy, result);
}

const LibraryCode cudnn_library = {
    .name = "cudnn", .takes = takes, .lower = lower, .version = version, .plan = make_plan};
