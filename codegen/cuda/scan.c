/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums and products along lines: device/scan.cuh. */
#include "codegen/forms/scan.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"

enum { THREADS = 64 };

static void write_scan(StrBuf *out, const char *symbol, const void *desc)
{
    const ScanDesc *d = desc;
    text_begin(out,
               d->op == OP_cumprod_grad ? 4
               : d->op == OP_prod_grad  ? 3
                                        : 2,
               (const char *const[]){"common", NULL});
    text_define(out, "THREADS", THREADS);
    text_define(out, "OUTER", d->shape.outer);
    text_define(out, "LENGTH", d->shape.length);
    text_define(out, "INNER", d->shape.inner);
    text_define(out, "INTEGER", d->integer);
    text_define(out, "PRODUCT", d->op != OP_cumsum);
    text_define(out, "REVERSE", d->reverse);
    text_define(out, "EXCLUSIVE", d->exclusive);
    bool plain = d->op == OP_cumsum || d->op == OP_cumprod;
    text_include(out, "scan");
    text_kernel(out, symbol, THREADS, plain ? "cumulate" : op_name((OpKind)d->op));
}

void cuda_scan(Lowering *l, const Node *n)
{
    ScanDesc d = scan_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(ScanDesc),
                              divide_up(d.shape.outer * d.shape.inner, THREADS), bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_scan, THREADS);
}
