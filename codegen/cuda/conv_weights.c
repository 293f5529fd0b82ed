/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gradient of a convolution's weights: device/conv_weights.cuh for every form,
 * device/conv_weights_tile.cuh where there are enough channels, and the sum of chunks. */
#include "codegen/cuda/conv.h"
#include "codegen/cuda/matrix.h"
#include "codegen/cuda/point.h"
#include "codegen/cuda/text.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "ir/workspace.h"

/* Sums of chunks go to the workspace, others are finished at once. */
static void write_store(StrBuf *out, const ConvDesc *d)
{
    if (d->partial_buf < 0) {
        cuda_epilogue(out, &d->epilogue, 0);
        strbuf_put(out,
                   "#define STORE_SUM(chunk, row, column, sum) epilogue(a, row, column, sum)\n");
        return;
    }
    strbuf_printf(out, "#define PARTIAL_BUF %d\n", d->partial_buf);
    strbuf_put(out, "#define STORE_SUM(chunk, row, column, sum) \\\n"
                    "    (BUF(float, PARTIAL_BUF)[(chunk) * WEIGHTS + (i64)(row) * LAST_WEIGHT_DIM "
                    "+ (column)] = (sum))\n");
}

static void begin(StrBuf *out, const ConvDesc *d, const char *const *parts)
{
    cuda_conv_begin(out, d, parts);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "BAND_ROWS", d->band_rows);
    write_store(out, d);
}

static void write_sum(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, (const char *const[]){NULL});
    text_include(out, "conv_weights");
    strbuf_printf(out,
                  "\nKERNEL(%s, %d)\n{\n    conv_weight(a, (i64)blockIdx.x * %d + threadIdx.x);"
                  "\n}\n",
                  symbol, CONV_THREADS, CONV_THREADS);
}

static void write_tile(StrBuf *out, const char *symbol, const void *desc)
{
    const ConvDesc *d = desc;
    begin(out, d, (const char *const[]){NULL});
    cuda_conv_place(out, &d->q);
    text_tile(out, &d->tile);
    text_include(out, "conv_weights_tile");
    text_tile_kernel(out, symbol, &d->tile, "conv_weights_tile");
}

/* A thread a weight. */
static void write_join(StrBuf *out, const char *symbol, const void *desc)
{
    const ConvDesc *d = desc;
    cuda_conv_begin(out, d, (const char *const[]){"join", NULL});
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_BUF", d->partial_buf);
    cuda_epilogue(out, &d->epilogue, 0);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, CONV_THREADS);
    strbuf_printf(out, "    const i64 at = (i64)blockIdx.x * %d + threadIdx.x;\n", CONV_THREADS);
    strbuf_put(out, "    if (at < WEIGHTS)\n"
                    "        epilogue(a, at / LAST_WEIGHT_DIM, at % LAST_WEIGHT_DIM,\n"
                    "                 join_sum(BUF(const float, PARTIAL_BUF) + at, CHUNKS, "
                    "WEIGHTS));\n}\n");
}

static const char *key_of(Pool *pool, const char *what, const ConvDesc *d)
{
    StrBuf key = strbuf_new(pool);
    desc_key(&key, what, d, DESC_BYTES_BEFORE(ConvDesc, epilogue));
    return key.text;
}

/* Chunks and bands, and where chunks are joined the buffer of their sums. */
static void plan_chunks(const MatrixNode *m, ConvDesc *d, CallDraft *call)
{
    int64_t rows = d->q.images * d->q.oh, weights = type_elements(matrix_result_type(m));
    d->chunks = d->form == CONV_NARROW   ? conv_narrow_chunks(&d->q)
                : d->form == CONV_WINDOW ? conv_wgrad_chunks(m->graph, m->node)
                                         : 1;
    d->band_rows = d->form == CONV_WINDOW ? conv_band_rows(&d->q) : rows ? rows : 1;
    if (d->form != CONV_NARROW && d->chunks == 1)
        return;
    if (d->chunks * weights * 4 > node_workspace_bytes(m->graph, m->node))
        BUG("a weight gradient uses %lld bytes of workspace", (long long)(d->chunks * weights * 4));
    d->partial_buf = call->n_bufs;
    call->buf[call->n_bufs++] = (CallBuf){VALUE_NONE, 0};
}

/* Of a chunk's bands, each a chain, and one group's places of the kernel. */
static int64_t plan_tile(ConvDesc *d)
{
    const ConvGeometry *q = &d->q;
    int64_t rows = q->r * q->s * conv_group_in(q),
            bands = q->images * q->oh / d->chunks / d->band_rows;
    d->tile = cuda_tile_shape(d->chunks * q->groups, rows, conv_group_out(q), bands);
    return cuda_tiles(&d->tile, d->chunks * q->groups, rows, conv_group_out(q));
}

/* The second call; its work was counted with the first. */
static void lower_join(const MatrixNode *m, CallDraft *call, const ConvDesc *d, int64_t weights)
{
    call->key = MATRIX_KEY(m->l->pool, "conv_weights_join", ConvDesc, d);
    call->n_tasks = divide_up(weights, CONV_THREADS);
    call->flops = 0;
    call->bytes = (double)node_workspace_bytes(m->graph, m->node);
    cuda_conv_call(m, call, d, "conv dw join", write_join, CONV_THREADS);
}

void cuda_lower_conv_weights(const MatrixNode *m, const ConvGeometry *q)
{
    CallDraft call;
    ConvDesc *d = cuda_conv_describe(m, q, CONV_WGRAD, &call);
    int64_t weights = type_elements(matrix_result_type(m));
    plan_chunks(m, d, &call);
    d->n_args = call.n_bufs;
    bool tiled = cuda_conv_tiled(d), joined = d->partial_buf >= 0;
    call.n_tasks = tiled ? plan_tile(d) : divide_up(d->chunks * weights, CONV_THREADS);
    const char *name = tiled ? "conv_weights_tile" : "conv_weights";
    call.key = joined ? key_of(m->l->pool, name, d) : MATRIX_KEY(m->l->pool, name, ConvDesc, d);
    cuda_conv_call(m, &call, d, "conv dw", tiled ? write_tile : write_sum,
                   tiled ? cuda_tile_threads(&d->tile) : CONV_THREADS);
    if (joined)
        lower_join(m, &call, d, weights);
}
