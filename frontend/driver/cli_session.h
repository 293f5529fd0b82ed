/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled, loaded step with its memory: what train, eval, generate, bench and verify run. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_SESSION_H
#define SCRIMP_FRONTEND_DRIVER_CLI_SESSION_H

#include "codegen/build/codegen.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_metrics.h"
#include "frontend/driver/cli_program.h"
#include "runtime/checkpoint.h"
#include "runtime/cuda/feed.h"
#include "runtime/cuda/step.h"
#include "runtime/data.h"

typedef struct Session {
    Cli *cli;
    const Graph *graph;
    MemPlan *plan;
    Step *step;
    Machine *machine;
    char *arena; /* base of the memory in use, or of its image */
    ScrimpContext context;
    CudaStep *cuda;           /* the step on a device */
    CudaFeed *feed;           /* its inputs and outputs */
    CheckpointTensor *tensor; /* persistent tensors, in the graph's order */
    ValueId *tensor_value;    /* by tensor */
    CudaPiece *state;         /* where they lie, by tensor */
    int n_tensors;
    Metrics metrics; /* beside loss and grad_norm */
} Session;

/* Compiles the step (with a progress line) and describes its persistent tensors.  The session has
 * no memory yet. */
bool session_compile(Cli *cli, const Program *program, Session *out);
/* Lets it run on a machine with an arena of at least plan->arena_bytes; false after a message. */
bool session_attach(Session *s, Machine *machine);
void session_close(Session *s);
/* On a device: persistent tensors from it, and to it.  Whoever reads them, or has written them,
 * asks for it.  False after a message. */
bool session_fetch_state(const Session *s);
bool session_send_state(const Session *s);
/* On a device whose arena another session has used: it is this one's from here on, with the state
 * of the image.  False after a message. */
bool session_take_arena(const Session *s);

/* A session that runs alone, with its memory and threads. */
typedef struct RunningSession {
    Session session;
    Machine machine;
} RunningSession;

/* Compiles, maps memory and starts threads; false after a message.  Either way running_close. */
bool running_open(Cli *cli, const Program *program, RunningSession *out);
void running_close(RunningSession *h);

/* Moves eval's plan onto the memory of train's: persistent tensors of the same name share their
 * bytes (those of parameters with a running mean, the mean's), everything else lies behind train's
 * persistent region.  Before session_compile of eval. Returns the bytes both need together. */
int64_t session_share_plan(const Program *train, Program *eval);

/* The sizes of a persistent tensor as its user sees them: storage dim i is user dim perm[i]. */
void session_user_dims(const Node *n, const Type *t, int64_t *dims);
/* The elements of a persistent tensor, from the order of the language to that of its storage. */
void weights_to_storage(const Node *n, const Type *t, const float *from, float *to);
/* Fills parameters, buffers and state from their `init` attributes. */
bool session_initialize(Session *s, uint64_t seed);
/* What is drawn at random follows from it: --seed, or the model's. */
uint64_t session_seed(const Cli *cli, const Graph *g);
/* The address of a value. */
void *session_at(const Session *s, ValueId v);
/* The input whose role attribute is `role`, VALUE_NONE when the graph has none. */
ValueId session_input(const Session *s, const char *role);
/* The numbers that a step gets beside its batch.  lr: the rate of parameters in no group; update:
 * updates done before (0 first); micro: micro-batches consumed before, which with the seed say what
 * is drawn at random.  Where the rates of groups are those of their schedules, total and per_epoch
 * are the updates of the run and of an epoch; else 0: they are lr. */
typedef struct StepNumbers {
    double lr;
    int64_t update, micro;
    uint64_t seed;
    int64_t total, per_epoch;
} StepNumbers;
/* Runs one step; false after a message, which only a device gives. */
bool session_run(Session *s, StepNumbers n);
/* The same in three parts.  session_send: the inputs in the arena are those of the next step; on a
 * device they may change behind it.  session_start: on a device the step is in line, and outputs
 * are not there before session_finish.  The next step's inputs may be sent in between. */
bool session_send(Session *s, StepNumbers n);
bool session_start(Session *s);
bool session_finish(Session *s);
/* The same on a device, with the seconds of every call added to a profile. */
bool session_measure(Session *s, RtProfile *profile);
/* A scalar output by name; NaN when the graph has none. */
double session_scalar(const Session *s, const char *output);

/* Behind session_fetch_state. */
bool session_save(Session *s, const char *dir, const TrainerState *state);
/* Behind session_save or session_load: the last `count` saves stay in folders inside (0: none is
 * made). */
bool session_keep(Session *s, const char *dir, int64_t count);
bool session_load(Session *s, const char *dir, TrainerState *state);
bool session_load_weights(Session *s, const char *path);
/* On standard error: tensors of a file that a model has not, and that running means were taken. */
void session_tell_loaded(const Cli *cli, const char *path, const ExtraWeights *extra);

/* Opens the model's data source, or --data in its place; synthetic: random data of the model's
 * shapes instead. */
Dataset *session_open_data(Cli *cli, const Graph *g, bool synthetic, uint64_t seed);
/* What the model and the command line say of its data; `field` has what the model reads.  No kind:
 * it names no source. */
DataSpec session_data_spec(Cli *cli, const Graph *g);
/* E517 when the text has other characters than the run in `dir` was trained on (dir may be NULL, or
 * not a run): its tokens would mean something else. */
bool session_same_vocab(Cli *cli, const Dataset *ds, const char *dir);
/* Fills the inputs of training step `update`. */
bool session_fill(const Session *s, const Dataset *ds, int64_t update, bool overfit);
/* Fills the inputs of evaluation batch `batch`; *counted is its weight in a mean. */
bool session_fill_held_out(const Session *s, const Dataset *ds, int64_t batch, int64_t *counted);
/* Before evaluations: a note of held-out examples that they leave out.  False where they read none,
 * with E513 when `needs` (such as "--keep-best: ") wants them, else (NULL) with a warning if some
 * are held out. */
bool session_tell_held_out(Cli *cli, const Dataset *ds, const char *needs);
/* Over the held-out part: the mean of the loss, and all metrics (the inference form of a classifier
 * has the metric "accuracy").  NaN when nothing is held out.  False after a message, or
 * when a signal was caught meanwhile. */
bool session_evaluate(Session *s, const Dataset *ds, double *loss);

/* Bytes that identify the parameters and the optimizer, for resume. */
uint64_t session_model_hash(const Session *s);

#endif
