/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a step does, when, and what is in memory meanwhile: plain data of a graph after the passes,
 * for everything that shows it (report, plan --peak, plan --why). */
#ifndef SCRIMP_FRONTEND_DRIVER_REPORT_STEP_FACTS_H
#define SCRIMP_FRONTEND_DRIVER_REPORT_STEP_FACTS_H

#include "passes/memplan/memplan.h"
#include "passes/remat/model/cost.h"

typedef enum StepPhase {
    PHASE_FORWARD,  /* the loss depends on it, and it runs for the first time; and statistics of
                       what does */
    PHASE_BACKWARD, /* gradients, and what is computed again for them */
    PHASE_UPDATE,
    N_PHASES
} StepPhase;
extern const char *const phase_name[N_PHASES];

typedef enum TensorKind {
    TENSOR_WEIGHTS,
    TENSOR_STATISTICS, /* running means and the like */
    TENSOR_OPTIMIZER,
    TENSOR_INPUT, /* the batch, learning rate and step number */
    TENSOR_ACTIVATION,
    TENSOR_GRADIENT, /* of anything; and what the update makes of it */
    TENSOR_RECOMPUTED,
    TENSOR_WORKSPACE,
    N_TENSOR_KINDS
} TensorKind;
extern const char *const tensor_kind_name[N_TENSOR_KINDS];

/* One run of an operation; its slot is its index. */
typedef struct OperationFact {
    NodeId node;
    StepPhase phase;
    double cost;   /* by the cost model */
    int before;    /* the slot of the run before of the same operation; -1: this is the first */
    int *in, *out; /* buffers, each once */
    int n_in, n_out;
} OperationFact;

/* A tensor, or a workspace, in memory in slots [first, end).  One that is written over an input is
 * there from then on, in that one's bytes. */
typedef struct BufferFact {
    TensorKind kind;
    ValueId value; /* of a workspace, what its operation makes */
    int over;      /* the buffer that it is written over; -1: none */
    int64_t bytes; /* rounded as the arena does */
    int first, end;
    int64_t offset; /* in the arena; -1: not placed */
    ValueId *held;  /* it and its views and pieces, in the order in which they come; a workspace:
                       none */
    int n_held;
} BufferFact;

typedef struct StepFacts {
    const Graph *graph;
    int n_operations, n_buffers, n_persistent;
    const int *slot_of; /* by NodeId; -1: it does not run */
    OperationFact *operation;
    BufferFact *buffer;       /* the n_persistent ones first */
    int64_t persistent_bytes; /* always in memory */
    int64_t *load;            /* by slot: bytes in memory, persistent ones included */
    int peak_slot;            /* the first with the largest load */
    int64_t peak_bytes;
    int forward_end; /* slots up to the last operation that the loss needs */
} StepFacts;

/* plan: of this graph (MEMPLAN_FINAL), or NULL, which places nothing, and lets everything lie in
 * place that may.  costs: with what they measure, if they do; NULL: the default model's. */
StepFacts step_facts(Pool *pool, const Graph *g, const MemPlan *plan, const NodeCosts *costs);
/* "%conv1", "workspace of %conv1" */
const char *buffer_fact_name(Pool *pool, const StepFacts *f, const BufferFact *b);

#endif
