/* SPDX-License-Identifier: GPL-3.0-or-later */
/* transpose: squares through shared memory, so that reads and writes both are of neighbours. */
#include "codegen/forms/transpose.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

/* As device/transpose.cuh has them; where a contiguous dim is shorter than NARROW, a square would
 * be mostly empty. */
enum { SQUARE = 32, THREADS = 256, NARROW = 8 };

/* The square of the block: where it begins in both buffers, and in the two contiguous dims. */
static void write_square(StrBuf *out, const TransposeDesc *d)
{
    strbuf_put(out, "DEVICE Square square_of(i64 number)\n{\n    Square s = {0, 0, 0, 0};\n");
    for (int64_t k = d->rank - 1; k >= 0; k--) {
        bool lead = k == d->lead, last = k == d->rank - 1;
        int64_t n = transpose_squares(d, k, SQUARE);
        strbuf_printf(out, "    {\n        const i64 at = number %% %lld%s;\n", (long long)n,
                      lead || last ? " * SQUARE" : "");
        strbuf_printf(out, "        s.from += at * %lld;\n        s.to += at * %lld;\n",
                      (long long)d->in[k], (long long)d->out[k]);
        if (lead || last)
            strbuf_printf(out, "        s.%s = at;\n", lead ? "lead" : "last");
        strbuf_printf(out, "        number /= %lld;\n    }\n", (long long)n);
    }
    strbuf_put(out, "    return s;\n}\n\n");
}

static void write_transpose(StrBuf *out, const char *symbol, const void *desc)
{
    const TransposeDesc *d = desc;
    text_begin(out, 2, (const char *const[]){"common", NULL});
    strbuf_printf(out, "#define ELEMENT %s\n", text_bits_type(d->bytes));
    text_define(out, "LEAD", d->dim[d->lead]);
    text_define(out, "LAST", d->dim[d->rank - 1]);
    text_define(out, "IN_STEP", d->in[d->rank - 1]);
    text_define(out, "OUT_STEP", d->out[d->lead]);
    text_include(out, "transpose");
    write_square(out, d);
    strbuf_printf(out, "KERNEL(%s, %d)\n{\n", symbol, THREADS);
    strbuf_put(out, "    transpose(a, square_of(blockIdx.x));\n}\n");
}

void cuda_transpose(Lowering *l, const Node *n)
{
    TransposeDesc d = transpose_describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    if (transpose_keeps_rows(&d) || d.dim[d.lead] < NARROW || d.dim[d.rank - 1] < NARROW) {
        transpose_copy(l, n, &d);
        return;
    }
    CallDraft call = pod_call(l, "transpose", &d, DESC_BYTES(TransposeDesc),
                              transpose_all_squares(&d, SQUARE), bufs, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_transpose, THREADS);
}
