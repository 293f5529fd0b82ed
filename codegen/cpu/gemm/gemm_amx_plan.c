/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_amx.h"

#include "codegen/cpu/gemm/gemm_amx_layout.h"
#include "ir/support/divide.h"

enum {
    K_BLOCK_MOST = 1024,
    TASKS = 12,
    TASK_FLOPS_LEAST = 20000000,
    IN_PLACE_ROWS = 1024, /* of a task */
    PACKED_A_BYTES = 512 * 1024,
    PARTIAL_BYTES = 384 * 1024,
    TASK_TILES_LEAST = 4
};

bool gemm_amx_takes(const Gemm *g, const Target *t)
{
    return t->amx && g->pairs && (g->a_k == 1 || g->a_row == 1) && (g->b_k == 1 || g->b_n == 1);
}

static double task_flops(const Gemm *g)
{
    return 2 * (double)g->m * (double)g->n * (double)g->k /
           (double)(g->row_blocks * g->panel_groups);
}

static int64_t rows_most(const Gemm *g)
{
    int64_t words = amx_words_of_rows(g);
    int64_t fit = words ? PACKED_A_BYTES / (2 * words) / AMX_TILE * AMX_TILE : IN_PLACE_ROWS;
    return fit < IN_PLACE_ROWS ? fit : IN_PLACE_ROWS;
}

/* Columns first: a panel of B is packed for all rows of a task. */
static void plan_tasks(Gemm *g)
{
    g->row_blocks = divide_up(g->rows.tiles, rows_most(g) / AMX_TILE);
    g->panel_groups = 1;
    while (g->batches * g->row_blocks * g->panel_groups < TASKS &&
           task_flops(g) > TASK_FLOPS_LEAST) {
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
    int64_t rows = divide_up(g->rows.tiles, g->row_blocks) * AMX_TILE;
    int64_t most = g->k_blocks == 1 ? g->panels : bytes / (4 * rows * AMX_TILE);
    most = most < 1 ? 1 : most > g->panels ? g->panels : most;
    int64_t least_groups = divide_up(g->panels, most);
    if (g->panel_groups < least_groups)
        g->panel_groups = least_groups;
    g->run_groups = most * g->panel_groups / g->panels;
    g->run_blocks = 1;
}

void gemm_amx_plan(Gemm *g, const Target *t)
{
    g->shape = (TileShape){AMX_TILE, AMX_TILE / 16};
    g->rows = (TileSplit){divide_up(g->m, AMX_TILE), AMX_TILE, 0};
    g->panels = divide_up(g->n, AMX_TILE);
    g->k_blocks = divide_up(g->k, K_BLOCK_MOST);
    g->k_block = divide_up(divide_up(g->k, g->k_blocks), AMX_STEPS) * AMX_STEPS;
    g->k_blocks = divide_up(g->k, g->k_block);
    g->private_partial = g->k_blocks > 1 && (epilogue_may_alias(&g->epilogue) ||
                                             dtype_bytes(g->epilogue.out.dtype) != 4);
    g->pack_a = !g->a_bf16 || g->a_k != 1;
    plan_tasks(g);
    plan_runs(g, t);
}
