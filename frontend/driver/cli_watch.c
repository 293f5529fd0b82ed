/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_watch.h"

#include "ir/print.h"

#include <stdio.h>
#include <string.h>

/* Steps taken back that are told one by one; in a row, which only a run that learns nothing has. */
enum { SKIPPED_NAMED = 10, MOST_IN_A_ROW = 100 };

bool watch_open(Watch *w, Cli *cli, const Session *session, const Dataset *data, Threads *threads)
{
    RtError err;
    w->cli = cli;
    w->session = session;
    w->data = data;
    const char *first = w->policy == NAN_WARN ? NULL : finite_tensors(session, false);
    if (first) {
        cli_error(cli, EXIT_USER, "E522", "--on-nan warn trains on all the same",
                  "what training would start from is not finite: %s", first);
        return false;
    }
    if (w->policy != NAN_SKIP)
        return true;
    w->undo = undo_open(session->tensor, session->n_tensors, threads, &err);
    if (!w->undo) {
        cli_error(cli, EXIT_USER, "E804", "--on-nan stop and warn need no copy",
                  "--on-nan skip keeps a copy of weights and optimizer state: %s", err.message);
        return false;
    }
    fprintf(stderr, "note: --on-nan skip keeps a copy of %s outside the budget\n",
            bytes_text(cli->pool, undo_bytes(w->undo)));
    return true;
}

void watch_close(Watch *w)
{
    if (w->skipped)
        fprintf(stderr, "note: %lld step%s taken back (--on-nan skip)\n", (long long)w->skipped,
                w->skipped == 1 ? " was" : "s were");
    undo_close(w->undo);
    w->undo = NULL;
}

const char *watch_step(Watch *w)
{
    const char *seen = finite_outputs(w->session);
    if (w->policy != NAN_SKIP)
        return seen;
    if (!session_fetch_state(w->session))
        return "what the device holds is lost";
    if (!seen && undo_all_finite(w->undo)) {
        undo_keep(w->undo);
        w->in_a_row = 0;
        return NULL;
    }
    if (!seen)
        seen = finite_tensors(w->session, false);
    undo_back(w->undo);
    if (!session_send_state(w->session))
        return "what the device holds is lost";
    w->skipped++;
    w->in_a_row++;
    return seen;
}

/* The batch, or else what is not finite after the step; "" when neither says more. */
static const char *cause_of(Watch *w, int64_t step, bool *is_data)
{
    const char *cause = finite_batch(w->session, w->data, true, step - 1, w->cli->run.overfit);
    *is_data = cause != NULL;
    if (!cause && session_fetch_state(w->session))
        cause = finite_tensors(w->session, false);
    return cause ? pool_printf(w->cli->pool, "; %s", cause) : "";
}

/* The loss of the first step is of weights that no update has touched, whatever the rate. */
static const char *way_out(const Watch *w, bool is_data, const char *seen, int64_t step)
{
    static const char of_loss[] = "the loss";
    const UpdateRule *rule = &w->session->graph->train.rule;
    if (is_data)
        return "mend or remove the example";
    if (step == 1 && seen && strncmp(seen, of_loss, sizeof of_loss - 1) == 0)
        return "it is so before the first update: look for what the model divides by, or takes the "
               "log, root or power of";
    return rule->clip > 0 ? "try a smaller lr or a warmup"
                          : "try a smaller lr, a warmup or clip = 1";
}

bool watch_goes_on(Watch *w, const char *seen, int64_t step)
{
    bool is_data;
    bool lost = w->cli->state->device_failed;
    if (w->policy == NAN_STOP || w->in_a_row == MOST_IN_A_ROW || lost)
        return false;
    bool tell = w->policy == NAN_SKIP ? w->skipped <= SKIPPED_NAMED : !w->warned;
    w->warned = true;
    if (!tell)
        return true;
    const char *cause = cause_of(w, step, &is_data);
    fprintf(stderr, "warning: step %lld%s: %s%s; %s\n", (long long)step,
            w->policy == NAN_SKIP ? " is taken back" : "", seen, cause,
            way_out(w, is_data, seen, step));
    return true;
}

void watch_stop(Watch *w, const char *seen, int64_t step, const char *aside)
{
    bool is_data;
    Cli *cli = w->cli;
    const char *cause = cause_of(w, step, &is_data), *kept = "";
    bool skips = w->policy == NAN_SKIP, resumes = cli->output.out && w->kept >= 0;
    w->stopped = true;
    if (resumes)
        kept = pool_printf(cli->pool, "; %s holds step %lld, from which --checkpoint %s starts",
                           cli->output.out, (long long)w->kept, cli->output.out);
    else if (cli->output.out)
        kept = "; no step was saved before";
    if (aside)
        kept = pool_printf(cli->pool, "%s; what step %lld left is in %s", kept, (long long)step,
                           aside);
    const char *skip = skips     ? ""
                       : resumes ? "; --resume --on-nan skip takes such steps back"
                                 : "; start again with --on-nan skip, which takes such steps back";
    const char *rows =
        skips ? pool_printf(cli->pool, "%d steps in a row were taken back; ", MOST_IN_A_ROW) : "";
    cli_error(cli, EXIT_USER, "E521",
              pool_printf(cli->pool, "%s%s%s", way_out(w, is_data, seen, step), skip, kept),
              "step %lld: %s%s%s", (long long)step, rows, seen ? seen : "found when saving", cause);
}
