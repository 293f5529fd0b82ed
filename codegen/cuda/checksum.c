/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `verify` compares: device/checksum.cuh. */
#include "codegen/forms/checksum.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

enum { THREADS = 256 };

static void write_text(StrBuf *out, const char *symbol, const ChecksumDesc *d, const char *body)
{
    text_begin(out, 2, (const char *const[]){"common", NULL});
    text_define(out, "THREADS", THREADS);
    text_define(out, "ELEMENTS", d->elements);
    text_define(out, "CHUNKS", d->chunks);
    text_define(out, "PARTIAL_BYTES", d->partial_bytes);
    strbuf_printf(out, "#define FACTOR 0x%llxULL\n", (unsigned long long)CHECKSUM_FACTOR);
    text_include(out, "checksum");
    text_kernel(out, symbol, THREADS, body);
}

static void write_chunk(StrBuf *out, const char *symbol, const void *desc)
{
    write_text(out, symbol, desc, "checksum_chunk");
}

static void write_total(StrBuf *out, const char *symbol, const void *desc)
{
    write_text(out, symbol, desc, "checksum_total");
}

void cuda_checksum(Lowering *l, const Node *n)
{
    ChecksumDesc d = checksum_describe(l, n);
    const CallBuf in[] = {{n->in[0], 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}};
    CallDraft call = pod_call(l, "checksum", &d, DESC_BYTES(ChecksumDesc), d.chunks, in, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, write_chunk, THREADS);
    call = pod_call(l, "checksum_join", &d, DESC_BYTES(ChecksumDesc), 1, out, 2);
    pod_count_join(l, &call);
    cuda_call(l, &call, write_total, THREADS);
}
