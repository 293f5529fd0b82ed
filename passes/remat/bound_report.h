/* The bounds in a RematReport, and in words.  Called by whoever reports a plan: pass_remat for
 * models, external_plan for graphs from elsewhere. */
#ifndef SCRIMP_PASSES_REMAT_BOUND_REPORT_H
#define SCRIMP_PASSES_REMAT_BOUND_REPORT_H

#include "passes/pass.h"

/* Fills the report's bounds for its budget_bytes and recomputed_ops; names are copied to pool. */
void bound_report_fill(Pool *pool, const RematProblem *p, RematReport *report);

/* "no schedule needs less than 8.4MiB, forced by %d.conv1: %relu.0 2.0MiB, ... and 3 more,
 * workspace 1.0MiB, persistent 12.0KiB" */
const char *bound_report_text(Pool *pool, const RematReport *report);

#endif
