/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise kernels over rows: a thread reads and writes the same neighbours, 16 bytes at a
 * time, of several rows.  What does not depend on the row - the factors of a batch norm, say - it
 * computes before. */
#include "codegen/cuda/point_text.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"

#include <string.h>

/* Rows of a thread: as many as leave ENOUGH_THREADS, at most MOST_ROWS.  KEPT_MOST: registers of
 * what is computed before, for each of the neighbours. */
enum { MOST_ROWS = 16, ENOUGH_THREADS = 1 << 18, KEPT_MOST = 8 };

/* What an instruction's value depends on. */
typedef enum Depends { ON_NOTHING, ON_COLUMN, ON_ROW } Depends;

static Depends depends(const PointProgram *p, const PointInstr *i, const Depends *on)
{
    Depends most = i->op == POINT_GIVEN ? ON_ROW : ON_NOTHING;
    for (int n = 0; n < i->n_in; n++)
        most = on[i->in[n]] > most ? on[i->in[n]] : most;
    for (int d = 0; point_has_access(i) && d < p->rank; d++) {
        Depends here = d < p->rank - 1 ? ON_ROW : ON_COLUMN;
        if (p->access.data[i->access].stride[d] && here > most)
            most = here;
    }
    return most;
}

static Depends *dependences(const PointProgram *p)
{
    Depends *on = POOL_ARRAY(p->pool, p->instr.len + 1, Depends);
    for (size_t k = 0; k < p->instr.len; k++)
        on[k] = depends(p, &p->instr.data[k], on);
    return on;
}

/* What rows need that depends on the column. */
static bool *kept(const PointProgram *p, const Depends *on)
{
    bool *keep = POOL_ARRAY(p->pool, p->instr.len + 1, bool);
    memset(keep, 0, p->instr.len);
    for (size_t k = 0; k < p->instr.len; k++)
        for (int n = 0; n < p->instr.data[k].n_in && on[k] == ON_ROW; n++)
            keep[p->instr.data[k].in[n]] |= on[p->instr.data[k].in[n]] == ON_COLUMN;
    for (size_t k = 0; k < p->store.len; k++)
        keep[p->store.data[k].reg] |= on[p->store.data[k].reg] == ON_COLUMN;
    return keep;
}

static bool computes_for_all(const PointProgram *p)
{
    const Depends *on = dependences(p);
    for (size_t k = 0; k < p->instr.len; k++)
        if (on[k] == ON_NOTHING && p->instr.data[k].n_in > 0)
            return true;
    return false;
}

static void split(PointAccess *a, int n)
{
    a->stride[1] = a->stride[0];
    a->stride[0] *= n;
}

/* A program of one dim as rows of the neighbours of a thread; others as they are. */
static const PointProgram *by_rows(const PointProgram *p)
{
    int n = point_wide_elements(p);
    if (p->rank > 1 || p->dim[0] % n || !computes_for_all(p))
        return p;
    PointProgram *rows = POOL_NEW(p->pool, PointProgram);
    *rows = *p;
    rows->rank = 2;
    rows->dim[0] = p->dim[0] / n;
    rows->dim[1] = n;
    memset(&rows->access, 0, sizeof rows->access);
    memset(&rows->store, 0, sizeof rows->store);
    for (size_t k = 0; k < p->access.len; k++) {
        vec_push(p->pool, &rows->access, p->access.data[k]);
        split(&rows->access.data[k], n);
    }
    for (size_t k = 0; k < p->store.len; k++) {
        vec_push(p->pool, &rows->store, p->store.data[k]);
        split(&rows->store.data[k].at, n);
    }
    return rows;
}

static int n_kept(const PointProgram *p, const bool *keep)
{
    int n = 0;
    for (size_t k = 0; k < p->instr.len; k++)
        n += keep[k];
    return n;
}

static int64_t rows_of(const PointProgram *p)
{
    return point_text_elements(p) / p->dim[p->rank - 1];
}

/* Threads side by side on a row, and rows that are looked at together. */
static int64_t columns_of(const PointProgram *p)
{
    return p->dim[p->rank - 1] / point_wide_elements(p);
}

static int64_t rows_at_once(const PointProgram *p)
{
    int64_t each = rows_of(p) * columns_of(p) / ENOUGH_THREADS;
    return divide_up(rows_of(p), each < 1 ? 1 : each < MOST_ROWS ? each : MOST_ROWS);
}

int64_t point_rows_threads(const PointProgram *program)
{
    const PointProgram *p = by_rows(program);
    return rows_at_once(p) * columns_of(p);
}

bool point_has_rows(const CallDraft *call, const PointProgram *program)
{
    const PointProgram *p = by_rows(program);
    if (p->rank < 2 || point_text_elements(p) == 0 ||
        p->dim[p->rank - 1] % point_wide_elements(p) || !point_is_wide(call, p))
        return false;
    return n_kept(p, kept(p, dependences(p))) <= KEPT_MOST;
}

static const char *register_type(const PointInstr *i)
{
    return i->dtype == DTYPE_F32 ? "float" : "int";
}

static void put_before_rows(PointText *w, const Depends *on, const bool *keep)
{
    const PointProgram *p = w->p;
    for (size_t k = 0; k < p->instr.len; k++)
        if (on[k] == ON_NOTHING)
            point_text_instr(w, k);
    if (n_kept(p, keep) == 0)
        return;
    w->pad = "        ";
    for (size_t k = 0; k < p->instr.len; k++)
        if (keep[k])
            strbuf_printf(w->out, "    %s kept%zu[WIDE];\n", register_type(&p->instr.data[k]), k);
    strbuf_printf(w->out,
                  "    for (int i = 0; i < WIDE; i++) {\n        const %s d%d = column + i;\n",
                  point_text_index(p), p->rank - 1);
    for (size_t k = 0; k < p->instr.len; k++)
        if (on[k] == ON_COLUMN)
            point_text_instr(w, k);
    for (size_t k = 0; k < p->instr.len; k++)
        if (keep[k])
            strbuf_printf(w->out, "        kept%zu[i] = r%zu;\n", k, k);
    strbuf_put(w->out, "    }\n");
}

/* Of a row, the WIDE neighbours. */
static void put_neighbours(PointText *w, const Depends *on, const bool *keep)
{
    const PointProgram *p = w->p;
    w->pad = "                ";
    strbuf_printf(w->out, "            for (int i = 0; i < WIDE; i++) {\n");
    strbuf_printf(w->out, "%sconst %s d%d = column + i;\n", w->pad, point_text_index(p),
                  p->rank - 1);
    for (size_t k = 0; k < p->instr.len; k++)
        if (on[k] == ON_ROW)
            point_text_instr(w, k);
        else if (keep[k])
            strbuf_printf(w->out, "%sconst %s r%zu = kept%zu[i];\n", w->pad,
                          register_type(&p->instr.data[k]), k, k);
    for (size_t k = 0; k < p->store.len; k++)
        point_text_store(w, &p->store.data[k]);
    strbuf_put(w->out, "            }\n");
}

static void put_row(PointText *w, const Depends *on, const bool *keep)
{
    w->pad = "        ";
    point_text_digits(w, "row", w->p->rank - 1);
    strbuf_printf(w->out, "        const %s d%d = column;\n        if (aligned) {\n",
                  point_text_index(w->p), w->p->rank - 1);
    w->pad = "            ";
    w->wide = true;
    point_put_wide_loads(w);
    put_neighbours(w, on, keep);
    w->pad = "            ";
    point_put_wide_stores(w);
    w->wide = false;
    strbuf_put(w->out, "        } else {\n");
    put_neighbours(w, on, keep);
    strbuf_put(w->out, "        }\n");
}

void point_write_rows(StrBuf *out, const char *symbol, const void *desc)
{
    const PointProgram *p = by_rows(desc);
    const Depends *on = dependences(p);
    const bool *keep = kept(p, on);
    const char *type = point_text_index(p);
    bool *once = POOL_ARRAY(p->pool, p->instr.len + 1, bool);
    for (size_t k = 0; k < p->instr.len; k++)
        once[k] = on[k] != ON_ROW;
    PointText w = {.out = out, .p = p, .pad = "    ", .once = once};
    point_text_begin(out, p);
    point_put_wide_types(out, p);
    text_define(out, "COLUMNS", columns_of(p));
    text_define(out, "ROWS", rows_of(p));
    text_define(out, "ROWS_AT_ONCE", rows_at_once(p));
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, POINT_THREADS);
    strbuf_printf(out, "    const %s at = (%s)blockIdx.x * %d + threadIdx.x;\n", type, type,
                  POINT_THREADS);
    strbuf_printf(out, "    const %s column = at %% COLUMNS * WIDE, first = at / COLUMNS;\n", type);
    point_put_alignment(&w);
    strbuf_put(out, "    if (first >= ROWS_AT_ONCE)\n        return;\n");
    put_before_rows(&w, on, keep);
    strbuf_put(out, "#pragma unroll 1\n");
    strbuf_printf(out, "    for (%s row = first; row < ROWS; row += ROWS_AT_ONCE) {\n", type);
    put_row(&w, on, keep);
    strbuf_put(out, "    }\n}\n");
}
