/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise kernels whose threads read and write 16 bytes at a time. */
#include "codegen/cuda/point_text.h"
#include "codegen/cuda/text.h"

/* But for constants: longer programs compute more than they read, and would need more registers. */
enum { INSTRUCTIONS_MOST = 32 };

int point_wide_elements(const PointProgram *p)
{
    return point_text_has_bf16(p) ? 8 : 4;
}

static bool is_wide_access(const CallDraft *call, const PointProgram *p, const PointAccess *a)
{
    int n = point_wide_elements(p);
    bool wide = a->stride[p->rank - 1] == 1 && a->base % n == 0 && a->dtype != DTYPE_I64;
    for (int d = 0; d < p->rank - 1; d++)
        wide = wide && a->stride[d] % n == 0;
    return wide && call->buf[a->buf].offset % 16 == 0;
}

/* Where instruction k reads neighbours, or NULL. */
static const PointAccess *wide_load(const PointProgram *p, size_t k)
{
    const PointInstr *i = &p->instr.data[k];
    const PointAccess *a = i->op == POINT_LOAD ? &p->access.data[i->access] : NULL;
    return a && a->stride[p->rank - 1] ? a : NULL;
}

static int instructions_of(const PointProgram *p)
{
    int n = 0;
    for (size_t k = 0; k < p->instr.len; k++)
        n += !point_text_is_constant(&p->instr.data[k]);
    return n;
}

bool point_is_wide(const CallDraft *call, const PointProgram *p)
{
    bool wide =
        instructions_of(p) <= INSTRUCTIONS_MOST && p->dim[p->rank - 1] >= point_wide_elements(p);
    for (size_t k = 0; k < p->instr.len && wide; k++)
        wide = !wide_load(p, k) || is_wide_access(call, p, wide_load(p, k));
    for (size_t k = 0; k < p->store.len && wide; k++)
        wide = is_wide_access(call, p, &p->store.data[k].at);
    return wide;
}

int64_t point_wide(const CallDraft *call, const PointProgram *p)
{
    return p->rank == 1 && point_is_wide(call, p) ? point_wide_elements(p) : 1;
}

void point_put_wide_types(StrBuf *out, const PointProgram *p)
{
    int n = point_wide_elements(p);
    text_define(out, "WIDE", n);
    text_include(out, "wide");
    strbuf_put(out, "WIDE_TYPE(float, 16)\nWIDE_TYPE(int, 16)\n");
    strbuf_printf(out, "WIDE_TYPE(u8, %d)\n%s", n,
                  point_text_has_bf16(p) ? "WIDE_TYPE(u16, 16)\n" : "");
}

void point_put_alignment(PointText *w)
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

static void put_wide_at(PointText *w, const PointAccess *a)
{
    strbuf_printf(w->out, "WIDE_AT(%s, %d, ", text_type(a->dtype), a->buf);
    point_text_place(w, a);
    strbuf_put(w->out, ")");
}

void point_put_wide_loads(PointText *w)
{
    const PointProgram *p = w->p;
    for (size_t k = 0; k < p->instr.len; k++) {
        const PointAccess *a = wide_load(p, k);
        if (!a || (w->once && w->once[k]))
            continue;
        strbuf_printf(w->out, "%sconst Wide_%s in%zu = ", w->pad, text_type(a->dtype), k);
        put_wide_at(w, a);
        strbuf_put(w->out, ";\n");
    }
    for (size_t k = 0; k < p->store.len; k++)
        strbuf_printf(w->out, "%sWide_%s out%zu;\n", w->pad, text_type(p->store.data[k].at.dtype),
                      k);
}

void point_put_wide_stores(PointText *w)
{
    for (size_t k = 0; k < w->p->store.len; k++) {
        strbuf_put(w->out, w->pad);
        put_wide_at(w, &w->p->store.data[k].at);
        strbuf_printf(w->out, " = out%zu;\n", k);
    }
}

static void put_wide(PointText *w)
{
    w->pad = "        ";
    w->wide = true;
    strbuf_printf(w->out, "%sconst i64 d0 = first;\n", w->pad);
    point_put_wide_loads(w);
    strbuf_printf(w->out, "%sfor (int i = 0; i < WIDE; i++) {\n", w->pad);
    w->pad = "            ";
    point_text_program(w, "(first + i)");
    w->pad = "        ";
    strbuf_printf(w->out, "%s}\n", w->pad);
    point_put_wide_stores(w);
    w->wide = false;
}

/* WIDE elements a thread; the last ones, or all where an address is odd, one by one. */
void point_write_wide(StrBuf *out, const char *symbol, const void *desc)
{
    const PointProgram *p = desc;
    PointText w = {.out = out, .p = p, .pad = "    "};
    long long n = point_text_elements(p);
    point_text_begin(out, p);
    point_put_wide_types(out, p);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, POINT_THREADS);
    strbuf_printf(out, "    const i64 first = ((i64)blockIdx.x * %d + threadIdx.x) * WIDE;\n",
                  POINT_THREADS);
    point_put_alignment(&w);
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
