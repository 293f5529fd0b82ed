/* SPDX-License-Identifier: GPL-3.0-or-later */
/* argmax: device/best.cuh, device/argmax.cuh. */
#include "codegen/cuda/lines.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

static void write_argmax(StrBuf *out, const char *symbol, const void *desc)
{
    text_begin(out, 2, (const char *const[]){"common", "math", NULL});
    text_lines(out, *(const AxisShape *)desc, "line");
    text_include(out, "best");
    text_include(out, "argmax");
    text_kernel(out, symbol, LINE_THREADS, "argmax");
}

void cuda_argmax(Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, -1));
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    CallDraft call = pod_call(l, "argmax", &a, DESC_BYTES(AxisShape), lines_blocks(a, 1), bufs, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_argmax, LINE_THREADS);
}
