/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/attention/attention_product.h"

#include "ir/support/divide.h"

static Tile make_tile(Jit *j, const BlockProduct *p, int rows, int vectors, int64_t columns)
{
    int lanes = jit_lanes(j);
    Tile t = {.rows = rows,
              .vectors = vectors,
              .end = p->end,
              .last_lanes = (int)(columns - (int64_t)(vectors - 1) * lanes),
              .b_packed = true,
              .partial_padded = p->to_padded,
              .partial_stride = p->to_row,
              .n_loops = 1};
    for (int r = 0; r < rows; r++) {
        t.a_row[r] = r * p->a_row;
        t.out_row[r] = r;
    }
    t.loop[0] = (TileLoop){TILE_STEPS, p->a_step, p->b_step};
    return t;
}

/* Tiles of `rows` rows from *at on, as long as there are so many. */
static void sweep(Jit *j, const BlockProduct *p, JitVar at, const Tile *tile, int64_t column)
{
    JitValue end = jit_tmp(j, jit_sub(j, p->rows, jit_i64(j, tile->rows - 1)));
    JitLoop l = jit_for(j, jit_get(at), end, tile->rows, "row");
    JitValue row = jit_index(&l), to = jit_muladd_i64(j, row, p->to_row, jit_i64(j, column));
    TileArgs args = {.a = jit_offset(j, p->a, jit_mul(j, row, jit_i64(j, p->a_row))),
                     .b = jit_offset(j, p->b, jit_i64(j, column)),
                     .partial = jit_offset(j, p->to, to),
                     .row = jit_i64(j, 0),
                     .col = jit_i64(j, 0),
                     .steps = p->steps,
                     .first = p->first};
    tile_call(j, tile, &args);
    jit_end_for(j, &l);
    jit_set(j, at, jit_index(&l));
}

/* Rows that are no whole tile: tiles of half as many, and so on. */
static void sweep_panel(Jit *j, const BlockProduct *p, TileShape shape, int64_t column)
{
    int64_t left = p->columns - column, lanes = jit_lanes(j);
    int64_t columns = left < shape.vectors * lanes ? left : shape.vectors * lanes;
    JitVar at = jit_var(j, jit_types(j)->i64, "row");
    jit_set(j, at, jit_i64(j, 0));
    for (int rows = shape.rows; rows; rows /= 2) {
        Tile tile = make_tile(j, p, rows, (int)divide_up(columns, lanes), columns);
        sweep(j, p, at, &tile, column);
    }
}

void block_product(Jit *j, const BlockProduct *p)
{
    TileShape shape = tile_shape(jit_target(j), divide_up(p->columns, jit_lanes(j)), TILE_MAX_ROWS);
    jit_round_products(j, false);
    for (int64_t c = 0; c < p->columns; c += (int64_t)shape.vectors * jit_lanes(j))
        sweep_panel(j, p, shape, c);
    jit_round_products(j, true);
}
