/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/gemm/gemm_amx.h"
#include "codegen/cpu/point/prologue.h"

/* Blocks of rows, of one batch after another: of the result, and of an A whose rows lie as densely,
 * one behind another; those of an image are windows. */
static void note_spans(Pool *pool, const Gemm *g, CallDraft *call)
{
    int64_t blocks = g->batches * g->row_blocks;
    TaskSpans *out = task_spans_new(pool, blocks, g->panel_groups);
    TaskSpans *in = task_spans_new(pool, blocks, g->panel_groups);
    for (int64_t i = 0; out && in && i < blocks; i++) {
        int64_t batch = i / g->row_blocks, block = i % g->row_blocks;
        int64_t first = tile_row(&g->rows, span_part(block, g->rows.tiles, g->row_blocks));
        int64_t next = tile_row(&g->rows, span_part(block + 1, g->rows.tiles, g->row_blocks));
        out->from[i] = (batch * g->m + first) * g->n;
        out->to[i] = (batch * g->m + next) * g->n;
        in->from[i] = first * g->k;
        in->to[i] = next * g->k;
    }
    call->writes = (CallSpans){out, {g->out_buf}, 1};
    if (g->n_batch == 0 && g->a_k == 1 && g->a_row == g->k && !g->image.channels)
        call->reads = (CallSpans){in, {g->a_buf}, 1};
}

/* Which columns of the rows that are steps a block of rows of the result reads. */
static void note_columns(Pool *pool, const Gemm *g, ReadPieces *pieces)
{
    pieces->of_columns = g->panel_groups;
    for (int64_t i = 0; i <= g->row_blocks; i++)
        vec_push(pool, &pieces->column,
                 tile_row(&g->rows, span_part(i, g->rows.tiles, g->row_blocks)));
}

/* K blocks, as many together as have so many elements; all tasks do them. */
static ReadPieces *pieces_of_steps(Pool *pool, const Gemm *g)
{
    ReadPieces *pieces = POOL_NEW(pool, ReadPieces);
    int64_t block = g->k_block * g->a_k;
    int64_t together = PROLOGUE_AT_ONCE < block ? 1 : PROLOGUE_AT_ONCE / block;
    pieces->steps = g->steps;
    note_columns(pool, g, pieces);
    for (int64_t i = 0; i < g->k_blocks; i += together) {
        int64_t end = i + together < g->k_blocks ? i + together : g->k_blocks;
        ReadPiece p = {.task_end = gemm_tasks(g), .step = i, .step_end = end, .from = i * block};
        p.to = end < g->k_blocks ? end * block : g->k * g->a_k;
        vec_push(pool, &pieces->of, p);
    }
    return pieces;
}

static const ReadPieces *pieces_of(Pool *pool, const Gemm *g, const CallDraft *call)
{
    if (g->a_k != 1)
        return pieces_of_steps(pool, g);
    const TaskSpans *rows = call->reads.spans;
    return rows ? read_pieces_of_spans(pool, rows, PROLOGUE_AT_ONCE) : NULL;
}

void gemm_lower(Lowering *l, Gemm *g, CallDraft *call, const char *what)
{
    double batches = 1;
    for (int d = 0; d < g->n_batch; d++)
        batches *= (double)g->batch[d];
    if (!call->label)
        call->label =
            pool_printf(l->pool, "%s %lldx%lldx%lld", what, (long long)(batches * (double)g->m),
                        (long long)g->n, (long long)g->k);
    if (!call->flops)
        call->flops = 2 * batches * (double)g->m * (double)g->n * (double)g->k;
    int variant = lower_variant(l, &gemm_family, MATRIX_KEY(l->pool, "gemm", Gemm, g));
    gemm_plan(g, l->target, variant);
    bool amx = gemm_amx_takes(g, l->target);
    call->key = MATRIX_KEY(l->pool, amx ? "gemm_amx" : "gemm", Gemm, g);
    call->emit = amx ? gemm_amx_emit : gemm_emit;
    call->amx = amx;
    call->desc = g;
    call->n_tasks = gemm_tasks(g);
    call->contract = true;
    if (!amx && !g->turned)
        note_spans(l->pool, g, call);
    if (g->a_made)
        call->pieces = pieces_of(l->pool, g, call);
    if (call->n_tasks)
        lower_call(l, *call);
}
