/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_train.h"

/* With several losses each by its name, as the norms of their gradients. */
static const char *rate_name(const Trainer *t, int loss)
{
    const TrainGoal *goal = t->program.graph->train.goal;
    return trainer_rates(t) == 1 ? "lr" : pool_printf(t->cli->pool, "lr.%s", goal[loss].loss);
}

static void name_step(Trainer *t)
{
    const Session *s = &t->session;
    int n_rates = trainer_rates(t);
    size_t n_all = (size_t)(s->metrics.n_numbers + s->metrics.n_norms + n_rates) + 2;
    Scalar *row = t->step_row = POOL_ARRAY(t->cli->pool, n_all, Scalar);
    int n = 0;
    row[n++].name = s->metrics.loss;
    for (int m = 0; m < s->metrics.n_numbers; m++)
        row[n++].name = s->metrics.number[m].name;
    for (int k = 0; k < s->metrics.n_norms; k++)
        row[n++].name = s->metrics.norm[k];
    for (int loss = 0; loss < n_rates; loss++)
        row[n++].name = rate_name(t, loss);
    row[n++].name = "seconds";
    t->columns.step = row;
    t->columns.n_step = n;
    t->columns.skips = t->watch.policy == NAN_SKIP;
}

static void name_evaluation(Trainer *t)
{
    const Session *s = &t->eval;
    Pool *pool = t->cli->pool;
    Scalar *row = t->evaluation_row = POOL_ARRAY(pool, (size_t)s->metrics.n_numbers + 1, Scalar);
    row[0].name = pool_printf(pool, "val_%s", s->metrics.loss);
    for (int m = 0; m < s->metrics.n_numbers; m++)
        row[m + 1].name = pool_printf(pool, "val_%s", s->metrics.number[m].name);
    t->columns.evaluation = row;
    t->columns.n_evaluation = t->has_eval ? s->metrics.n_numbers + 1 : 0;
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

void trainer_log_step(Trainer *t, double seconds, bool skipped)
{
    const Session *s = &t->session;
    Scalar *next = t->step_row;
    next++->value = session_scalar(s, s->metrics.loss);
    for (int m = 0; m < s->metrics.n_numbers; m++)
        next++->value = session_scalar(s, s->metrics.number[m].name);
    for (int k = 0; k < s->metrics.n_norms; k++)
        next++->value = session_scalar(s, s->metrics.norm[k]);
    for (int loss = 0; loss < trainer_rates(t); loss++)
        next++->value = trainer_rate(t, loss);
    next++->value = seconds;
    put_row(t, &(LogRow){.step = t->update,
                         .skipped = skipped,
                         .scalar = t->step_row,
                         .n = t->columns.n_step});
}

void trainer_log_evaluation(Trainer *t, double loss)
{
    t->evaluation_row[0].value = loss;
    for (int m = 0; m < t->eval.metrics.n_numbers; m++)
        t->evaluation_row[m + 1].value = t->eval.metrics.number[m].value[0];
    put_row(t, &(LogRow){.step = t->update,
                         .evaluation = true,
                         .scalar = t->evaluation_row,
                         .n = t->columns.n_evaluation,
                         .table = t->eval.metrics.table,
                         .n_tables = t->eval.metrics.n_tables});
    train_log_flush(&t->log);
}
