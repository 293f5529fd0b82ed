/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_pack.h"

#include "ir/support/divide.h"

#include <stdio.h>

enum { MAX_LANES = 16 };

/* --- transposition of a square of vectors --- */

/* Within every group of four lanes: lanes pattern[0..1] of a, then pattern[2..3] of b. */
static JitValue shuffle_quads(Jit *j, JitValue a, JitValue b, const int pattern[4],
                              const bool from_b[4])
{
    int lane[MAX_LANES], n = jit_lanes(j);
    for (int i = 0; i < n; i++)
        lane[i] = (from_b[i % 4] ? n : 0) + i / 4 * 4 + pattern[i % 4];
    return jit_shuffle(j, a, b, lane);
}

/* Transposes rows r[0..4) within every group of four lanes. */
static void transpose_quads(Jit *j, JitValue *r)
{
    static const int low[4] = {0, 0, 1, 1}, high[4] = {2, 2, 3, 3};
    static const int first[4] = {0, 1, 0, 1}, second[4] = {2, 3, 2, 3};
    static const bool mixed[4] = {0, 1, 0, 1}, halves[4] = {0, 0, 1, 1};
    JitValue a = shuffle_quads(j, r[0], r[1], low, mixed);
    JitValue b = shuffle_quads(j, r[0], r[1], high, mixed);
    JitValue c = shuffle_quads(j, r[2], r[3], low, mixed);
    JitValue d = shuffle_quads(j, r[2], r[3], high, mixed);
    r[0] = shuffle_quads(j, a, c, first, halves);
    r[1] = shuffle_quads(j, a, c, second, halves);
    r[2] = shuffle_quads(j, b, d, first, halves);
    r[3] = shuffle_quads(j, b, d, second, halves);
}

/* Groups of four lanes: groups odd, odd + 2, ... of a, then those of b. */
static JitValue shuffle_groups(Jit *j, JitValue a, JitValue b, int odd)
{
    int lane[MAX_LANES], n = jit_lanes(j);
    for (int i = 0; i < n; i++) {
        int group = i / 4, half = n / 8;
        lane[i] = (group / half) * n + (group % half * 2 + odd) * 4 + i % 4;
    }
    return jit_shuffle(j, a, b, lane);
}

/* Rows i, i+4, ... hold groups that belong to other rows: transpose the groups. */
static void transpose_groups(Jit *j, JitValue *row, int i)
{
    if (jit_lanes(j) == 8) {
        JitValue a = row[i], b = row[i + 4];
        row[i] = shuffle_groups(j, a, b, 0);
        row[i + 4] = shuffle_groups(j, a, b, 1);
        return;
    }
    JitValue even01 = shuffle_groups(j, row[i], row[i + 4], 0);
    JitValue odd01 = shuffle_groups(j, row[i], row[i + 4], 1);
    JitValue even23 = shuffle_groups(j, row[i + 8], row[i + 12], 0);
    JitValue odd23 = shuffle_groups(j, row[i + 8], row[i + 12], 1);
    row[i] = shuffle_groups(j, even01, even23, 0);
    row[i + 4] = shuffle_groups(j, odd01, odd23, 0);
    row[i + 8] = shuffle_groups(j, even01, even23, 1);
    row[i + 12] = shuffle_groups(j, odd01, odd23, 1);
}

void pack_transpose(Jit *j, JitValue *row)
{
    int n = jit_lanes(j);
    for (int i = 0; i < n; i++)
        row[i] = jit_opaque(j, row[i]);
    for (int i = 0; i < n; i += 4)
        transpose_quads(j, row + i);
    for (int i = 0; n > 4 && i < 4; i++)
        transpose_groups(j, row, i);
}

/* The name of a packing function: one for sources of f32, one for those of bf16. */
static const char *name_for(const Jit *j, JitValue from, const char *f32, const char *bf16)
{
    return jit_type_of(from) == jit_types(j)->p_bf16 ? bf16 : f32;
}

/* --- panels --- */

typedef struct PanelEmit {
    Jit *j;
    const PackPanel *p;
    JitValue to, from;
} PanelEmit;

static int64_t panel_width(const PanelEmit *e)
{
    return (int64_t)e->p->vectors * jit_lanes(e->j);
}

/* Columns of vector v that exist. */
static int columns_in(const PanelEmit *e, int v)
{
    int64_t left = e->p->columns - (int64_t)v * jit_lanes(e->j);
    return left < jit_lanes(e->j) ? (int)left : jit_lanes(e->j);
}

static JitValue source_at(const PanelEmit *e, JitValue k, int64_t n)
{
    return jit_muladd_i64(e->j, k, e->p->k_step, jit_i64(e->j, n * e->p->n_step));
}

static void put(const PanelEmit *e, JitValue k, int v, JitValue x)
{
    JitValue at = jit_muladd_i64(e->j, k, panel_width(e), jit_i64(e->j, v * jit_lanes(e->j)));
    jit_vstore_aligned(e->j, e->to, at, x);
}

/* Step k when columns are contiguous.  whole: the last vector may be read past its columns. */
static void copy_step(const PanelEmit *e, JitValue k, bool whole)
{
    Jit *j = e->j;
    for (int v = 0; v < e->p->vectors; v++) {
        int n = columns_in(e, v);
        JitValue at = source_at(e, k, (int64_t)v * jit_lanes(j));
        put(e, k, v,
            whole || n == jit_lanes(j) ? jit_vload(j, e->from, at)
                                       : jit_vload_partial(j, e->from, at, jit_i64(j, n), 0));
    }
}

static void copy_panel(const PanelEmit *e, JitValue steps, JitValue safe)
{
    Jit *j = e->j;
    bool even = e->p->columns % jit_lanes(j) == 0;
    JitValue whole = even ? steps : jit_min_i64(j, safe, steps);
    JitLoop l = jit_for(j, jit_i64(j, 0), whole, 1, "k");
    copy_step(e, jit_index(&l), true);
    jit_end_for(j, &l);
    if (even)
        return;
    l = jit_for(j, jit_max_i64(j, whole, jit_i64(j, 0)), steps, 1, "k");
    copy_step(e, jit_index(&l), false);
    jit_end_for(j, &l);
}

/* Step k element by element. */
static void gather_step(const PanelEmit *e, JitValue k)
{
    Jit *j = e->j;
    for (int v = 0; v < e->p->vectors; v++) {
        JitValue lane[MAX_LANES];
        for (int i = 0; i < jit_lanes(j); i++)
            lane[i] = i < columns_in(e, v)
                          ? jit_load(j, e->from, source_at(e, k, (int64_t)v * jit_lanes(j) + i))
                          : jit_f32(j, 0);
        put(e, k, v, jit_from_lanes(j, jit_types(j)->vf, lane));
    }
}

static void gather_steps(const PanelEmit *e, JitValue from, JitValue to)
{
    JitLoop l = jit_for(e->j, from, to, 1, "k");
    gather_step(e, jit_index(&l));
    jit_end_for(e->j, &l);
}

/* lanes steps of vector v, whose source rows are contiguous in k. */
static void transpose_block(const PanelEmit *e, JitValue k, int v)
{
    Jit *j = e->j;
    JitValue row[MAX_LANES];
    for (int i = 0; i < jit_lanes(j); i++)
        row[i] = i < columns_in(e, v)
                     ? jit_vload(j, e->from, source_at(e, k, (int64_t)v * jit_lanes(j) + i))
                     : jit_tmp(j, jit_vf(j, 0));
    pack_transpose(j, row);
    for (int i = 0; i < jit_lanes(j); i++)
        put(e, jit_add(j, k, jit_i64(j, i)), v, row[i]);
}

static void transpose_panel(const PanelEmit *e, JitValue steps)
{
    Jit *j = e->j;
    JitValue lanes = jit_i64(j, jit_lanes(j));
    JitValue whole = jit_tmp(j, jit_sub(j, steps, jit_mod(j, steps, lanes)));
    for (int v = 0; v < e->p->vectors; v++) {
        JitLoop l = jit_for(j, jit_i64(j, 0), whole, jit_lanes(j), "k");
        transpose_block(e, jit_index(&l), v);
        jit_end_for(j, &l);
    }
    gather_steps(e, whole, steps);
}

static JitFunction panel_function(Jit *j, const PackPanel *p, JitValue from)
{
    char name[96];
    snprintf(name, sizeof name, "pack_panel_%s%d_%lld_%lld_%lld", name_for(j, from, "", "bf16_"),
             p->vectors, (long long)p->columns, (long long)p->k_step, (long long)p->n_step);
    for (char *c = name; *c; c++)
        *c = *c == '-' ? 'm' : *c;
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitTypes *t = jit_types(j);
    const JitType types[] = {t->p_f32, jit_type_of(from), t->i64, t->i64};
    f = jit_function_begin(j, name, t->none, 4, types);
    PanelEmit e = {j, p, jit_param(j, 0), jit_param(j, 1)};
    if (p->n_step == 1)
        copy_panel(&e, jit_param(j, 2), jit_param(j, 3));
    else if (p->k_step == 1)
        transpose_panel(&e, jit_param(j, 2));
    else
        gather_steps(&e, jit_i64(j, 0), jit_param(j, 2));
    jit_function_end(j);
    return f;
}

void pack_panel(Jit *j, const PackPanel *p, JitValue to, JitValue from, JitValue steps,
                JitValue safe)
{
    const JitValue args[] = {to, from, steps, safe ? safe : steps};
    jit_call_void(j, panel_function(j, p, from), 4, args);
}

static void copy_panels(const PanelEmit *e, JitValue steps, JitValue panels)
{
    Jit *j = e->j;
    JitValue width = jit_i64(j, panel_width(e));
    JitValue size = jit_tmp(j, jit_mul(j, steps, width));
    JitLoop k = jit_for(j, jit_i64(j, 0), steps, 1, "k");
    JitVar to = jit_var(j, jit_types(j)->p_f32, "to"),
           from = jit_var(j, jit_type_of(e->from), "from");
    jit_set(j, to, jit_offset(j, e->to, jit_mul(j, jit_index(&k), width)));
    jit_set(j, from, jit_offset(j, e->from, source_at(e, jit_index(&k), 0)));
    JitLoop p = jit_for(j, jit_i64(j, 0), panels, 1, "panel");
    for (int v = 0; v < e->p->vectors; v++) {
        JitValue at = jit_i64(j, v * jit_lanes(j));
        jit_vstore_aligned(j, jit_get(to), at, jit_vload(j, jit_get(from), at));
    }
    jit_set(j, to, jit_offset(j, jit_get(to), size));
    jit_set(j, from, jit_offset(j, jit_get(from), width));
    jit_end_for(j, &p);
    jit_end_for(j, &k);
}

void pack_panels(Jit *j, const PackPanel *p, JitValue to, JitValue from, JitValue steps,
                 JitValue panels)
{
    const JitTypes *t = jit_types(j);
    const char *name = name_for(j, from, "pack_panels", "pack_panels_bf16");
    JitFunction f = jit_function_lookup(j, name);
    if (!f) {
        const JitType types[] = {t->p_f32, jit_type_of(from), t->i64, t->i64};
        f = jit_function_begin(j, name, t->none, 4, types);
        PanelEmit e = {j, p, jit_param(j, 0), jit_param(j, 1)};
        copy_panels(&e, jit_param(j, 2), jit_param(j, 3));
        jit_function_end(j);
    }
    const JitValue args[] = {to, from, steps, panels};
    jit_call_void(j, f, 4, args);
}

/* --- rows --- */

/* Whole vectors, the last one ending at n and overlapping its neighbour; short rows one by one. */
static void copy_row(Jit *j, JitValue to, JitValue from, JitValue n)
{
    JitValue lanes = jit_i64(j, jit_lanes(j)), last = jit_tmp(j, jit_sub(j, n, lanes));
    JitIf s = jit_if(j, jit_compare(j, JIT_GE, n, lanes));
    JitLoop l = jit_for(j, jit_i64(j, 0), last, jit_lanes(j), "i");
    jit_vstore(j, to, jit_index(&l), jit_vload(j, from, jit_index(&l)));
    jit_end_for(j, &l);
    jit_vstore(j, to, last, jit_vload(j, from, last));
    jit_else(j, &s);
    l = jit_for(j, jit_i64(j, 0), n, 1, "i");
    jit_store(j, to, jit_index(&l), jit_load(j, from, jit_index(&l)));
    jit_end_for(j, &l);
    jit_end_if(j, &s);
}

void pack_rows(Jit *j, JitValue to, JitValue to_step, JitValue from, JitValue from_step,
               JitValue rows, JitValue n)
{
    const JitTypes *t = jit_types(j);
    const char *name = name_for(j, from, "pack_rows", "pack_rows_bf16");
    JitFunction f = jit_function_lookup(j, name);
    if (!f) {
        const JitType types[] = {t->p_f32, t->i64, jit_type_of(from), t->i64, t->i64, t->i64};
        f = jit_function_begin(j, name, t->none, 6, types);
        JitLoop l = jit_for(j, jit_i64(j, 0), jit_param(j, 4), 1, "r");
        JitValue dst = jit_offset(j, jit_param(j, 0), jit_mul(j, jit_index(&l), jit_param(j, 1)));
        JitValue src = jit_offset(j, jit_param(j, 2), jit_mul(j, jit_index(&l), jit_param(j, 3)));
        copy_row(j, jit_tmp(j, dst), jit_tmp(j, src), jit_param(j, 5));
        jit_end_for(j, &l);
        jit_function_end(j);
    }
    const JitValue args[] = {to, to_step, from, from_step, rows, n};
    jit_call_void(j, f, 6, args);
}

void pack_gather(Jit *j, JitValue to, JitValue to_step, JitValue from, int64_t row_step,
                 int64_t k_step, JitValue rows, JitValue steps)
{
    JitValue source = jit_tmp(j, from);
    JitLoop r = jit_for(j, jit_i64(j, 0), rows, 1, "r");
    JitLoop k = jit_for(j, jit_i64(j, 0), steps, 1, "k");
    JitValue row = jit_mul(j, jit_index(&r), jit_i64(j, row_step));
    JitValue at = jit_add(j, jit_mul(j, jit_index(&r), to_step), jit_index(&k));
    jit_store(j, to, at, jit_load(j, source, jit_muladd_i64(j, jit_index(&k), k_step, row)));
    jit_end_for(j, &k);
    jit_end_for(j, &r);
}

static int64_t all_rows(const PackStrips *p)
{
    return p->rows.base * p->rows.tiles + p->rows.extra;
}

/* Tiles whose rows may be read by whole vectors: these end before the matrix does. */
static int64_t whole_tiles(const Jit *j, const PackStrips *p)
{
    int64_t read = divide_up(p->width, jit_lanes(j)) * jit_lanes(j), tile = p->rows.tiles;
    while (tile && all_rows(p) - tile_row(&p->rows, tile - 1) < read)
        tile--;
    return tile;
}

/* One step of tiles [first, end): whole vectors, whose surplus the next step overwrites. */
static void copy_strips(Jit *j, const PackStrips *p, JitValue to, JitValue from, JitValue first,
                        JitValue end, bool whole)
{
    int lanes = jit_lanes(j);
    JitLoop l = jit_for(j, first, end, 1, "tile");
    JitValue tile = jit_index(&l), longer = jit_min_i64(j, tile, jit_i64(j, p->rows.extra));
    JitValue row = jit_tmp(j, jit_muladd_i64(j, tile, p->rows.base, longer));
    for (int64_t r = 0; r < p->width; r += lanes) {
        JitValue at = jit_tmp(j, jit_add(j, row, jit_i64(j, r)));
        JitValue left = jit_min_i64(j, jit_i64(j, lanes), jit_sub(j, jit_i64(j, all_rows(p)), at));
        jit_vstore(j, to, jit_muladd_i64(j, tile, p->strip_step, jit_i64(j, r)),
                   whole ? jit_vload(j, from, at) : jit_vload_partial(j, from, at, left, 0));
    }
    jit_end_for(j, &l);
}

void pack_strips(Jit *j, const PackStrips *p, JitValue to, JitValue from, JitValue steps,
                 JitValue tile0, JitValue tile1)
{
    JitValue whole = jit_i64(j, whole_tiles(j, p));
    JitLoop k = jit_for(j, jit_i64(j, 0), steps, 1, "k");
    JitValue skip = jit_mul(j, tile0, jit_i64(j, p->strip_step));
    JitValue at = jit_sub(j, jit_mul(j, jit_index(&k), jit_i64(j, p->width)), skip);
    JitValue source = jit_mul(j, jit_index(&k), jit_i64(j, p->k_step));
    JitValue step_to = jit_tmp(j, jit_offset(j, to, at));
    JitValue step_from = jit_tmp(j, jit_offset(j, from, source));
    copy_strips(j, p, step_to, step_from, tile0, jit_min_i64(j, tile1, whole), true);
    copy_strips(j, p, step_to, step_from, jit_max_i64(j, tile0, whole), tile1, false);
    jit_end_for(j, &k);
}

void pack_zero(Jit *j, JitValue to, JitValue n)
{
    const JitTypes *t = jit_types(j);
    JitFunction f = jit_function_lookup(j, "pack_zero");
    if (!f) {
        const JitType types[] = {t->p_f32, t->i64};
        f = jit_function_begin(j, "pack_zero", t->none, 2, types);
        JitValue to_whole = jit_sub(j, jit_param(j, 1), jit_i64(j, jit_lanes(j) - 1));
        JitVar i = jit_var(j, t->i64, "i");
        jit_set(j, i, jit_i64(j, 0));
        JitLoop l = jit_for(j, jit_i64(j, 0), to_whole, jit_lanes(j), "v");
        jit_vstore(j, jit_param(j, 0), jit_index(&l), jit_vf(j, 0));
        jit_set(j, i, jit_add(j, jit_index(&l), jit_i64(j, jit_lanes(j))));
        jit_end_for(j, &l);
        l = jit_for(j, jit_get(i), jit_param(j, 1), 1, "i");
        jit_store(j, jit_param(j, 0), jit_index(&l), jit_f32(j, 0));
        jit_end_for(j, &l);
        jit_function_end(j);
    }
    const JitValue args[] = {to, n};
    jit_call_void(j, f, 2, args);
}

/* x, or 0 with its sign in the place of a denormal number, which may round up to one that is none.
 */
static JitValue flushed(Jit *j, JitValue x)
{
    const JitTypes *t = jit_types(j);
    JitValue bits = jit_tmp(j, jit_bitcast(j, x, t->vi));
    JitValue sign = jit_tmp(j, jit_and(j, bits, jit_tmp(j, jit_vi(j, INT32_MIN))));
    JitValue zero = jit_tmp(j, jit_bitcast(j, sign, t->vf));
    JitValue least = jit_tmp(j, jit_vf(j, 0x1p-126));
    return jit_vchoose(j, JIT_LT, jit_tmp(j, jit_vabs(j, x)), least, zero, x);
}

void pack_round(Jit *j, JitValue to, JitValue n)
{
    const JitTypes *t = jit_types(j);
    JitFunction f = jit_function_lookup(j, "pack_round");
    if (!f) {
        const JitType types[] = {t->p_f32, t->i64};
        f = jit_function_begin(j, "pack_round", t->none, 2, types);
        JitLoop l = jit_for(j, jit_i64(j, 0), jit_param(j, 1), jit_lanes(j), "v");
        JitValue at = jit_index(&l), x = jit_vload(j, jit_param(j, 0), at);
        jit_vstore(j, jit_param(j, 0), at, jit_vround_bf16(j, flushed(j, x)));
        jit_end_for(j, &l);
        jit_function_end(j);
    }
    const JitValue args[] = {to, n};
    jit_call_void(j, f, 2, args);
}
