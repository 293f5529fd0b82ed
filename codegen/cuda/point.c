/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of element-wise programs: kernels of their own, and epilogues. */
#include "codegen/cuda/point.h"
#include "codegen/cuda/point_text.h"
#include "codegen/cuda/text.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"

static bool is_real(DType t)
{
    return t == DTYPE_F32;
}

void point_text_place(PointText *w, const PointAccess *a)
{
    strbuf_printf(w->out, "%lld", (long long)a->base);
    for (int d = 0; d < w->p->rank; d++)
        if (a->stride[d] == 1)
            strbuf_printf(w->out, " + d%d", d);
        else if (a->stride[d])
            strbuf_printf(w->out, " + d%d * %lld", d, (long long)a->stride[d]);
}

static void put_element(PointText *w, const PointAccess *a)
{
    strbuf_printf(w->out, "BUF(%s, %d)[", text_type(a->dtype), a->buf);
    point_text_place(w, a);
    strbuf_put(w->out, "]");
}

static void put_number(PointText *w, const PointInstr *i)
{
    int arg = w->p->n_bufs + i->k;
    strbuf_printf(w->out,
                  i->dtype == DTYPE_F32    ? "FLOAT(%d)"
                  : i->dtype == DTYPE_BOOL ? "(INT(%d) != 0)"
                                           : "INT(%d)",
                  arg);
}

static void put_access(PointText *w, const PointInstr *i)
{
    const PointAccess *a = &w->p->access.data[i->access];
    if (i->op == POINT_LOAD && w->wide && a->stride[w->p->rank - 1]) {
        strbuf_printf(w->out, a->dtype == DTYPE_BF16 ? "from_bf16(in%zu.x[i])" : "in%zu.x[i]",
                      (size_t)(i - w->p->instr.data));
    } else if (i->op == POINT_LOAD) {
        strbuf_put(w->out, a->dtype == DTYPE_BF16 ? "from_bf16(" : "");
        put_element(w, a);
        strbuf_put(w->out, a->dtype == DTYPE_BF16 ? ")" : "");
    } else if (i->op == POINT_BIT) {
        strbuf_printf(w->out, "(int)(BUF(u32, %d)[(", a->buf);
        point_text_place(w, a);
        strbuf_put(w->out, ") >> 5] >> ((");
        point_text_place(w, a);
        strbuf_put(w->out, ") & 31) & 1u)");
    } else {
        strbuf_put(w->out, "(int)((i64)(");
        point_text_place(w, a);
        strbuf_put(w->out, i->op == POINT_COORDINATE_HIGH ? ") >> 32)" : "))");
    }
}

void point_text_instr(PointText *w, size_t k)
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

void point_text_store(PointText *w, const PointStore *s)
{
    strbuf_put(w->out, w->pad);
    if (w->wide)
        strbuf_printf(w->out, "out%zu.x[i]", (size_t)(s - w->p->store.data));
    else
        put_element(w, &s->at);
    if (s->at.dtype == DTYPE_BF16)
        strbuf_printf(w->out, " = to_bf16(r%d);\n", s->reg);
    else
        strbuf_printf(w->out, " = (%s)r%d;\n", text_type(s->at.dtype), s->reg);
}

int64_t point_text_elements(const PointProgram *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->rank; d++)
        n *= p->dim[d];
    return n;
}

/* The last place that an access reaches, beside those of the space itself. */
static bool fits_32_bits(const PointProgram *p)
{
    int64_t most = point_text_elements(p);
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

bool point_text_has_bf16(const PointProgram *p)
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

const char *point_text_index(const PointProgram *p)
{
    return fits_32_bits(p) ? "u32" : "i64";
}

void point_text_digits(PointText *w, const char *number, int rank)
{
    const char *type = point_text_index(w->p);
    strbuf_printf(w->out, "%s%s rest = (%s)%s;\n", w->pad, type, type, number);
    for (int d = rank - 1; d > 0; d--) {
        strbuf_printf(w->out, "%sconst %s d%d = rest %% %lld;\n", w->pad, type, d,
                      (long long)w->p->dim[d]);
        strbuf_printf(w->out, "%srest /= %lld;\n", w->pad, (long long)w->p->dim[d]);
    }
    strbuf_printf(w->out, "%sconst %s d0 = rest;\n", w->pad, type);
}

/* All loads come before the first store: outputs may lie on inputs, element on element. */
void point_text_program(PointText *w, const char *number)
{
    point_text_digits(w, number, w->p->rank);
    for (size_t k = 0; k < w->p->instr.len; k++)
        point_text_instr(w, k);
    for (size_t k = 0; k < w->p->store.len; k++)
        point_text_store(w, &w->p->store.data[k]);
}

void point_text_begin(StrBuf *out, const PointProgram *p)
{
    text_begin(out, p->n_bufs + (int)p->number.len,
               (const char *const[]){"common", "math", "random", NULL});
    if (point_text_has_bf16(p))
        text_include(out, "bf16");
}

/* desc: a PointProgram. */
static void write_point(StrBuf *out, const char *symbol, const void *desc)
{
    const PointProgram *p = desc;
    PointText w = {.out = out, .p = p, .pad = "    "};
    point_text_begin(out, p);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, POINT_THREADS);
    strbuf_printf(out, "    const i64 element = (i64)blockIdx.x * %d + threadIdx.x;\n",
                  POINT_THREADS);
    strbuf_printf(out, "    if (element >= %lld)\n        return;\n",
                  (long long)point_text_elements(p));
    point_text_program(&w, "element");
    strbuf_put(out, "}\n");
}

void cuda_point_call(const Lowering *l, CallDraft *call, const PointProgram *p)
{
    (void)l;
    int64_t per_thread = point_wide(call, p);
    call->threads = POINT_THREADS;
    if (point_has_rows(call, p)) {
        call->key = pool_printf(p->pool, "%s rows", call->key);
        call->text = point_write_rows;
        call->n_tasks = divide_up(point_rows_threads(p), POINT_THREADS);
        return;
    }
    bool wide = per_thread > 1;
    if (wide)
        call->key = pool_printf(p->pool, "%s wide", call->key);
    call->text = wide ? point_write_wide : write_point;
    call->n_tasks = divide_up(point_text_elements(p), POINT_THREADS * per_thread);
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
    point_collapse(p);
    PointText w = {.out = out, .p = p, .pad = "    "};
    if (point_text_has_bf16(p))
        text_include(out, "bf16");
    strbuf_put(out, "\nDEVICE void epilogue(const Args a, i64 row, i64 column, float sum)\n{\n");
    if (e->bias_buf >= 0)
        strbuf_printf(out, "    sum = sum + BUF(float, %d)[column];\n", e->bias_buf);
    point_text_program(&w, pool_printf(out->pool, "(row * %lld + column)",
                                       (long long)e->out.dim[e->out.rank - 1]));
    strbuf_put(out, "}\n");
}
