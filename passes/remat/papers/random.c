/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random checkpoints.
 *
 * Source: the baseline of Feng and Huang 2021, section 6: 1 to 5 checkpoints drawn among all
 * vertices, the best of 10 trials; a choice whose segments are not independent does not count, and
 * after 100 of these there is no answer.  Differs: remat_check decides which trial is best. */
#include "passes/remat/papers/candidates.h"
#include "passes/remat/papers/feng.h"
#include "passes/remat/papers/forward_view.h"
#include "passes/remat/solvers.h"

#include <string.h>

enum { TRIALS = 10, MAX_INVALID = 100, MAX_CHECKPOINTS = 5 };

/* splitmix64 (Steele, Lea, Flood 2014); the remainder's bias does not matter here. */
static int draw(uint64_t *state, int below)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (int)((z ^ (z >> 31)) % (uint64_t)below);
}

RematStatus remat_random(const RematProblem *p, const RematOptions *o, Pool *pool,
                         RematSchedule *out)
{
    Pool *scratch = pool_new_child(pool);
    ForwardView *v = forward_view_new(scratch, p);
    ForwardGraph g = forward_view_graph(v);
    FengGraph f = feng_graph(scratch, &g);
    Candidates *c = candidates_new(scratch, v, o);
    bool *keep = POOL_ARRAY(scratch, (size_t)v->n + 1, bool);
    bool *checkpoint = POOL_ARRAY(scratch, (size_t)f.g.n, bool);
    uint64_t state = o->seed;
    for (int valid = 0, invalid = 0; v->n > 0 && valid < TRIALS && invalid < MAX_INVALID;) {
        memset(checkpoint, 0, (size_t)f.g.n * sizeof *checkpoint);
        for (int k = draw(&state, MAX_CHECKPOINTS); k >= 0; k--)
            checkpoint[draw(&state, v->n) + f.shift] = true;
        if (feng_cost(scratch, &f, checkpoint) < 0) {
            invalid++;
            continue;
        }
        valid++;
        feng_kept(&f, checkpoint, keep);
        candidates_try(c, keep);
    }
    RematStatus status = candidates_answer(c, pool, out);
    pool_free(scratch);
    return status;
}
