/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Passes: graph in, better graph out.  The table in passes.def is the pipeline. */
#ifndef SCRIMP_PASSES_PASS_H
#define SCRIMP_PASSES_PASS_H

#include "ir/graph.h"
#include "ir/library_use.h"
#include "passes/memplan/memplan.h"
#include "passes/norm_weights.h"
#include "passes/remat/report.h"

/* The masks in the step; none where remat has chosen the step without. */
typedef struct MaskReport {
    int tensors;              /* that have masks */
    double overhead_percent;  /* filled by remat: what making and reading them adds to the time of
                                 the step without */
    int64_t whole_peak_bytes; /* of the step without, which a budget in percent is of */
} MaskReport;

/* Whether there is code for this operation with these types; when not, why. */
typedef bool PassSupports(const Graph *g, const Node *n, ShapeError *err);

typedef struct PassContext {
    Graph *graph; /* what a pass works on, and what it leaves, in the same pool */
    Pool *pool;   /* the compilation's: everything else that passes leave */

    /* What is asked for */
    PlanRequest request; /* without a cost model: passes_run reads the graph's remat section and
                            the arguments of the pass */
    struct SolutionCache *solution_cache; /* what solvers found for an earlier build; NULL: none */
    bool checksums;                       /* plan adds a checksum of every gradient (verify) */
    PassSupports *supports; /* asked by precision; NULL: there is code for everything */
    LibraryRule *library;   /* asked by library; NULL: nothing is for libraries */
    bool exact;             /* factors and sums of products are as the types say, not by pairs */
    bool for_device;        /* whose kernels have no Winograd's form, chains of sums or pairs */
    const char *archs;      /* of the devices that it is asked for: "sm_80,sm_90" */

    /* From one pass to a later one */
    struct PassContext *again; /* by autodiff, for remat: the same step, whose loops keep nothing
                                  that their gradients can compute again; NULL: without loops */
    struct PassContext *plain; /* by norms, for remat: the same step, whose normalized images are
                                  tensors; NULL: it has none, or loops */
    Graph *without_masks; /* by masks, for remat right behind it; NULL: as the graph is, or not to
                             be looked at */
    PlacementCache *placement_cache; /* of what remat has tried; NULL: none */

    /* What passes have found out */
    MaskReport masks;      /* by masks */
    int chunks;            /* by chunks: of rows of logits, for one loss; 0: whole */
    const char *untrained; /* by autodiff: parameters that the loss does not depend on, "$a $b";
                              NULL = none */
    const char *library_missing; /* by library: what could have been used if it were here, and a way
                                    out; NULL = nothing */
    VEC(FoldedNorm) folded;      /* by fold_norms */
    RematReport report;          /* by remat */
    MemPlan *plan;               /* by plan */
    RematError error;            /* of a pass that failed */
} PassContext;

typedef struct Pass {
    const char *name;
    const char *doc;
    bool (*run)(PassContext *ctx); /* false: ctx->error says why */
    const char *needs;             /* graph kind it works on: "forward", "step" or "any" */
    bool pieces;                   /* it may follow `views` */
    bool bodies;                   /* it runs on the bodies of loops as well */
    bool has_request;              /* of its own: from its arguments and the remat section */
} Pass;

extern const Pass pass_table[];          /* from passes.def; ends with name == NULL */
extern const char *const pipeline_train; /* its rows ALWAYS and TRAINING */
extern const char *const pipeline_infer; /* its rows ALWAYS */
/* pipeline_train up to the first run of a pass; all of it when there is no pass of that name. */
const char *pipeline_before(Pool *pool, const char *pass);

typedef void PassObserver(void *user, const Pass *pass, const Graph *g, double seconds);
/* Runs a comma-separated pipeline such as "autodiff,remat(budget=40%,solver=chen),plan"; verifies
 * after every pass (BUG with the graph printed on a fault) and calls the observer.  false: user
 * error in ctx->error. */
bool passes_run(PassContext *ctx, const char *pipeline, PassObserver *observer, void *user);

/* Whether a pipeline has this pass. */
bool pipeline_has(const char *pipeline, const char *pass);

/* The layer of settings that is the model's remat section. */
PlanSettings remat_section(const TrainSpec *train);

/* A pass fails because of the user's mistake: sets ctx->error; false, as the pass returns it.
 * help: a way out, or NULL. */
bool pass_fail(PassContext *ctx, const char *code, const char *message, const char *help);

/* One function a pass, one file a function. */
#define PASS(name, ...) bool pass_##name(PassContext *ctx);
#define AGAIN(...)
#include "passes/passes.def"
#undef PASS
#undef AGAIN

#endif
