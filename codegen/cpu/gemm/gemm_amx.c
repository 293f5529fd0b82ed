/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_amx.h"

#include "codegen/cpu/gemm/gemm_amx_layout.h"
#include "codegen/cpu/gemm/gemm_amx_pack.h"
#include "codegen/cpu/gemm/gemm_run.h"
#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/divide.h"

#include <stdio.h>

/* Registers of a tile: four of sums, by rows, two of A, two of B. */
enum { SUMS = 0, FACTORS_A = 4, FACTORS_B = 6 };
enum { SUMS_ROW_BYTES = 4 * AMX_TILE, STEP_PANEL_BYTES = 2 * AMX_STEPS * AMX_TILE };

/* --- one tile --- */

typedef struct AmxTile {
    Jit *j;
    const Gemm *g;
    int columns;      /* of the panel */
    int down, across; /* registers */
    JitValue sums;
} AmxTile;

/* Parameters of a tile's function, in order; a's rows are a_stride bytes apart. */
enum {
    P_BUFS,
    P_A,
    P_A_STRIDE,
    P_B,
    P_BLOCKS,
    P_PARTIAL,
    P_ROW,
    P_COL,
    P_ROWS,
    P_FIRST,
    P_LAST,
    P_COUNT
};

static JitValue bytes_on(Jit *j, JitValue pointer, int64_t bytes)
{
    return jit_offset(j, jit_cast(j, pointer, jit_types(j)->p_char), jit_i64(j, bytes));
}

static JitValue sums_of(const AmxTile *t, int i, int k)
{
    return bytes_on(t->j, t->sums, (int64_t)AMX_ROWS * (i * SUMS_ROW_BYTES + 4 * k));
}

typedef void EachRegister(Jit *j, int reg, JitValue pointer, JitValue stride);

static void each_sum(const AmxTile *t, EachRegister *body)
{
    for (int i = 0; i < t->down; i++)
        for (int k = 0; k < t->across; k++)
            body(t->j, SUMS + 2 * i + k, sums_of(t, i, k), jit_i64(t->j, SUMS_ROW_BYTES));
}

static void zero_register(Jit *j, int reg, JitValue pointer, JitValue stride)
{
    (void)pointer;
    (void)stride;
    amx_zero(j, reg);
}

/* Lanes of vector v that exist; NULL: all. */
static JitValue lanes_of(const AmxTile *t, int v)
{
    int left = t->columns - v * AMX_ROWS;
    return left < AMX_ROWS ? jit_i64(t->j, left) : NULL;
}

/* Between a tile's rows and where its sums wait, or end. */
static void each_row(const AmxTile *t,
                     void (*body)(const AmxTile *, JitValue row, JitValue at, int v))
{
    Jit *j = t->j;
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_param(j, P_ROWS), 1, "row");
    for (int v = 0; v < t->across; v++) {
        JitValue at = jit_muladd_i64(j, jit_index(&r), AMX_TILE, jit_i64(j, v * AMX_ROWS));
        body(t, jit_index(&r), jit_tmp(j, at), v);
    }
    jit_end_for(j, &r);
}

static JitValue partial_at(const AmxTile *t, JitValue row, int v)
{
    Jit *j = t->j;
    int64_t stride = t->g->private_partial ? AMX_TILE * gemm_run_panels(t->g) : t->g->n;
    return jit_tmp(j, jit_muladd_i64(j, row, stride, jit_i64(j, v * AMX_ROWS)));
}

static void load_partial(const AmxTile *t, JitValue row, JitValue at, int v)
{
    Jit *j = t->j;
    JitValue from = jit_param(j, P_PARTIAL), index = partial_at(t, row, v), n = lanes_of(t, v);
    jit_vstore_aligned(j, t->sums, at,
                       n ? jit_vload_partial(j, from, index, n, 0) : jit_vload(j, from, index));
}

static void store_partial(const AmxTile *t, JitValue row, JitValue at, int v)
{
    Jit *j = t->j;
    JitValue to = jit_param(j, P_PARTIAL), index = partial_at(t, row, v), n = lanes_of(t, v);
    JitValue x = jit_vload_aligned(j, t->sums, at);
    if (n)
        jit_vstore_partial(j, to, index, n, x);
    else
        jit_vstore(j, to, index, x);
}

static void store_result(const AmxTile *t, JitValue row, JitValue at, int v)
{
    Jit *j = t->j;
    epilogue_store(j, &t->g->epilogue, t->g->out_buf, jit_vload_aligned(j, t->sums, at),
                   jit_add(j, jit_param(j, P_ROW), row),
                   jit_add(j, jit_param(j, P_COL), jit_i64(j, v * AMX_ROWS)), lanes_of(t, v));
}

static void begin_sums(const AmxTile *t)
{
    Jit *j = t->j;
    if (t->g->k_blocks == 1) {
        each_sum(t, zero_register);
        return;
    }
    JitIf first = jit_if(j, jit_param(j, P_FIRST));
    each_sum(t, zero_register);
    jit_else(j, &first);
    each_row(t, load_partial);
    each_sum(t, amx_load);
    jit_end_if(j, &first);
}

static void end_sums(const AmxTile *t)
{
    Jit *j = t->j;
    each_sum(t, amx_store);
    if (t->g->k_blocks == 1) {
        each_row(t, store_result);
        return;
    }
    JitIf last = jit_if(j, jit_param(j, P_LAST));
    each_row(t, store_result);
    jit_else(j, &last);
    each_row(t, store_partial);
    jit_end_if(j, &last);
}

/* 32 steps. */
static void add_products(const AmxTile *t, JitValue a, JitValue b)
{
    Jit *j = t->j;
    JitValue stride = jit_param(j, P_A_STRIDE);
    for (int i = 0; i < t->down; i++) {
        JitValue rows = i ? jit_offset(j, a, jit_mul(j, stride, jit_i64(j, AMX_ROWS))) : a;
        amx_load(j, FACTORS_A + i, rows, stride);
        for (int k = 0; k < t->across; k++) {
            if (i == 0)
                amx_load(j, FACTORS_B + k, bytes_on(j, b, (int64_t)k * AMX_ROW_BYTES),
                         jit_i64(j, SUMS_ROW_BYTES));
            amx_multiply_add(j, SUMS + 2 * i + k, FACTORS_A + i, FACTORS_B + k);
        }
    }
}

static void emit_tile(AmxTile *t)
{
    Jit *j = t->j;
    const JitTypes *ty = jit_types(j);
    JitVar array = jit_array_var(j, ty->f32, AMX_TILE * AMX_TILE, "sums");
    t->sums = jit_tmp(j, jit_array_ptr(j, array, ty->p_f32));
    begin_sums(t);
    JitVar a = jit_var(j, ty->p_char, "a"), b = jit_var(j, ty->p_char, "b");
    jit_set(j, a, jit_param(j, P_A));
    jit_set(j, b, jit_param(j, P_B));
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_param(j, P_BLOCKS), 1, "steps");
    add_products(t, jit_get(a), jit_get(b));
    jit_set(j, a, bytes_on(j, jit_get(a), AMX_ROW_BYTES));
    jit_set(j, b, bytes_on(j, jit_get(b), STEP_PANEL_BYTES));
    jit_end_for(j, &l);
    end_sums(t);
}

static JitFunction tile_function(Jit *j, const Gemm *g, int columns)
{
    const JitTypes *ty = jit_types(j);
    char name[32];
    snprintf(name, sizeof name, "amx_tile_%d", columns);
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[P_COUNT] = {[P_BUFS] = jit_pointer_to(j, ty->p_char),
                                    [P_A] = ty->p_char,
                                    [P_A_STRIDE] = ty->i64,
                                    [P_B] = ty->p_char,
                                    [P_BLOCKS] = ty->i64,
                                    [P_PARTIAL] = ty->p_f32,
                                    [P_ROW] = ty->i64,
                                    [P_COL] = ty->i64,
                                    [P_ROWS] = ty->i64,
                                    [P_FIRST] = ty->boolean,
                                    [P_LAST] = ty->boolean};
    f = jit_function_begin(j, name, ty->none, P_COUNT, types);
    jit_function_bufs(j, P_BUFS);
    AmxTile t = {.j = j,
                 .g = g,
                 .columns = columns,
                 .down = g->m > AMX_ROWS ? 2 : 1,
                 .across = columns > AMX_ROWS ? 2 : 1};
    emit_tile(&t);
    jit_function_end(j);
    return f;
}

/* --- one run of tasks --- */

typedef struct AmxEmit {
    Jit *j;
    const Gemm *g;
    GemmRun run;
    JitValue k0, steps, first, last;      /* the block of K */
    JitValue packed_b, packed_a, partial; /* parts of scratch */
    JitValue a_packed;                    /* boolean: this block's rows are; NULL: none are */
} AmxEmit;

static void plan_scratch(AmxEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    int64_t rows = gemm_task_tiles(g) * amx_words_of_rows(g), one = amx_line_words(g);
    int64_t a_words = (rows > one ? rows : one) * AMX_TILE;
    e->packed_b = jit_tmp(j, jit_scratch(j, jit_types(j)->p_bf16));
    e->packed_a = jit_tmp(j, jit_offset(j, e->packed_b, jit_i64(j, amx_panel_words(g))));
    JitValue behind = bytes_on(j, e->packed_a, 2 * a_words);
    e->partial = jit_tmp(j, jit_cast(j, behind, jit_types(j)->p_f32));
}

static JitValue source_a(const AmxEmit *e, JitValue row)
{
    Jit *j = e->j;
    JitValue at = jit_muladd_i64(j, row, e->g->a_row, jit_mul(j, e->k0, jit_i64(j, e->g->a_k)));
    return jit_tmp(j, jit_offset(j, e->run.a, at));
}

static JitValue rows_from(const AmxEmit *e, JitValue row)
{
    Jit *j = e->j;
    JitValue end = jit_mul(j, e->run.tile1, jit_i64(j, AMX_TILE));
    return jit_tmp(j, jit_sub(j, jit_min_i64(j, end, jit_i64(j, e->g->m)), row));
}

static void pack_a(const AmxEmit *e, JitValue row, int64_t line_words)
{
    AmxPack p = {.line = e->g->a_row, .step = e->g->a_k, .line_words = line_words};
    amx_pack(e->j, &p, e->packed_a, source_a(e, row), rows_from(e, row), e->steps);
}

static int64_t rows_of_last_tile(const Gemm *g)
{
    return g->m % AMX_TILE;
}

/* Packs what of A cannot be read in place: all rows where the steps of this block are no whole
 * registers, else the last ones where these are not. */
static void prepare_a(AmxEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue yes = jit_cast(j, jit_i32(j, 1), jit_types(j)->boolean);
    JitValue no = jit_cast(j, jit_i32(j, 0), jit_types(j)->boolean);
    e->a_packed = g->pack_a ? yes : amx_odd_steps(g) ? e->last : no;
    JitIf all = jit_if(j, e->a_packed);
    pack_a(e, e->run.row0, amx_words_of_rows(g));
    jit_else(j, &all);
    if (rows_of_last_tile(g)) {
        JitValue last = jit_i64(j, g->rows.tiles - 1);
        JitIf ragged = jit_if(j, jit_compare(j, JIT_GT, e->run.tile1, last));
        pack_a(e, jit_i64(j, g->m - rows_of_last_tile(g)), amx_line_words(g));
        jit_end_if(j, &ragged);
    }
    jit_end_if(j, &all);
}

static JitValue b_at(const AmxEmit *e, JitValue panel)
{
    Jit *j = e->j;
    JitValue column = jit_mul(j, panel, jit_i64(j, AMX_TILE));
    JitValue at = jit_muladd_i64(j, e->k0, e->g->b_k, jit_mul(j, column, jit_i64(j, e->g->b_n)));
    return jit_tmp(j, jit_offset(j, e->run.b, at));
}

/* The tile's rows of A and the bytes between them. */
static void rows_of_a(const AmxEmit *e, JitValue tile, JitVar *from, JitVar *stride)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    *from = jit_var(j, jit_types(j)->p_char, "from");
    *stride = jit_var(j, jit_types(j)->i64, "stride");
    JitValue before = jit_sub(j, tile, e->run.tile0);
    JitValue at = jit_mul(j, before, jit_i64(j, AMX_TILE * amx_words_of_rows(g)));
    jit_set(j, *from, bytes_on(j, jit_offset(j, e->packed_a, at), 0));
    jit_set(j, *stride, jit_i64(j, 2 * amx_words_of_rows(g)));
    if (g->pack_a)
        return;
    JitIf all = jit_if(j, e->a_packed);
    jit_else(j, &all);
    jit_set(j, *from, bytes_on(j, source_a(e, gemm_row_of_tile(j, g, tile)), 0));
    jit_set(j, *stride, jit_i64(j, 2 * g->a_row));
    if (rows_of_last_tile(g)) {
        JitValue last = jit_i64(j, g->rows.tiles - 1);
        JitIf ragged = jit_if(j, jit_compare(j, JIT_EQ, tile, last));
        jit_set(j, *from, bytes_on(j, e->packed_a, 0));
        jit_set(j, *stride, jit_i64(j, 2 * amx_line_words(g)));
        jit_end_if(j, &ragged);
    }
    jit_end_if(j, &all);
}

static JitValue partial_of(const AmxEmit *e, JitValue row, JitValue panel)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue width = jit_i64(j, AMX_TILE);
    if (g->k_blocks == 1)
        return jit_zero(j, jit_types(j)->p_f32);
    if (g->private_partial) {
        JitValue above = jit_sub(j, row, e->run.row0);
        JitValue left = jit_mul(j, jit_sub(j, panel, e->run.panel0), width);
        return jit_offset(j, e->partial,
                          jit_muladd_i64(j, above, AMX_TILE * gemm_run_panels(g), left));
    }
    JitValue above = jit_muladd_i64(j, e->run.batch, g->m, row);
    return jit_offset(j, jit_buf(j, g->out_buf, jit_types(j)->p_f32),
                      jit_muladd_i64(j, above, g->n, jit_mul(j, panel, width)));
}

/* All rows of the run against a panel of so many columns. */
static void sweep_panel(const AmxEmit *e, JitValue panel, int columns)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    AmxPack p = {.line = g->b_n, .step = g->b_k, .line_words = 2 * AMX_TILE, .paired = true};
    amx_pack(j, &p, e->packed_b, b_at(e, panel), jit_i64(j, columns), e->steps);
    JitValue blocks = jit_tmp(
        j, jit_div(j, jit_add(j, e->steps, jit_i64(j, AMX_STEPS - 1)), jit_i64(j, AMX_STEPS)));
    JitLoop l = jit_for(j, e->run.tile0, e->run.tile1, 1, "tile");
    JitVar from, stride;
    rows_of_a(e, jit_index(&l), &from, &stride);
    JitValue row = gemm_row_of_tile(j, g, jit_index(&l));
    JitValue left = jit_sub(j, jit_i64(j, g->m), row);
    const JitValue args[P_COUNT] = {[P_BUFS] = jit_bufs(j),
                                    [P_A] = jit_get(from),
                                    [P_A_STRIDE] = jit_get(stride),
                                    [P_B] = jit_cast(j, e->packed_b, jit_types(j)->p_char),
                                    [P_BLOCKS] = blocks,
                                    [P_PARTIAL] = partial_of(e, row, panel),
                                    [P_ROW] = jit_muladd_i64(j, e->run.batch, g->m, row),
                                    [P_COL] = jit_mul(j, panel, jit_i64(j, AMX_TILE)),
                                    [P_ROWS] = jit_min_i64(j, left, jit_i64(j, AMX_TILE)),
                                    [P_FIRST] = e->first,
                                    [P_LAST] = e->last};
    jit_call_void(j, tile_function(j, g, columns), P_COUNT, args);
    jit_end_for(j, &l);
}

static void emit_panels(const AmxEmit *e)
{
    Jit *j = e->j;
    JitValue whole = jit_i64(j, e->g->n / AMX_TILE);
    int rest = (int)(e->g->n % AMX_TILE);
    JitLoop l = jit_for(j, e->run.panel0, jit_min_i64(j, e->run.panel1, whole), 1, "panel");
    sweep_panel(e, jit_tmp(j, jit_index(&l)), AMX_TILE);
    jit_end_for(j, &l);
    if (!rest)
        return;
    JitIf last = jit_if(j, jit_compare(j, JIT_GT, e->run.panel1, whole));
    sweep_panel(e, whole, rest);
    jit_end_if(j, &last);
}

static void emit_k_blocks(AmxEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, g->k_blocks), 1, "block");
    e->k0 = jit_tmp(j, jit_mul(j, jit_index(&l), jit_i64(j, g->k_block)));
    JitValue left = jit_sub(j, jit_i64(j, g->k), e->k0);
    e->steps = jit_tmp(j, jit_min_i64(j, jit_i64(j, g->k_block), left));
    e->first = jit_tmp(j, jit_compare(j, JIT_EQ, jit_index(&l), jit_i64(j, 0)));
    e->last = jit_tmp(j, jit_compare(j, JIT_EQ, jit_index(&l), jit_i64(j, g->k_blocks - 1)));
    prepare_a(e);
    emit_panels(e);
    jit_end_for(j, &l);
}

void gemm_amx_emit(Jit *j, const void *gemm)
{
    AmxEmit e = {.j = j, .g = gemm};
    plan_scratch(&e);
    amx_begin(j);
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), 0, "task");
    JitValue next = gemm_run(j, e.g, jit_tmp(j, jit_index(&l)), &e.run);
    emit_k_blocks(&e);
    jit_set(j, l.var, next);
    jit_end_for(j, &l);
    amx_end(j);
}
