/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Average pooling, resizing and their gradients: a thread an output, channels side by side. */
#include "codegen/forms/resample.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"

enum { THREADS = 256 };

static void write_axis(StrBuf *out, const char *axis, const Taps *t)
{
    Pool *p = out->pool;
    text_integers(out, pool_printf(p, "%s_shift", axis), t->shift, t->n);
    text_integers(out, pool_printf(p, "%s_end", axis), t->end, t->n + 1);
    text_floats(out, pool_printf(p, "%s_weight", axis), t->weight, t->end[t->n]);
}

static void write_resample(StrBuf *out, const char *symbol, const void *desc)
{
    const ResampleDesc *d = desc;
    Taps rows = resample_taps(out->pool, d, 0), columns = resample_taps(out->pool, d, 1);
    text_begin(out, 2, (const char *const[]){"common", NULL});
    text_define(out, "IMAGES", d->images);
    text_define(out, "CHANNELS", d->channels);
    text_define(out, "IN_H", d->in[0]);
    text_define(out, "IN_W", d->in[1]);
    text_define(out, "OUT_H", d->out[0]);
    text_define(out, "OUT_W", d->out[1]);
    text_define(out, "ROW_BLOCK", rows.block);
    text_define(out, "COLUMN_BLOCK", columns.block);
    write_axis(out, "row", &rows);
    write_axis(out, "column", &columns);
    text_include(out, "resample");
    const char *sum = !d->direct                      ? "rows_then_columns"
                      : rows.copies && columns.copies ? "copied"
                                                      : "rows_and_columns";
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, THREADS);
    strbuf_printf(out, "    const i64 at = (i64)blockIdx.x * %d + threadIdx.x;\n", THREADS);
    strbuf_put(out, "    const i64 pixel = at / CHANNELS, row = pixel / OUT_W;\n"
                    "    const i64 image = row / OUT_H;\n"
                    "    const float *x = BUF(const float, 0) + image * ((i64)IN_H * ROW_STEP) + "
                    "at % CHANNELS;\n"
                    "    if (image < IMAGES)\n");
    strbuf_printf(out, "        BUF(float, 1)[at] = %s(x, row %% OUT_H, pixel %% OUT_W);\n}\n",
                  sum);
}

void cuda_resample(Lowering *l, const Node *n)
{
    ResampleDesc d = resample_describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    int64_t outputs = d.images * d.channels * d.out[0] * d.out[1];
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(ResampleDesc),
                              divide_up(outputs, THREADS), bufs, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_resample, THREADS);
}
