/* The forward part of a step as the graph (V, E, T_v, M_v) of the papers, and the way from their
 * answer, which nodes to keep, back to a schedule of the whole step.
 *
 * The mapping.  A forward node that is not kept loses its outputs after their last use in the
 * forward pass (the base order's reads by forward nodes, running statistics and metrics).  The
 * first later node that needs one has it recomputed just before it, together with those of its
 * ancestors that are gone; from then on it stays until liveness frees it.  So a node runs at most
 * twice.  Nodes that overwrite a weight wait until the last recomputation that reads the old
 * version. */
#ifndef SCRIMP_PASSES_REMAT_FORWARD_VIEW_H
#define SCRIMP_PASSES_REMAT_FORWARD_VIEW_H

#include "passes/remat/forward_graph.h"
#include "passes/remat/remat.h"

typedef struct ForwardView {
    const RematProblem *p;
    int n;
    int *node;      /* view -> problem node, ascending: a topological order */
    int *index;     /* problem node -> view, -1 = not forward */
    double *cost;   /* T_v */
    int64_t *bytes; /* M_v: all outputs */
    Csr pred, succ; /* distinct */
    int *turn;  /* by problem tensor: base position of its last forward use; -1 = never dropped */
    bool *late; /* by problem node: overwrites something, or depends on a node that does */
} ForwardView;

ForwardView *forward_view_new(Pool *pool, const RematProblem *p);

/* The view for algorithms that know of no step.  Shares the view's arrays. */
ForwardGraph forward_view_graph(const ForwardView *v);

/* keep: by view node. */
RematSchedule forward_view_schedule(Pool *pool, const ForwardView *v, const bool *keep);

/* Scores choices of kept nodes with remat_check and remembers the best.  Which choices are looked
 * at must not depend on the budget: then a larger budget never costs more time. */
typedef struct Candidates {
    const ForwardView *view;
    RematOptions options;
    Pool *pool;
    RematSchedule best;
    RematFigures figures;
    int tried;
    bool limited; /* by the deadline */
} Candidates;

/* Starts with everything kept (but what @recompute forbids). */
Candidates *candidates_new(Pool *pool, const ForwardView *v, const RematOptions *o);
void candidates_try(Candidates *c, const bool *keep);
/* The same for a whole schedule; one that does not obey @keep and @recompute is passed over. */
void candidates_try_schedule(Candidates *c, const RematSchedule *s);
/* Tries keep, and then with nodes given back, those that save most time per byte first, in a few
 * steps up to keeping everything.  Changes keep. */
void candidates_try_restoring(Candidates *c, bool *keep);
/* The boundaries of an increasing sequence of lower sets and the whole last block are kept
 * (executing the last block needs no recomputation); tried as above.  set_of: by view node, the
 * number (from 0) of the first set of the sequence that holds it; n_sets includes V. */
void candidates_try_sets(Candidates *c, const int *set_of, int n_sets);
/* The best, in the candidates' own pool or a copy of it in the pool given. */
RematStatus candidates_finish(const Candidates *c, RematSchedule *out);
RematStatus candidates_answer(const Candidates *c, Pool *pool, RematSchedule *out);

#endif
