/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From checkpoints to a schedule of the step (see feng.h). */
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/feng.h"
#include "passes/remat/papers/forward_view.h"

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

RematStatus feng_schedule(FengDivision division, const RematProblem *p, const RematOptions *o,
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
