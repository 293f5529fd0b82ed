/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_train.h"

#include "ir/support/clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 1000 };

/* Steps allocate nothing. */
typedef struct Line {
    char text[LONGEST];
    size_t n;
} Line;

static void put(Line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(Line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->n, LONGEST - line->n, format, args);
    va_end(args);
    line->n = n < 0 || (size_t)n >= LONGEST - line->n ? LONGEST - 1 : line->n + (size_t)n;
}

/* 640, 18.6k, 2.1M */
static void put_count(Line *line, double x)
{
    if (x < 1e3)
        put(line, x < 10 ? "%.1f" : "%.0f", x);
    else if (x < 1e6)
        put(line, "%.1fk", x / 1e3);
    else
        put(line, "%.1fM", x / 1e6);
}

static void put_duration(Line *line, double seconds)
{
    double minutes = seconds / 60;
    if (seconds < 120)
        put(line, "%.0f s", seconds);
    else if (minutes < 120)
        put(line, "%.0f min", minutes);
    else
        put(line, "%.0f h %.0f min", (double)(long long)(minutes / 60),
            (double)((long long)minutes % 60));
}

/* Images, tokens or examples of a step. */
static double counted(const Trainer *t, const char **unit)
{
    const TrainSpec *spec = &t->program.graph->train;
    const char *kind = data_traits(spec->data_kind)->counted;
    *unit = kind ? kind : "examples";
    bool tokens = spec->data_length > 0 && strcmp(*unit, "tokens") == 0;
    return (double)t->parts * (double)spec->data_batch * (tokens ? (double)spec->data_length : 1);
}

static void put_pace(const Trainer *t, Line *line, double each)
{
    const char *unit;
    double n = counted(t, &unit);
    put(line, "  %.1f ms", 1e3 * each);
    if (n > 0 && each > 0) {
        put(line, "  ");
        put_count(line, n / each);
        put(line, " %s/s", unit);
    }
    put(line, "  peak %s  ", t->peak);
    put_duration(line, each * (double)(t->total - t->update));
    put(line, " left");
}

/* The same in every line, however long: what a reader looks for stays where it is. */
static void put_results(const Trainer *t, Line *line)
{
    const Session *s = &t->session;
    put(line, "step %lld/%lld  %s %.4f", (long long)t->update, (long long)t->total, s->metrics.loss,
        session_scalar(s, s->metrics.loss));
    for (int m = 0; m < s->metrics.n_numbers; m++) {
        const char *name = s->metrics.number[m].name;
        put(line, "  %s %.4f", name, session_scalar(s, name));
    }
    for (int k = 0; k < s->metrics.n_norms; k++)
        put(line, k ? "/%.3g" : "  grad %.3g", session_scalar(s, s->metrics.norm[k]));
    for (int loss = 0; loss < trainer_rates(t); loss++)
        put(line, loss ? "/%.3g" : "  lr %.3g", trainer_rate(t, loss));
}

void trainer_show_step(Trainer *t)
{
    double now = clock_seconds();
    bool last = t->update == t->total;
    if (t->cli->output.quiet || (now - t->last_progress < 1.0 && !last && t->update > 1))
        return;
    Line line = {.n = 0};
    t->last_progress = now;
    put_results(t, &line);
    put_pace(t, &line, (now - t->started) / (double)(t->update - t->started_at));
    fprintf(stderr, "%s\n", line.text);
}

void trainer_show_evaluation(const Trainer *t, double loss)
{
    fprintf(stderr, "step %lld  held-out %s %.4f", (long long)t->update, t->eval.metrics.loss,
            loss);
    for (int m = 0; m < t->eval.metrics.n_numbers; m++) {
        const Metric *metric = &t->eval.metrics.number[m];
        fprintf(stderr, "  %s %.4f", metric->name, metric->value[0]);
    }
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
        fprintf(stderr, " (%s recomputes %d operation%s, %.1f%% %s time)", r->solver->name,
                r->recomputed_ops, r->recomputed_ops == 1 ? "" : "s", fabs(r->overhead_percent),
                r->overhead_percent < 0 ? "less" : "more");
    if (r->loops)
        fprintf(stderr, " (%s; %.1f%% more time in all)", r->loops, r->overhead_percent);
    fputc('\n', stderr);
}
