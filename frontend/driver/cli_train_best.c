/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_train.h"

#include <math.h>
#include <stdio.h>

/* A key of the settings in trainer.json; an object, which resume_check does not compare. */
static const char BEST[] = "best";

bool best_note(Trainer *t, double loss)
{
    bool lower = isfinite(loss) && !(loss >= t->best.loss);
    t->best = lower ? (BestLoss){loss, t->update, 0}
                    : (BestLoss){t->best.loss, t->best.step, t->best.since + 1};
    if (t->settings && isfinite(t->best.loss))
        json_object_set_new(t->settings, BEST,
                            json_pack("{s:f,s:I,s:I}", "loss", t->best.loss, "step",
                                      (json_int_t)t->best.step, "since",
                                      (json_int_t)t->best.since));
    return lower;
}

void best_read(Trainer *t, const json_t *settings)
{
    const json_t *o = json_object_get(settings, BEST);
    t->best = (BestLoss){.loss = (double)NAN};
    if (!json_is_object(o))
        return;
    t->best = (BestLoss){json_number_value(json_object_get(o, "loss")),
                         json_integer_value(json_object_get(o, "step")),
                         json_integer_value(json_object_get(o, "since"))};
    json_object_set(t->settings, BEST, (json_t *)json_object_get(settings, BEST));
}

bool best_ends(const Trainer *t, bool tell)
{
    int64_t patience = t->program.graph->train.patience;
    bool ends = patience && t->best.since >= patience && t->has_eval;
    if (ends && tell)
        fprintf(stderr, "ended after step %lld: no lower held-out loss than %.4f of step %lld\n",
                (long long)t->update, t->best.loss, (long long)t->best.step);
    return ends;
}
