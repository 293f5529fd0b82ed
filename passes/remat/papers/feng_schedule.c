/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Feng's solvers, which differ in how the graph is divided (see feng.h): their checkpoints become a
 * schedule of the step. */
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/feng.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/solvers.h"

static const int64_t MAX_STEPS = 200000000; /* about a second */

typedef struct Trial {
    Candidates *candidates;
    bool *keep;
} Trial;

static void try_answer(void *user, const FengGraph *f, const bool *checkpoint)
{
    Trial *t = user;
    feng_kept(f, checkpoint, t->keep);
    candidates_try_restoring(t->candidates, t->keep);
}

/* The checkpoints and the segments that end at the target are kept.  Every answer of feng_plan on
 * the way to the best is tried, with the ways back to keeping everything, and remat_check decides.
 */
static RematStatus solve(FengDivision division, const RematProblem *p, const RematOptions *o,
                         Pool *pool, RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    ForwardGraph g = forward_view_graph(v);
    Trial t = {candidates_new(scratch, v, o), POOL_ARRAY(scratch, (size_t)v->n + 1, bool)};
    FengAnswer a = feng_plan(scratch, &g, division, o->max_steps > 0 ? o->max_steps : MAX_STEPS,
                             try_answer, &t);
    RematStatus status = candidates_answer(t.candidates, pool, out);
    pool_free(scratch);
    return a.limited ? REMAT_LIMIT : status;
}

/* Checkpoints of a chain.
 *
 * Source: Feng and Huang 2018 and 2021, algorithm 1: for each max term C the accessibility graph,
 * whose edges join vertices with at most C between them, and its shortest path.  Errata: see
 * feng.h. Differs: other graphs are chains of their splitting vertices, with what is between two of
 * them folded into the edge (2018, theorem 3); a window over the chain takes the place of the
 * explicit graph, and max terms with the same answer are skipped (2018, line 7). */
RematStatus remat_feng_linear(const RematProblem *p, const RematOptions *o, Pool *pool,
                              RematSchedule *out)
{
    return solve(FENG_SPLIT, p, o, pool, out);
}

/* Checkpoints in close sets.
 *
 * Source: Feng and Huang 2018, algorithms 2 to 6.  It differs from feng_acg in the split of what
 * neither splits nor branches: a pair of vertices makes a close set only when nothing that is
 * between them leaks (algorithm 4 as printed), so that where it does, every vertex becomes a
 * checkpoint. Errata: see feng.h. */
RematStatus remat_feng_closeset(const RematProblem *p, const RematOptions *o, Pool *pool,
                                RematSchedule *out)
{
    return solve(FENG_CLOSED, p, o, pool, out);
}

/* Checkpoints of arbitrary graphs.
 *
 * Source: Feng and Huang 2021, algorithms 2 to 6: the division tree of linear, branch and
 * complicate segments, and for each max term C the accessibility graph of what need not be broken.
 * Errata: see feng.h; with them its answer is the optimum of the paper's objective, which the tests
 * compare with enumeration.  That optimum is not the step's: on the chain of sizes [13, 13, 1, 8,
 * 13, 13] it costs 35 where another choice really peaks at 27, and where no pair of vertices
 * separates the graph, as in an unrolled LSTM, it saves next to nothing. */
RematStatus remat_feng_acg(const RematProblem *p, const RematOptions *o, Pool *pool,
                           RematSchedule *out)
{
    return solve(FENG_STRIPPED, p, o, pool, out);
}
