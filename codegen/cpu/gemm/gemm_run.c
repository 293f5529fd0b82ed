/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_run.h"

#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/divide.h"

double gemm_task_flops(const Gemm *g)
{
    return 2 * (double)g->m * (double)g->n * (double)g->k /
           (double)(g->row_blocks * g->panel_groups);
}

int64_t gemm_task_tiles(const Gemm *g)
{
    return divide_up(g->rows.tiles, g->row_blocks);
}

int64_t gemm_run_panels(const Gemm *g)
{
    return divide_up(g->panels * g->run_groups, g->panel_groups);
}

JitValue gemm_row_of_tile(Jit *j, const Gemm *g, JitValue tile)
{
    const TileSplit *s = &g->rows;
    JitValue longer = jit_min_i64(j, tile, jit_i64(j, s->extra));
    return jit_tmp(j, jit_muladd_i64(j, tile, s->base, longer));
}

static void decode_batch(Jit *j, const Gemm *g, GemmRun *run)
{
    JitValue rest = run->batch, a = jit_i64(j, 0), b = jit_i64(j, 0);
    for (int d = g->n_batch - 1; d >= 0; d--) {
        JitValue digit = d ? jit_mod(j, rest, jit_i64(j, g->batch[d])) : rest;
        a = jit_muladd_i64(j, digit, g->a_batch[d], a);
        b = jit_muladd_i64(j, digit, g->b_batch[d], b);
        rest = jit_div(j, rest, jit_i64(j, g->batch[d]));
    }
    run->a = jit_tmp(j, jit_offset(j, buf_f32(j, g->a_buf), a));
    run->b = jit_tmp(j, jit_offset(j, buf_f32(j, g->b_buf), b));
    run->ahead = run->a;
    if (g->a_made)
        run->ahead = jit_tmp(j, jit_offset(j, buf_f32(j, g->a_buf + 1), a));
}

/* How many of the tasks left take digits from `digit` on, of `all`, `most` of them in a run. */
static JitValue run_length(Jit *j, JitValue left, JitValue digit, int64_t all, int64_t most)
{
    JitValue rest = jit_sub(j, jit_i64(j, all), digit);
    return jit_tmp(j, jit_min_i64(j, left, jit_min_i64(j, jit_i64(j, most), rest)));
}

JitValue gemm_run(Jit *j, const Gemm *g, JitValue task, GemmRun *out)
{
    JitValue rest = task, left = jit_tmp(j, jit_sub(j, jit_task_end(j), task));
    JitValue group = jit_tmp(j, take_digit(j, &rest, g->panel_groups));
    JitValue block = jit_tmp(j, take_digit(j, &rest, g->row_blocks));
    JitValue groups = run_length(j, left, group, g->panel_groups, g->run_groups);
    JitValue blocks = run_length(j, left, block, g->row_blocks, g->run_blocks);
    out->batch = rest;
    out->tile0 = part_start(j, block, g->rows.tiles, g->row_blocks);
    out->tile1 = part_start(j, jit_add(j, block, blocks), g->rows.tiles, g->row_blocks);
    out->panel0 = part_start(j, group, g->panels, g->panel_groups);
    out->panel1 = part_start(j, jit_add(j, group, groups), g->panels, g->panel_groups);
    out->row0 = gemm_row_of_tile(j, g, out->tile0);
    decode_batch(j, g, out);
    return jit_tmp(j, jit_add(j, task, jit_mul(j, groups, blocks)));
}
