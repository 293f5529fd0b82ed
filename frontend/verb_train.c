/* train: the loop around the compiled step. */
#include "frontend/cli_file.h"
#include "frontend/cli_log.h"
#include "frontend/cli_resume.h"
#include "frontend/cli_signals.h"
#include "frontend/cli_watch.h"
#include "ir/support/clock.h"

#include "runtime/file.h"
#include "runtime/run_lock.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct Trainer {
    Cli *cli;
    Program program, eval_program;
    Session session, eval;
    bool has_eval;
    Arena arena;
    Threads *threads;
    RunLock lock; /* of --out */
    Dataset *data;
    json_t *settings; /* what the run is trained with, for its --resume */
    uint64_t seed;
    int64_t update, total; /* updates done, and when the run ends */
    int64_t schedule;      /* updates that the learning rate's schedule spans */
    int64_t updates_per_epoch, eval_every;
    int64_t saved_at; /* updates done at the last save, -1: none */
    bool due;         /* evaluation and a save, of the state as it is */
    TrainLog log;
    double last_progress, started;
    int64_t started_at;
    Watch watch;
    bool is_aside; /* the newest save */
    double saving; /* seconds spent on it */
    bool told_saving;
} Trainer;

/* --- set-up --- */

static ExitCode build_training(Trainer *t, const Ast *ast)
{
    Cli *cli = t->cli;
    ProgramOptions o = {.mode = FRONTEND_TRAIN,
                        .budget = cli->budget,
                        .solver = cli->solver,
                        .objective = cli->objective};
    return cli_build(cli, ast, &o, &t->program);
}

/* Evaluation runs in the memory of training, when there is something to evaluate on. */
static bool build_evaluation(Trainer *t, const Ast *ast, int64_t *arena_bytes)
{
    Cli *cli = t->cli;
    ProgramOptions o = {.mode = FRONTEND_EVAL};
    *arena_bytes = t->program.plan->arena_bytes;
    t->has_eval = dataset_eval_batches(t->data) > 0 && !cli->overfit;
    if (!t->has_eval)
        return true;
    if (cli_build(cli, ast, &o, &t->eval_program) != EXIT_OK)
        return false;
    *arena_bytes = session_share_plan(cli, &t->program, &t->eval_program);
    if (*arena_bytes > t->program.plan->arena_bytes)
        fprintf(stderr, "note: evaluation needs %s, more than training\n",
                bytes_text(cli->pool, *arena_bytes));
    return true;
}

static void print_memory(const Trainer *t)
{
    const RematReport *r = &t->program.report;
    Pool *pool = t->cli->pool;
    fprintf(stderr, "memory: %s persistent, %s without recomputation, %s with this plan",
            bytes_text(pool, r->persistent_bytes), bytes_text(pool, r->keep_all_peak_bytes),
            bytes_text(pool, t->program.plan->arena_bytes));
    if (r->recomputed_ops)
        fprintf(stderr, " (%s recomputes %d operation%s, %.1f%% more time)", r->solver,
                r->recomputed_ops, r->recomputed_ops == 1 ? "" : "s", r->overhead_percent);
    fputc('\n', stderr);
}

/* --steps ends a run early or late but does not bend the schedule: a run that is ended and
 * continued has the learning rates of one that was not. */
static bool schedule_lengths(Trainer *t)
{
    const TrainSpec *spec = &t->program.graph->train;
    int64_t parts = spec->accumulate > 1 ? spec->accumulate : 1;
    int64_t batches = dataset_batches_per_epoch(t->data);
    t->updates_per_epoch = batches / parts > 0 ? batches / parts : 1;
    double updates =
        spec->steps ? (double)spec->steps : ceil(spec->epochs * (double)t->updates_per_epoch);
    if (updates > INT32_MAX) /* the step counts in i32 */
        return cli_error(t->cli, EXIT_USER, "E516", NULL, "%.0f steps: at most %d are possible",
                         updates, INT32_MAX) == EXIT_OK;
    t->schedule = (int64_t)updates;
    t->total = t->cli->steps ? t->cli->steps : t->schedule;
    t->eval_every = spec->eval_every ? spec->eval_every : t->updates_per_epoch;
    return true;
}

static bool start_weights(Trainer *t)
{
    Cli *cli = t->cli;
    if (cli->resume) {
        TrainerState state;
        if (!session_load(&t->session, cli->out, &state))
            return false;
        t->update = state.step;
        t->seed = state.seed;
        t->due = state.evaluation_due;
        t->watch.kept = state.step;
        if (state.model_hash == session_model_hash(&t->session))
            return true;
        cli_error(cli, EXIT_USER, "E503", NULL, "%s holds another model", cli->out);
        return false;
    }
    if (!session_initialize(&t->session, t->seed))
        return false;
    return !cli->checkpoint || session_load_weights(&t->session, cli->checkpoint);
}

/* A new run replaces nothing that somebody may want: neither a run nor weights. */
static bool start_run(Trainer *t)
{
    RtError err;
    TrainerState state;
    Cli *cli = t->cli;
    bool run = checkpoint_exists(cli->out);
    const char *weights = pool_printf(cli->pool, "%s/model.safetensors", cli->out);
    if (cli->resume)
        cli_error(cli, EXIT_USER, "E511", "leave --resume out to start one",
                  "%s holds no run to continue", cli->out);
    else if (run && !checkpoint_read_state(cli->out, &state, &err))
        cli_error(cli, EXIT_USER, "E503", NULL, "%s", err.message);
    else if (run && !cli->overwrite)
        cli_error(cli, EXIT_USER, "E519",
                  "--resume continues it, --overwrite replaces it, another --out keeps both",
                  "%s holds a run that is at step %lld", cli->out, (long long)state.step);
    else if (!run && file_exists(weights) && !cli->overwrite)
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
    if (!checkpoint_read_state(cli->out, &state, &err)) {
        cli_error(cli, EXIT_USER, "E503", NULL, "%s", err.message);
        return false;
    }
    if (cli->has_seed && (uint64_t)cli->seed != state.seed) {
        cli_error(cli, EXIT_USER, "E518", "leave --seed out: the run's is known",
                  "the run in %s has the seed %llu, not %lld", cli->out,
                  (unsigned long long)state.seed, (long long)cli->seed);
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
    if (!folder_make(cli->out, &err)) {
        cli_error(cli, EXIT_USER, "E502", NULL, "%s", err.message);
        return false;
    }
    if (!run_lock(&t->lock, cli->out, &note, &err)) {
        cli_error(cli, EXIT_USER, "E520", "wait for it, end it, or give another --out", "%s",
                  err.message);
        return false;
    }
    if (note.message[0])
        fprintf(stderr, "warning: %s\n", note.message);
    return true;
}

/* What cannot be started or continued is refused before anything is done. */
static bool prepare_out(Trainer *t)
{
    Cli *cli = t->cli;
    if (!cli->out)
        return true;
    if (cli->resume && !checkpoint_exists(cli->out))
        return start_run(t); /* says so, and makes no folder */
    return lock_out(t) && (cli->resume ? continue_run(t) : start_run(t));
}

/* What this run is trained with, and, when it is continued, whether it may be. */
static bool compare_settings(Trainer *t, const Ast *ast)
{
    Cli *cli = t->cli;
    if (!cli->out)
        return true;
    t->settings = resume_settings(cli, ast, &t->program, t->data);
    if (!cli->resume)
        return true;
    json_t *then = checkpoint_read_settings(cli->out);
    bool ok = resume_check(cli, ast, t->settings, then);
    json_decref(then);
    return ok;
}

static bool set_up(Trainer *t, const Ast *ast)
{
    RtError err;
    Cli *cli = t->cli;
    const TrainSpec *spec = &t->program.graph->train;
    t->seed = cli->has_seed ? (uint64_t)cli->seed : spec->seed;
    if (!prepare_out(t))
        return false;
    t->data = session_open_data(cli, t->program.graph, false, t->seed);
    if (!t->data || !session_same_vocab(cli, t->data, cli->resume ? cli->out : cli->checkpoint) ||
        !compare_settings(t, ast))
        return false;
    fprintf(stderr, "data: %s (%s loaded)\n", dataset_description(t->data),
            bytes_text(cli->pool, dataset_loaded_bytes(t->data)));
    if (!cli->out)
        fputs("note: without --out DIR the weights are not kept\n", stderr);
    int64_t bytes;
    if (!schedule_lengths(t) || !build_evaluation(t, ast, &bytes))
        return false;
    if (!session_compile(cli, &t->program, &t->session) ||
        (t->has_eval && !session_compile(cli, &t->eval_program, &t->eval)))
        return false;
    t->threads = threads_new((int)cli->threads, &err);
    if (!t->threads || !arena_map(&t->arena, bytes, &err)) {
        cli_error(cli, EXIT_USER, "E804", NULL, "%s", err.message);
        return false;
    }
    session_attach(&t->session, t->arena.base, t->threads, NULL);
    if (t->has_eval)
        session_attach(&t->eval, t->arena.base, t->threads, NULL);
    return start_weights(t) && watch_open(&t->watch, cli, &t->session, t->data, t->threads) &&
           train_log_open(cli, t->update, t->due, &t->log);
}

static void tear_down(Trainer *t)
{
    watch_close(&t->watch);
    threads_free(t->threads);
    if (t->arena.base)
        arena_unmap(&t->arena);
    dataset_close(t->data);
    json_decref(t->settings);
    session_close(&t->session);
    session_close(&t->eval);
    run_unlock(&t->lock);
}

/* --- one step --- */

/* Steps allocate nothing: no JSON library here.  JSON has no NaN or infinity. */
static void log_number(const Trainer *t, const char *key, double x)
{
    if (isfinite(x))
        fprintf(t->log.file, ", \"%s\": %.9g", key, x);
    else
        fprintf(t->log.file, ", \"%s\": null", key);
}

static void log_step(Trainer *t, double lr, double seconds, bool skipped)
{
    if (!t->log.file)
        return;
    fprintf(t->log.file, "{\"step\": %lld", (long long)t->update);
    log_number(t, "loss", session_scalar(&t->session, "loss"));
    for (int m = 0; m < t->session.n_metrics; m++)
        log_number(t, t->session.metric[m], session_scalar(&t->session, t->session.metric[m]));
    if (!t->program.graph->train.gradient_free)
        log_number(t, "grad_norm", session_scalar(&t->session, "grad_norm"));
    log_number(t, "lr", lr);
    log_number(t, "seconds", seconds);
    fputs(skipped ? ", \"skipped\": true}\n" : "}\n", t->log.file);
    train_log_check(&t->log);
}

static void log_evaluation(Trainer *t, double loss)
{
    if (!t->log.file)
        return;
    json_t *o =
        json_pack("{s:I,s:o}", "step", (json_int_t)t->update, "val_loss", cli_json_number(loss));
    for (int m = 0; m < t->eval.n_metrics; m++) {
        const char *name = pool_printf(t->cli->pool, "val_%s", t->eval.metric[m]);
        json_object_set_new(o, name, cli_json_number(t->eval.metric_mean[m]));
    }
    json_dumpf(o, t->log.file, JSON_REAL_PRECISION(9));
    fputc('\n', t->log.file);
    train_log_flush(&t->log);
    json_decref(o);
}

static void print_progress(Trainer *t, double lr)
{
    double now = clock_seconds();
    bool last = t->update == t->total;
    if (t->cli->quiet || (now - t->last_progress < 1.0 && !last && t->update > 1))
        return;
    t->last_progress = now;
    double each = (now - t->started) / (double)(t->update - t->started_at);
    fprintf(stderr, "step %lld/%lld  loss %.4f", (long long)t->update, (long long)t->total,
            session_scalar(&t->session, "loss"));
    for (int m = 0; m < t->session.n_metrics; m++)
        fprintf(stderr, "  %s %.4f", t->session.metric[m],
                session_scalar(&t->session, t->session.metric[m]));
    if (!t->program.graph->train.gradient_free)
        fprintf(stderr, "  grad %.3g", session_scalar(&t->session, "grad_norm"));
    fprintf(stderr, "  lr %.3g  %.1f ms/step  %.0f s left\n", lr, 1e3 * each,
            each * (double)(t->total - t->update));
}

/* --- saving --- */

static bool save_in(Trainer *t, const char *dir)
{
    const TrainSpec *spec = &t->program.graph->train;
    int64_t parts = spec->accumulate > 1 ? spec->accumulate : 1;
    TrainerState state = {.step = t->update,
                          .data_position = t->update * parts,
                          .epoch = (double)t->update / (double)t->updates_per_epoch,
                          .seed = t->seed,
                          .model_hash = session_model_hash(&t->session),
                          .evaluation_due = t->due && t->has_eval,
                          .vocab = dataset_vocab(t->data),
                          .settings = t->settings};
    double start = clock_seconds();
    resume_put_left_out(t->settings, t->data);
    if (t->log.on_disk)
        train_log_flush(&t->log);
    bool ok = session_save(&t->session, dir, &state);
    t->saving += clock_seconds() - start;
    return ok;
}

/* Where a state goes that is not finite: beside the last finite set, never over it. */
static const char *aside(const Trainer *t)
{
    return pool_printf(t->cli->pool, "%s/diverged", t->cli->out);
}

/* Ends the run: nothing that follows would be of use.  False. */
static bool stop(Trainer *t, const char *seen)
{
    const char *dir = t->cli->out ? aside(t) : NULL;
    watch_stop(&t->watch, seen, t->update, dir && save_in(t, dir) ? dir : NULL);
    return false;
}

/* Once: every save is made, and the run waits for each. */
static void note_slow_saving(Trainer *t)
{
    double all = clock_seconds() - t->started;
    if (t->told_saving || t->cli->quiet || t->saving < 2 || t->saving < 0.2 * all)
        return;
    t->told_saving = true;
    fprintf(stderr,
            "note: the run waits for every save: %.1f of %.1f s so far; a larger eval_every saves "
            "less often\n",
            t->saving, all);
}

static bool save(Trainer *t)
{
    if (!t->cli->out || t->watch.stopped)
        return true;
    const char *first = finite_tensors(&t->session, false);
    if (first && t->watch.policy != NAN_WARN)
        return stop(t, NULL);
    if (!save_in(t, first ? aside(t) : t->cli->out))
        return false;
    t->saved_at = t->update;
    if (first && !t->is_aside)
        fprintf(stderr, "warning: step %lld is saved in %s, not over the last finite set: %s\n",
                (long long)t->update, aside(t), first);
    t->is_aside = first != NULL;
    t->watch.kept = first ? t->watch.kept : t->update;
    note_slow_saving(t);
    return true;
}

static bool one_step(Trainer *t)
{
    const TrainSpec *spec = &t->program.graph->train;
    int64_t parts = spec->accumulate > 1 ? spec->accumulate : 1;
    double start = clock_seconds();
    double lr = lr_at(&spec->lr, t->update, t->schedule, t->updates_per_epoch);
    if (!session_fill(&t->session, t->data, t->update, t->cli->overfit))
        return false;
    session_run(&t->session, lr, t->update, t->update * parts, t->seed);
    t->update++;
    t->due = t->update % t->eval_every == 0 || t->update == t->total;
    const char *seen = watch_step(&t->watch);
    log_step(t, lr, clock_seconds() - start, seen && t->watch.policy == NAN_SKIP);
    print_progress(t, lr);
    return !seen || watch_goes_on(&t->watch, seen, t->update) || stop(t, seen);
}

static void print_evaluation(const Trainer *t, double loss)
{
    fprintf(stderr, "step %lld  held-out loss %.4f", (long long)t->update, loss);
    for (int m = 0; m < t->eval.n_metrics; m++)
        fprintf(stderr, "  %s %.4f", t->eval.metric[m], t->eval.metric_mean[m]);
    fputc('\n', stderr);
}

/* What ends a run that was under way by an error in its data loses no step of it. */
static bool save_and_fail(Trainer *t)
{
    if (t->cli->out && t->update > 0 && !t->watch.stopped && save(t))
        fprintf(stderr, "saved after step %lld: --resume continues\n", (long long)t->update);
    return false;
}

/* What is due after the step: evaluation, then a save.  A signal ends the evaluation; it stays due,
 * also for the run that continues this one.  Nothing is printed before the save, which a terminal
 * that does not take what is printed could hold up. */
static bool do_due(Trainer *t)
{
    double loss = 0;
    if (t->has_eval) {
        if (!session_evaluate(&t->eval, t->data, t->seed, &loss))
            return signals_caught() != 0 || save_and_fail(t);
        log_evaluation(t, loss);
    }
    t->due = false;
    if (!save(t))
        return false;
    if (t->has_eval)
        print_evaluation(t, loss);
    return true;
}

static bool end_early(Trainer *t)
{
    if (t->saved_at != t->update && !save(t))
        return false;
    fprintf(stderr, "interrupted after step %lld%s\n", (long long)t->update,
            t->cli->out ? "; saved, --resume continues" : "");
    return true;
}

static bool train_loop(Trainer *t)
{
    /* Not before: until now a signal ends the program at once, compilers with it (workers.c). */
    signals_catch();
    t->started = clock_seconds();
    t->started_at = t->update;
    t->saved_at = -1;
    if (t->update >= t->total && !t->due)
        fprintf(stderr, "the run is at step %lld of %lld: nothing left to do\n",
                (long long)t->update, (long long)t->total);
    while (!signals_caught() && (t->due || t->update < t->total)) {
        if (!(t->due ? do_due(t) : one_step(t) || save_and_fail(t)))
            return false;
    }
    bool ok = !signals_caught() || end_early(t);
    if (t->is_aside)
        fprintf(stderr, "note: the newest save, of step %lld, is in %s\n", (long long)t->saved_at,
                aside(t));
    return ok;
}

static bool check_options(Cli *cli)
{
    if (cli->resume && !cli->out)
        cli_error(cli, EXIT_USER, "E511", "add --out DIR", "--resume needs the run's folder");
    else if (cli->resume && cli->overwrite)
        cli_error(cli, EXIT_USER, "E511", "leave one of them out",
                  "--resume and --overwrite exclude each other");
    else if (cli->resume && cli->checkpoint)
        cli_error(cli, EXIT_USER, "E511",
                  "--resume has the run's own weights: leave one of them out",
                  "--resume and --checkpoint exclude each other");
    else
        return true;
    return false;
}

ExitCode verb_train(Cli *cli)
{
    if (!check_options(cli) || !cli_needs_file(cli, "--out", cli->out))
        return EXIT_USER;
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    Trainer t = {.cli = cli, .watch.kept = -1};
    if (!finite_policy(cli, &t.watch.policy))
        return EXIT_USER;
    ExitCode code = build_training(&t, ast);
    if (code != EXIT_OK)
        return code;
    print_memory(&t);
    bool ok = set_up(&t, ast) && train_loop(&t);
    ok = train_log_close(cli, &t.log) && ok;
    tear_down(&t);
    cli->ended_by = signals_caught();
    return ok ? EXIT_OK : EXIT_USER;
}
