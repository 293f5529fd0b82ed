/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_amx.h"

#include "codegen/cpu/gemm/gemm_amx_layout.h"
#include "codegen/cpu/gemm/gemm_amx_pack.h"
#include "codegen/cpu/gemm/gemm_amx_tile.h"
#include "codegen/cpu/gemm/gemm_image.h"
#include "codegen/cpu/gemm/gemm_run.h"
#include "codegen/jit/jit_short.h"

/* Squares of two columns of them that the first-level cache keeps while the tiles of a task read
 * them, and what they read of A. */
enum { PART_BLOCKS = 10 };

typedef struct AmxEmit {
    Jit *j;
    const Gemm *g;
    GemmRun run;
    JitValue k0, steps, first, last; /* the block of K */
    JitValue blocks, part;           /* times 32 steps: in it, and of its parts but the last one */
    JitValue packed_b, packed_a, sums, partial; /* parts of scratch */
} AmxEmit;

static JitValue quotient_up(Jit *j, JitValue n, JitValue unit)
{
    JitValue less = jit_sub(j, unit, jit_i64(j, 1));
    return jit_tmp(j, jit_div(j, jit_add(j, n, less), unit));
}

static int64_t panel_words(const Gemm *g)
{
    return 2 * amx_squares(g) * AMX_SQUARE_WORDS;
}

static void plan_scratch(AmxEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    int64_t tiles = gemm_task_tiles(g), b = amx_panels_together(g) * panel_words(g);
    e->packed_b = jit_tmp(j, jit_scratch(j, jit_types(j)->p_bf16));
    e->packed_a = jit_tmp(j, jit_offset(j, e->packed_b, jit_i64(j, b)));
    JitValue behind = jit_offset(j, e->packed_a, jit_i64(j, tiles * panel_words(g)));
    e->sums = jit_tmp(j, jit_cast(j, behind, jit_types(j)->p_f32));
    e->partial = jit_tmp(j, jit_offset(j, e->sums, jit_i64(j, tiles * AMX_TILE_FLOATS)));
}

/* --- what is packed --- */

/* Steps of a window's place in a row of A (GemmImagePut). */
static void put_piece(const void *user, JitValue row, JitValue step, JitValue from, int64_t piece)
{
    const AmxEmit *e = user;
    Jit *j = e->j;
    JitValue rows = jit_i64(j, AMX_ROWS), first = jit_div(j, step, jit_i64(j, AMX_STEPS));
    JitValue square = jit_muladd_i64(j, jit_div(j, row, rows), amx_squares(e->g), first);
    JitValue at = jit_muladd_i64(j, square, AMX_SQUARE_WORDS,
                                 jit_mul(j, jit_mod(j, row, rows), jit_i64(j, AMX_STEPS)));
    JitValue to = jit_tmp(j, jit_offset(j, e->packed_a, at));
    amx_pack_steps(j, to, from, piece);
}

static void pack_a(const AmxEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue end = jit_mul(j, e->run.tile1, jit_i64(j, AMX_SIDE));
    JitValue rows = jit_tmp(j, jit_sub(j, jit_min_i64(j, end, jit_i64(j, g->m)), e->run.row0));
    if (g->image.channels) {
        gemm_image_pack(j, g, e->run.a, e->run.row0, rows, e->k0, e->steps, put_piece, e);
        return;
    }
    AmxPack p = {.line = g->a_row, .step = g->a_k, .squares = amx_squares(g)};
    JitValue at = jit_muladd_i64(j, e->run.row0, g->a_row, jit_mul(j, e->k0, jit_i64(j, g->a_k)));
    amx_pack(j, &p, e->packed_a, jit_offset(j, e->run.a, at), rows, e->steps);
}

static JitValue b_at(const AmxEmit *e, JitValue panel, JitValue k)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue column = jit_mul(j, panel, jit_i64(j, AMX_SIDE));
    if (g->image.b_tap)
        return jit_offset(j, e->run.b, gemm_image_b(j, g, k, column));
    JitValue at = jit_muladd_i64(j, k, g->b_k, jit_mul(j, column, jit_i64(j, g->b_n)));
    return jit_offset(j, e->run.b, at);
}

static void pack_b(const AmxEmit *e, JitValue panel, JitValue columns)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    AmxPack p = {.line = g->b_n, .step = g->b_k, .squares = amx_squares(g), .paired = true};
    if (!g->image.b_tap) {
        amx_pack(j, &p, e->packed_b, b_at(e, panel, e->k0), columns, e->steps);
        return;
    }
    int64_t piece = gemm_image_piece(g);
    JitLoop s = jit_for(j, jit_i64(j, 0), e->steps, piece, "step");
    JitValue words = jit_mul(j, jit_index(&s), jit_i64(j, AMX_SQUARE_WORDS / AMX_STEPS));
    JitValue from = b_at(e, panel, jit_tmp(j, jit_add(j, e->k0, jit_index(&s))));
    amx_pack(j, &p, jit_offset(j, e->packed_b, words), from, columns, jit_i64(j, piece));
    jit_end_for(j, &s);
}

/* Where a tile begins to ask for the panel that is packed next: the one behind this one, or the
 * first one of the next block of K. */
static JitValue next_of_b(const AmxEmit *e, JitValue panel, JitValue tile, JitValue block)
{
    Jit *j = e->j;
    const AmxAhead a = amx_ahead(e->g);
    JitVar next = jit_var(j, jit_types(j)->i64, "next"), k = jit_var(j, jit_types(j)->i64, "k");
    jit_set(j, next, jit_add(j, panel, jit_i64(j, 1)));
    jit_set(j, k, e->k0);
    JitIf past = jit_if(j, jit_compare(j, JIT_GE, jit_get(next), e->run.panel1));
    jit_set(j, next, e->run.panel0);
    jit_set(j, k, jit_add(j, e->k0, e->steps));
    jit_end_if(j, &past);
    JitValue row = jit_mul(j, jit_sub(j, tile, e->run.tile0), jit_i64(j, a.rows));
    JitValue bytes =
        jit_muladd_i64(j, row, a.row_bytes, jit_mul(j, block, jit_i64(j, a.advance_bytes)));
    JitValue from = jit_cast(j, b_at(e, jit_get(next), jit_get(k)), jit_types(j)->p_char);
    return jit_tmp(j, jit_offset(j, from, bytes));
}

/* --- tiles --- */

/* Sums between blocks of K: a block of their own in scratch, or the result itself. */
static JitValue partial_of(const AmxEmit *e, JitValue row, JitValue panel)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue side = jit_i64(j, AMX_SIDE);
    if (g->k_blocks == 1)
        return jit_zero(j, jit_types(j)->p_f32);
    if (g->private_partial) {
        JitValue above = jit_sub(j, row, e->run.row0);
        JitValue left = jit_mul(j, jit_sub(j, panel, e->run.panel0), side);
        return jit_offset(j, e->partial,
                          jit_muladd_i64(j, above, AMX_SIDE * gemm_run_panels(g), left));
    }
    JitValue above = jit_muladd_i64(j, e->run.batch, g->m, row);
    return jit_offset(j, jit_buf(j, g->out_buf, jit_types(j)->p_f32),
                      jit_muladd_i64(j, above, g->n, jit_mul(j, panel, side)));
}

static AmxTile tile_of(const AmxEmit *e, JitValue tile, JitValue panel, int columns)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue row = gemm_row_of_tile(j, g, tile), left = jit_sub(j, jit_i64(j, g->m), row);
    JitValue before = jit_sub(j, tile, e->run.tile0);
    JitValue sums = jit_offset(j, e->sums, jit_mul(j, before, jit_i64(j, AMX_TILE_FLOATS)));
    return (AmxTile){.g = g,
                     .columns = columns,
                     .partial_stride = g->private_partial ? AMX_SIDE * gemm_run_panels(g) : g->n,
                     .sums = jit_tmp(j, sums),
                     .partial = jit_tmp(j, partial_of(e, row, panel)),
                     .row = jit_tmp(j, jit_muladd_i64(j, e->run.batch, g->m, row)),
                     .col = jit_mul(j, panel, jit_i64(j, AMX_SIDE)),
                     .rows = jit_min_i64(j, left, jit_i64(j, AMX_SIDE))};
}

/* Where blocks of K come before this one, their sums are there. */
static void begin_sums(const AmxEmit *e, const AmxTile *t, JitValue block)
{
    Jit *j = e->j;
    if (e->g->k_blocks == 1)
        return;
    JitIf first = jit_if(j, jit_compare(j, JIT_EQ, block, jit_i64(j, 0)));
    JitIf none = jit_if(j, e->first);
    jit_else(j, &none);
    amx_load_partial(j, t);
    jit_end_if(j, &none);
    jit_end_if(j, &first);
}

static void end_sums(const AmxEmit *e, const AmxTile *t)
{
    Jit *j = e->j;
    if (e->g->k_blocks == 1) {
        amx_store_result(j, t);
        return;
    }
    JitIf last = jit_if(j, e->last);
    amx_store_result(j, t);
    jit_else(j, &last);
    amx_store_partial(j, t);
    jit_end_if(j, &last);
}

/* All rows of a tile's result are asked for in the last block of K. */
static JitValue asks_of(const AmxEmit *e)
{
    Jit *j = e->j;
    JitVar asks = jit_var(j, jit_types(j)->i64, "asks");
    jit_set(j, asks, jit_i64(j, 0));
    JitIf last = jit_if(j, e->last);
    jit_set(j, asks, quotient_up(j, jit_i64(j, AMX_SIDE), e->blocks));
    jit_end_if(j, &last);
    return jit_get(asks);
}

/* The part from `block` on, of all tiles of the run. */
static void sweep_part(const AmxEmit *e, JitValue panel, int columns, JitValue b, JitValue block)
{
    Jit *j = e->j;
    JitValue zero = jit_i64(j, 0), words = jit_i64(j, AMX_SQUARE_WORDS);
    JitValue n = jit_tmp(j, jit_min_i64(j, jit_sub(j, e->blocks, block), e->part));
    JitValue ends = jit_tmp(j, jit_compare(j, JIT_EQ, jit_add(j, block, n), e->blocks));
    JitVar none = jit_var(j, jit_types(j)->boolean, "none");
    jit_set(j, none, jit_compare(j, JIT_EQ, block, zero));
    JitIf later = jit_if(j, e->first);
    jit_else(j, &later);
    jit_set(j, none, jit_compare(j, JIT_NE, zero, zero));
    jit_end_if(j, &later);
    AmxPart p = {.blocks = n, .zero = jit_get(none), .block = block, .asks = asks_of(e)};
    p.b = jit_tmp(j, jit_offset(j, b, jit_mul(j, block, words)));
    JitLoop l = jit_for(j, e->run.tile0, e->run.tile1, 1, "tile");
    JitValue tile = jit_tmp(j, jit_index(&l));
    JitValue above = jit_mul(j, jit_sub(j, tile, e->run.tile0), jit_i64(j, panel_words(e->g)));
    p.a = jit_offset(j, e->packed_a, jit_add(j, above, jit_mul(j, block, words)));
    p.next = next_of_b(e, panel, tile, block);
    AmxTile t = tile_of(e, tile, panel, columns);
    begin_sums(e, &t, block);
    amx_add_part(j, &t, &p);
    JitIf done = jit_if(j, ends);
    end_sums(e, &t);
    jit_end_if(j, &done);
    jit_end_for(j, &l);
}

/* All tiles of the run against a panel, packed at b, of so many columns. */
static void sweep_panel(const AmxEmit *e, JitValue panel, int columns, JitValue b)
{
    Jit *j = e->j;
    JitLoop l = jit_for(j, jit_i64(j, 0), e->blocks, 0, "part");
    JitValue block = jit_tmp(j, jit_index(&l));
    sweep_part(e, panel, columns, b, block);
    jit_set(j, l.var, jit_add(j, block, e->part));
    jit_end_for(j, &l);
}

/* Panels from `from` on, before `end`, packed together. */
static void emit_group(const AmxEmit *e, JitValue from, JitValue end)
{
    Jit *j = e->j;
    JitValue most = jit_i64(j, amx_panels_together(e->g));
    JitValue n = jit_tmp(j, jit_min_i64(j, jit_sub(j, end, from), most));
    pack_b(e, from, jit_mul(j, n, jit_i64(j, AMX_SIDE)));
    JitLoop l = jit_for(j, jit_i64(j, 0), n, 1, "panel");
    JitValue skip = jit_mul(j, jit_index(&l), jit_i64(j, panel_words(e->g)));
    JitValue b = jit_tmp(j, jit_offset(j, e->packed_b, skip));
    sweep_panel(e, jit_tmp(j, jit_add(j, from, jit_index(&l))), AMX_SIDE, b);
    jit_end_for(j, &l);
}

static void emit_panels(const AmxEmit *e)
{
    Jit *j = e->j;
    JitValue whole = jit_i64(j, e->g->n / AMX_SIDE);
    int rest = (int)(e->g->n % AMX_SIDE);
    JitValue end = jit_tmp(j, jit_min_i64(j, e->run.panel1, whole));
    JitLoop l = jit_for(j, e->run.panel0, end, amx_panels_together(e->g), "panel");
    emit_group(e, jit_tmp(j, jit_index(&l)), end);
    jit_end_for(j, &l);
    if (!rest)
        return;
    JitIf last = jit_if(j, jit_compare(j, JIT_GT, e->run.panel1, whole));
    pack_b(e, whole, jit_i64(j, rest));
    sweep_panel(e, whole, rest, e->packed_b);
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
    e->blocks = quotient_up(j, e->steps, jit_i64(j, AMX_STEPS));
    e->part = quotient_up(j, e->blocks, quotient_up(j, e->blocks, jit_i64(j, PART_BLOCKS)));
    e->first = jit_tmp(j, jit_compare(j, JIT_EQ, jit_index(&l), jit_i64(j, 0)));
    e->last = jit_tmp(j, jit_compare(j, JIT_EQ, jit_index(&l), jit_i64(j, g->k_blocks - 1)));
    pack_a(e);
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
