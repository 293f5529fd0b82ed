/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Moves between schedules, for the scrimp solver: less memory by recomputing more, and back. */
#ifndef SCRIMP_PASSES_REMAT_SEARCH_GREEDY_H
#define SCRIMP_PASSES_REMAT_SEARCH_GREEDY_H

#include "ir/support/vec.h"
#include "passes/remat/search/incremental_schedule.h"

/* A value that could be dropped after its read in slot `after` and made again for its next one. */
typedef struct GreedyDrop {
    double price; /* time a byte */
    int node, after;
    bool alone; /* the price is that of the node alone: no more than the whole one */
} GreedyDrop;

typedef struct GreedySearch {
    const RematProblem *p;
    Pool *pool;
    IncrementalSchedule *slots;
    int64_t target_bytes; /* for the peak */
    uint64_t *random;     /* state of the generator */
    /* How prices are bent: by up to e^noise at random, and by how much of the stretch that is over
     * the target a drop covers, to the power `reach`. */
    double noise, reach;
    bool by_kind;      /* nodes of one kind are bent alike */
    bool whole_prices; /* drops are offered at the price of all that they bring with them */
    uint64_t draw;     /* of how they are bent */
    uint64_t *kind;
    int over_first, over_last; /* that stretch, when the offers were made */
    int *next_over;            /* by slot: the next one over the target, at the same time */
    int64_t most_work; /* of one greedy_reduce or greedy_restore, as incremental_work counts */
    VEC(GreedyDrop) heap;
    VEC(int) chain; /* nodes to run again for one drop */
    VEC(int) added; /* those of the drop just made */
    int *stamp;     /* by node: the last chain it was in */
    int n_chains;
} GreedySearch;

GreedySearch *greedy_new(Pool *pool, const RematProblem *p, uint64_t *random);

/* Drops values, the cheapest a byte first, until the peak is within the target.  A drop brings
 * whatever else has to run again with it.  False when nothing helps any more or it takes too much
 * work (near the smallest peak possible, drops undo each other). */
bool greedy_reduce(GreedySearch *x);

/* Takes out recomputations, the dearest first, as long as the peak stays within the target. */
void greedy_restore(GreedySearch *x);

/* Takes out this recomputation and those in its slot that only it needed.  What @recompute asks for
 * stays. */
void greedy_remove(GreedySearch *x, int node, int slot);

/* splitmix64 (Steele, Lea, Flood 2014); uniform in [0, 1). */
uint64_t greedy_random(GreedySearch *x);
double greedy_uniform(GreedySearch *x);
/* 1, or e^(noise * u) with u uniform in [-1, 1): one for each node, or for each kind of node, until
 * x->draw changes. */
double greedy_bend(const GreedySearch *x, int node);

#endif
