/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the values of a loop's body lie. */
#ifndef SCRIMP_PASSES_MEMPLAN_LOOP_PLAN_H
#define SCRIMP_PASSES_MEMPLAN_LOOP_PLAN_H

#include "ir/loop.h"
#include "passes/memplan/memplan.h"

/* A step of a loop as a graph with storage of its own: what the loop reads and writes outside of
 * the step (carries, elements of slices and results, constants) are persistent tensors, which have
 * no place in the plan; the rest lies in an arena, the loop's workspace.  A carry lies where the
 * loop's result is. */
typedef struct LoopPlan {
    Graph *step;
    const MemPlan *plan;
    int64_t arena_bytes; /* of the plan, without what is persistent */
    ValueId *input;  /* by input of the loop: what it is in the step; a carry: also the result */
    ValueId *result; /* by result of the loop, from the first that is no carry */
} LoopPlan;

LoopPlan *loop_plan(Pool *pool, const Node *loop);
/* Where a value or a workspace of the step lies in the arena. */
static inline int64_t loop_plan_offset(const LoopPlan *p, int64_t in_plan)
{
    return in_plan - p->plan->persistent_bytes;
}

#endif
