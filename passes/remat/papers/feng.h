/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the algorithms of Feng and Huang share: their model and the division of a graph.
 *
 * Sources: Feng, Huang, "Cutting Down Training Memory by Re-forwarding", 2018 ("close sets"), and
 * "Optimal Gradient Checkpoint Search for Arbitrary Computation Graphs", CVPR 2021 ("independent
 * segments").  The model: cost = bytes of all checkpoints, source and target among them, + the most
 * expensive segment between checkpoints; a segment is entered from one checkpoint and left to one.
 *
 * Errata.  2021 algorithm 3 as printed never finds E^b = E^ij, since E^b has no edges to v_i and
 * v_j: here branches are the connected parts of a segment's inner vertices.  Algorithm 4 rejects a
 * pair (v_k, v_t) when any vertex between them leaks; 2021's optimality (theorem 1) needs the
 * leaking ones stripped instead: then the pairs are those whose removal disconnects something.
 * Algorithm 5 line 15 must recurse on s_kt (s_ij never ends), and the run of members after the last
 * oversized one must be solved too.  One source and one target are asked for: virtual ones of 0
 * bytes are added where there are several, or where the inputs are no vertices. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_FENG_H
#define SCRIMP_PASSES_REMAT_PAPERS_FENG_H

#include "passes/remat/model/problem.h"
#include "passes/remat/papers/forward_graph.h"

/* A graph with one source, 0, and one target, n - 1. */
typedef struct FengGraph {
    ForwardGraph g;
    int shift;  /* vertex v of the given graph is v + shift */
    int n_real; /* its vertices */
} FengGraph;
FengGraph feng_graph(Pool *pool, const ForwardGraph *g);

/* The cost of a choice of checkpoints (by vertex of f; source and target count as chosen); -1 when
 * some segment has more than one entry or exit. */
int64_t feng_cost(Pool *scratch, const FengGraph *f, const bool *checkpoint);

/* ---- the division tree ---- */

typedef enum FengKind { FENG_LEAF, FENG_LINEAR, FENG_BRANCH, FENG_COMPLICATE } FengKind;

typedef struct FengSegment {
    FengKind kind;
    int from, to;
    int *inner, n_inner; /* ascending */
    int64_t cost;        /* of the inner vertices */
    struct FengSegment *member;
    int n_members;
    int *point, n_points; /* linear: the vertices between the members, in order; complicate: what
                             becomes a checkpoint when the segment is broken */
} FengSegment;

typedef enum FengDivision {
    FENG_SPLIT,   /* only the linear splitting vertices of the whole graph */
    FENG_CLOSED,  /* complicate segments as algorithm 4 is printed: no vertex between may leak */
    FENG_STRIPPED /* leaking vertices are stripped */
} FengDivision;

/* `limited` is set when a complicate segment is too large to look for its members.
 * O(V + E) a level of the tree; O(V (V + E)) for a complicate segment of V vertices. */
FengSegment *feng_divide(Pool *pool, const FengGraph *f, FengDivision division, bool *limited);

/* ---- algorithm 6 ---- */

typedef struct FengAnswer {
    bool *checkpoint; /* by vertex of the given graph */
    int64_t kept, largest, cost;
    bool limited; /* stopped at a limit */
} FengAnswer;

/* Called for each answer that is better than those before it; checkpoint by vertex of f. */
typedef void FengSeen(void *user, const FengGraph *f, const bool *checkpoint);

/* The best checkpoints in the division, over all max terms C.  seen may be NULL. */
FengAnswer feng_plan(Pool *pool, const ForwardGraph *g, FengDivision division, int64_t max_steps,
                     FengSeen *seen, void *user);

/* By view node: checkpoints, and what reaches the target without passing one. */
void feng_kept(const FengGraph *f, const bool *checkpoint, bool *keep);

#endif
