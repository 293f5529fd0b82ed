/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of element-wise programs: kernels of their own, and epilogues. */
#include "codegen/cuda/point.h"
#include "codegen/cuda/text.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"

/* Longer programs compute more than they read, and would need more registers. */
enum { THREADS = 256, WIDE_INSTRUCTIONS_MOST = 32 };

typedef struct Writer {
    StrBuf *out;
    const PointProgram *p;
    const char *pad;
    bool wide; /* element i of neighbours that are read and written together */
} Writer;

static bool is_real(DType t)
{
    return t == DTYPE_F32;
}

static const char *c_type(DType t)
{
    switch (t) {
    case DTYPE_F32:
        return "float";
    case DTYPE_BF16:
        return "u16";
    case DTYPE_I32:
        return "int";
    case DTYPE_I64:
        return "i64";
    case DTYPE_U8:
    case DTYPE_BOOL:
        return "u8";
    case DTYPE_F16:
    case DTYPE_COUNT:
        break;
    }
    BUG("no code for elements of type %s", dtype_name(t));
}

/* base + d0 * stride0 + ..., of the digits d0, d1, ... of the element. */
static void put_place(Writer *w, const PointAccess *a)
{
    strbuf_printf(w->out, "%lld", (long long)a->base);
    for (int d = 0; d < w->p->rank; d++)
        if (a->stride[d] == 1)
            strbuf_printf(w->out, " + d%d", d);
        else if (a->stride[d])
            strbuf_printf(w->out, " + d%d * %lld", d, (long long)a->stride[d]);
}

static void put_element(Writer *w, const PointAccess *a)
{
    strbuf_printf(w->out, "BUF(%s, %d)[", c_type(a->dtype), a->buf);
    put_place(w, a);
    strbuf_put(w->out, "]");
}

static void put_number(Writer *w, const PointInstr *i)
{
    int arg = w->p->n_bufs + i->k;
    strbuf_printf(w->out,
                  i->dtype == DTYPE_F32    ? "FLOAT(%d)"
                  : i->dtype == DTYPE_BOOL ? "(INT(%d) != 0)"
                                           : "INT(%d)",
                  arg);
}

static void put_access(Writer *w, const PointInstr *i)
{
    const PointAccess *a = &w->p->access.data[i->access];
    if (i->op == POINT_LOAD && w->wide && a->stride[0]) {
        strbuf_printf(w->out, a->dtype == DTYPE_BF16 ? "from_bf16(in%zu.x[i])" : "in%zu.x[i]",
                      (size_t)(i - w->p->instr.data));
    } else if (i->op == POINT_LOAD) {
        strbuf_put(w->out, a->dtype == DTYPE_BF16 ? "from_bf16(" : "");
        put_element(w, a);
        strbuf_put(w->out, a->dtype == DTYPE_BF16 ? ")" : "");
    } else if (i->op == POINT_BIT) {
        strbuf_printf(w->out, "(int)(BUF(u32, %d)[(", a->buf);
        put_place(w, a);
        strbuf_put(w->out, ") >> 5] >> ((");
        put_place(w, a);
        strbuf_put(w->out, ") & 31) & 1u)");
    } else {
        strbuf_put(w->out, "(int)((i64)(");
        put_place(w, a);
        strbuf_put(w->out, i->op == POINT_COORDINATE_HIGH ? ") >> 32)" : "))");
    }
}

static void put_instr(Writer *w, size_t k)
{
    char name[POINT_MAX_IN][16];
    const char *in[POINT_MAX_IN];
    const PointInstr *i = &w->p->instr.data[k];
    for (int n = 0; n < i->n_in; n++) {
        snprintf(name[n], sizeof name[n], "r%d", i->in[n]);
        in[n] = name[n];
    }
    strbuf_printf(w->out, "%sconst %s r%zu = ", w->pad, is_real(i->dtype) ? "float" : "int", k);
    if (i->op == POINT_GIVEN)
        strbuf_put(w->out, "sum");
    else if (i->op == POINT_NUMBER)
        put_number(w, i);
    else if (point_has_access(i))
        put_access(w, i);
    else
        cuda_point_expression(w->out, i, in);
    strbuf_put(w->out, ";\n");
}

static void put_store(Writer *w, const PointStore *s)
{
    strbuf_put(w->out, w->pad);
    if (w->wide)
        strbuf_printf(w->out, "out%zu.x[i]", (size_t)(s - w->p->store.data));
    else
        put_element(w, &s->at);
    if (s->at.dtype == DTYPE_BF16)
        strbuf_printf(w->out, " = to_bf16(r%d);\n", s->reg);
    else
        strbuf_printf(w->out, " = (%s)r%d;\n", c_type(s->at.dtype), s->reg);
}

static int64_t elements(const PointProgram *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->rank; d++)
        n *= p->dim[d];
    return n;
}

/* The last place that an access reaches, beside those of the space itself. */
static bool fits_32_bits(const PointProgram *p)
{
    int64_t most = elements(p);
    for (size_t k = 0; k < p->access.len + p->store.len; k++) {
        const PointAccess *a =
            k < p->access.len ? &p->access.data[k] : &p->store.data[k - p->access.len].at;
        int64_t last = a->base;
        for (int d = 0; d < p->rank; d++)
            last += (p->dim[d] - 1) * a->stride[d];
        most = last > most ? last : most;
    }
    return most < INT32_MAX;
}

static bool has_bf16(const PointProgram *p)
{
    for (size_t k = 0; k < p->instr.len; k++)
        if (p->instr.data[k].op == POINT_ROUND)
            return true;
    for (size_t k = 0; k < p->access.len; k++)
        if (p->access.data[k].dtype == DTYPE_BF16)
            return true;
    for (size_t k = 0; k < p->store.len; k++)
        if (p->store.data[k].at.dtype == DTYPE_BF16)
            return true;
    return false;
}

/* Digits of the element's number, innermost last.  32-bit divisions are the cheaper ones. */
static void put_digits(Writer *w, const char *number)
{
    const char *type = fits_32_bits(w->p) ? "u32" : "i64";
    strbuf_printf(w->out, "%s%s rest = (%s)%s;\n", w->pad, type, type, number);
    for (int d = w->p->rank - 1; d > 0; d--) {
        strbuf_printf(w->out, "%sconst %s d%d = rest %% %lld;\n", w->pad, type, d,
                      (long long)w->p->dim[d]);
        strbuf_printf(w->out, "%srest /= %lld;\n", w->pad, (long long)w->p->dim[d]);
    }
    strbuf_printf(w->out, "%sconst %s d0 = rest;\n", w->pad, type);
}

/* All loads come before the first store: outputs may lie on inputs, element on element. */
static void put_program(Writer *w, const char *number)
{
    put_digits(w, number);
    for (size_t k = 0; k < w->p->instr.len; k++)
        put_instr(w, k);
    for (size_t k = 0; k < w->p->store.len; k++)
        put_store(w, &w->p->store.data[k]);
}

static void begin_point(StrBuf *out, const PointProgram *p)
{
    text_begin(out, p->n_bufs + (int)p->number.len,
               (const char *const[]){"common", "math", "random", NULL});
    if (has_bf16(p))
        text_include(out, "bf16");
}

/* desc: a PointProgram. */
static void write_point(StrBuf *out, const char *symbol, const void *desc)
{
    const PointProgram *p = desc;
    Writer w = {.out = out, .p = p, .pad = "    "};
    begin_point(out, p);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, THREADS);
    strbuf_printf(out, "    const i64 element = (i64)blockIdx.x * %d + threadIdx.x;\n", THREADS);
    strbuf_printf(out, "    if (element >= %lld)\n        return;\n", (long long)elements(p));
    put_program(&w, "element");
    strbuf_put(out, "}\n");
}

/* --- neighbours together --- */

/* Elements of a thread: 16 bytes of the smallest floats. */
static int wide_elements(const PointProgram *p)
{
    return has_bf16(p) ? 8 : 4;
}

/* One element behind the other, or the same for all; from where 16 bytes may begin. */
static bool is_wide_access(const CallDraft *call, const PointAccess *a)
{
    return a->stride[0] == 0 || (a->stride[0] == 1 && a->base == 0 && a->dtype != DTYPE_I64 &&
                                 call->buf[a->buf].offset % 16 == 0);
}

static bool is_wide(const CallDraft *call, const PointProgram *p)
{
    bool wide =
        p->rank == 1 && p->instr.len <= WIDE_INSTRUCTIONS_MOST && elements(p) >= wide_elements(p);
    for (size_t k = 0; k < p->instr.len && wide; k++)
        if (p->instr.data[k].op == POINT_LOAD)
            wide = is_wide_access(call, &p->access.data[p->instr.data[k].access]);
    for (size_t k = 0; k < p->store.len && wide; k++)
        wide = p->store.data[k].at.stride[0] == 1 && is_wide_access(call, &p->store.data[k].at);
    return wide;
}

static void put_wide_types(StrBuf *out, const PointProgram *p)
{
    int n = wide_elements(p);
    text_define(out, "WIDE", n);
    text_include(out, "wide");
    strbuf_put(out, "WIDE_TYPE(float, 16)\nWIDE_TYPE(int, 16)\n");
    strbuf_printf(out, "WIDE_TYPE(u8, %d)\n%s", n, has_bf16(p) ? "WIDE_TYPE(u16, 16)\n" : "");
}

/* Whether addresses are those of 16 bytes: that of a value inside of another may not be. */
static void put_alignment(Writer *w)
{
    strbuf_put(w->out, "    const int aligned = 1");
    for (int buf = 0; buf < w->p->n_bufs; buf++) {
        bool used = false;
        for (size_t k = 0; k < w->p->instr.len; k++) {
            const PointInstr *i = &w->p->instr.data[k];
            const PointAccess *a = i->op == POINT_LOAD ? &w->p->access.data[i->access] : NULL;
            used |= a && a->buf == buf && a->stride[0];
        }
        for (size_t k = 0; k < w->p->store.len; k++)
            used |= w->p->store.data[k].at.buf == buf;
        if (used)
            strbuf_printf(w->out, " && IS_ALIGNED(%d)", buf);
    }
    strbuf_put(w->out, ";\n");
}

static void put_wide(Writer *w)
{
    const PointProgram *p = w->p;
    w->pad = "        ";
    w->wide = true;
    for (size_t k = 0; k < p->instr.len; k++) {
        const PointInstr *i = &p->instr.data[k];
        const PointAccess *a = i->op == POINT_LOAD ? &p->access.data[i->access] : NULL;
        if (a && a->stride[0])
            strbuf_printf(w->out, "%sconst Wide_%s in%zu = WIDE_AT(%s, %d, first);\n", w->pad,
                          c_type(a->dtype), k, c_type(a->dtype), a->buf);
    }
    for (size_t k = 0; k < p->store.len; k++)
        strbuf_printf(w->out, "%sWide_%s out%zu;\n", w->pad, c_type(p->store.data[k].at.dtype), k);
    strbuf_printf(w->out, "%sfor (int i = 0; i < WIDE; i++) {\n", w->pad);
    w->pad = "            ";
    put_program(w, "(first + i)");
    w->pad = "        ";
    strbuf_printf(w->out, "%s}\n", w->pad);
    for (size_t k = 0; k < p->store.len; k++) {
        const PointAccess *a = &p->store.data[k].at;
        strbuf_printf(w->out, "%sWIDE_AT(%s, %d, first) = out%zu;\n", w->pad, c_type(a->dtype),
                      a->buf, k);
    }
    w->wide = false;
}

/* The same for WIDE elements a thread; the last ones, or all where an address is odd, one by one.
 */
static void write_wide(StrBuf *out, const char *symbol, const void *desc)
{
    const PointProgram *p = desc;
    Writer w = {.out = out, .p = p, .pad = "    "};
    long long n = elements(p);
    begin_point(out, p);
    put_wide_types(out, p);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, THREADS);
    strbuf_printf(out, "    const i64 first = ((i64)blockIdx.x * %d + threadIdx.x) * WIDE;\n",
                  THREADS);
    put_alignment(&w);
    strbuf_printf(out, "    if (aligned && first + WIDE <= %lld) {\n", n);
    put_wide(&w);
    strbuf_printf(out, "        return;\n    }\n");
    strbuf_put(out, "#pragma unroll 1\n");
    strbuf_printf(out, "    for (i64 element = first; element < first + WIDE && element < %lld; ",
                  n);
    strbuf_put(out, "element++) {\n");
    w.pad = "        ";
    put_program(&w, "element");
    strbuf_put(out, "    }\n}\n");
}

void cuda_point_call(CallDraft *call, const PointProgram *p)
{
    bool wide = is_wide(call, p);
    if (wide)
        call->key = pool_printf(p->pool, "%s wide", call->key);
    call->text = wide ? write_wide : write_point;
    call->threads = THREADS;
    call->n_tasks = divide_up(elements(p), THREADS * (wide ? wide_elements(p) : 1));
}

/* --- epilogues --- */

/* A value of the body that is no POINT result. */
static int epilogue_leaf(void *user, PointProgram *p, ValueId v, int axis, int word)
{
    const Epilogue *e = user;
    const Type *t = value_type(e->body, v);
    if (v == e->acc) {
        int sum = point_push(p, (PointInstr){.op = POINT_GIVEN, .dtype = DTYPE_F32});
        return point_round(p, sum, t->dtype);
    }
    int buf = -1;
    for (int i = 0; i < e->n_inputs; i++)
        if (e->input[i].value == v)
            buf = e->input[i].buf;
    if (buf < 0)
        BUG("an epilogue reads a value that is no operand");
    if (value_node(e->body, v)->op == OP_const)
        return point_push(
            p, (PointInstr){.op = POINT_NUMBER, .dtype = point_lane_type(t->dtype), .k = buf});
    PointAccess a = point_access(p, buf, t, t->rank ? axis : -1);
    if (word >= 0)
        a = (PointAccess){.buf = buf, .dtype = t->dtype, .base = word};
    return point_load(p, a);
}

void cuda_epilogue(StrBuf *out, const Epilogue *e, int out_buf)
{
    PointProgram *p = point_program(out->pool, &e->out);
    int reg;
    union {
        const Epilogue *in;
        void *user;
    } u = {e};
    if (e->body)
        point_add_body(p, e->body, &e->result, 1, &reg, epilogue_leaf, u.user);
    else
        reg = point_push(p, (PointInstr){.op = POINT_GIVEN, .dtype = DTYPE_F32});
    point_store(p, reg, point_access(p, out_buf, &e->out, -1));
    Writer w = {.out = out, .p = p, .pad = "    "};
    if (has_bf16(p))
        text_include(out, "bf16");
    strbuf_put(out, "\nDEVICE void epilogue(const Args a, i64 row, i64 column, float sum)\n{\n");
    if (e->bias_buf >= 0)
        strbuf_printf(out, "    sum = sum + BUF(float, %d)[column];\n", e->bias_buf);
    put_program(&w, pool_printf(out->pool, "(row * %lld + column)",
                                (long long)e->out.dim[e->out.rank - 1]));
    strbuf_put(out, "}\n");
}
