/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bn_stats and bn_grad_sums: sums by channel of chunks, and a second call that joins them. */
#include "codegen/forms/moments.h"
#include "codegen/cuda/columns.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"

/* WAYS sums of each of at most MOST_COLUMNS channels, or PARTIALS sums of one channel. */
enum { WAYS = 4, MOST_COLUMNS = 64, PARTIALS = 64, JOIN_THREADS = 64 };

/* Left to itself, ptxas aims at five blocks of so many threads on sm_100, and spills a register. */
enum { FEW_THREADS = 128, FEW_THREADS_BLOCKS = 3 };

static int columns_of(const MomentsDesc *d)
{
    int columns = 8;
    while (columns < d->channels && columns < MOST_COLUMNS)
        columns *= 2;
    return columns;
}

static ColumnSums sums_of(const MomentsDesc *d)
{
    return (ColumnSums){.rows = d->outer,
                        .width = d->channels,
                        .chunks = d->chunks,
                        .images = moments_images(d),
                        .pitch = {d->pitch[0], d->pitch[1]}};
}

static void begin(StrBuf *out, const MomentsDesc *d, int n_args)
{
    text_begin(out, n_args, (const char *const[]){"common", "math", "line", "join", NULL});
    text_define(out, "IS_STATS", d->op == OP_bn_stats);
    text_define(out, "OUTER", d->outer);
    text_define(out, "CHANNELS", d->channels);
    text_define(out, "INNER", d->inner);
    text_define(out, "OUTER_PITCH", d->inner == 1 ? d->pitch[0] : d->channels * d->inner);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_FLOATS", d->partial_bytes / 4);
    text_define(out, "WORK_BUF", moments_images(d) == 1 ? 1 : 4);
    text_include(out, "moments");
}

/* Channels side by side. */
static void write_rows(StrBuf *out, const char *symbol, const void *desc)
{
    const MomentsDesc *d = desc;
    begin(out, d, moments_images(d) == 1 ? 2 : 5);
    text_define(out, "WAYS", WAYS);
    text_define(out, "COLUMNS", columns_of(d));
    text_define(out, "PITCH_0", d->pitch[0]);
    text_define(out, "PITCH_1", d->pitch[1]);
    text_include(out, "moments_rows");
    text_kernel(out, symbol, WAYS * columns_of(d), "moments_rows");
}

/* The same by tiles. */
static void write_tiles(StrBuf *out, const char *symbol, const void *desc)
{
    const MomentsDesc *d = desc;
    const ColumnSums sums = sums_of(d);
    begin(out, d, moments_images(d) == 1 ? 2 : 5);
    text_columns(out, &sums);
    text_include(out, "moments_tiles");
    if (column_threads(&sums) == FEW_THREADS)
        strbuf_printf(out, "\nKERNEL_BLOCKS(%s, %d, SINCE_100(%d))\n{\n    moments_tiles(a);\n}\n",
                      symbol, FEW_THREADS, FEW_THREADS_BLOCKS);
    else
        text_kernel(out, symbol, column_threads(&sums), "moments_tiles");
}

static void write_planes(StrBuf *out, const char *symbol, const void *desc)
{
    const MomentsDesc *d = desc;
    begin(out, d, moments_images(d) == 1 ? 2 : 5);
    text_include(out, "moments_planes");
    text_kernel(out, symbol, PARTIALS, "moments_planes");
}

static void write_join(StrBuf *out, const char *symbol, const void *desc)
{
    const MomentsDesc *d = desc;
    const char *body = d->op == OP_bn_stats ? "moments_join_stats" : "moments_join_sums";
    begin(out, d, moments_images(d) == 1 ? 4 : 7);
    text_define(out, "THREADS", JOIN_THREADS);
    text_define_float(out, "EPS", d->eps);
    text_define_float(out, "SHARE", 1 / ((double)d->outer * (double)d->inner));
    text_include(out, body);
    text_kernel(out, symbol, JOIN_THREADS, body);
}

static void lower_sums(Lowering *l, const Node *n, const MomentsDesc *d, const CallBuf *bufs,
                       int n_bufs)
{
    const ColumnSums sums = sums_of(d);
    bool tiles = d->inner == 1 && has_column_tiles(&sums);
    int64_t blocks = tiles           ? column_blocks(&sums)
                     : d->inner == 1 ? d->chunks * divide_up(d->channels, columns_of(d))
                                     : d->chunks * d->channels;
    CallDraft call = pod_call(l, op_name(n->op), d, DESC_BYTES(MomentsDesc), blocks, bufs, n_bufs);
    pod_count_work(l, &call);
    if (tiles)
        cuda_call(l, &call, write_tiles, column_threads(&sums));
    else if (d->inner == 1)
        cuda_call(l, &call, write_rows, WAYS * columns_of(d));
    else
        cuda_call(l, &call, write_planes, PARTIALS);
}

void cuda_moments(Lowering *l, const Node *n)
{
    MomentsDesc d = moments_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int work = moments_bufs(l, n, bufs);
    lower_sums(l, n, &d, bufs, work + 1);
    CallDraft call = pod_call(l, "moments_join", &d, DESC_BYTES(MomentsDesc),
                              divide_up(d.channels, JOIN_THREADS), bufs, work + 3);
    pod_count_join(l, &call);
    cuda_call(l, &call, write_join, JOIN_THREADS);
}
