/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_train.h"

#include "ir/support/clock.h"

#include <stdio.h>

/* --- of --log and --tensorboard --- */

static bool has_gradient_norm(const Trainer *t)
{
    return !t->program.graph->train.gradient_free;
}

static void name_step(Trainer *t)
{
    const Session *s = &t->session;
    Scalar *row = t->step_row = POOL_ARRAY(t->cli->pool, (size_t)s->n_metrics + 4, Scalar);
    int n = 0;
    row[n++].name = "loss";
    for (int m = 0; m < s->n_metrics; m++)
        row[n++].name = s->metric[m];
    if (has_gradient_norm(t))
        row[n++].name = "grad_norm";
    row[n++].name = "lr";
    row[n++].name = "seconds";
    t->columns.step = row;
    t->columns.n_step = n;
}

static void name_evaluation(Trainer *t)
{
    const Session *s = &t->eval;
    Pool *pool = t->cli->pool;
    Scalar *row = t->evaluation_row = POOL_ARRAY(pool, (size_t)s->n_metrics + 1, Scalar);
    row[0].name = "val_loss";
    for (int m = 0; m < s->n_metrics; m++)
        row[m + 1].name = pool_printf(pool, "val_%s", s->metric[m]);
    t->columns.evaluation = row;
    t->columns.n_evaluation = t->has_eval ? s->n_metrics + 1 : 0;
}

bool trainer_open_logs(Trainer *t)
{
    name_step(t);
    name_evaluation(t);
    return train_log_open(t->cli, &t->columns, t->update, t->due, &t->log) &&
           events_open(t->cli, &t->columns, t->update + 1, &t->events);
}

bool trainer_close_logs(Trainer *t)
{
    bool log = train_log_close(t->cli, &t->log), events = events_close(t->cli, &t->events);
    return log && events;
}

static void put_row(Trainer *t, const LogRow *row)
{
    train_log_row(&t->log, row);
    events_row(&t->events, row);
}

void trainer_log_step(Trainer *t, double lr, double seconds, bool skipped)
{
    const Session *s = &t->session;
    Scalar *next = t->step_row;
    next++->value = session_scalar(s, "loss");
    for (int m = 0; m < s->n_metrics; m++)
        next++->value = session_scalar(s, s->metric[m]);
    if (has_gradient_norm(t))
        next++->value = session_scalar(s, "grad_norm");
    next++->value = lr;
    next++->value = seconds;
    put_row(t, &(LogRow){.step = t->update,
                         .skipped = skipped,
                         .scalar = t->step_row,
                         .n = t->columns.n_step});
}

void trainer_log_evaluation(Trainer *t, double loss)
{
    t->evaluation_row[0].value = loss;
    for (int m = 0; m < t->eval.n_metrics; m++)
        t->evaluation_row[m + 1].value = t->eval.metric_mean[m];
    put_row(t, &(LogRow){.step = t->update,
                         .evaluation = true,
                         .scalar = t->evaluation_row,
                         .n = t->columns.n_evaluation});
    train_log_flush(&t->log);
}

/* --- for people --- */

void trainer_show_step(Trainer *t, double lr)
{
    double now = clock_seconds();
    bool last = t->update == t->total;
    if (t->cli->output.quiet || (now - t->last_progress < 1.0 && !last && t->update > 1))
        return;
    t->last_progress = now;
    double each = (now - t->started) / (double)(t->update - t->started_at);
    fprintf(stderr, "step %lld/%lld  loss %.4f", (long long)t->update, (long long)t->total,
            session_scalar(&t->session, "loss"));
    for (int m = 0; m < t->session.n_metrics; m++)
        fprintf(stderr, "  %s %.4f", t->session.metric[m],
                session_scalar(&t->session, t->session.metric[m]));
    if (has_gradient_norm(t))
        fprintf(stderr, "  grad %.3g", session_scalar(&t->session, "grad_norm"));
    fprintf(stderr, "  lr %.3g  %.1f ms/step  %.0f s left\n", lr, 1e3 * each,
            each * (double)(t->total - t->update));
}

void trainer_show_evaluation(const Trainer *t, double loss)
{
    fprintf(stderr, "step %lld  held-out loss %.4f", (long long)t->update, loss);
    for (int m = 0; m < t->eval.n_metrics; m++)
        fprintf(stderr, "  %s %.4f", t->eval.metric[m], t->eval.metric_mean[m]);
    fputc('\n', stderr);
}

void trainer_show_memory(const Trainer *t)
{
    const RematReport *r = &t->program.report;
    Pool *pool = t->cli->pool;
    fprintf(stderr, "memory: %s persistent, %s without recomputation, %s with this plan",
            bytes_text(pool, r->persistent_bytes), bytes_text(pool, r->keep_all_peak_bytes),
            bytes_text(pool, t->program.plan->arena_bytes));
    if (r->recomputed_ops)
        fprintf(stderr, " (%s recomputes %d operation%s, %.1f%% more time)", r->solver->name,
                r->recomputed_ops, r->recomputed_ops == 1 ? "" : "s", r->overhead_percent);
    fputc('\n', stderr);
}
