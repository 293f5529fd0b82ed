/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the algorithms of Kusumoto et al. 2019 share: lower sets, the blocks between them, and the
 * paper's own model (equations 1 and 2).
 *
 * Source: Kusumoto, Inoue, Watanabe, Akiba, Koyama, "A Graph Theoretic Framework of Recomputation
 * Algorithms for Memory-Efficient Backpropagation", NeurIPS 2019.  A sequence of lower sets
 * L_1 < ... < L_k = V is written set_of[v] = the number (from 0) of the first set that holds v.
 *
 * Errata.  Equation 1 charges the recomputation of the last block, which the strategy does not run,
 * and equation 2's terms (iii) and (iv) overlap; both are here as printed.  "Replace min with max
 * at line 15" of algorithm 1 means the line that picks t*.  "Skip opt[L, t'] when t < t' and
 * opt[L, t] < opt[L, t']" holds for the time-centric strategy; for the memory-centric one its
 * mirror does: skip t when some t' > t has a memory that is not larger. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_KUSUMOTO_H
#define SCRIMP_PASSES_REMAT_PAPERS_KUSUMOTO_H

#include "ir/support/bitset.h"
#include "passes/remat/model/solver.h"
#include "passes/remat/papers/forward_graph.h"

/* ---- the model ---- */

/* T(V \ U_k): the overhead of a sequence, as printed. */
double kusumoto_eq1(const ForwardGraph *g, const int *set_of);
/* max over i of M^(i): the peak of a sequence, as printed. */
int64_t kusumoto_eq2(Pool *scratch, const ForwardGraph *g, const int *set_of, int n_sets);

/* ---- families of lower sets ---- */

/* One member, with the terms of equations 1 and 2 that depend on it alone. */
typedef struct LowerSet {
    Bitset nodes;
    int size;
    double time;
    int64_t bytes, after; /* after: M(d+(L) \ L) + M(d-(d+(L)) \ L) */
    int64_t boundary_bytes;
    int *boundary, n_boundary;
} LowerSet;

/* From one set to a larger one. */
typedef struct Block {
    int from, units;      /* units: T(V' \ boundary of L'), quantised */
    int64_t need, cached; /* need: 2 M(V') + after(L');  cached: M(boundary(L') \ L) */
} Block;

typedef struct Family {
    const ForwardGraph *g;
    Pool *pool;
    LowerSet *set; /* ascending size; 0 is empty, n - 1 is V */
    int n;
    int units;            /* that T(V) is; at most 4096 */
    Block *block;         /* by the set that they lead to; NULL: too many to store */
    int64_t *block_begin; /* of set k: block_begin[k] .. block_begin[k + 1] - 1 */
    struct BlockOut *out; /* for the depth-first search, which makes it: the same blocks by the set
                             that they lead from; of set k: out_begin[k] .. out_begin[k + 1] - 1 */
    int64_t *out_begin;
    int64_t max_steps, steps; /* comparisons of two sets, states extended */
    bool limited;             /* not what the algorithm asks for: too many lower sets, or steps */
} Family;

/* The ancestor sets {L^v}, the empty set and V; past 1,000 sets those with the smallest boundaries.
 * O(n^2 + pairs * n / 64).  What is done with the family stops after max_steps. */
Family *kusumoto_family_ancestors(Pool *pool, const ForwardGraph *g, int64_t max_steps);
/* All lower sets.  Where max_steps do not suffice to compare all pairs of them: the ancestor sets,
 * with `limited`. */
Family *kusumoto_family_all(Pool *pool, const ForwardGraph *g, int64_t max_steps);
/* False when `from` is not a proper subset of `to`. */
bool kusumoto_block(const Family *f, int from, int to, Block *block);
/* The sequence that ends at V, given by its sets from the last to the first; set_of as above. */
void kusumoto_write_sequence(const Family *f, const int *sets, int n_sets, int *set_of);

/* ---- algorithm 1 ---- */

/* The smallest budget of equation 2 for which the family has a sequence, to the byte.  When half of
 * max_steps do not suffice: the smallest that was found to have one, with `limited`. */
int64_t kusumoto_smallest_budget(Family *f);

/* A sequence with the least overhead (equation 1, quantised to f->units) within the budget, or,
 * memory-centric, the largest.  Returns the number of sets, 0 = impossible or, with `limited`, not
 * found. */
int kusumoto_solve(Family *f, int64_t budget, bool memory_centric, int *set_of);

/* ---- the solvers ---- */

/* What the paper's three methods differ in. */
typedef struct KusumotoMethod {
    int64_t max_steps; /* for a schedule, where the options have none; a second or a few */
    Family *(*family)(Pool *pool, const ForwardGraph *g, int64_t max_steps);
    int64_t (*smallest_budget)(Family *f);
    int (*solve)(Family *f, int64_t budget, bool memory_centric, int *set_of);
} KusumotoMethod;
extern const KusumotoMethod kusumoto_exhaustive, kusumoto_exact, kusumoto_approx;

typedef struct KusumotoAnswer {
    int n_sets, *set_of; /* n_sets = 0: none found */
    int64_t budget;      /* that was asked for, or the smallest */
    double overhead;     /* equation 1 */
    int64_t peak;        /* equation 2 */
    int n_lower_sets;
    bool limited; /* stopped at a limit: neither optimal nor, when n_sets = 0, impossible */
} KusumotoAnswer;

/* One strategy under the paper's model, time- or memory-centric.  budget = 0: the smallest there
 * is, as in the paper's tables.  A step takes some nanoseconds; 1e11 are enough for all networks of
 * the paper. */
KusumotoAnswer kusumoto_plan(Pool *pool, const ForwardGraph *g, const KusumotoMethod *method,
                             int64_t budget, bool memory_centric, int64_t max_steps);

/* A schedule of the step.  The model's budget is swept between its smallest and that of a single
 * block, time-centric and memory-centric (objective memory: only that), and remat_check decides,
 * because equation 2 is not the peak of the whole step. */
RematStatus kusumoto_schedule(const KusumotoMethod *method, const RematProblem *p,
                              const RematOptions *o, Pool *pool, RematSchedule *out);

#endif
