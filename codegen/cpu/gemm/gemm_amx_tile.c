/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_amx_tile.h"

#include "codegen/cpu/gemm/gemm_amx_layout.h"
#include "codegen/cpu/gemm/gemm_run.h"
#include "codegen/cpu/point/epilogue_jit.h"
#include "ir/support/divide.h"

#include <stdio.h>

/* Registers of a tile: four of sums, by rows, two of A, two of B. */
enum { SUMS = 0, FACTORS_A = 4, FACTORS_B = 6 };
enum { LINE = 64 }; /* bytes of a line of the cache */

typedef struct TileEmit {
    Jit *j;
    const AmxTile *t;
    int down, across; /* registers */
} TileEmit;

static TileEmit tile_emit(Jit *j, const AmxTile *t)
{
    return (TileEmit){j, t, t->g->m > AMX_ROWS ? 2 : 1, t->columns > AMX_ROWS ? 2 : 1};
}

static JitValue bytes_on(Jit *j, JitValue pointer, int64_t bytes)
{
    return jit_offset(j, pointer, jit_i64(j, bytes));
}

/* --- sums --- */

/* Parameters of the function that adds a part, in order. */
enum { P_BUFS, P_A, P_B, P_BLOCKS, P_SUMS, P_ZERO, P_NEXT, P_ROW, P_COL, P_BLOCK, P_ASKS, P_COUNT };

static JitValue row_bytes(Jit *j)
{
    return jit_i64(j, AMX_ROW_BYTES);
}

static JitValue square(Jit *j, JitValue p, int64_t i)
{
    return bytes_on(j, p, i * AMX_SQUARE_BYTES);
}

static void sums_zero(const TileEmit *e)
{
    for (int i = 0; i < e->down; i++)
        for (int k = 0; k < e->across; k++)
            amx_zero(e->j, SUMS + 2 * i + k);
}

static void sums_load(const TileEmit *e)
{
    for (int i = 0; i < e->down; i++)
        for (int k = 0; k < e->across; k++)
            amx_load(e->j, SUMS + 2 * i + k, square(e->j, jit_param(e->j, P_SUMS), 2 * i + k),
                     row_bytes(e->j));
}

static void sums_store(const TileEmit *e)
{
    for (int i = 0; i < e->down; i++)
        for (int k = 0; k < e->across; k++)
            amx_store(e->j, SUMS + 2 * i + k, square(e->j, jit_param(e->j, P_SUMS), 2 * i + k),
                      row_bytes(e->j));
}

/* 32 steps. */
static void add_products(const TileEmit *e, JitValue a, JitValue b)
{
    Jit *j = e->j;
    int64_t squares = amx_squares(e->t->g);
    for (int i = 0; i < e->down; i++) {
        amx_load(j, FACTORS_A + i, square(j, a, i * squares), row_bytes(j));
        for (int k = 0; k < e->across; k++) {
            if (i == 0)
                amx_load(j, FACTORS_B + k, square(j, b, k * squares), row_bytes(j));
            amx_multiply_add(j, SUMS + 2 * i + k, FACTORS_A + i, FACTORS_B + k);
        }
    }
}

AmxAhead amx_ahead(const Gemm *g)
{
    int64_t bytes = g->b_bf16 ? 2 : 4;
    return (AmxAhead){.rows = (int)divide_up(AMX_SIDE, gemm_task_tiles(g)),
                      .lines = (int)divide_up(AMX_STEPS * bytes, LINE),
                      .row_bytes = g->b_n * bytes,
                      .advance_bytes = AMX_STEPS * bytes};
}

/* A core waits for few lines at a time: they are spread over all steps. */
static void ask_ahead(Jit *j, const AmxAhead *a, JitValue next)
{
    for (int r = 0; r < a->rows; r++)
        for (int l = 0; l < a->lines; l++)
            jit_prefetch_line(j, bytes_on(j, next, r * a->row_bytes + l * LINE), false);
}

/* So are rows of the result, and of what the epilogue reads beside the sums. */
static void ask_rows(const TileEmit *e, JitValue block)
{
    Jit *j = e->j;
    JitValue n = jit_param(j, P_ASKS), at = jit_add(j, jit_param(j, P_BLOCK), block);
    JitValue from = jit_tmp(j, jit_mul(j, at, n));
    JitValue to = jit_min_i64(j, jit_add(j, from, n), jit_i64(j, AMX_SIDE));
    JitLoop r = jit_for(j, from, to, 1, "row");
    epilogue_ask(j, &e->t->g->epilogue, e->t->g->out_buf,
                 jit_add(j, jit_param(j, P_ROW), jit_index(&r)), jit_param(j, P_COL),
                 e->t->columns);
    jit_end_for(j, &r);
}

static void emit_blocks(const TileEmit *e)
{
    Jit *j = e->j;
    const JitTypes *ty = jit_types(j);
    bool by_columns = e->t->g->b_k == 1;
    const AmxAhead ahead = amx_ahead(e->t->g);
    JitVar a = jit_var(j, ty->p_char, "a"), b = jit_var(j, ty->p_char, "b"),
           next = jit_var(j, ty->p_char, "next");
    jit_set(j, a, jit_param(j, P_A));
    jit_set(j, b, jit_param(j, P_B));
    jit_set(j, next, jit_param(j, P_NEXT));
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_param(j, P_BLOCKS), 1, "steps");
    if (by_columns)
        ask_ahead(j, &ahead, jit_get(next));
    ask_rows(e, jit_index(&l));
    add_products(e, jit_get(a), jit_get(b));
    jit_set(j, a, square(j, jit_get(a), 1));
    jit_set(j, b, square(j, jit_get(b), 1));
    jit_set(j, next, bytes_on(j, jit_get(next), ahead.advance_bytes));
    jit_end_for(j, &l);
}

static JitFunction part_function(Jit *j, const AmxTile *t)
{
    const JitTypes *ty = jit_types(j);
    char name[32];
    snprintf(name, sizeof name, "amx_add_part_%d", t->columns);
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[P_COUNT] = {[P_BUFS] = jit_pointer_to(j, ty->p_char),
                                    [P_A] = ty->p_char,
                                    [P_B] = ty->p_char,
                                    [P_BLOCKS] = ty->i64,
                                    [P_SUMS] = ty->p_char,
                                    [P_ZERO] = ty->boolean,
                                    [P_NEXT] = ty->p_char,
                                    [P_ROW] = ty->i64,
                                    [P_COL] = ty->i64,
                                    [P_BLOCK] = ty->i64,
                                    [P_ASKS] = ty->i64};
    f = jit_function_begin(j, name, ty->none, P_COUNT, types);
    jit_function_bufs(j, P_BUFS);
    TileEmit e = tile_emit(j, t);
    JitIf zero = jit_if(j, jit_param(j, P_ZERO));
    sums_zero(&e);
    jit_else(j, &zero);
    sums_load(&e);
    jit_end_if(j, &zero);
    emit_blocks(&e);
    sums_store(&e);
    jit_function_end(j);
    return f;
}

void amx_add_part(Jit *j, const AmxTile *t, const AmxPart *p)
{
    JitType p_char = jit_types(j)->p_char;
    const JitValue args[P_COUNT] = {[P_BUFS] = jit_bufs(j),
                                    [P_A] = jit_cast(j, p->a, p_char),
                                    [P_B] = jit_cast(j, p->b, p_char),
                                    [P_BLOCKS] = p->blocks,
                                    [P_SUMS] = jit_cast(j, t->sums, p_char),
                                    [P_ZERO] = p->zero,
                                    [P_NEXT] = p->next,
                                    [P_ROW] = t->row,
                                    [P_COL] = t->col,
                                    [P_BLOCK] = p->block,
                                    [P_ASKS] = p->asks};
    jit_call_void(j, part_function(j, t), P_COUNT, args);
}

/* --- rows of sums --- */

/* Parameters of the functions that move them, in order. */
enum { R_BUFS, R_SUMS, R_PARTIAL, R_ROW, R_COL, R_ROWS, R_COUNT };

/* Vector v of a row, whose sums are at `at`. */
typedef void EachRow(const TileEmit *e, JitValue row, JitValue at, int v);

/* Lanes that exist; NULL: all. */
static JitValue lanes_of(const TileEmit *e, int v)
{
    int left = e->t->columns - v * AMX_ROWS;
    return left < AMX_ROWS ? jit_i64(e->j, left) : NULL;
}

static JitValue partial_at(const TileEmit *e, JitValue row, int v)
{
    Jit *j = e->j;
    return jit_tmp(j, jit_muladd_i64(j, row, e->t->partial_stride, jit_i64(j, v * AMX_ROWS)));
}

static JitValue sum_at(const TileEmit *e, JitValue at)
{
    return jit_vload_aligned(e->j, jit_param(e->j, R_SUMS), at);
}

static void load_partial(const TileEmit *e, JitValue row, JitValue at, int v)
{
    Jit *j = e->j;
    JitValue from = jit_param(j, R_PARTIAL), index = partial_at(e, row, v), n = lanes_of(e, v);
    jit_vstore_aligned(j, jit_param(j, R_SUMS), at,
                       n ? jit_vload_partial(j, from, index, n, 0) : jit_vload(j, from, index));
}

static void store_partial(const TileEmit *e, JitValue row, JitValue at, int v)
{
    Jit *j = e->j;
    JitValue to = jit_param(j, R_PARTIAL), index = partial_at(e, row, v), n = lanes_of(e, v);
    if (n)
        jit_vstore_partial(j, to, index, n, sum_at(e, at));
    else
        jit_vstore(j, to, index, sum_at(e, at));
}

static void store_result(const TileEmit *e, JitValue row, JitValue at, int v)
{
    Jit *j = e->j;
    const Gemm *g = e->t->g;
    epilogue_store(j, &g->epilogue, g->out_buf, sum_at(e, at), jit_add(j, jit_param(j, R_ROW), row),
                   jit_add(j, jit_param(j, R_COL), jit_i64(j, v * AMX_ROWS)), lanes_of(e, v));
}

static JitFunction rows_function(Jit *j, const AmxTile *t, const char *what, EachRow *body)
{
    enum { SQUARE_FLOATS = AMX_SQUARE_BYTES / 4 };
    const JitTypes *ty = jit_types(j);
    char name[32];
    snprintf(name, sizeof name, "amx_%s_%d", what, t->columns);
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[R_COUNT] = {[R_BUFS] = jit_pointer_to(j, ty->p_char),
                                    [R_SUMS] = ty->p_f32,
                                    [R_PARTIAL] = ty->p_f32,
                                    [R_ROW] = ty->i64,
                                    [R_COL] = ty->i64,
                                    [R_ROWS] = ty->i64};
    f = jit_function_begin(j, name, ty->none, R_COUNT, types);
    jit_function_bufs(j, R_BUFS);
    TileEmit e = tile_emit(j, t);
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_param(j, R_ROWS), 1, "row");
    JitValue lower = jit_div(j, jit_index(&r), jit_i64(j, AMX_ROWS));
    JitValue at = jit_muladd_i64(j, jit_index(&r), AMX_ROWS, /* and past the squares beside those */
                                 jit_mul(j, lower, jit_i64(j, SQUARE_FLOATS)));
    JitValue first = jit_tmp(j, at);
    for (int v = 0; v < e.across; v++)
        body(&e, jit_index(&r), jit_add(j, first, jit_i64(j, v * SQUARE_FLOATS)), v);
    jit_end_for(j, &r);
    jit_function_end(j);
    return f;
}

static void move(Jit *j, const AmxTile *t, const char *what, EachRow *body)
{
    const JitValue args[R_COUNT] = {
        [R_BUFS] = jit_bufs(j), [R_SUMS] = t->sums, [R_PARTIAL] = t->partial,
        [R_ROW] = t->row,       [R_COL] = t->col,   [R_ROWS] = t->rows};
    jit_call_void(j, rows_function(j, t, what, body), R_COUNT, args);
}

void amx_load_partial(Jit *j, const AmxTile *t)
{
    move(j, t, "load_partial", load_partial);
}

void amx_store_partial(Jit *j, const AmxTile *t)
{
    move(j, t, "store_partial", store_partial);
}

void amx_store_result(Jit *j, const AmxTile *t)
{
    move(j, t, "store_result", store_result);
}
