/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A of a product, in place or packed. */
#include "codegen/cpu/gemm/gemm_emit.h"
#include "codegen/cpu/gemm/gemm_image.h"
#include "codegen/cpu/gemm/gemm_pack.h"

bool gemm_packs_strips(const Gemm *g)
{
    return g->pack_a && g->a_row == 1;
}

int64_t gemm_packed_a_stride(const Gemm *g)
{
    return g->k_block * (gemm_packs_strips(g) ? tile_rows_most(&g->rows) : 1) + GEMM_A_PAD;
}

JitValue gemm_a_in_place(const GemmEmit *e, JitValue row)
{
    Jit *j = e->j;
    JitValue at = jit_muladd_i64(j, row, e->g->a_row, jit_mul(j, e->k0, jit_i64(j, e->g->a_k)));
    return jit_offset(j, e->run.a, at);
}

JitValue gemm_a_of_tile(const GemmEmit *e, JitValue tile, JitValue row)
{
    Jit *j = e->j;
    if (!e->g->pack_a)
        return gemm_a_in_place(e, row);
    JitValue before =
        gemm_packs_strips(e->g) ? jit_sub(j, tile, e->run.tile0) : jit_sub(j, row, e->run.row0);
    return jit_offset(j, e->packed_a, jit_mul(j, before, jit_i64(j, gemm_packed_a_stride(e->g))));
}

/* Behind the last step, in each strip or row. */
static void zero_steps_of_a(const GemmEmit *e, JitValue rows)
{
    Jit *j = e->j;
    if (e->g->k % e->g->pairs == 0)
        return;
    bool strips = gemm_packs_strips(e->g);
    JitValue pieces = strips ? jit_sub(j, e->run.tile1, e->run.tile0) : rows;
    JitValue width = jit_i64(j, strips ? tile_rows_most(&e->g->rows) : 1);
    JitValue n = jit_mul(j, jit_sub(j, e->packed_steps, e->steps), width);
    JitValue skip = jit_tmp(j, jit_mul(j, e->steps, width));
    JitLoop l = jit_for(j, jit_i64(j, 0), pieces, 1, "piece");
    JitValue at = jit_muladd_i64(j, jit_index(&l), gemm_packed_a_stride(e->g), skip);
    pack_zero(j, jit_offset(j, e->packed_a, at), jit_tmp(j, n));
    jit_end_for(j, &l);
}

/* Steps of a window's place in a row of A (GemmImagePut). */
static void put_piece(const void *user, JitValue row, JitValue step, JitValue from, int64_t piece)
{
    const GemmEmit *e = user;
    Jit *j = e->j;
    JitValue at = jit_muladd_i64(j, row, gemm_packed_a_stride(e->g), step);
    JitValue to = jit_tmp(j, jit_offset(j, e->packed_a, at)), n = jit_i64(j, piece);
    if (from)
        pack_rows(j, to, n, from, n, jit_i64(j, 1), n);
    else
        pack_zero(j, to, n);
}

void gemm_pack_a(const GemmEmit *e)
{
    Jit *j = e->j;
    JitValue rows = jit_tmp(j, jit_sub(j, gemm_row_of_tile(e->j, e->g, e->run.tile1), e->run.row0));
    JitValue from = gemm_a_in_place(e, e->run.row0),
             stride = jit_i64(j, gemm_packed_a_stride(e->g));
    PackStrips strips = {e->g->rows, tile_rows_most(&e->g->rows), gemm_packed_a_stride(e->g),
                         e->g->a_k};
    if (e->g->image.channels) {
        gemm_image_pack(j, e->g, e->run.a, e->run.row0, rows, e->k0, e->steps, put_piece, e);
    } else if (gemm_packs_strips(e->g))
        pack_strips(j, &strips, e->packed_a, gemm_a_in_place(e, jit_i64(j, 0)), e->steps,
                    e->run.tile0, e->run.tile1);
    else if (e->g->a_k == 1)
        pack_rows(j, e->packed_a, stride, from, jit_i64(j, e->g->a_row), rows, e->steps);
    else
        pack_gather(j, e->packed_a, stride, from, e->g->a_row, e->g->a_k, rows, e->steps);
    if (!e->g->pairs)
        return;
    if (!e->g->a_bf16) {
        JitValue pieces = gemm_packs_strips(e->g) ? jit_sub(j, e->run.tile1, e->run.tile0) : rows;
        pack_round(j, e->packed_a, jit_mul(j, pieces, stride));
    }
    zero_steps_of_a(e, rows);
}
