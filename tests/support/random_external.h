/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small random graphs of docs/graphs.md with all that it allows: several outputs or none, kept and
 * persistent ones, values that are overwritten (read by the overwriter or not), nodes that take no
 * time or may run once only, workspaces, values of no bytes.  In half of them old values are read
 * again in the second half, the youngest first, as training does: those leave most to recompute. */
#ifndef SCRIMP_TESTS_SUPPORT_RANDOM_EXTERNAL_H
#define SCRIMP_TESTS_SUPPORT_RANDOM_EXTERNAL_H

#include "passes/remat/external/external.h"
#include "tests/support/random_step.h"

enum { EXTERNAL_MOST = 12 };

/* Times are whole numbers: sums are exact.  At most EXTERNAL_MOST values. */
ExternalGraph *random_external(Pool *pool, Random *r, int n_nodes, bool forward, int most_values);

/* From the edge of what a graph may say: times from the smallest number that is not 0 to the
 * largest allowed, alike or mixed, and sizes near the largest sum. */
void make_extreme(ExternalGraph *g, Random *r);

#endif
