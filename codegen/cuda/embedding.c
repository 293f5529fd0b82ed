/* SPDX-License-Identifier: GPL-3.0-or-later */
/* embedding and embedding_grad: device/embedding.cuh, device/embedding_grad.cuh. */
#include "codegen/forms/embedding.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"

/* Blocks of the gradient have so many rows that there are about ENOUGH_BLOCKS, at most MOST_ROWS:
 * their sums are in shared memory. */
enum { THREADS = 256, GROUP = 16, AHEAD = 8, MOST_ROWS = 16, ENOUGH_BLOCKS = 1024 };

static void begin(StrBuf *out, const EmbeddingDesc *d)
{
    text_begin(out, d->so_far ? 4 : 3, (const char *const[]){"common", NULL});
    text_define(out, "THREADS", THREADS);
    strbuf_printf(out, "#define ID %s\n", text_type((DType)d->id_type));
    text_define(out, "IDS", d->ids);
    text_define(out, "ROWS", d->rows);
    text_define(out, "WIDTH", d->width);
}

static void end(StrBuf *out, const char *symbol, const char *body)
{
    text_include(out, body);
    text_kernel(out, symbol, THREADS, body);
}

static void write_embedding(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc);
    end(out, symbol, "embedding");
}

static int64_t column_blocks(const EmbeddingDesc *d)
{
    return divide_up(d->width, THREADS);
}

static int64_t rows_of_block(const EmbeddingDesc *d)
{
    int64_t rows = d->rows * column_blocks(d) / ENOUGH_BLOCKS;
    return rows < 1 ? 1 : rows > MOST_ROWS ? MOST_ROWS : rows;
}

static void write_embedding_grad(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc);
    text_define(out, "COLUMN_BLOCKS", column_blocks(desc));
    text_define(out, "OWN_ROWS", rows_of_block(desc));
    text_define(out, "SO_FAR", ((const EmbeddingDesc *)desc)->so_far);
    text_define(out, "GROUP", GROUP);
    text_define(out, "AHEAD", AHEAD);
    end(out, symbol, "embedding_grad");
}

static void call_of(Lowering *l, const Node *n, const EmbeddingDesc *d, KernelText *text,
                    int64_t blocks)
{
    CallBuf bufs[4];
    int n_bufs = embedding_bufs(n, bufs);
    CallDraft call =
        pod_call(l, op_name(n->op), d, DESC_BYTES(EmbeddingDesc), blocks, bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, THREADS);
}

void cuda_embedding(Lowering *l, const Node *n)
{
    EmbeddingDesc d = embedding_describe(l, n);
    call_of(l, n, &d, write_embedding, divide_up(d.ids * d.width, THREADS));
}

void cuda_embedding_grad(Lowering *l, const Node *n)
{
    EmbeddingDesc d = embedding_describe(l, n);
    call_of(l, n, &d, write_embedding_grad,
            divide_up(d.rows, rows_of_block(&d)) * column_blocks(&d));
}
