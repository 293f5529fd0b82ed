/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/join.h"

#include "codegen/cuda/text.h"
#include "ir/support/divide.h"

enum { THREADS = 256 };

static void write_join(StrBuf *out, const char *symbol, const void *desc)
{
    const JoinDesc *d = desc;
    text_begin(out, 2, (const char *const[]){"common", "math", "join", "real", NULL});
    text_define(out, "RESULTS", d->results);
    text_define(out, "PARTS", d->parts);
    text_define(out, "PITCH", d->pitch);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, THREADS);
    strbuf_printf(out, "    const i64 at = (i64)blockIdx.x * %d + threadIdx.x;\n", THREADS);
    strbuf_put(out, "    const float *x = BUF(const float, 0) + at;\n    if (at < RESULTS)\n"
                    "        BUF(REAL(1), 1)[at] = OF(1, ");
    if (d->is_max) {
        strbuf_put(out, "join_max(x, PARTS, PITCH));\n}\n");
        return;
    }
    strbuf_put(out, "join_sum(x, PARTS, PITCH) * ");
    text_float(out, d->scale);
    strbuf_put(out, ");\n}\n");
}

void cuda_join(Lowering *l, const char *name, const JoinDesc *d, CallBuf parts, CallBuf results)
{
    const CallBuf bufs[] = {parts, results};
    CallDraft call =
        pod_call(l, name, d, DESC_BYTES(JoinDesc), divide_up(d->results, THREADS), bufs, 2);
    call.bytes = 4 * (double)d->results * (double)d->parts;
    cuda_call(l, &call, write_join, THREADS);
}
