/* SPDX-License-Identifier: GPL-3.0-or-later */
/* argsort: device/sort_key.cuh, and device/sort_rank.cuh for short lines, device/sort_line.cuh for
 * others. */
#include "codegen/forms/sort.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"
#include "ir/workspace.h"

/* Up to RANKED elements, a thread for each looks at all of its line. */
enum { THREADS = 256, RANKED = 64 };

static int64_t power_of_two(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

static void write_sort(StrBuf *out, const char *symbol, const void *desc)
{
    const SortDesc *d = desc;
    const char *body = d->length <= RANKED ? "sort_rank" : "sort_line";
    text_begin(out, d->slots ? 3 : 2, (const char *const[]){"common", NULL});
    text_define(out, "THREADS", THREADS);
    text_define(out, "LINES", d->lines);
    text_define(out, "LENGTH", d->length);
    text_define(out, "COUNT", d->count);
    text_define(out, "DESCENDING", d->descending);
    text_define(out, "INTEGER", d->integer);
    text_define(out, "SLOTS", d->slots);
    text_define(out, "WORDS", d->slots ? SORT_WORDS(d->length) : power_of_two(d->length));
    text_define(out, "PADDED", power_of_two(d->length));
    text_include(out, "sort_key");
    text_include(out, body);
    text_kernel(out, symbol, THREADS, body);
}

void cuda_argsort(Lowering *l, const Node *n)
{
    SortDesc d = sort_describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}, {VALUE_NONE, 0}};
    int64_t blocks = d.slots              ? d.slots
                     : d.length <= RANKED ? divide_up(d.lines * d.length, THREADS)
                                          : d.lines;
    CallDraft call =
        pod_call(l, "argsort", &d, DESC_BYTES(SortDesc), blocks, bufs, d.slots ? 3 : 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_sort, THREADS);
}
