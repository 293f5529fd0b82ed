/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page of `scrimp report`: one HTML file that holds a plan's data as JSON (scrimp.report.2,
 * docs/report.md) and what draws it.  Called by verb_report.c. */
#ifndef SCRIMP_FRONTEND_DRIVER_REPORT_REPORT_H
#define SCRIMP_FRONTEND_DRIVER_REPORT_REPORT_H

#include "frontend/driver/report/step_facts.h"
#include "ir/support/strbuf.h"
#include "passes/rerun.h"

#include <jansson.h>

typedef struct Report {
    const char *version, *command, *title, *device;
    bool in_seconds; /* costs are seconds of this machine */
    StepFacts kept, planned;
    RerunEffects reruns;               /* of planned */
    json_t *plan, *frontier, *solvers; /* rows of `plan --json` */
    const char *source_name, *source;  /* the model file */
    const char *ir_before, *ir_after;
    json_t *measured;           /* NULL: nothing was measured */
    const double *node_seconds; /* by node of planned.graph, measured; NULL */
} Report;

/* Takes over the report's JSON values. */
json_t *report_json(Pool *pool, Report *r);
/* Appends the page; data: JSON text. */
void report_page(StrBuf *out, const char *data);

#endif
