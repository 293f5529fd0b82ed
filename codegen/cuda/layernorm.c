/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer norm and its gradients: device/layernorm.cuh, layernorm_grad.cuh, layernorm_sums.cuh. */
#include "codegen/forms/layernorm.h"
#include "codegen/cuda/columns.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"
#include "ir/workspace.h"

/* Rows of a block, and their threads (device/runs.cuh); elements of all runs of a line that lie
 * side by side. */
enum { BLOCK_LINES = 8, ROW_THREADS = BLOCK_LINES * RUN_THREADS, MOST_BLOCKS = 1 << 20 };
enum { EIGHT = 8, RUN = EIGHT * RUN_THREADS, MOST_AHEAD = 6 };
enum { SUMS_THREADS = 256 };

/* --- rows --- */

/* Runs of each of some tensors that a thread reads ahead: so many that lines are whole batches. */
static int64_t runs_ahead(int64_t length, int images)
{
    int64_t runs = divide_up(length, RUN), ahead = MOST_AHEAD / images;
    while (runs % ahead)
        ahead--;
    return ahead;
}

/* images: how many tensors of whole rows are read. */
static void write_rows(StrBuf *out, const char *symbol, const LayernormDesc *d, int images,
                       int out_buf, int n_args, const char *body)
{
    text_define(out, "BLOCK_LINES", BLOCK_LINES);
    text_define(out, "AHEAD", runs_ahead(d->length, images));
    text_define(out, "ALIGN", d->length % RUN ? EIGHT : 1);
    text_begin(out, n_args, (const char *const[]){"common", "math", NULL});
    text_define(out, "HAS_GAMMA", d->gamma);
    text_define(out, "HAS_BETA", d->beta);
    text_define(out, "IS_RMS", d->rms);
    text_define(out, "OUT_BUF", out_buf);
    text_define_float(out, "ONE_OVER_LENGTH", 1 / (double)d->length);
    text_define_float(out, "EPS", d->eps);
    text_lines(out, (AxisShape){d->rows, d->length, 1}, "runs");
    text_include(out, body);
    text_kernel(out, symbol, ROW_THREADS, body);
}

static void write_layernorm(StrBuf *out, const char *symbol, const void *desc)
{
    const LayernormDesc *d = desc;
    int out_buf = 1 + (int)d->gamma + (int)d->beta;
    write_rows(out, symbol, d, 1, out_buf, out_buf + 3, "layernorm");
}

static void write_layernorm_grad(StrBuf *out, const char *symbol, const void *desc)
{
    const LayernormDesc *d = desc;
    int out_buf = d->gamma ? 5 : 4;
    write_rows(out, symbol, d, 2, out_buf, out_buf + 1, "layernorm_grad");
}

static void lower_rows(Lowering *l, const Node *n, KernelText *text)
{
    LayernormDesc d = layernorm_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    int64_t tiles = d.length ? divide_up(d.rows, BLOCK_LINES) : 0;
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(LayernormDesc),
                              tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS, bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, ROW_THREADS);
}

void cuda_layernorm(Lowering *l, const Node *n)
{
    lower_rows(l, n, write_layernorm);
}

void cuda_layernorm_grad(Lowering *l, const Node *n)
{
    lower_rows(l, n, write_layernorm_grad);
}

/* --- sums over rows --- */

KERNEL_DESC_BEGIN
typedef struct SumsDesc {
    int64_t rows, length, chunks, partial_bytes;
} SumsDesc;
KERNEL_DESC(SumsDesc)

static ColumnSums sums_of(const SumsDesc *d)
{
    return (ColumnSums){.rows = d->rows,
                        .width = d->length,
                        .chunks = d->chunks,
                        .images = 2,
                        .pitch = {d->length, d->length}};
}

static void begin_columns(StrBuf *out, const SumsDesc *d, int n_args)
{
    text_begin(out, n_args, (const char *const[]){"common", "math", "join", NULL});
    text_define(out, "LENGTH", d->length);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_FLOATS", d->partial_bytes / 4);
}

static void write_sums(StrBuf *out, const char *symbol, const void *desc)
{
    const SumsDesc *d = desc;
    begin_columns(out, d, 5);
    text_define(out, "THREADS", SUMS_THREADS);
    text_define(out, "ROWS", d->rows);
    text_include(out, "layernorm_sums");
    text_kernel(out, symbol, SUMS_THREADS, "layernorm_sums");
}

static void write_tiles(StrBuf *out, const char *symbol, const void *desc)
{
    const ColumnSums sums = sums_of(desc);
    begin_columns(out, desc, 5);
    text_columns(out, &sums);
    text_include(out, "layernorm_tiles");
    text_kernel(out, symbol, column_threads(&sums), "layernorm_tiles");
}

static void write_total(StrBuf *out, const char *symbol, const void *desc)
{
    begin_columns(out, desc, 3);
    text_define(out, "THREADS", SUMS_THREADS);
    text_include(out, "layernorm_total");
    text_kernel(out, symbol, SUMS_THREADS, "layernorm_total");
}

void cuda_layernorm_grad_sums(Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), -1);
    SumsDesc d = {a.outer, a.length, reduce_chunks(l->graph, n), reduce_partial_bytes(l->graph, n)};
    const CallBuf in[] = {
        {n->in[0], 0}, {n->in[1], 0}, {n->in[2], 0}, {n->in[3], 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}, {n->out[1], 0}};
    const ColumnSums sums = sums_of(&d);
    bool tiles = has_column_tiles(&sums);
    CallDraft call = pod_call(
        l, op_name(n->op), &d, DESC_BYTES(SumsDesc),
        tiles ? column_blocks(&sums) : divide_up(d.length * d.chunks, SUMS_THREADS), in, 5);
    pod_count_work(l, &call);
    cuda_call(l, &call, tiles ? write_tiles : write_sums,
              tiles ? column_threads(&sums) : SUMS_THREADS);
    call = pod_call(l, "layernorm_grad_sums_join", &d, DESC_BYTES(SumsDesc),
                    divide_up(d.length, SUMS_THREADS), out, 3);
    pod_count_join(l, &call);
    cuda_call(l, &call, write_total, SUMS_THREADS);
}
