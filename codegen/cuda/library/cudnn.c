/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions by cuDNN.
 *
 * It wants weights as [k, r, s, c / groups]; ours, [r, s, c / groups, k], are copied into the
 * workspace before it runs, or for their gradient out of it afterwards.  The node's workspace is
 * that copy, then what the library wants. */
#include "codegen/cuda/library/library.h"

#include "codegen/cuda/library/cudnn_ask.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/convolution.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "passes/memplan/memplan.h"

#include <string.h>

const char cudnn_name[] = "cudnn";

enum {
    TENSOR_ALIGN = 16,        /* what its kernels can make use of */
    WORKSPACE_FREE = 4 << 20, /* beyond what it reads and writes */
    /* It begins at a multiple of the plan's alignment, the library at the next of its own. */
    WORKSPACE_SLACK = CUDNN_WORKSPACE_ALIGN - MEMPLAN_ALIGN,
    TURN_THREADS = 256,
    TURN_SIDE = 32 /* as device/turn.cuh has them */
};

/* --- problems --- */

static ConvPart part_of(const Node *n)
{
    return n->op == OP_conv2d ? CONV_FORWARD : n->op == OP_conv2d_wgrad ? CONV_WGRAD : CONV_DGRAD;
}

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

/* Some engines bring both images into another order first; more than that is not worth the memory.
 */
static int64_t workspace_most(const CudnnProblem *p)
{
    int64_t elements = p->images * (p->h * p->w * p->c + p->oh * p->ow * p->k) + weights_of(p);
    return elements * element_bytes(p) + WORKSPACE_FREE;
}

static CudnnProblem problem_of(const ConvGeometry *q, ConvPart part, int64_t arithmetic)
{
    CudnnProblem p = {.part = part == CONV_FORWARD ? CUDNN_FORWARD
                              : part == CONV_DGRAD ? CUDNN_DGRAD
                                                   : CUDNN_WGRAD,
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
                      .align = TENSOR_ALIGN};
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
    ConvGeometry q = conv_geometry(&m, part_of(n));
    if (!q.nhwc || !arithmetic_of(g, n, &arithmetic) || !q.groups)
        return false;
    *out = problem_of(&q, part_of(n), arithmetic);
    return out->images && out->h && out->w && out->oh && out->ow && weights_of(out);
}

/* What one of the architectures of "sm_80,sm_90" needs at most; -1 where one has no engine. */
static int64_t most_workspace(const CudnnProblem *p, const char *archs)
{
    int64_t most = 0;
    for (const char *at = archs; most >= 0 && *at; at += strcspn(at, ","), at += *at == ',') {
        CudnnChoice choice;
        if (!cudnn_ask(p, at, &choice))
            most = -1;
        else if (choice.workspace > most)
            most = choice.workspace;
    }
    return most;
}

bool cudnn_takes(const Graph *g, const Node *n, const char *archs, LibraryUse *out)
{
    CudnnProblem p;
    if (!describe(g, n, &p))
        return false;
    int64_t workspace = most_workspace(&p, archs);
    *out = (LibraryUse){.library = cudnn_name, .missing = cudnn_missing()};
    out->workspace = copy_bytes(&p) + workspace + WORKSPACE_SLACK;
    out->as_they_are = true; /* weights are converted when they are copied */
    out->bias_apart = true;
    return workspace >= 0 || out->missing;
}

const char *cudnn_version_text(Pool *pool)
{
    return pool_printf(pool, "cuDNN %lld", (long long)cudnn_version());
}

/* --- plans --- */

static void write_line(StrBuf *out, const char *key, int64_t value)
{
    strbuf_printf(out, "%s %lld\n", key, (long long)value);
}

/* runtime/cuda/cudnn.c reads it. */
static void write_problem(StrBuf *out, const char *symbol, const void *desc)
{
    const CudnnProblem *p = desc;
    (void)symbol;
    write_line(out, "part", p->part);
    write_line(out, "arithmetic", p->arithmetic);
    write_line(out, "images", p->images);
    write_line(out, "h", p->h);
    write_line(out, "w", p->w);
    write_line(out, "c", p->c);
    write_line(out, "oh", p->oh);
    write_line(out, "ow", p->ow);
    write_line(out, "k", p->k);
    write_line(out, "r", p->r);
    write_line(out, "s", p->s);
    write_line(out, "groups", p->groups);
    write_line(out, "stride_y", p->stride[0]);
    write_line(out, "stride_x", p->stride[1]);
    write_line(out, "pad_y", p->pad[0]);
    write_line(out, "pad_x", p->pad[1]);
    write_line(out, "dilation_y", p->dilation[0]);
    write_line(out, "dilation_x", p->dilation[1]);
    write_line(out, "align", p->align);
    write_line(out, "workspace", p->workspace);
}

const char *cudnn_plan(Pool *pool, const void *desc, const char *arch, const char **error)
{
    CudnnProblem p = *(const CudnnProblem *)desc;
    CudnnChoice choice;
    StrBuf out = strbuf_new(pool);
    write_problem(&out, NULL, &p);
    int64_t reserved = p.workspace;
    p.workspace = workspace_most(&p); /* as it was asked for when the step was planned */
    if (!cudnn_ask(&p, arch, &choice) || choice.workspace > reserved) {
        *error = "cuDNN has no engine for a convolution that it was planned for: with --exact "
                 "scrimp's own kernels are used";
        return NULL;
    }
    write_line(&out, "version", cudnn_version());
    write_line(&out, "engine", choice.engine);
    write_line(&out, "knobs", choice.n_knobs);
    for (int i = 0; i < choice.n_knobs; i++) {
        write_line(&out, "knob", choice.knob[i].type);
        write_line(&out, "value", choice.knob[i].value);
    }
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
    call.bytes = 2.0 * (double)(weights_of(p) * element_bytes(p));
    cuda_call(m->l, &call, write_turn, TURN_THREADS);
}

static void add_convolution(const MatrixNode *m, const CudnnProblem *p, const CallBuf *bufs,
                            const char *what)
{
    CudnnProblem *problem = POOL_NEW(m->l->pool, CudnnProblem);
    StrBuf key = strbuf_new(m->l->pool);
    ConvGeometry q = conv_geometry(m, part_of(m->node));
    *problem = *p;
    desc_key(&key, cudnn_name, problem, sizeof *problem);
    CallDraft call = {.key = key.text, .desc = problem, .n_bufs = 4, .n_tasks = 1};
    memcpy(call.buf, bufs, 4 * sizeof *bufs);
    call.label = conv_label(m->l->pool, what, &q);
    call.flops = conv_flops(&q);
    call.bytes = conv_bytes(&q);
    call.text = write_problem;
    call.library = cudnn_name;
    lower_call(m->l, call);
}

void cudnn_convolution(const MatrixNode *m, const char *what)
{
    CudnnProblem p;
    const Node *n = m->node;
    if (!describe(m->graph, n, &p))
        BUG("%s is not for cuDNN", op_name(n->op));
    p.workspace = node_workspace_bytes(m->graph, n) - copy_bytes(&p) - WORKSPACE_SLACK;
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
