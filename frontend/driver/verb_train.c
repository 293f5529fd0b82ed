/* SPDX-License-Identifier: GPL-3.0-or-later */
/* train: everything that a run needs is obtained and checked before its first step. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_resume.h"
#include "frontend/driver/cli_signals.h"
#include "frontend/driver/cli_train.h"
#include "frontend/driver/cli_tune.h"

#include "runtime/file.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static ExitCode build_training(Trainer *t, const Ast *ast)
{
    Cli *cli = t->cli;
    ProgramOptions o = {.mode = FRONTEND_TRAIN};
    return cli_build(cli, ast, &o, &t->program);
}

/* --keep-best needs one; who has written held_out is told where there is none all the same. */
static bool check_evaluation(Trainer *t)
{
    Cli *cli = t->cli;
    bool keep_best = cli->run.keep_best, overfit = cli->run.overfit;
    if (overfit && keep_best)
        return cli_error(cli, EXIT_USER, "E513", "leave one of them out",
                         "--keep-best: --overfit evaluates nothing") == EXIT_OK;
    t->has_eval =
        !overfit && session_tell_held_out(cli, t->data, keep_best ? "--keep-best: " : NULL);
    return t->has_eval || !keep_best;
}

/* Of one that needs more than training. */
static void tell_evaluation(const Cli *cli, int64_t bytes, int64_t budget)
{
    const char *needs = bytes_text(cli->pool, bytes);
    if (bytes <= budget)
        fprintf(stderr, "note: evaluation needs %s, more than training\n", needs);
    else
        fprintf(stderr,
                "note: evaluation needs %s, %s more than the budget; it computes nothing twice: a "
                "smaller batch needs less\n",
                needs, bytes_text(cli->pool, bytes - budget));
}

/* Evaluation runs in the memory of training, when there is something to evaluate on. */
static bool build_evaluation(Trainer *t, const Ast *ast, int64_t *arena_bytes)
{
    Cli *cli = t->cli;
    ProgramOptions o = {.mode = FRONTEND_EVAL};
    *arena_bytes = t->program.plan->arena_bytes;
    if (!t->has_eval)
        return true;
    if (cli_build(cli, ast, &o, &t->eval_program) != EXIT_OK)
        return false;
    *arena_bytes = session_share_plan(&t->program, &t->eval_program);
    if (*arena_bytes > t->program.plan->arena_bytes)
        tell_evaluation(cli, *arena_bytes, t->program.report.budget_bytes);
    return true;
}

/* The first of some updates all over the run at which a rate is no rate, or -1. */
static int64_t bad_rate(const Trainer *t, const LrSchedule *lr)
{
    enum { LOOKED_AT = 10000 };
    int64_t stride = t->schedule / LOOKED_AT + 1;
    for (int64_t i = 0; i < t->schedule; i += stride) {
        double rate = lr_at(lr, i, t->schedule, t->updates_per_epoch);
        if (!(rate >= 0) || !isfinite((float)rate))
            return i;
    }
    return -1;
}

/* A formula may give anything. */
static bool check_rates(const Trainer *t)
{
    const TrainSpec *spec = &t->program.graph->train;
    for (int g = -1; g < spec->n_groups; g++) {
        const LrSchedule *lr = g < 0 ? &spec->rule.lr : &spec->group[g].rule.lr;
        int64_t at = bad_rate(t, lr);
        if (at < 0)
            continue;
        cli_error(t->cli, EXIT_USER, "E516", "max(x, 0) and min(x, 1) keep a formula in bounds",
                  "the learning rate is %g after step %lld of %lld",
                  lr_at(lr, at, t->schedule, t->updates_per_epoch), (long long)at,
                  (long long)t->schedule);
        return false;
    }
    return true;
}

/* --steps ends a run early or late but does not bend the schedule: a run that is ended and
 * continued has the learning rates of one that was not. */
static bool schedule_lengths(Trainer *t)
{
    const TrainSpec *spec = &t->program.graph->train;
    t->parts = train_micro_batches(spec);
    int64_t batches = dataset_batches_per_epoch(t->data);
    t->updates_per_epoch = batches / t->parts > 0 ? batches / t->parts : 1;
    double updates =
        spec->steps ? (double)spec->steps : ceil(spec->epochs * (double)t->updates_per_epoch);
    if (updates > INT32_MAX) /* the step counts in i32 */
        return cli_error(t->cli, EXIT_USER, "E516", NULL, "%.0f steps: at most %d are possible",
                         updates, INT32_MAX) == EXIT_OK;
    t->schedule = (int64_t)updates;
    t->total = t->cli->run.steps ? t->cli->run.steps : t->schedule;
    t->eval_every = spec->eval_every ? spec->eval_every : t->updates_per_epoch;
    return check_rates(t);
}

static bool start_weights(Trainer *t)
{
    Cli *cli = t->cli;
    if (cli->run.resume) {
        TrainerState state;
        if (!session_load(&t->session, cli->output.out, &state) ||
            !session_keep(&t->session, cli->output.out, cli->run.keep_last))
            return false;
        t->update = state.step;
        t->seed = state.seed;
        t->due = state.evaluation_due;
        t->watch.kept = state.step;
        if (state.model_hash == session_model_hash(&t->session))
            return true;
        cli_error(cli, EXIT_USER, "E503",
                  "a run is continued with the model, the optimizer and the groups it began with",
                  "%s holds another model or optimizer", cli->output.out);
        return false;
    }
    if (!session_initialize(&t->session, t->seed))
        return false;
    return !cli->run.checkpoint || session_load_weights(&t->session, cli->run.checkpoint);
}

/* A new run replaces nothing that somebody may want: neither a run nor weights. */
static bool start_run(Trainer *t)
{
    RtError err;
    TrainerState state;
    Cli *cli = t->cli;
    bool run = checkpoint_exists(cli->output.out);
    const char *weights = pool_printf(cli->pool, "%s/model.safetensors", cli->output.out);
    if (cli->run.resume)
        cli_error(cli, EXIT_USER, "E511", "leave --resume out to start one",
                  "%s holds no run to continue", cli->output.out);
    else if (run && !checkpoint_read_state(cli->output.out, &state, &err))
        cli_error(cli, EXIT_USER, "E503", NULL, "%s", err.message);
    else if (run && !cli->run.overwrite)
        cli_error(cli, EXIT_USER, "E519",
                  "--resume continues it, --overwrite replaces it, another --out keeps both",
                  "%s holds a run that is at step %lld", cli->output.out, (long long)state.step);
    else if (!run && file_exists(weights) && !cli->run.overwrite)
        cli_error(cli, EXIT_USER, "E519",
                  "--checkpoint starts from it; give another --out, or --overwrite to replace it",
                  "%s is there already", weights);
    else
        return true;
    return false;
}

/* A run's seed decides the order of its data, so it is known before the data set is opened. */
static bool continue_run(Trainer *t)
{
    RtError err;
    TrainerState state;
    Cli *cli = t->cli;
    if (!checkpoint_read_state(cli->output.out, &state, &err)) {
        cli_error(cli, EXIT_USER, "E503", NULL, "%s", err.message);
        return false;
    }
    if (cli->run.has_seed && (uint64_t)cli->run.seed != state.seed) {
        cli_error(cli, EXIT_USER, "E518", "leave --seed out: the run's is known",
                  "the run in %s has the seed %llu, not %lld", cli->output.out,
                  (unsigned long long)state.seed, (long long)cli->run.seed);
        return false;
    }
    t->seed = state.seed;
    return true;
}

/* To the end of this process no other writes to the folder, which is made where it is missing. */
static bool lock_out(Trainer *t)
{
    RtError err, note;
    Cli *cli = t->cli;
    t->made_out = !folder_exists(cli->output.out);
    if (!folder_make(cli->output.out, &err)) {
        cli_error(cli, EXIT_USER, "E502", NULL, "%s", err.message);
        return false;
    }
    if (!run_lock(&t->lock, cli->output.out, &note, &err)) {
        cli_error(cli, EXIT_USER, "E520", "wait for it, end it, or give another --out", "%s",
                  err.message);
        return false;
    }
    if (note.message[0])
        fprintf(stderr, "warning: %s\n", note.message);
    return true;
}

/* What cannot be started or continued is refused before anything is planned.  make: also where the
 * folder is not there yet; a run that fails before that leaves none behind. */
static bool prepare_out(Trainer *t, bool make)
{
    Cli *cli = t->cli;
    if (!cli->output.out || t->has_out || (!make && !folder_exists(cli->output.out)))
        return true;
    if (cli->run.resume && !checkpoint_exists(cli->output.out))
        return start_run(t); /* says so, and makes no folder */
    t->has_out = lock_out(t);
    return t->has_out && (cli->run.resume ? continue_run(t) : start_run(t));
}

/* What this run is trained with, and, when it is continued, whether it may be. */
static bool compare_settings(Trainer *t, const Ast *ast)
{
    Cli *cli = t->cli;
    best_read(t, NULL);
    if (!cli->output.out)
        return true;
    t->settings = resume_settings(cli, ast, &t->program, t->data);
    if (!cli->run.resume)
        return true;
    json_t *then = checkpoint_read_settings(cli->output.out);
    bool ok = resume_check(cli, ast, t->settings, then);
    best_read(t, then);
    json_decref(then);
    return ok;
}

static bool set_up(Trainer *t, const Ast *ast)
{
    Cli *cli = t->cli;
    if (!cli->run.resume)
        t->seed = session_seed(cli, t->program.graph);
    if (!prepare_out(t, true))
        return false;
    t->data = session_open_data(cli, t->program.graph, false, t->seed);
    if (!t->data ||
        !session_same_vocab(cli, t->data,
                            cli->run.resume ? cli->output.out : cli->run.checkpoint) ||
        !compare_settings(t, ast))
        return false;
    fprintf(stderr, "data: %s (%s loaded)\n", dataset_description(t->data),
            bytes_text(cli->pool, dataset_loaded_bytes(t->data)));
    if (!cli->output.out)
        fputs("note: without --out DIR the weights are not kept\n", stderr);
    int64_t bytes;
    if (!schedule_lengths(t) || !check_evaluation(t) || !build_evaluation(t, ast, &bytes))
        return false;
    if (tune_if_asked(cli, &t->program) != EXIT_OK ||
        !session_compile(cli, &t->program, &t->session) ||
        (t->has_eval && !session_compile(cli, &t->eval_program, &t->eval)))
        return false;
    if (!machine_open(cli, bytes, &t->machine) || !session_attach(&t->session, &t->machine) ||
        (t->has_eval && !session_attach(&t->eval, &t->machine)))
        return false;
    return start_weights(t) &&
           watch_open(&t->watch, cli, &t->session, t->data, t->machine.threads) &&
           trainer_open_logs(t);
}

static void tear_down(Trainer *t)
{
    watch_close(&t->watch);
    dataset_close(t->data);
    json_decref(t->settings);
    session_close(&t->session);
    session_close(&t->eval);
    machine_close(&t->machine);
    run_unlock(&t->lock);
    if (t->made_out) /* a run that was not begun leaves no folder; one that has saved is not empty
                      */
        rmdir(t->cli->output.out);
}

static bool check_options(Cli *cli)
{
    if (cli->run.resume && !cli->output.out)
        cli_error(cli, EXIT_USER, "E511", "add --out DIR", "--resume needs the run's folder");
    else if (cli->run.keep_best && !cli->output.out)
        cli_error(cli, EXIT_USER, "E511", "add --out DIR", "--keep-best needs the run's folder");
    else if (cli->run.keep_last && !cli->output.out)
        cli_error(cli, EXIT_USER, "E511", "add --out DIR", "--keep-last needs the run's folder");
    else if (cli->run.resume && cli->run.overwrite)
        cli_error(cli, EXIT_USER, "E511", "leave one of them out",
                  "--resume and --overwrite exclude each other");
    else if (cli->run.resume && cli->run.checkpoint)
        cli_error(cli, EXIT_USER, "E511",
                  "--resume has the run's own weights: leave one of them out",
                  "--resume and --checkpoint exclude each other");
    else
        return true;
    return false;
}

ExitCode verb_train(Cli *cli)
{
    if (!check_options(cli) || !cli_needs_file(cli, "--out", cli->output.out) ||
        !cli_needs_file(cli, "--tensorboard", cli->run.tensorboard))
        return EXIT_USER;
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    Trainer t = {.cli = cli, .watch.kept = -1};
    if (!finite_policy(cli, &t.watch.policy))
        return EXIT_USER;
    ExitCode code = prepare_out(&t, false) ? build_training(&t, ast) : EXIT_USER;
    if (code != EXIT_OK) {
        tear_down(&t);
        return code;
    }
    t.peak = bytes_text(cli->pool, t.program.plan->peak_bytes);
    trainer_show_memory(&t);
    bool ok = set_up(&t, ast) && trainer_run(&t);
    if (ok && t.machine.cuda && !cli->output.quiet)
        fprintf(stderr, "device memory: %s\n", machine_memory_text(cli->pool, &t.machine));
    ok = trainer_close_logs(&t) && ok;
    tear_down(&t);
    cli->state->ended_by = signals_caught();
    return ok ? EXIT_OK : machine_failure(cli);
}
