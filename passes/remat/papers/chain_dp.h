/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The dynamic program of chain_dp on plain numbers; exposed for its test. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_CHAIN_DP_H
#define SCRIMP_PASSES_REMAT_PAPERS_CHAIN_DP_H

#include "ir/support/pool.h"

/* Bytes in slots.  Running a stage forward needs `sweep` slots beyond its input, its output
 * included; with all that its backward part needs left behind (`tape`, output included) it needs
 * `record`, and the backward part `back` beyond input and tape. */
typedef struct ChainStage {
    double forward; /* time */
    int output, tape, sweep, record, back;
} ChainStage;

typedef struct ChainPlan {
    int n, slots;
    double *cost; /* [first][last][slots]: least forward time to reverse first..last; INFINITY */
    int *choice;  /* 0: tape the first stage; k: snapshot before stage first + k */
} ChainPlan;

/* O(n^3 slots). */
ChainPlan chain_plan(Pool *pool, const ChainStage *stage, int n, int slots);

static inline size_t chain_plan_at(const ChainPlan *c, int first, int last, int slots)
{
    return ((size_t)first * (size_t)c->n + (size_t)last) * ((size_t)c->slots + 1) + (size_t)slots;
}

#endif
