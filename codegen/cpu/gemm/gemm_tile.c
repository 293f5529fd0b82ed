/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_tile.h"
#include "codegen/cpu/point/epilogue_jit.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"

#include <string.h>

/* --- the function of one tile --- */

typedef struct TileEmit {
    Jit *j;
    const Tile *t;
    JitVar acc[TILE_MAX_ROWS][TILE_MAX_VECTORS];
    JitValue total; /* sums of chains, in memory: registers have the chain's */
    JitValue even;  /* those of even steps, while the odd ones are added */
} TileEmit;

/* Parameters of a tile function, in order. */
enum { P_BUFS, P_A, P_B, P_PARTIAL, P_ROW, P_COL, P_STEPS, P_FIRST, P_LAST, P_AHEAD, P_COUNT };

static bool last_is_short(const TileEmit *e, int v)
{
    return v == e->t->vectors - 1 && e->t->last_lanes < jit_lanes(e->j);
}

static JitValue lanes_value(const TileEmit *e)
{
    return jit_i64(e->j, e->t->last_lanes);
}

static void acc_zero(TileEmit *e)
{
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_set(e->j, e->acc[r][v], jit_vf(e->j, 0));
}

static int64_t partial_offset(const TileEmit *e, int r, int v)
{
    return r * e->t->partial_stride + v * jit_lanes(e->j);
}

static JitValue partial_at(const TileEmit *e, int r, int v)
{
    JitValue p = jit_param(e->j, P_PARTIAL), at = jit_i64(e->j, partial_offset(e, r, v));
    if (last_is_short(e, v) && !e->t->partial_padded)
        return jit_vload_partial(e->j, p, at, lanes_value(e), 0);
    return jit_vload(e->j, p, at);
}

/* Adds the sums of earlier blocks.  The sum of a block is complete by then: over K terms that makes
 * chains of a block's length and one over the blocks, whose rounding errors are far below those of
 * a chain of K. */
static void acc_add_partial(TileEmit *e)
{
    Jit *j = e->j;
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++) {
            JitValue before = partial_at(e, r, v);
            jit_set(j, e->acc[r][v], jit_add(j, before, jit_get(e->acc[r][v])));
        }
}

static void acc_load_partial(TileEmit *e)
{
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_set(e->j, e->acc[r][v], partial_at(e, r, v));
}

static void acc_store_partial(TileEmit *e)
{
    JitValue p = jit_param(e->j, P_PARTIAL);
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++) {
            JitValue at = jit_i64(e->j, partial_offset(e, r, v)), x = jit_get(e->acc[r][v]);
            if (last_is_short(e, v) && !e->t->partial_padded)
                jit_vstore_partial(e->j, p, at, lanes_value(e), x);
            else
                jit_vstore(e->j, p, at, x);
        }
}

static void store_result(TileEmit *e, int r, int v)
{
    Jit *j = e->j;
    JitValue row = jit_add(j, jit_param(j, P_ROW), jit_i64(j, e->t->out_row[r]));
    JitValue col = jit_add(j, jit_param(j, P_COL), jit_i64(j, v * jit_lanes(j)));
    JitValue n = last_is_short(e, v) ? lanes_value(e) : NULL;
    epilogue_store(j, e->t->epilogue, e->t->out_buf, jit_get(e->acc[r][v]), row, col, n);
}

/* The columns are contiguous in the result, of f32: by way of memory of its own, column by column.
 */
static void store_turned(TileEmit *e)
{
    Jit *j = e->j;
    const JitTypes *ty = jit_types(j);
    int lanes = jit_lanes(j), width = e->t->vectors * lanes;
    JitVar array = jit_array_var(j, ty->f32, e->t->rows * width, "tile");
    JitValue tile = jit_tmp(j, jit_array_ptr(j, array, ty->p_f32));
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_vstore_aligned(j, tile, jit_i64(j, r * width + v * lanes), jit_get(e->acc[r][v]));
    JitValue columns = jit_i64(j, width - lanes + e->t->last_lanes);
    JitLoop l = jit_for(j, jit_i64(j, 0), columns, 1, "column");
    JitValue column = jit_add(j, jit_param(j, P_COL), jit_index(&l));
    JitValue at = jit_tmp(j, jit_muladd_i64(j, column, e->t->turned, jit_param(j, P_ROW)));
    for (int r = 0; r < e->t->rows; r++) {
        JitValue x = jit_load(j, tile, jit_add(j, jit_index(&l), jit_i64(j, r * width)));
        jit_store(j, jit_buf(j, e->t->out_buf, ty->p_f32), jit_add(j, at, jit_i64(j, r)), x);
    }
    jit_end_for(j, &l);
}

static void acc_finish(TileEmit *e)
{
    if (e->t->turned) {
        store_turned(e);
        return;
    }
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            store_result(e, r, v);
}

static void ask_ahead(TileEmit *e, JitValue b)
{
    Jit *j = e->j;
    for (int i = 0; i < e->t->ahead_lines; i++) {
        JitValue at = jit_add(j, jit_param(j, P_AHEAD), jit_i64(j, i * TILE_LINE));
        jit_prefetch_line(j, jit_offset(j, b, at), false);
    }
}

/* One step of the reduction. */
static void emit_step(TileEmit *e, JitVar a, JitVar b)
{
    Jit *j = e->j;
    JitValue bv[TILE_MAX_VECTORS];
    for (int v = 0; v < e->t->vectors; v++) {
        JitValue at = jit_i64(j, v * jit_lanes(j));
        bv[v] = e->t->b_packed        ? jit_vload_aligned(j, jit_get(b), at)
                : last_is_short(e, v) ? jit_vload_partial(j, jit_get(b), at, lanes_value(e), 0)
                                      : jit_vload(j, jit_get(b), at);
    }
    ask_ahead(e, jit_get(b));
    for (int r = 0; r < e->t->rows; r++) {
        JitValue x = jit_tmp(j, jit_splat(j, jit_load(j, jit_get(a), jit_i64(j, e->t->a_row[r]))));
        for (int v = 0; v < e->t->vectors; v++)
            jit_set(j, e->acc[r][v], jit_add(j, jit_mul(j, x, bv[v]), jit_get(e->acc[r][v])));
    }
}

static JitValue total_offset(const TileEmit *e, int r, int v)
{
    return jit_i64(e->j, (int64_t)(r * e->t->vectors + v) * jit_lanes(e->j));
}

static JitValue total_at(const TileEmit *e, int r, int v)
{
    return jit_vload_aligned(e->j, e->total, total_offset(e, r, v));
}

static void totals_set(TileEmit *e, double x)
{
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_vstore_aligned(e->j, e->total, total_offset(e, r, v), jit_vf(e->j, x));
}

static void totals_load_partial(TileEmit *e)
{
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_vstore_aligned(e->j, e->total, total_offset(e, r, v), partial_at(e, r, v));
}

static JitValue memory_for_sums(TileEmit *e, const char *name)
{
    Jit *j = e->j;
    int floats = e->t->rows * e->t->vectors * jit_lanes(j);
    JitVar array = jit_array_var(j, jit_types(j)->f32, floats, name);
    return jit_array_ptr(j, array, jit_types(j)->p_f32);
}

/* -0 is what a sum is added to and stays as it is, be it 0 itself. */
static void totals_begin(TileEmit *e)
{
    Jit *j = e->j;
    e->total = memory_for_sums(e, "total");
    if (e->t->by_pairs)
        e->even = memory_for_sums(e, "even");
    totals_set(e, e->t->chain_parts && !e->t->by_pairs ? -0.0 : 0);
    if (!e->t->chain_parts || e->t->single)
        return;
    JitIf first = jit_if(j, jit_param(j, P_FIRST));
    jit_else(j, &first);
    totals_load_partial(e);
    jit_end_if(j, &first);
}

static void totals_add(TileEmit *e)
{
    Jit *j = e->j;
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_vstore_aligned(j, e->total, total_offset(e, r, v),
                               jit_add(j, total_at(e, r, v), jit_get(e->acc[r][v])));
}

static void acc_load_totals(TileEmit *e)
{
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_set(e->j, e->acc[r][v], total_at(e, r, v));
}

static void advance(Jit *j, JitVar pointer, int64_t step)
{
    if (step)
        jit_set(j, pointer, jit_offset(j, jit_get(pointer), jit_i64(j, step)));
}

static JitValue loop_count(const TileEmit *e, const TileLoop *loop)
{
    return loop->count == TILE_STEPS ? jit_param(e->j, P_STEPS) : jit_i64(e->j, loop->count);
}

static void even_save(TileEmit *e)
{
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++)
            jit_vstore_aligned(e->j, e->even, total_offset(e, r, v), jit_get(e->acc[r][v]));
}

static void even_add(TileEmit *e)
{
    Jit *j = e->j;
    for (int r = 0; r < e->t->rows; r++)
        for (int v = 0; v < e->t->vectors; v++) {
            JitValue even = jit_vload_aligned(j, e->even, total_offset(e, r, v));
            jit_set(j, e->acc[r][v], jit_add(j, even, jit_get(e->acc[r][v])));
        }
}

static void emit_loops(TileEmit *e, int level, JitValue a_from, JitValue b_from);

/* Both chains of a chain by pairs, whose loop is `level`. */
static void emit_pair(TileEmit *e, int level, JitVar a, JitVar b)
{
    Jit *j = e->j;
    const TileLoop *steps = &e->t->loop[level];
    emit_loops(e, level, jit_get(a), jit_get(b));
    even_save(e);
    acc_zero(e);
    emit_loops(e, level, jit_offset(j, jit_get(a), jit_i64(j, steps->a_step / 2)),
               jit_offset(j, jit_get(b), jit_i64(j, steps->b_step / 2)));
    even_add(e);
}

/* Loops level.. of the nest, starting at *a and *b. */
static void emit_loops(TileEmit *e, int level, JitValue a_from, JitValue b_from)
{
    Jit *j = e->j;
    JitVar a = jit_var(j, jit_types(j)->p_f32, "a"), b = jit_var(j, jit_types(j)->p_f32, "b");
    jit_set(j, a, a_from);
    jit_set(j, b, b_from);
    const TileLoop *loop = &e->t->loop[level];
    JitLoop l = jit_for(j, jit_i64(j, 0), loop_count(e, loop), 1, "k");
    bool is_chain = level == e->t->chain_loops - 1;
    if (is_chain)
        acc_zero(e);
    if (level == e->t->n_loops - 1)
        emit_step(e, a, b);
    else if (is_chain && e->t->by_pairs)
        emit_pair(e, level + 1, a, b);
    else
        emit_loops(e, level + 1, jit_get(a), jit_get(b));
    if (is_chain)
        totals_add(e);
    advance(j, a, loop->a_step);
    advance(j, b, loop->b_step);
    jit_end_for(j, &l);
}

static void acc_add_unless_first(TileEmit *e)
{
    JitIf first = jit_if(e->j, jit_param(e->j, P_FIRST));
    jit_else(e->j, &first);
    acc_add_partial(e);
    jit_end_if(e->j, &first);
}

/* --- what is asked for ahead --- */

/* Partial sums are wanted when the reduction is done, and lie farther than the second-level cache
 * where a block of K has passed over many columns since. */
static void ask_for_partial(const TileEmit *e, int r)
{
    Jit *j = e->j;
    int64_t n = (int64_t)e->t->vectors * jit_lanes(j);
    for (int64_t i = 0; i < n; i += TILE_LINE) {
        int64_t last = (i + TILE_LINE < n ? i + TILE_LINE : n) - 1; /* as in epilogue_ask */
        JitValue at = jit_i64(j, r * e->t->partial_stride + last);
        jit_prefetch_line(j, jit_offset(j, jit_param(j, P_PARTIAL), at), false);
    }
}

/* So is what the epilogue reads and writes: a tile takes about as long as memory does to answer,
 * and would wait for it else. */
static void ask_for_result(const TileEmit *e, int r)
{
    Jit *j = e->j;
    JitValue row = jit_add(j, jit_param(j, P_ROW), jit_i64(j, e->t->out_row[r]));
    epilogue_ask(j, e->t->epilogue, e->t->out_buf, row, jit_param(j, P_COL),
                 (int64_t)e->t->vectors * jit_lanes(j));
}

/* For the rows of one of `parts` parts. */
static void ask_for_rows(const TileEmit *e, int part, int parts)
{
    Jit *j = e->j;
    const Tile *t = e->t;
    int from = t->rows * part / parts, to = t->rows * (part + 1) / parts;
    JitIf last = {0};
    for (int r = from; !t->single && r < to; r++)
        ask_for_partial(e, r);
    if (t->turned || !(t->single || (t->end == TILE_RESULT && t->partial_padded)))
        return; /* turned: short pieces of many rows */
    if (!t->single)
        last = jit_if(j, jit_param(j, P_LAST));
    for (int r = from; r < to; r++)
        ask_for_result(e, r);
    if (!t->single)
        jit_end_if(j, &last);
}

/* A core waits for so many lines at a time, 16 on a Sapphire Rapids; where a tile asks for more of
 * them at once, its steps wait, too, for what the second-level cache has.  So it asks part by part,
 * as turns of steps begin. */
static int ask_parts(const TileEmit *e)
{
    enum { LINES_AT_ONCE = 16, LINES_OF_PART = 4 };
    const Tile *t = e->t;
    int lines = t->rows * (int)divide_up((int64_t)t->vectors * jit_lanes(e->j), TILE_LINE);
    return t->n_loops > 1 || t->chain_loops || lines <= LINES_AT_ONCE ? 1 : lines / LINES_OF_PART;
}

/* All steps, in twice as many turns as there are parts: the last one has time to arrive. */
static void emit_turns(TileEmit *e, int parts)
{
    Jit *j = e->j;
    const TileLoop *loop = &e->t->loop[0];
    JitVar a = jit_var(j, jit_types(j)->p_f32, "a"), b = jit_var(j, jit_types(j)->p_f32, "b");
    jit_set(j, a, jit_param(j, P_A));
    jit_set(j, b, jit_param(j, P_B));
    JitValue turns = jit_i64(j, (int64_t)2 * parts), count = loop_count(e, loop);
    JitValue before = jit_sub(j, jit_add(j, count, turns), jit_i64(j, 1));
    JitValue most = jit_tmp(j, jit_div(j, before, turns));
    JitLoop turn = jit_for(j, jit_i64(j, 0), turns, 1, "turn");
    for (int p = 0; p < parts; p++) {
        JitIf now = jit_if(j, jit_compare(j, JIT_EQ, jit_index(&turn), jit_i64(j, p)));
        ask_for_rows(e, p, parts);
        jit_end_if(j, &now);
    }
    JitValue left = jit_sub(j, count, jit_mul(j, jit_index(&turn), most));
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_tmp(j, jit_min_i64(j, most, left)), 1, "k");
    emit_step(e, a, b);
    advance(j, a, loop->a_step);
    advance(j, b, loop->b_step);
    jit_end_for(j, &l);
    jit_end_for(j, &turn);
}

static void emit_body(TileEmit *e)
{
    Jit *j = e->j;
    int parts = ask_parts(e);
    if (parts == 1)
        ask_for_rows(e, 0, 1);
    if (e->t->end == TILE_CHAIN)
        acc_load_partial(e);
    else
        acc_zero(e);
    if (e->t->chain_loops)
        totals_begin(e);
    if (parts > 1)
        emit_turns(e, parts);
    else
        emit_loops(e, 0, jit_param(j, P_A), jit_param(j, P_B));
    if (e->t->chain_loops)
        acc_load_totals(e);
    if (e->t->single) {
        acc_finish(e);
        return;
    }
    if (e->t->end != TILE_CHAIN && !e->t->chain_parts)
        acc_add_unless_first(e);
    if (e->t->end != TILE_RESULT) {
        acc_store_partial(e);
        return;
    }
    JitIf s = jit_if(j, jit_param(j, P_LAST));
    acc_finish(e);
    jit_else(j, &s);
    acc_store_partial(e);
    jit_end_if(j, &s);
}

/* One kernel has one epilogue, so it is no part of the name. */
static uint64_t tile_hash(const Tile *t)
{
    const int head[] = {t->rows,        t->vectors, t->last_lanes,     t->b_packed,
                        (int)t->end,    t->single,  t->partial_padded, t->n_loops,
                        t->chain_loops, t->out_buf, t->ahead_lines,    t->chain_parts,
                        t->by_pairs};
    size_t rows = (size_t)t->rows * sizeof(int64_t);
    uint64_t h = hash_bytes(head, sizeof head, 0);
    h = hash_bytes(t->a_row, rows, h);
    h = hash_bytes(t->out_row, rows, h);
    h = hash_bytes(&t->partial_stride, sizeof t->partial_stride, h);
    h = hash_bytes(&t->turned, sizeof t->turned, h);
    return hash_bytes(t->loop, (size_t)t->n_loops * sizeof(TileLoop), h);
}

static JitFunction tile_function(Jit *j, const Tile *t)
{
    char name[64];
    snprintf(name, sizeof name, "tile_%dx%d_%016llx", t->rows, t->vectors,
             (unsigned long long)tile_hash(t));
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitTypes *ty = jit_types(j);
    const JitType types[P_COUNT] = {[P_BUFS] = jit_pointer_to(j, ty->p_char),
                                    [P_A] = ty->p_f32,
                                    [P_B] = ty->p_f32,
                                    [P_PARTIAL] = ty->p_f32,
                                    [P_ROW] = ty->i64,
                                    [P_COL] = ty->i64,
                                    [P_STEPS] = ty->i64,
                                    [P_FIRST] = ty->boolean,
                                    [P_LAST] = ty->boolean,
                                    [P_AHEAD] = ty->i64};
    f = jit_function_begin(j, name, ty->none, P_COUNT, types);
    jit_function_bufs(j, P_BUFS);
    TileEmit e = {.j = j, .t = t};
    for (int r = 0; r < t->rows; r++)
        for (int v = 0; v < t->vectors; v++)
            e.acc[r][v] = jit_var(j, ty->vf, "acc");
    emit_body(&e);
    jit_function_end(j);
    return f;
}

void tile_call(Jit *j, const Tile *tile, const TileArgs *args)
{
    if (tile->rows < 1 || tile->rows > TILE_MAX_ROWS || tile->vectors < 1 ||
        tile->vectors > TILE_MAX_VECTORS)
        BUG("tile of %d rows and %d vectors", tile->rows, tile->vectors);
    const JitTypes *ty = jit_types(j);
    JitValue yes = jit_cast(j, jit_i32(j, 1), ty->boolean);
    const JitValue values[P_COUNT] = {[P_BUFS] = jit_bufs(j),
                                      [P_A] = args->a,
                                      [P_B] = args->b,
                                      [P_PARTIAL] =
                                          args->partial ? args->partial : jit_zero(j, ty->p_f32),
                                      [P_ROW] = args->row,
                                      [P_COL] = args->col,
                                      [P_STEPS] = args->steps ? args->steps : jit_i64(j, 0),
                                      [P_FIRST] = args->first ? args->first : yes,
                                      [P_LAST] = args->last ? args->last : yes,
                                      [P_AHEAD] = args->ahead ? args->ahead : jit_i64(j, 0)};
    jit_call_void(j, tile_function(j, tile), P_COUNT, values);
}
