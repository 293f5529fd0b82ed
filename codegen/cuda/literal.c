/* SPDX-License-Identifier: GPL-3.0-or-later */
/* literal: numbers that are part of the kernel. */
#include "codegen/forms/literal.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"

enum { THREADS = 256 };

static void write_literal(StrBuf *out, const char *symbol, const void *desc)
{
    const LiteralDesc *d = desc;
    text_begin(out, 1, (const char *const[]){"common", NULL});
    text_floats(out, "values", d->values, d->n);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, THREADS);
    strbuf_printf(out, "    const int i = (int)(blockIdx.x * %d + threadIdx.x);\n", THREADS);
    strbuf_printf(out, "    if (i < %lld)\n        BUF(float, 0)[i] = values[i];\n}\n",
                  (long long)d->n);
}

void cuda_literal(Lowering *l, const Node *n)
{
    size_t bytes;
    const LiteralDesc *d = literal_describe(l, n, &bytes);
    const CallBuf buf = {n->out[0], 0};
    CallDraft call = pod_call(l, "literal", d, bytes, divide_up(d->n, THREADS), &buf, 1);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_literal, THREADS);
}
