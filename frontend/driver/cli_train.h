/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of `train` share: verb_train.c sets a run up, cli_train_loop.c makes its steps,
 * evaluations and saves, cli_train_best.c compares evaluations, cli_train_rows.c writes the logs,
 * cli_train_progress.c prints progress. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_TRAIN_H
#define SCRIMP_FRONTEND_DRIVER_CLI_TRAIN_H

#include "frontend/driver/cli_log.h"
#include "frontend/driver/cli_session.h"
#include "frontend/driver/cli_tensorboard.h"
#include "frontend/driver/cli_watch.h"
#include "runtime/run_lock.h"

#include <jansson.h>

/* The lowest held-out loss so far. */
typedef struct BestLoss {
    double loss;   /* NaN: of no evaluation */
    int64_t step;  /* after which it was, */
    int64_t since; /* and how many evaluations came after it */
} BestLoss;

typedef struct Trainer {
    Cli *cli;
    Program program, eval_program;
    Session session, eval;
    bool has_eval;
    Machine machine;
    RunLock lock;  /* of --out, */
    bool has_out;  /* which is there, locked, and may be written */
    bool made_out; /* and was not before */
    Dataset *data;
    json_t *settings; /* what the run is trained with, for its --resume */
    uint64_t seed;
    int64_t update, total; /* updates done, and when the run ends */
    int64_t schedule;      /* updates that the learning rate's schedule spans */
    int64_t parts;         /* micro-batches of an update */
    int64_t updates_per_epoch, eval_every;
    int64_t saved_at;   /* updates done at the last save, -1: none */
    bool due;           /* evaluation and a save, of the state as it is */
    int64_t sent;       /* the update whose inputs were sent ahead, -1: none */
    bool no_data;       /* they could not be made; told */
    LogColumns columns; /* of: */
    Scalar *step_row, *evaluation_row;
    TrainLog log;
    EventFile events; /* of --tensorboard */
    double last_progress, started;
    const char *peak; /* of the plan, for progress */
    int64_t started_at;
    Watch watch;
    bool is_aside; /* the newest save */
    BestLoss best;
    double saving; /* seconds spent on it */
    bool told_saving;
} Trainer;

/* From the run's first step, or the one it is continued at, to the last or to a signal.  False
 * after a message; what can be saved is saved. */
bool trainer_run(Trainer *t);
/* Learning rates of the step that was made last: one, or one for each of several losses. */
int trainer_rates(const Trainer *t);
double trainer_rate(const Trainer *t, int loss);

/* --- rows (cli_train_rows.c) --- */

/* Opens --log and --tensorboard, for a run whose steps, state and evaluation are known; false after
 * a message.  Closes them; false after a message when rows are missing. */
bool trainer_open_logs(Trainer *t);
bool trainer_close_logs(Trainer *t);
/* A row of them, if there are any.  skipped: the step was taken back.  Allocates nothing. */
void trainer_log_step(Trainer *t, double seconds, bool skipped);
void trainer_log_evaluation(Trainer *t, double loss);

/* --- the best evaluation (cli_train_best.c) --- */

/* Notes the loss of an evaluation; true: it is the lowest so far. */
bool best_note(Trainer *t, double loss);
/* Whether the run ends, as `patience` says; `tell`: with a message. */
bool best_ends(const Trainer *t, bool tell);
/* From the settings of the run that is continued, which may be NULL. */
void best_read(Trainer *t, const json_t *settings);

/* --- progress (cli_train_progress.c) --- */

/* A line on standard error, once a second at most.  Allocates nothing. */
void trainer_show_step(Trainer *t);
void trainer_show_evaluation(const Trainer *t, double loss);
/* What the plan needs and costs. */
void trainer_show_memory(const Trainer *t);

#endif
