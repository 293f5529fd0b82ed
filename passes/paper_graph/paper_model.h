/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The algorithms of the papers on a paper's own graph, under the paper's own model: what their
 * tables hold, as far as that can be computed.  Called by `plan --count`. */
#ifndef SCRIMP_PASSES_PAPER_GRAPH_PAPER_MODEL_H
#define SCRIMP_PASSES_PAPER_GRAPH_PAPER_MODEL_H

#include "passes/paper_graph/paper_graph.h"

typedef struct PaperFigures {
    const char *solver, *strategy;
    int64_t model_bytes;  /* Kusumoto: equation 2; Feng and Huang: checkpoints + largest segment */
    double overhead;      /* recomputed T_v, Kusumoto's equation 1 or what is not kept */
    int64_t live_bytes;   /* peak of the strategy with liveness: remat_check's, of the step that
                             external_problem makes of the graph */
    double live_overhead; /* what that schedule recomputes */
    int n_kept;           /* checkpoints, or vertices on boundaries of lower sets */
    bool limited;         /* stopped at a limit: not the optimum of the model */
    double seconds;
} PaperFigures;

typedef struct PaperTable {
    int64_t graph_bytes;    /* of all vertices */
    double graph_time;      /* T(V): one forward pass */
    int64_t all_kept_bytes; /* peak with liveness when nothing runs twice */
    PaperFigures row[16];
    int n;
} PaperTable;

/* Kusumoto's methods at the smallest budget of their model, time- and memory-centric, Chen's
 * segments with the smallest equation 2, Feng and Huang's optima. exact: kusumoto_exact too.
 * max_steps bounds each (a step takes some nanoseconds).  False with E409 when the graph is too
 * large. */
bool paper_model(Pool *pool, const PaperGraph *c, int64_t max_steps, PaperTable *out,
                 const char **error);

#endif
