/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_amx.h"

#include "codegen/cpu/gemm/gemm_amx_layout.h"
#include "codegen/cpu/gemm/gemm_image.h"
#include "codegen/cpu/gemm/gemm_run.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "runtime/abi.h"

enum {
    ONE_BLOCK_STEPS = 800,        /* of K at most, if there is one; */
    BLOCK_STEPS = 512,            /* of several: then sums wait in scratch, too */
    ONE_BLOCK_BYTES = 768 * 1024, /* of packed rows of A */
    BLOCK_BYTES = 512 * 1024,
    PARTIAL_BYTES = 256 * 1024,
    ROWS_MOST = 1024,
    IMAGE_COLUMNS = 128, /* of more, rows of an image are packed for several runs: */
    IMAGE_ROWS = 256,    /* with so few of them, runs are long */
    TASKS = 12,
    TASK_FLOPS_LEAST = 20000000,
    TASK_TILES_LEAST = 4
};

bool gemm_amx_takes(const Gemm *g, const Target *t)
{
    return t->amx && g->pairs && (g->a_k == 1 || g->a_row == 1) && (g->b_k == 1 || g->b_n == 1);
}

static int64_t rows_most(const Gemm *g)
{
    int64_t bytes = g->k_blocks == 1 ? ONE_BLOCK_BYTES : BLOCK_BYTES;
    int64_t fit = bytes / (2 * g->k_block) / AMX_SIDE * AMX_SIDE;
    int64_t most = g->image.channels && g->n > IMAGE_COLUMNS ? IMAGE_ROWS : ROWS_MOST;
    return fit < most ? fit : most;
}

/* Columns first: a panel of B is packed for all rows of a task. */
static void plan_tasks(Gemm *g)
{
    g->row_blocks = divide_up(g->rows.tiles, rows_most(g) / AMX_SIDE);
    g->panel_groups = 1;
    while (g->batches * g->row_blocks * g->panel_groups < TASKS &&
           gemm_task_flops(g) > TASK_FLOPS_LEAST) {
        int64_t wanted = divide_up(TASKS, g->batches * g->row_blocks);
        if (g->panel_groups < g->panels && g->panel_groups < wanted)
            g->panel_groups = g->panels < wanted ? g->panels : wanted;
        else if (g->rows.tiles >= 2 * TASK_TILES_LEAST * g->row_blocks)
            g->row_blocks *= 2;
        else
            break;
    }
}

/* Panels of a run, whose sums between blocks of K wait in scratch, or in a cache. */
static void plan_runs(Gemm *g, const Target *t)
{
    int64_t bytes = g->private_partial ? PARTIAL_BYTES : t->l2_bytes / 2;
    int64_t rows = divide_up(g->rows.tiles, g->row_blocks) * AMX_SIDE;
    int64_t most = g->k_blocks == 1 ? g->panels : bytes / (4 * rows * AMX_SIDE);
    most = most < 1 ? 1 : most > g->panels ? g->panels : most;
    int64_t least_groups = divide_up(g->panels, most);
    if (g->panel_groups < least_groups)
        g->panel_groups = least_groups;
    g->run_groups = most * g->panel_groups / g->panels;
    g->run_blocks = 1;
}

static int64_t scratch_bytes(const Gemm *g)
{
    int64_t tiles = gemm_task_tiles(g), panels = tiles + amx_panels_together(g);
    int64_t sums = g->private_partial ? tiles * (1 + gemm_run_panels(g)) : tiles;
    return 2 * panels * amx_squares(g) * AMX_SQUARE_BYTES + 4 * sums * AMX_TILE_FLOATS;
}

void gemm_amx_plan(Gemm *g, const Target *t)
{
    g->shape = (TileShape){AMX_SIDE, AMX_SIDE / 16};
    g->rows = (TileSplit){divide_up(g->m, AMX_SIDE), AMX_SIDE, 0};
    g->panels = divide_up(g->n, AMX_SIDE);
    bool one = g->k <= ONE_BLOCK_STEPS && !g->image.channels;
    g->k_blocks = one ? 1 : divide_up(g->k, BLOCK_STEPS);
    g->k_block = divide_up(divide_up(g->k, g->k_blocks), AMX_STEPS) * AMX_STEPS;
    if (g->image.channels)
        g->k_block = gemm_image_block(&g->image, BLOCK_STEPS);
    g->k_blocks = divide_up(g->k, g->k_block);
    g->private_partial = g->k_blocks > 1 && (epilogue_may_alias(&g->epilogue) ||
                                             dtype_bytes(g->epilogue.out.dtype) != 4);
    plan_tasks(g);
    plan_runs(g, t);
    if (scratch_bytes(g) > SCRIMP_WORK_BYTES)
        BUG("product %lld x %lld x %lld by matrix registers needs more scratch than there is",
            (long long)g->m, (long long)g->n, (long long)g->k);
}
