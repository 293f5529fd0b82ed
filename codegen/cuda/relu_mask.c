/* SPDX-License-Identifier: GPL-3.0-or-later */
/* relu_mask: bits of neighbours are gathered in shared memory. */
#include "codegen/forms/relu_mask.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"
#include "codegen/forms/point.h"

#include "ir/support/divide.h"

enum { THREADS = 256 }; /* each makes a word */

static void write_relu_mask(StrBuf *out, const char *symbol, const void *desc)
{
    const ReluMaskDesc *d = desc;
    text_begin(out, 2, (const char *const[]){"common", NULL});
    text_define(out, "ELEMENTS", d->elements);
    text_define(out, "ROW", d->row ? d->row : d->elements);
    text_define(out, "PITCH", d->row ? d->pitch : d->elements);
    text_include(out, "relu_mask");
    text_kernel(out, symbol, THREADS, "relu_mask");
}

void cuda_relu_mask(Lowering *l, const Node *n)
{
    ReluMaskDesc d = relu_mask_describe(l, n);
    const CallBuf bufs[] = {point_buf(l->graph, n->in[0]), {n->out[0], 0}};
    CallDraft call = pod_call(l, "relu_mask", &d, DESC_BYTES(ReluMaskDesc),
                              divide_up(d.elements, MASK_WORD_BITS * THREADS), bufs, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_relu_mask, THREADS);
}
