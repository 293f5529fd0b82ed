/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every schedule has in memory, or must run again, at the moment an operation t runs for the
 * first time: a relaxation of the schedules as a minimum cut.  docs/remat.md has the proof; this is
 * the model.
 *
 * Let s be a schedule that remat_check accepts, and i the position of t's first run.  For nodes v
 *     e_v = 1  when v has run at or before i        (1 for t and its ancestors, 0 for descendants)
 *     h_v = 1  when e_v = 1 and v does not run after i
 * and for tensors x made by v (h_v = 1 for what exists before the first run)
 *     k_x = 1  when h_v = 1 and a reader w of x has h_w = 0, or x lives to the end
 * Every v with e_v = 1, h_v = 0 runs twice at least, and every x with k_x = 1 is in memory during
 * run i and after it.  So, with the bytes `fixed` of t's operands and weights w_x,
 *     time  >=  time_once + sum over v of cost_v (e_v - h_v)
 *     peak  >=  fixed + sum over x of w_x k_x
 * The terms are of the form "a = 1 and b = 0": a sum of both at any prices is least at a minimum
 * cut.  */
#ifndef SCRIMP_PASSES_REMAT_BOUNDS_CUT_RELAXATION_H
#define SCRIMP_PASSES_REMAT_BOUNDS_CUT_RELAXATION_H

#include "passes/remat/bounds/max_flow.h"
#include "passes/remat/model/csr.h"
#include "passes/remat/model/problem.h"

#include <math.h>

/* Integers that costs and bytes are rounded down to: sum of all costs < 2^44, of bytes < 2^29. */
typedef struct CutScale {
    int cost_exponent; /* 2^cost_exponent integer units per unit of cost; as an exponent, since the
                          power itself may be beyond what a double holds */
    int shift;         /* bytes >> shift */
} CutScale;

/* Units of a cost, and back. */
static inline double cut_units(const CutScale *s, double cost)
{
    return ldexp(cost, s->cost_exponent);
}

static inline double cut_cost(const CutScale *s, int64_t units)
{
    return ldexp((double)units, -s->cost_exponent);
}

/* One problem, for many moments. */
typedef struct CutProblem {
    const RematProblem *p;
    bool rerun; /* false: nothing may run twice, which bounds the orders without recomputation */
    CutScale scale;
    Csr readers; /* by tensor */
} CutProblem;

typedef struct CutTerm {  /* of the sum that the cut minimises */
    int64_t cost, weight; /* scaled; both 0: must not be cut */
    int64_t bytes;        /* of the tensor as it is */
    int tensor;           /* -1: a cost */
} CutTerm;

typedef struct CutRelaxation {
    const CutProblem *problem;
    Pool *pool;
    int node;
    int64_t fixed_bytes; /* persistent, t's operands and workspace, and what is kept in any case */
    int *kept;           /* tensors that are kept in any case (inputs of t: after it, too) */
    int n_kept;
    FlowNetwork *net;
    CutTerm *term; /* by edge of the network */
} CutRelaxation;

/* The cheapest choice at given prices, and its two sums. */
typedef struct MinimumCut {
    int64_t value, cost, weight, bytes; /* value = cost_price * cost + weight_price * weight */
} MinimumCut;

CutProblem *cut_problem_new(Pool *pool, const RematProblem *p, bool rerun);
/* O(nodes + edges). */
CutRelaxation *cut_relaxation_new(Pool *pool, const CutProblem *m, int node);
/* Prices: cost_price <= 1, weight_price < 2^33. */
MinimumCut cut_relaxation_cut(CutRelaxation *m, int64_t cost_price, int64_t weight_price,
                              int64_t *work);

/* What may not run a second time: updates, and what is marked @keep. */
static inline bool cut_rerun(const CutProblem *m, int node)
{
    const RematNode *n = &m->p->node[node];
    return m->rerun && n->rerun && n->hint != REMAT_KEEP;
}

/* By node: no less than what any of its moments bounds the peak by: the bytes alive at it in the
 * base order without recomputation.  O(nodes + edges). */
int64_t *cut_keep_all_bytes(Pool *pool, const RematProblem *p);

/* Finds the best price.  The cuts at two prices are two lines over the price that no cut is above;
 * the next price is where they meet (Newton's method for parametric cuts). */
typedef struct CutLimit {
    bool on_time;     /* bound the bytes under a limit on time, else the time under one on bytes */
    int64_t limit;    /* cost in scaled units, or bytes for the whole arena */
    int64_t keep_all; /* cut_keep_all_bytes of the node */
    int64_t good_enough; /* stop when the bound cannot exceed this */
    int64_t price;       /* where to begin; where it ended */
} CutLimit;

/* Bytes of the arena, or scaled cost, that no schedule is below; INT64_MAX = no schedule keeps the
 * limit. */
int64_t cut_relaxation_bound(CutRelaxation *m, CutLimit *limit, int64_t *work);

#endif
