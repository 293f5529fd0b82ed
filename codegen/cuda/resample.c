/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Average pooling, resizing and their gradients: a thread an output, channels side by side; where
 * an output has many taps, a block an output of some channels. */
#include "codegen/forms/resample.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"

enum { THREADS = 256, MANY_TAPS = 64, MOST_CHANNELS = 32 };

/* Threads of a block that adds up a line, and its channels. */
typedef struct LineTile {
    int64_t threads, channels;
} LineTile;

static LineTile tile_of(const ResampleDesc *d, const Taps *columns)
{
    LineTile t = {1, 1};
    while (t.channels < d->channels && t.channels < MOST_CHANNELS)
        t.channels *= 2;
    for (t.threads = t.channels; t.threads < columns->longest * t.channels && t.threads < THREADS;)
        t.threads *= 2;
    return t;
}

static bool has_many_taps(const ResampleDesc *d, const Taps *rows, const Taps *columns)
{
    return !d->direct && columns->longest > 1 && rows->longest * columns->longest >= MANY_TAPS;
}

static void write_axis(StrBuf *out, const char *axis, const Taps *t)
{
    Pool *p = out->pool;
    text_integers(out, pool_printf(p, "%s_shift", axis), t->shift, t->n);
    text_integers(out, pool_printf(p, "%s_end", axis), t->end, t->n + 1);
    text_floats(out, pool_printf(p, "%s_weight", axis), t->weight, t->end[t->n]);
}

static void begin(StrBuf *out, const ResampleDesc *d, const Taps *rows, const Taps *columns)
{
    text_begin(out, 2, (const char *const[]){"common", NULL});
    text_define(out, "IMAGES", d->images);
    text_define(out, "CHANNELS", d->channels);
    text_define(out, "IN_H", d->in[0]);
    text_define(out, "IN_W", d->in[1]);
    text_define(out, "OUT_H", d->out[0]);
    text_define(out, "OUT_W", d->out[1]);
    text_define(out, "ROW_BLOCK", rows->block);
    text_define(out, "COLUMN_BLOCK", columns->block);
    write_axis(out, "row", rows);
    write_axis(out, "column", columns);
    text_include(out, "resample");
}

static void write_line(StrBuf *out, const char *symbol, const void *desc)
{
    const ResampleDesc *d = desc;
    Taps rows = resample_taps(out->pool, d, 0), columns = resample_taps(out->pool, d, 1);
    LineTile t = tile_of(d, &columns);
    begin(out, d, &rows, &columns);
    text_define(out, "THREADS", t.threads);
    text_define(out, "TILE_CHANNELS", t.channels);
    text_include(out, "resample_line");
    text_kernel(out, symbol, (int)t.threads, "resample_line");
}

static void write_each(StrBuf *out, const char *symbol, const void *desc)
{
    const ResampleDesc *d = desc;
    Taps rows = resample_taps(out->pool, d, 0), columns = resample_taps(out->pool, d, 1);
    const char *sum = !d->direct                      ? "rows_then_columns"
                      : rows.copies && columns.copies ? "copied"
                                                      : "rows_and_columns";
    begin(out, d, &rows, &columns);
    strbuf_printf(out, "\nKERNEL_BLOCKS(%s, %d, 4)\n{\n", symbol, THREADS);
    strbuf_printf(out, "    const i64 at = (i64)blockIdx.x * %d + threadIdx.x;\n", THREADS);
    strbuf_put(out,
               "    const i64 pixel = at / CHANNELS, row = pixel / OUT_W;\n"
               "    const i64 image = row / OUT_H;\n"
               "    const REAL(0) *x = BUF(const REAL(0), 0) + image * ((i64)IN_H * ROW_STEP) + "
               "at % CHANNELS;\n"
               "    if (image < IMAGES)\n");
    strbuf_printf(out,
                  "        BUF(REAL(1), 1)[at] = OF(1, %s(x, (int)(row %% OUT_H), (int)(pixel %% "
                  "OUT_W)));\n}\n",
                  sum);
}

void cuda_resample(Lowering *l, const Node *n)
{
    ResampleDesc d = resample_describe(l, n);
    Taps rows = resample_taps(l->pool, &d, 0), columns = resample_taps(l->pool, &d, 1);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    bool many = has_many_taps(&d, &rows, &columns);
    LineTile t = tile_of(&d, &columns);
    int64_t pixels = d.images * d.out[0] * d.out[1];
    int64_t blocks =
        many ? pixels * divide_up(d.channels, t.channels) : divide_up(pixels * d.channels, THREADS);
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(ResampleDesc), blocks, bufs, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, many ? write_line : write_each, many ? (int)t.threads : THREADS);
}
