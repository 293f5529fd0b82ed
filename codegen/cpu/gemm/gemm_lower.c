/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/gemm/gemm_amx.h"

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
    if (call->n_tasks)
        lower_call(l, *call);
}
