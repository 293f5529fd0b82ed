/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Softmax, log-softmax and their gradients: device/softmax.cuh, device/softmax_grad.cuh. */
#include "codegen/forms/softmax.h"
#include "codegen/cuda/lines.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

static void write_softmax(StrBuf *out, const char *symbol, const void *desc)
{
    const SoftmaxDesc *d = desc;
    const char *body = d->grad ? "softmax_grad" : "softmax";
    text_begin(out, d->grad ? 3 : 2, (const char *const[]){"common", "math", NULL});
    text_define(out, "IS_LOG", d->log);
    text_lines(out, (AxisShape){d->outer, d->length, d->inner}, "line");
    text_include(out, body);
    text_kernel(out, symbol, LINE_THREADS, body);
}

void cuda_softmax(Lowering *l, const Node *n)
{
    SoftmaxDesc d = softmax_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    CallDraft call =
        pod_call(l, op_name(n->op), &d, DESC_BYTES(SoftmaxDesc),
                 lines_blocks((AxisShape){d.outer, d.length, d.inner}, 1), bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_softmax, LINE_THREADS);
}
