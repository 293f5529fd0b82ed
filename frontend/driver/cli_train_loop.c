/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_train.h"

#include "frontend/driver/cli_resume.h"
#include "frontend/driver/cli_signals.h"
#include "ir/support/clock.h"

#include <stdio.h>

/* --- saving --- */

static bool save_in(Trainer *t, const char *dir)
{
    TrainerState state = {.step = t->update,
                          .data_position = t->update * t->parts,
                          .epoch = (double)t->update / (double)t->updates_per_epoch,
                          .seed = t->seed,
                          .model_hash = session_model_hash(&t->session),
                          .evaluation_due = t->due && t->has_eval,
                          .vocab = dataset_vocab(t->data),
                          .learned = dataset_learned(t->data),
                          .settings = t->settings};
    double start = clock_seconds();
    resume_put_left_out(t->settings, t->data);
    if (t->log.on_disk)
        train_log_flush(&t->log);
    events_flush(&t->events);
    bool ok = session_save(&t->session, dir, &state);
    t->saving += clock_seconds() - start;
    return ok;
}

/* Where a state goes that is not finite: beside the last finite set, never over it. */
static const char *aside(const Trainer *t)
{
    return pool_printf(t->cli->pool, "%s/diverged", t->cli->output.out);
}

/* Ends the run: nothing that follows would be of use.  False. */
static bool stop(Trainer *t, const char *seen)
{
    bool diverged = t->watch.policy != NAN_SKIP; /* else the step was taken back */
    const char *dir = t->cli->output.out && diverged ? aside(t) : NULL;
    bool saved = dir && session_fetch_state(&t->session) && save_in(t, dir);
    watch_stop(&t->watch, seen, t->update, saved ? dir : NULL);
    return false;
}

/* Once: every save is made, and the run waits for each. */
static void note_slow_saving(Trainer *t)
{
    double all = clock_seconds() - t->started;
    if (t->told_saving || t->cli->output.quiet || t->saving < 2 || t->saving < 0.2 * all)
        return;
    t->told_saving = true;
    fprintf(stderr,
            "note: the run waits for every save: %.1f of %.1f s so far; a larger eval_every saves "
            "less often\n",
            t->saving, all);
}

/* best: also as the best so far, and that first: a run that is killed between the two comes to this
 * evaluation again. */
static bool save(Trainer *t, bool best)
{
    if (!t->cli->output.out || t->watch.stopped)
        return true;
    if (t->cli->state
            ->device_failed) /* the newest save stays: what the device holds is no step's */
        return false;
    if (!session_fetch_state(&t->session))
        return false;
    const char *first = finite_tensors(&t->session, false);
    if (first && t->watch.policy != NAN_WARN)
        return stop(t, NULL);
    if (best && !first && !save_in(t, pool_printf(t->cli->pool, "%s/best", t->cli->output.out)))
        return false;
    if (!save_in(t, first ? aside(t) : t->cli->output.out))
        return false;
    if (!first && !session_keep(&t->session, t->cli->output.out, t->cli->run.keep_last))
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

/* --- the loop --- */

static double learning_rate(const Trainer *t, int loss, int64_t update)
{
    const TrainSpec *spec = &t->program.graph->train;
    int group = train_goal_group(spec, loss);
    const UpdateRule *rule = group < 0 ? &spec->rule : &spec->group[group].rule;
    return lr_at(&rule->lr, update, t->schedule, t->updates_per_epoch);
}

int trainer_rates(const Trainer *t)
{
    int losses = t->program.graph->train.n_goals;
    return losses > 1 ? losses : 1;
}

double trainer_rate(const Trainer *t, int loss)
{
    return learning_rate(t, loss, t->update - 1);
}

static bool send_inputs(Trainer *t, int64_t update)
{
    StepNumbers n = {.lr = learning_rate(t, 0, update),
                     .update = update,
                     .micro = update * t->parts,
                     .seed = t->seed,
                     .total = t->schedule,
                     .per_epoch = t->updates_per_epoch};
    if (t->sent == update)
        return true;
    if (t->no_data || !session_fill(&t->session, t->data, update, t->cli->run.overfit))
        return false;
    return session_send(&t->session, n);
}

/* While a device runs a step, the next one's inputs are made and copied.  It is not started before
 * this one's loss is known: a run that stops at a loss that is not finite has that step's state. */
static void send_ahead(Trainer *t)
{
    if (!t->machine.cuda || t->due || signals_caught())
        return;
    if (send_inputs(t, t->update))
        t->sent = t->update;
    else
        t->no_data = true;
}

static bool one_step(Trainer *t)
{
    double start = clock_seconds();
    if (!send_inputs(t, t->update) || !session_start(&t->session))
        return false;
    t->update++;
    t->due = t->update % t->eval_every == 0 || t->update == t->total;
    send_ahead(t);
    if (!session_finish(&t->session))
        return false;
    const char *seen = watch_step(&t->watch);
    trainer_log_step(t, clock_seconds() - start, seen && t->watch.policy == NAN_SKIP);
    trainer_show_step(t);
    return !seen || watch_goes_on(&t->watch, seen, t->update) || stop(t, seen);
}

/* What ends a run that was under way by an error in its data loses no step of it. */
static bool save_and_fail(Trainer *t)
{
    if (t->cli->output.out && t->update > 0 && !t->watch.stopped && save(t, false))
        fprintf(stderr, "saved after step %lld: --resume continues\n", (long long)t->update);
    return false;
}

/* What is due after the step: evaluation, then a save.  A signal ends the evaluation; it stays due,
 * also for the run that continues this one.  Nothing is printed before the save, which a terminal
 * that does not take what is printed could hold up. */
static bool do_due(Trainer *t)
{
    double loss = 0;
    bool lower = false;
    if (t->has_eval) {
        if (!session_evaluate(&t->eval, t->data, &loss))
            return signals_caught() != 0 || save_and_fail(t);
        trainer_log_evaluation(t, loss);
        /* Not where --steps ends a run: one that is continued compares as one that was not ended.
         */
        if (t->update % t->eval_every == 0 || t->update == t->schedule)
            lower = best_note(t, loss);
    }
    t->due = false;
    if (!save(t, lower && t->cli->run.keep_best))
        return false;
    if (t->has_eval)
        trainer_show_evaluation(t, loss);
    return true;
}

static bool end_early(Trainer *t)
{
    if (t->saved_at != t->update && !save(t, false))
        return false;
    fprintf(stderr, "interrupted after step %lld%s\n", (long long)t->update,
            t->cli->output.out ? "; saved, --resume continues" : "");
    return true;
}

bool trainer_run(Trainer *t)
{
    /* Not before: until now a signal ends the program at once, compilers with it (workers.c). */
    signals_catch();
    t->started = clock_seconds();
    t->started_at = t->update;
    t->saved_at = t->sent = -1;
    if (t->update >= t->total && !t->due)
        fprintf(stderr, "the run is at step %lld of %lld: nothing left to do\n",
                (long long)t->update, (long long)t->total);
    while (!signals_caught() && (t->due || (t->update < t->total && !best_ends(t, false)))) {
        if (!(t->due ? do_due(t) : one_step(t) || save_and_fail(t)))
            return false;
    }
    bool ok = !signals_caught() || end_early(t);
    best_ends(t, true);
    if (t->is_aside)
        fprintf(stderr, "note: the newest save, of step %lld, is in %s\n", (long long)t->saved_at,
                aside(t));
    return ok;
}
