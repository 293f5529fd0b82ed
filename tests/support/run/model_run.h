/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Model text -> compiled step -> training on made-up batches, inside the test's process; and the
 * same training in ir/eval's doubles.  Weights and batches are named and in the user's layout, so
 * that graphs that went through different passes are comparable. */
#ifndef SCRIMP_TESTS_MODEL_RUN_H
#define SCRIMP_TESTS_MODEL_RUN_H

#include "codegen/build/codegen.h"
#include "frontend/language/frontend.h"
#include "ir/eval.h"
#include "passes/pass.h"
#include "runtime/arena.h"
#include "runtime/threads.h"

typedef struct BuildOptions {
    const char *pipeline; /* NULL = pipeline_train */
    const char *budget, *solver, *march;
    double effort; /* of searches for plans; 0 = sample_effort() */
    bool checksums;
    int64_t strip_cache; /* CodegenOptions */
    bool for_device;     /* for a device's kernels, too (PassContext) */
    bool no_norms;       /* PlanRequest */
    const OptionDef *defs;
    int n_defs;
} BuildOptions;

typedef struct Built {
    Pool *pool;
    Graph *graph;
    MemPlan *plan;
    RematReport report;
    Step *step;
} Built;

Graph *model_lower(Pool *pool, const char *text, const BuildOptions *o);
/* Everything but code generation.  False when the budget cannot be met, or (after a failed check)
 * when the model is refused. */
bool model_plan(Pool *pool, const char *text, const BuildOptions *o, Built *out);
bool model_build(Pool *pool, const char *text, const BuildOptions *o, Built *out);
/* Element k of the stored tensor is element map[k] of the user's. */
int64_t *model_layout(Pool *pool, const Node *n, const Type *t);
bool is_batch(const Node *n);

typedef struct Running {
    const Built *built;
    Arena arena;
    Threads *threads;
    ScrimpContext context;
    bool shuffled; /* examples of a batch in reverse order */
} Running;

void *run_at(const Running *r, ValueId v);
bool run_open(Running *r, const Built *built, int n_threads);
void run_close(Running *r);
/* Weights as the trainer draws them, biases and the like a little off their usual zeros and ones.
 */
void run_initialize(Running *r, uint64_t seed);
void put_element(const Type *t, void *data, int64_t k, double x);
void run_fill(Running *r, uint64_t seed, int64_t step);
void run_step(Running *r, uint64_t seed, int64_t step);
double run_output(const Running *r, const char *name);
/* Where two runs of graphs with the same layout differ in outputs or persistent tensors; NULL =
 * every bit is the same. */
const char *run_difference(const Running *a, const Running *b);
/* The evaluator's inputs for a step; weights come from the compiled run. */
void eval_from_run(EvalState *s, const Running *r, uint64_t seed, int64_t step);

#endif
