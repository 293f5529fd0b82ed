/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Graphs from elsewhere: plain data -> RematProblem -> a schedule within a budget.  What they mean,
 * to the byte, and their JSON form (scrimp.graph.1) are in docs/graphs.md.  Called by
 * `scrimp plan --graph`; needs no graph of the IR. */
#ifndef SCRIMP_PASSES_REMAT_EXTERNAL_EXTERNAL_H
#define SCRIMP_PASSES_REMAT_EXTERNAL_EXTERNAL_H

#include "passes/memplan/memplan.h"
#include "passes/remat/report.h"

/* One output of a node: the tensor that nodes[node] makes as its output number `output`. */
typedef struct ExternalRef {
    int64_t node, output;
} ExternalRef;

typedef struct ExternalOutput {
    int64_t bytes;
    bool keep;       /* its last version lives to the end */
    bool persistent; /* counted throughout */
} ExternalOutput;

typedef struct ExternalNode {
    const char *name; /* for messages; NULL = none */
    double time;      /* in any one unit */
    int64_t workspace;
    bool rerun; /* may run more than once */
    ExternalRef *in, *overwrites;
    ExternalOutput *out;
    int n_in, n_overwrites, n_out;
} ExternalNode;

/* Nodes in an order in which they can run.  forward: only the forward part of a step;
 * external_problem adds the backward part. */
typedef struct ExternalGraph {
    bool forward;
    int n_nodes;
    ExternalNode *node;
} ExternalGraph;

/* Reads scrimp.graph.1.  NULL with E409 when the text is not JSON, lacks a key or holds a value of
 * the wrong type or sign; the message names the line or the node. */
ExternalGraph *external_read(Pool *pool, const char *text, size_t length, RematError *error);

/* The text that external_read reads, one node a line. */
const char *external_write(Pool *pool, const ExternalGraph *g);

/* A step.  What exists before its first node is made by nodes of its own that run once, in no time:
 * they come first, in the order of tensors.  In-place pairs are lost; sizes are the problem's,
 * rounded as in the arena.  Shares names with p. */
ExternalGraph *external_from_problem(Pool *pool, const RematProblem *p);

/* Node k of the problem is node k of the graph; of a forward graph with n nodes, node 2n-1-k is
 * the backward node of node k.  NULL with E409: a cycle or another order, a node or output that
 * does not exist, a value that is read after it was overwritten, sums past 2^60 bytes or 1e300 of
 * time, more than 2^20 nodes or 2^24 edges and outputs. O(nodes + edges). */
RematProblem *external_problem(Pool *pool, const ExternalGraph *g, RematError *error);

/* external_problem never runs again what overwrites something or whose persistent output is
 * overwritten.  The same problem p with every second run that the file allows, for what is said
 * of all schedules; NULL: that is p itself.  Shares all but the nodes with p. */
RematProblem *external_every_rerun(Pool *pool, const ExternalGraph *g, const RematProblem *p);

typedef struct ExternalPlan {
    RematReport report;                           /* peak_bytes is what the budget holds for */
    RematSchedule schedule;                       /* nodes of external_problem, in order */
    RematFigures figures;                         /* remat_check's, of this schedule */
    int64_t arena_bytes, arena_lower_bound_bytes; /* of external_arena; 0 when nothing fits */
    bool hurried; /* time was up: the arena was placed with the least effort */
} ExternalPlan;

/* The best schedule within the budget.  cache: see solution_cache_new; may be NULL.  False with
 * external_problem's E409, and, when no schedule fits, with E401: then
 * report.status is REMAT_INFEASIBLE and *out holds the smallest schedule found. */
bool external_plan(Pool *pool, const ExternalGraph *g, const PlanRequest *request,
                   struct SolutionCache *cache, ExternalPlan *out, RematError *error);

/* Every value that the schedule makes and every workspace placed in one arena, persistent tensors
 * first; offsets are not aligned.  The placement has passed memplan_check.  hurried: with
 * MEMPLAN_SKETCH. Fills the two figures of *out, and `hurried`. */
void external_arena(Pool *scratch, const RematProblem *p, const RematSchedule *s, bool hurried,
                    ExternalPlan *out);
/* The two halves of external_arena.  Buffers live in runs of the schedule and stand in its order:
 * for each run the node's outputs, then its workspace if it has one. */
MemBuffer *external_buffers(Pool *pool, const RematProblem *p, const RematSchedule *s, int *n);
/* Offsets behind the persistent tensors. */
MemLayout external_layout(Pool *pool, const MemBuffer *buffers, int n, bool hurried);

#endif
