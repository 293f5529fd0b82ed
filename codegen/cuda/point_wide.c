/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise kernels whose threads read and write 16 bytes at a time. */
#include "codegen/cuda/point_text.h"
#include "codegen/cuda/text.h"

/* Longer programs compute more than they read, and would need more registers. */
enum { INSTRUCTIONS_MOST = 32 };

/* Elements of a thread: 16 bytes of the smallest floats. */
static int wide_elements(const PointProgram *p)
{
    return point_text_has_bf16(p) ? 8 : 4;
}

/* One element behind the other, from where 16 bytes may begin. */
static bool is_wide_access(const CallDraft *call, const PointAccess *a)
{
    return a->stride[0] == 1 && a->base == 0 && a->dtype != DTYPE_I64 &&
           call->buf[a->buf].offset % 16 == 0;
}

/* Where instruction k reads neighbours, or NULL. */
static const PointAccess *wide_load(const PointProgram *p, size_t k)
{
    const PointInstr *i = &p->instr.data[k];
    const PointAccess *a = i->op == POINT_LOAD ? &p->access.data[i->access] : NULL;
    return a && a->stride[0] ? a : NULL;
}

int64_t point_wide(const CallDraft *call, const PointProgram *p)
{
    int n = wide_elements(p);
    bool wide = p->rank == 1 && p->instr.len <= INSTRUCTIONS_MOST && point_text_elements(p) >= n;
    for (size_t k = 0; k < p->instr.len && wide; k++)
        wide = !wide_load(p, k) || is_wide_access(call, wide_load(p, k));
    for (size_t k = 0; k < p->store.len && wide; k++)
        wide = is_wide_access(call, &p->store.data[k].at);
    return wide ? n : 1;
}

static void put_wide_types(StrBuf *out, const PointProgram *p)
{
    int n = wide_elements(p);
    text_define(out, "WIDE", n);
    text_include(out, "wide");
    strbuf_put(out, "WIDE_TYPE(float, 16)\nWIDE_TYPE(int, 16)\n");
    strbuf_printf(out, "WIDE_TYPE(u8, %d)\n%s", n,
                  point_text_has_bf16(p) ? "WIDE_TYPE(u16, 16)\n" : "");
}

/* Whether addresses are those of 16 bytes: that of a value inside of another may not be. */
static void put_alignment(PointText *w)
{
    strbuf_put(w->out, "    const int aligned = 1");
    for (int buf = 0; buf < w->p->n_bufs; buf++) {
        bool used = false;
        for (size_t k = 0; k < w->p->instr.len; k++) {
            const PointAccess *a = wide_load(w->p, k);
            used |= a && a->buf == buf;
        }
        for (size_t k = 0; k < w->p->store.len; k++)
            used |= w->p->store.data[k].at.buf == buf;
        if (used)
            strbuf_printf(w->out, " && IS_ALIGNED(%d)", buf);
    }
    strbuf_put(w->out, ";\n");
}

static void put_wide(PointText *w)
{
    const PointProgram *p = w->p;
    w->pad = "        ";
    w->wide = true;
    for (size_t k = 0; k < p->instr.len; k++) {
        const PointAccess *a = wide_load(p, k);
        if (a)
            strbuf_printf(w->out, "%sconst Wide_%s in%zu = WIDE_AT(%s, %d, first);\n", w->pad,
                          text_type(a->dtype), k, text_type(a->dtype), a->buf);
    }
    for (size_t k = 0; k < p->store.len; k++)
        strbuf_printf(w->out, "%sWide_%s out%zu;\n", w->pad, text_type(p->store.data[k].at.dtype),
                      k);
    strbuf_printf(w->out, "%sfor (int i = 0; i < WIDE; i++) {\n", w->pad);
    w->pad = "            ";
    point_text_program(w, "(first + i)");
    w->pad = "        ";
    strbuf_printf(w->out, "%s}\n", w->pad);
    for (size_t k = 0; k < p->store.len; k++) {
        const PointAccess *a = &p->store.data[k].at;
        strbuf_printf(w->out, "%sWIDE_AT(%s, %d, first) = out%zu;\n", w->pad, text_type(a->dtype),
                      a->buf, k);
    }
    w->wide = false;
}

/* WIDE elements a thread; the last ones, or all where an address is odd, one by one. */
void point_write_wide(StrBuf *out, const char *symbol, const void *desc)
{
    const PointProgram *p = desc;
    PointText w = {.out = out, .p = p, .pad = "    "};
    long long n = point_text_elements(p);
    point_text_begin(out, p);
    put_wide_types(out, p);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, POINT_THREADS);
    strbuf_printf(out, "    const i64 first = ((i64)blockIdx.x * %d + threadIdx.x) * WIDE;\n",
                  POINT_THREADS);
    put_alignment(&w);
    strbuf_printf(out, "    if (aligned && first + WIDE <= %lld) {\n", n);
    put_wide(&w);
    strbuf_printf(out, "        return;\n    }\n");
    strbuf_put(out, "#pragma unroll 1\n");
    strbuf_printf(out, "    for (i64 element = first; element < first + WIDE && element < %lld; ",
                  n);
    strbuf_put(out, "element++) {\n");
    w.pad = "        ";
    point_text_program(&w, "element");
    strbuf_put(out, "    }\n}\n");
}
