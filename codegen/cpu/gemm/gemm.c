/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm.h"

#include "codegen/cpu/gemm/gemm_emit.h"
#include "codegen/cpu/gemm/gemm_image.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/divide.h"

/* --- code of one run of tasks --- */

static int64_t panel_floats(const GemmEmit *e)
{
    return (int64_t)e->g->shape.vectors * jit_lanes(e->j);
}

static JitValue round_up(Jit *j, JitValue n, int64_t unit)
{
    JitValue units = jit_div(j, jit_add(j, n, jit_i64(j, unit - 1)), jit_i64(j, unit));
    return jit_tmp(j, jit_mul(j, units, jit_i64(j, unit)));
}

static void plan_scratch(GemmEmit *e)
{
    Jit *j = e->j;
    JitType p = jit_types(j)->p_f32;
    int64_t b_floats = (e->g->k_block + 1) * panel_floats(e) * GEMM_PACK_PANELS;
    int64_t a_pieces =
        gemm_packs_strips(e->g) ? gemm_task_tiles(e->g) : gemm_task_tiles(e->g) * e->g->shape.rows;
    int64_t a_floats = e->g->pack_a ? gemm_packed_a_stride(e->g) * a_pieces : 0;
    a_floats = (a_floats + 15) / 16 * 16;
    e->packed_b = jit_tmp(j, jit_scratch(j, p));
    e->packed_a = jit_tmp(j, jit_offset(j, e->packed_b, jit_i64(j, b_floats)));
    e->partial = jit_tmp(j, jit_offset(j, e->packed_a, jit_i64(j, a_floats)));
}

/* Sums between K blocks: a block of their own in scratch, or the result itself. */
static JitValue partial_at(const GemmEmit *e, JitValue row, JitValue panel)
{
    Jit *j = e->j;
    int64_t width = panel_floats(e);
    if (e->g->private_partial) {
        JitValue local = jit_mul(j, jit_sub(j, panel, e->run.panel0), jit_i64(j, width));
        return jit_offset(
            j, e->partial,
            jit_muladd_i64(j, jit_sub(j, row, e->run.row0), width * gemm_run_panels(e->g), local));
    }
    JitValue out = jit_buf(j, e->g->out_buf, jit_types(j)->p_f32);
    JitValue first = jit_muladd_i64(j, e->run.batch, e->g->m, row);
    return jit_offset(j, out,
                      jit_muladd_i64(j, first, e->g->n, jit_mul(j, panel, jit_i64(j, width))));
}

/* One panel's shape: vectors, valid columns, and how B is read. */
typedef struct PanelKind {
    int vectors;
    int64_t columns;
    bool direct;
} PanelKind;

static Tile make_tile(const GemmEmit *e, const PanelKind *p, int rows)
{
    const Gemm *g = e->g;
    int lanes = jit_lanes(e->j);
    Tile t = {.rows = rows,
              .vectors = p->vectors,
              .last_lanes = (int)(p->columns - (int64_t)(p->vectors - 1) * lanes),
              .b_packed = !p->direct,
              .single = g->k_blocks == 1,
              .partial_padded = g->private_partial,
              .partial_stride = g->private_partial ? panel_floats(e) * gemm_run_panels(g) : g->n,
              .n_loops = 1,
              .out_buf = g->out_buf,
              .turned = g->turned ? g->m : 0,
              .epilogue = &g->epilogue};
    bool strips = gemm_packs_strips(g);
    int64_t row = !g->pack_a ? g->a_row : strips ? 1 : gemm_packed_a_stride(g);
    int64_t step = !g->pack_a ? g->a_k : strips ? tile_rows_most(&g->rows) : 1;
    for (int r = 0; r < rows; r++) {
        t.a_row[r] = r * row;
        t.out_row[r] = r;
    }
    int64_t b_step = p->direct ? g->b_k : (int64_t)p->vectors * lanes;
    t.loop[0] = (TileLoop){TILE_STEPS, step, b_step};
    if (g->inner_chains) {
        t.loop[0] = (TileLoop){TILE_STEPS, g->chain * step, g->chain * b_step};
        t.loop[1] = (TileLoop){g->chain, step, b_step};
        t.n_loops = 2;
        t.chain_loops = 1;
        t.chain_parts = true;
    }
    if (g->pairs) {
        t.loop[0] = (TileLoop){TILE_STEPS, g->pairs * step, g->pairs * b_step};
        t.loop[1] = (TileLoop){g->pairs / 2, 2 * step, 2 * b_step};
        t.n_loops = 2;
        t.chain_loops = 1;
        t.chain_parts = true;
        t.by_pairs = true;
    }
    return t;
}

static JitValue tiles_of_panels(const GemmEmit *e, JitValue panels)
{
    Jit *j = e->j;
    return jit_tmp(j, jit_mul(j, panels, jit_sub(j, e->run.tile1, e->run.tile0)));
}

/* How many tiles are computed before this one from panel `first` on. */
static JitValue tiles_before(const GemmEmit *e, JitValue first, JitValue panel, JitValue tile)
{
    Jit *j = e->j;
    JitValue above = jit_sub(j, tile, e->run.tile0);
    return jit_tmp(j, jit_add(j, tiles_of_panels(e, jit_sub(j, panel, first)), above));
}

/* The K block that begins at k. */
static JitValue block_steps(const GemmEmit *e, JitValue k)
{
    Jit *j = e->j;
    JitValue left = jit_sub(j, jit_i64(j, e->g->k), k);
    return jit_tmp(j, jit_min_i64(j, jit_i64(j, e->g->k_block), left));
}

/* Rows or steps are contiguous. */
static bool asks_for_a(const Gemm *g)
{
    return !g->no_prefetch && !g->image.channels && (g->a_k == 1 || g->a_row == 1);
}

/* A is read in place, by rows: a tile of the first panel asks for those of the next tile. */
static bool reads_rows(const Gemm *g)
{
    return !g->pack_a && g->a_k == 1;
}

/* Otherwise each tile asks for a share of the next K block. */
static void plan_next_a(GemmEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitValue rows = jit_tmp(j, jit_sub(j, gemm_row_of_tile(e->j, e->g, e->run.tile1), e->run.row0));
    if (reads_rows(g)) {
        JitValue tiles = tiles_of_panels(e, jit_i64(j, 1));
        JitValue at = jit_muladd_i64(j, e->run.row0, g->a_row, e->k0);
        e->next_a = ahead_of(j, jit_offset(j, e->run.ahead, at), rows, g->a_row, e->steps, tiles);
        return;
    }
    JitValue k = jit_tmp(j, jit_add(j, e->k0, e->steps)), steps = block_steps(e, k);
    JitValue at = jit_muladd_i64(j, e->run.row0, g->a_row, jit_mul(j, k, jit_i64(j, g->a_k)));
    JitValue from = jit_offset(j, e->run.ahead, at);
    JitValue tiles = tiles_of_panels(e, jit_sub(j, e->run.panel1, e->run.panel0));
    e->next_a = g->a_k == 1 ? ahead_of(j, from, rows, g->a_row, steps, tiles)
                            : ahead_of(j, from, steps, g->a_k, rows, tiles);
}

static void ask_for_a(const GemmEmit *e, JitValue panel, JitValue tile)
{
    Jit *j = e->j;
    JitValue turn = tiles_before(e, e->run.panel0, panel, tile);
    if (!reads_rows(e->g)) {
        ahead_ask(j, &e->next_a, turn);
        return;
    }
    JitIf first = jit_if(j, jit_compare(j, JIT_EQ, panel, e->run.panel0));
    ahead_ask(j, &e->next_a, jit_tmp(j, jit_add(j, turn, jit_i64(j, 1))));
    jit_end_if(j, &first);
}

/* What is packed behind n panels from `from` on: those that follow before `end`, or the first of
 * the next K block. */
static void plan_next_b(GemmEmit *e, JitValue from, JitValue n, JitValue end)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    JitVar panel = jit_var(j, jit_types(j)->i64, "next"), k = jit_var(j, jit_types(j)->i64, "k");
    jit_set(j, panel, jit_add(j, from, n));
    jit_set(j, k, e->k0);
    JitIf past = jit_if(j, jit_compare(j, JIT_GE, jit_get(panel), end));
    jit_set(j, panel, e->run.panel0);
    jit_set(j, k, jit_add(j, e->k0, e->steps));
    jit_end_if(j, &past);
    JitValue steps = block_steps(e, jit_get(k)), width = jit_i64(j, panel_floats(e));
    JitValue panels = jit_min_i64(j, n, jit_sub(j, end, jit_get(panel)));
    JitValue columns = jit_tmp(j, jit_mul(j, panels, width));
    JitValue column = jit_tmp(j, jit_mul(j, jit_get(panel), width));
    JitValue at = jit_muladd_i64(j, jit_get(k), g->b_k, jit_mul(j, column, jit_i64(j, g->b_n)));
    JitValue source = jit_offset(j, e->run.b, at), tiles = tiles_of_panels(e, n);
    e->next_b = g->b_n == 1 ? ahead_of(j, source, steps, g->b_k, columns, tiles)
                            : ahead_of(j, source, columns, g->b_n, steps, tiles);
    e->ahead0 = from;
}

/* How many lines of a step of B a tile asks for: the tiles of a block of rows, all of a panel. */
static int lines_of_tile(const GemmEmit *e)
{
    int64_t lines = divide_up(panel_floats(e), TILE_LINE);
    return (int)divide_up(lines, e->g->rows.tiles / e->g->row_blocks);
}

/* Where B is read in place: from this panel to what this tile asks for of the next one, or of the
 * first of the next block of K.  The next panel's first line may end this one, so shares begin with
 * the second.  Where there are more tiles than lines, the others ask for panels farther on. */
static JitValue next_of_panel(const GemmEmit *e, JitValue panel, JitValue tile)
{
    Jit *j = e->j;
    JitValue width = jit_i64(j, panel_floats(e)), last = jit_sub(j, e->run.panel1, jit_i64(j, 1));
    JitVar next = jit_var(j, jit_types(j)->i64, "next");
    jit_set(j, next, width);
    JitIf past = jit_if(j, jit_compare(j, JIT_EQ, panel, last));
    JitValue back = jit_mul(j, jit_sub(j, e->run.panel0, panel), width);
    jit_set(j, next, jit_muladd_i64(j, e->steps, e->g->b_k, back));
    jit_end_if(j, &past);
    JitValue turn = jit_sub(j, tile, e->run.tile0);
    JitValue share =
        jit_muladd_i64(j, turn, (int64_t)lines_of_tile(e) * TILE_LINE, jit_i64(j, TILE_LINE));
    return jit_tmp(j, jit_add(j, jit_get(next), share));
}

/* The count of a tile's outermost loop. */
static JitValue loops_of_tile(const GemmEmit *e)
{
    const Gemm *g = e->g;
    int64_t unit = g->pairs ? g->pairs : g->inner_chains ? g->chain : 1;
    return unit == 1 ? e->steps : jit_div(e->j, e->packed_steps, jit_i64(e->j, unit));
}

/* Tiles [from, to) of `rows` rows against one panel. */
static void sweep(const GemmEmit *e, const PanelKind *p, JitValue panel, JitValue b, int rows,
                  JitValue from, JitValue to)
{
    Jit *j = e->j;
    Tile tile = make_tile(e, p, rows);
    bool ahead = p->direct && !e->g->no_prefetch;
    if (ahead)
        tile.ahead_lines = lines_of_tile(e);
    JitLoop l = jit_for(j, from, to, 1, "tile");
    if (asks_for_a(e->g))
        ask_for_a(e, panel, jit_index(&l));
    if (e->ahead0)
        ahead_ask(j, &e->next_b, tiles_before(e, e->ahead0, panel, jit_index(&l)));
    JitValue row = gemm_row_of_tile(e->j, e->g, jit_index(&l));
    TileArgs args = {.a = gemm_a_of_tile(e, jit_index(&l), row),
                     .b = b,
                     .row = jit_muladd_i64(j, e->run.batch, e->g->m, row),
                     .col = jit_mul(j, panel, jit_i64(j, panel_floats(e))),
                     .steps = loops_of_tile(e)};
    if (ahead)
        args.ahead = next_of_panel(e, panel, jit_index(&l));
    if (!tile.single) {
        args.partial = partial_at(e, row, panel);
        args.first = e->first;
        args.last = e->last;
    }
    tile_call(j, &tile, &args);
    jit_end_for(j, &l);
}

/* Steps of this K block whose last vector of B may be read in whole: they end before the matrix
 * does. */
static JitValue safe_steps(const GemmEmit *e, const PanelKind *p)
{
    const Gemm *g = e->g;
    int64_t over = (int64_t)p->vectors * jit_lanes(e->j) - p->columns;
    int64_t rows = g->b_k > 0 ? (over + g->b_k - 1) / g->b_k : g->k;
    return jit_tmp(e->j, jit_sub(e->j, jit_i64(e->j, g->k - rows), e->k0));
}

/* B's element (k, panel's first column). */
static JitValue b_at(const GemmEmit *e, JitValue panel, JitValue k)
{
    Jit *j = e->j;
    JitValue col = jit_mul(j, panel, jit_i64(j, panel_floats(e)));
    JitValue at = jit_muladd_i64(j, k, e->g->b_k, jit_mul(j, col, jit_i64(j, e->g->b_n)));
    if (e->g->image.b_tap)
        at = gemm_image_b(j, e->g, k, col);
    return jit_tmp(j, jit_offset(j, e->run.b, at));
}

/* Place by place of a window. */
static void pack_places(const GemmEmit *e, const PackPanel *pack, JitValue panel, JitValue b)
{
    Jit *j = e->j;
    int64_t piece = gemm_image_piece(e->g), width = (int64_t)pack->vectors * jit_lanes(j);
    JitLoop s = jit_for(j, jit_i64(j, 0), e->steps, piece, "step");
    JitValue to = jit_offset(j, b, jit_mul(j, jit_index(&s), jit_i64(j, width)));
    JitValue from = b_at(e, panel, jit_tmp(j, jit_add(j, e->k0, jit_index(&s))));
    pack_panel(j, pack, to, from, jit_i64(j, piece), NULL);
    jit_end_for(j, &s);
}

/* Packs a panel of B to b; safe: as pack_panel has it. */
static void pack_b(const GemmEmit *e, const PanelKind *p, JitValue panel, JitValue b, JitValue safe)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    PackPanel pack = {p->vectors, p->columns, g->b_k, g->b_n};
    JitValue width = jit_i64(j, (int64_t)p->vectors * jit_lanes(j));
    if (g->image.b_tap)
        pack_places(e, &pack, panel, b);
    else
        pack_panel(j, &pack, b, b_at(e, panel, e->k0), e->steps, safe);
    if (g->pairs && !g->b_bf16)
        pack_round(j, b, jit_mul(j, e->steps, width));
    if (g->pairs && g->k % g->pairs)
        pack_zero(j, jit_offset(j, b, jit_mul(j, e->steps, width)),
                  jit_mul(j, jit_sub(j, e->packed_steps, e->steps), width));
}

/* All row tiles of the task against one panel of B, which starts at b. */
static void sweep_panel(const GemmEmit *e, const PanelKind *p, JitValue panel, JitValue b)
{
    Jit *j = e->j;
    JitValue extra = jit_i64(j, e->g->rows.extra);
    int base = (int)e->g->rows.base;
    if (e->g->rows.extra)
        sweep(e, p, panel, b, base + 1, e->run.tile0, jit_min_i64(j, e->run.tile1, extra));
    sweep(e, p, panel, b, base, jit_max_i64(j, e->run.tile0, extra), e->run.tile1);
}

/* Panels from `from` on, before `end`, of whole vectors: packed together, then used one by one. */
static void emit_packed_panels(GemmEmit *e, const PanelKind *p, JitValue from, JitValue end)
{
    Jit *j = e->j;
    JitValue most = jit_i64(j, GEMM_PACK_PANELS);
    JitValue n = jit_tmp(j, jit_min_i64(j, jit_sub(j, end, from), most));
    if (e->g->b_n == 1 && !e->g->no_prefetch)
        plan_next_b(e, from, n, end);
    PackPanel pack = {p->vectors, p->columns, e->g->b_k, e->g->b_n};
    bool together = e->g->b_n == 1 && !e->g->pairs;
    if (together)
        pack_panels(j, &pack, e->packed_b, b_at(e, from, e->k0), e->steps, n);
    JitLoop l = jit_for(j, jit_i64(j, 0), n, 1, "panel");
    JitValue panel = jit_tmp(j, jit_add(j, from, jit_index(&l)));
    JitValue size = jit_mul(j, e->packed_steps, jit_i64(j, panel_floats(e)));
    JitValue b = jit_tmp(j, jit_offset(j, e->packed_b, jit_mul(j, size, jit_index(&l))));
    if (!together)
        pack_b(e, p, panel, b, NULL);
    if (e->g->b_n != 1 && e->g->b_k == 1 && !e->g->image.b_tap && !e->g->no_prefetch)
        plan_next_b(e, panel, jit_i64(j, 1), end);
    sweep_panel(e, p, panel, b);
    jit_end_for(j, &l);
    e->ahead0 = NULL;
}

static void emit_whole_panels(GemmEmit *e, int64_t whole)
{
    Jit *j = e->j;
    PanelKind p = {e->g->shape.vectors, panel_floats(e), e->g->direct_b};
    JitValue end = jit_tmp(j, jit_min_i64(j, e->run.panel1, jit_i64(j, whole)));
    JitLoop l = jit_for(j, e->run.panel0, end, p.direct ? 1 : GEMM_PACK_PANELS, "panel");
    JitValue from = jit_tmp(j, jit_index(&l));
    if (p.direct)
        sweep_panel(e, &p, from, b_at(e, from, e->k0));
    else
        emit_packed_panels(e, &p, from, end);
    jit_end_for(j, &l);
}

static void emit_last_panel(const GemmEmit *e, int64_t whole, int64_t columns)
{
    Jit *j = e->j;
    int lanes = jit_lanes(j);
    PanelKind p = {(int)divide_up(columns, lanes), columns, false};
    JitIf s = jit_if(j, jit_compare(j, JIT_GT, e->run.panel1, jit_i64(j, whole)));
    JitValue panel = jit_i64(j, whole);
    pack_b(e, &p, panel, e->packed_b, safe_steps(e, &p));
    sweep_panel(e, &p, panel, e->packed_b);
    jit_end_if(j, &s);
}

static void emit_panels(GemmEmit *e)
{
    int64_t whole = e->g->n / panel_floats(e), rest = e->g->n % panel_floats(e);
    if (whole)
        emit_whole_panels(e, whole);
    if (rest)
        emit_last_panel(e, whole, rest);
}

static void emit_k_blocks(GemmEmit *e)
{
    Jit *j = e->j;
    const Gemm *g = e->g;
    bool some = g->a_made && g->a_k != 1;
    JitValue from = some ? jit_number(j, g->steps) : jit_i64(j, 0);
    JitValue to = some ? jit_number(j, g->steps + 1) : jit_i64(j, g->k_blocks);
    JitLoop l = jit_for(j, from, to, 1, "block");
    e->k0 = jit_tmp(j, jit_mul(j, jit_index(&l), jit_i64(j, g->k_block)));
    e->steps = block_steps(e, e->k0);
    e->packed_steps = e->steps;
    if (g->pairs && g->k % g->pairs)
        e->packed_steps = round_up(j, e->steps, g->pairs);
    e->first = jit_tmp(j, jit_compare(j, JIT_EQ, jit_index(&l), jit_i64(j, 0)));
    e->last = jit_tmp(j, jit_compare(j, JIT_EQ, jit_index(&l), jit_i64(j, g->k_blocks - 1)));
    if (g->pack_a)
        gemm_pack_a(e);
    if (asks_for_a(g))
        plan_next_a(e);
    emit_panels(e);
    jit_end_for(j, &l);
}

void gemm_emit(Jit *j, const void *gemm)
{
    GemmEmit e = {.j = j, .g = gemm};
    plan_scratch(&e);
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), 0, "task");
    JitValue next = gemm_run(j, e.g, jit_tmp(j, jit_index(&l)), &e.run);
    emit_k_blocks(&e);
    jit_set(j, l.var, next);
    jit_end_for(j, &l);
}
