/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_train.h"

#include "frontend/driver/cli_file.h"
#include "ir/support/clock.h"

#include <math.h>
#include <stdio.h>

/* --- of --log --- */

/* Steps allocate nothing: no JSON library here.  JSON has no NaN or infinity. */
static void log_number(const Trainer *t, const char *key, double x)
{
    if (isfinite(x))
        fprintf(t->log.file, ", \"%s\": %.9g", key, x);
    else
        fprintf(t->log.file, ", \"%s\": null", key);
}

void trainer_log_step(Trainer *t, double lr, double seconds, bool skipped)
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

void trainer_log_evaluation(Trainer *t, double loss)
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
    if (!t->program.graph->train.gradient_free)
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
