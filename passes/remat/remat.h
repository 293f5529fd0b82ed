/* Rematerialization as plain data: problem -> solver -> schedule -> independent check -> apply.
 * Solvers see no IR.  See docs/remat.md and the papers named at each solver.
 *
 * Bytes are those of the arena: every size is already rounded up to MEMPLAN_ALIGN by whoever builds
 * the problem; persistent tensors count throughout. */
#ifndef SCRIMP_PASSES_REMAT_REMAT_H
#define SCRIMP_PASSES_REMAT_REMAT_H

#include "ir/graph.h"
#include "passes/remat/cost.h"

typedef struct RematTensor {
    int64_t bytes;
    int producer;    /* node, or -1: exists before the first node runs (batch inputs, persistent
                        tensors) */
    bool persistent; /* counted throughout, never freed */
    bool keep;       /* its last version lives to the end (loss, metrics) */
    const char *name;
} RematTensor;

/* Output position `out` may be written over input position `in` when that input dies at this run
 * (and is neither persistent nor keep).  Only offered for equal sizes.  First legal pair in order
 * wins; an input and an output take part at most once. */
typedef struct RematInPlace {
    int out, in;
} RematInPlace;

typedef struct RematNode {
    const char *name;
    double cost;       /* time, any one unit */
    int64_t workspace; /* bytes alive only while it runs; below 0 in relaxed problems */
    bool rerun;        /* may run more than once */
    bool forward; /* belongs to the forward part (defines the forward view of chen and kusumoto) */
    RematHint
        hint; /* @keep: never run twice;  @recompute: its outputs must not live across the loss */
    int n_in, n_out, n_in_place, n_overwrites;
    int *in;  /* tensors read, distinct */
    int *out; /* tensors made */
    RematInPlace *in_place;
    int *overwrites; /* tensors whose value is gone once this node has run (the old version of a
                        weight); the outputs that take their place have bytes = 0 */
} RematNode;

typedef struct RematProblem {
    Pool *pool;
    int n_nodes, n_tensors;
    RematNode *node; /* in the base order, which is valid */
    RematTensor *tensor;
    int64_t persistent_bytes;
    int loss_node;          /* node that makes the loss; -1 when there is none */
    double bounds_until;    /* seconds of the monotonic clock after which bounds look no further: as
                               good as they are by then, never wrong; 0 = no such time */
    double orders_until;    /* the same for reorder_nodes: the best order found by then */
    struct RematMemo *memo; /* room for what a solver found out (remat_memo_new); or NULL */
    const struct RematProblem *relaxed; /* what bounds are of, where plans can have less in memory
                                           than their schedules (relax_pieces.h); NULL: itself */
    const struct RematPieces *pieces;   /* what plans of schedules are likely to have in memory
                                           (pieces_schedule.h); NULL: what the problem says */
} RematProblem;

typedef struct RematSchedule {
    int len;
    int *node; /* executions in order; nodes may appear several times */
} RematSchedule;

/* What an outsider's replay finds (check.c).  It shares no code with the solvers, and only these
 * numbers are ever reported. */
typedef struct RematFigures {
    bool ok;
    const char *fault;      /* why not ok */
    int64_t peak_bytes;     /* with persistent tensors */
    int peak_at;            /* index into the schedule */
    double time, time_once; /* cost of the schedule; cost of every node once */
    int recomputed;         /* executions beyond the first of each node */
} RematFigures;

/* Replays a schedule: every node runs at least once; a read takes the latest run and must find it;
 * a node that may not be run again is not; a recomputation reads the same version of overwritten
 * tensors as the first run did; at each run inputs, outputs and workspace are alive together
 * (in-place pairs honoured); a value dies after its last read, an unread one right after its node.
 * O(total reads). */
RematFigures remat_check(Pool *scratch, const RematProblem *p, const RematSchedule *s);

typedef enum RematObjective { REMAT_MIN_TIME, REMAT_MIN_MEMORY } RematObjective;
typedef enum RematStatus {
    REMAT_OPTIMAL,
    REMAT_FEASIBLE,
    REMAT_LIMIT, /* stopped at a limit of its own: what it found may fit the budget or not */
    REMAT_INFEASIBLE
} RematStatus;

typedef struct RematNotes {
    int treewidth; /* twremat: the width of its tree decomposition */
    bool proven;   /* checkmate_ilp: nothing is faster in the base order, each node once a stage */
    bool exact;    /* scrimp: nothing is faster within the budget, or nothing is within it at all */
} RematNotes;

typedef struct RematOptions {
    int64_t budget_bytes; /* for the peak; INT64_MAX = none */
    RematObjective objective;
    uint64_t seed;
    double deadline_seconds; /* of the monotonic clock, for remat_out_of_time; 0 = none.  The only
                                thing that may make an answer depend on the clock */
    int stop_at;             /* twremat: schedule parts of fewer bags at once; 0 = try several */
    double effort;           /* scrimp: how much to search, 1 = as much as usual; 0 = 1 */
    bool with_copies;        /* scrimp: the smallest schedule by its peak with copies; without
                                pieces (RematProblem.pieces) no other than that asked for */
    int64_t max_steps;       /* when a search that could be too long stops; 0: its own limit */
    int n_threads;           /* scrimp: on how many to search; 0 = all cores.  No matter for what
                                it finds */
    RematNotes *notes;       /* what the solver found on the way goes there; NULL = not wanted */
    /* Told of every schedule that is scored on the way, or NULL. */
    void (*seen)(void *user, const RematSchedule *s, const RematFigures *f);
    void *user;
} RematOptions;

/* The deadline has passed: answer with the best found so far (REMAT_LIMIT). */
bool remat_out_of_time(const RematOptions *o);

/* A solver writes the best schedule it finds (base order and keep-everything is always one) and
 * says how it ended: FEASIBLE when remat_check puts it within the budget (OPTIMAL when it has
 * proven that no schedule within the budget is faster), INFEASIBLE with the smallest-peak schedule
 * it found otherwise, LIMIT when it might have found another answer without one of its limits. */
typedef RematStatus RematSolve(const RematProblem *p, const RematOptions *o, Pool *pool,
                               RematSchedule *out);

typedef struct RematSolver {
    const char *name; /* as in `remat { solver = ... }` and --solver */
    const char *doc;  /* one line, with its source */
    RematSolve *solve;
    bool in_best;   /* one of those that `best` runs; the others are for comparison, or slow */
    bool has_front; /* all budgets are answered from the front of RematProblem.memo, whose peaks
                       are pieces_peak's (pieces_schedule.h) */
} RematSolver;

/* Where what solvers found out outlives the program; entries may vanish or be damaged. */
typedef struct RematStore {
    /* What was put under the key, on the pool; NULL: nothing. */
    const char *(*get)(void *user, Pool *pool, const char *key, size_t *bytes);
    void (*put)(void *user, const char *key, const char *data, size_t bytes);
    void *user;
} RematStore;

/* What solvers found out (memo.c).  The scrimp solver's one search answers all budgets: with this
 * in its problem it is made once.  Problems that are equal may share one (several builds of one
 * model); it holds what was found for the last problem that was new, in the pool given.  With a
 * store, slow answers are also kept there, for later runs; NULL = no store. */
struct RematMemo *remat_memo_new(Pool *pool, const RematStore *store);
/* Beside it, with the same store: room for a problem that is solved in turn with the first. */
struct RematMemo *remat_memo_second(struct RematMemo *memo);

extern const RematSolver remat_solvers[]; /* ends with name == NULL */
const RematSolver *remat_solver_find(const char *name);

/* The problem of a step graph under a cost model (NULL: the default), and the way back. */
typedef struct RematMapping {
    NodeId *node_of;   /* problem node -> graph node */
    ValueId *value_of; /* problem tensor -> the graph value that owns the storage */
} RematMapping;
RematProblem *remat_problem_from_graph(Pool *pool, const Graph *g, const NodeCosts *costs,
                                       RematMapping *mapping);
/* Rebuilds g's order from the schedule: repeated nodes become clones ("X~1", remat_of, remat_by),
 * readers take the latest run, views follow their storage. */
void remat_apply(Graph *g, const RematProblem *p, const RematMapping *mapping,
                 const RematSchedule *s, const char *solver_name);

#endif
