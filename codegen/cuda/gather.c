/* SPDX-License-Identifier: GPL-3.0-or-later */
/* gather and scatter_add: device/gather.cuh, device/scatter_add.cuh. */
#include "codegen/forms/gather.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"

/* Where there are fewer lines than ENOUGH_THREADS, several threads share one, each with elements of
 * its own. */
enum { THREADS = 256, ENOUGH_THREADS = 16384 };

static void begin(StrBuf *out, const GatherDesc *d)
{
    text_begin(out, 3, (const char *const[]){"common", NULL});
    text_define(out, "THREADS", THREADS);
    strbuf_printf(out, "#define INDEX %s\n", text_type((DType)d->index_type));
    text_define(out, "OUTER", d->shape.outer);
    text_define(out, "LENGTH", d->shape.length);
    text_define(out, "INNER", d->shape.inner);
    text_define(out, "COUNT", d->count);
}

static void write_gather(StrBuf *out, const char *symbol, const void *desc)
{
    const GatherDesc *d = desc;
    begin(out, d);
    strbuf_printf(out, "#define BITS %s\n", text_bits_type(dtype_bytes((DType)d->element_type)));
    text_include(out, "gather");
    text_kernel(out, symbol, THREADS, "gather");
}

static int64_t parts(const GatherDesc *d)
{
    int64_t wanted = ENOUGH_THREADS / (d->shape.outer * d->shape.inner);
    return wanted < 1 ? 1 : wanted > d->shape.length ? d->shape.length : wanted;
}

static void write_scatter_add(StrBuf *out, const char *symbol, const void *desc)
{
    const GatherDesc *d = desc;
    begin(out, d);
    text_define(out, "PARTS", parts(d));
    text_define(out, "INTEGER", d->element_type == DTYPE_I32);
    text_include(out, "scatter_add");
    text_kernel(out, symbol, THREADS, "scatter_add");
}

static void call_of(Lowering *l, const Node *n, const GatherDesc *d, KernelText *text,
                    int64_t threads)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    CallDraft call = pod_call(l, op_name(n->op), d, DESC_BYTES(GatherDesc),
                              divide_up(threads, THREADS), bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, THREADS);
}

void cuda_gather(Lowering *l, const Node *n)
{
    GatherDesc d = gather_describe(l, n, n->in[0], n->in[1]);
    call_of(l, n, &d, write_gather, d.shape.outer * d.count * d.shape.inner);
}

void cuda_scatter_add(Lowering *l, const Node *n)
{
    GatherDesc d = gather_describe(l, n, n->out[0], n->in[0]);
    call_of(l, n, &d, write_scatter_add, d.shape.outer * d.shape.inner * parts(&d));
}
