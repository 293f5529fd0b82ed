/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the parts of one search of the scrimp solver share: one front, and several base orders. */
#ifndef SCRIMP_PASSES_REMAT_SEARCH_LNS_H
#define SCRIMP_PASSES_REMAT_SEARCH_LNS_H

#include "passes/remat/model/pareto_front.h"
#include "passes/remat/model/solver.h"
#include "passes/remat/search/greedy.h"

/* How many base orders are kept ready. */
enum { LNS_BASES = 6 };

/* A search over one base order. */
typedef struct Base {
    Pool *pool;
    int *order;      /* slot -> node of the problem */
    int *slot_of;    /* back */
    RematProblem *p; /* the problem in that order */
    GreedySearch *x;
    bool is_own; /* the problem's own order */
} Base;

/* What tells one search from another. */
typedef struct SearchStyle {
    bool descends;     /* from the highest target down, before anything else */
    bool whole_prices; /* see GreedySearch */
} SearchStyle;

typedef struct LargeNeighbourhoodSearch {
    const RematProblem *p;
    const RematOptions *options;
    SearchStyle style;
    Pool *pool;
    ParetoFront *front;
    ParetoFront own; /* of what the search found in the problem's own order, also where other orders
                  are better */
    Base *base[LNS_BASES]; /* [0] is in use, unless it is NULL */
    uint64_t random;
    int64_t high, low; /* targets lie between */
    int64_t target_bytes;
    double work;             /* in all */
    int64_t done;            /* of it, apart from what the bases' slots count */
    int64_t most_work;       /* of one greedy_reduce */
    int64_t reordered_bytes; /* peak of the schedule that was reordered last, */
    int in_vain;             /* and how many in a row it did not help */
} LargeNeighbourhoodSearch;

/* Makes this order of all nodes the base; NULL: as the problem has them.  Nothing is recomputed,
 * and what the search is to reach is the ladder's target. */
GreedySearch *lns_base(LargeNeighbourhoodSearch *l, const int *order);

/* The same for the order of first runs of a schedule, with its recomputations: each goes into the
 * slot of the next first run.  In a slot they run in base order, and once each, so peak and time
 * may differ a little from the schedule's. */
GreedySearch *lns_load(LargeNeighbourhoodSearch *l, const RematSchedule *s);

/* Offers what the search in use holds now to the front. */
void lns_offer(LargeNeighbourhoodSearch *l);
/* Any schedule of the problem; true when it was taken.  One that does not obey @keep and @recompute
 * is passed over, unless it is the first. */
bool lns_offer_schedule(LargeNeighbourhoodSearch *l, const RematSchedule *s);

/* Part of the work is used up, or time is. */
bool lns_out_of_work(const LargeNeighbourhoodSearch *l, double part);
int64_t lns_work(const LargeNeighbourhoodSearch *l);

/* Brings the present schedule within the target and takes back what is not needed; false when it
 * cannot be brought there.  Offers both. */
bool lns_repair(LargeNeighbourhoodSearch *l);

/* What @recompute asks for runs again for its first read behind the loss. */
void lns_start_from_hints(LargeNeighbourhoodSearch *l);
/* The search itself: all targets (scrimp_climb.c).  The front is not empty. */
void lns_climb(LargeNeighbourhoodSearch *l);

/* What searches begin with.  Where pieces may lie inside one another, schedules are counted in
 * three ways. */
typedef struct Starts {
    ParetoFront plain;     /* with copies */
    ParetoFront on_pieces; /* their runs on the problem of pieces */
    ParetoFront counted;   /* by pieces_peak */
} Starts;

Starts starts_new(Pool *pool);

/* Adds answers of other solvers, as far as those are quick at this size, on several threads
 * (scrimp_starts.c).  `plain` must not be empty. */
void start_from_others(const RematProblem *p, const RematOptions *o, Pool *pool, Starts *starts);

/* All schedules of a small problem: true when the front has the best of them for every budget
 * (scrimp_exact.c). */
bool lns_exact(LargeNeighbourhoodSearch *l);
/* Large neighbourhoods around the best schedule of the target, for so much work. */
void lns_improve(LargeNeighbourhoodSearch *l, double work);
/* The same around the smallest schedule of the front, towards a smaller peak. */
void lns_shrink(LargeNeighbourhoodSearch *l, double work);
/* Another order of the runs of the best schedule within the target, with a smaller peak; true when
 * there is one. */
bool lns_reorder(LargeNeighbourhoodSearch *l);
/* An order of these runs (remat_expand) with a peak that is small, or good enough. */
RematSchedule lns_order(Pool *scratch, const RematProblem *runs, int64_t good_enough_bytes,
                        double until);

#endif
