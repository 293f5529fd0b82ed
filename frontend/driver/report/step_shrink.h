/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which tensors would have to leave memory for a lower peak; for report and plan --peak. */
#ifndef SCRIMP_FRONTEND_DRIVER_REPORT_STEP_SHRINK_H
#define SCRIMP_FRONTEND_DRIVER_REPORT_STEP_SHRINK_H

#include "frontend/driver/report/step_facts.h"

enum { SHRINK_MOST = 12 };

typedef struct ShrinkTensor {
    int buffer;  /* of the facts; not a persistent one */
    int moments; /* operations above the target during which it is in memory */
} ShrinkTensor;

typedef struct Shrink {
    int percent;
    int64_t target_bytes; /* the peak less so many percent of it */
    int moments;          /* operations that need more than that */
    bool enough;          /* without these tensors none would */
    ShrinkTensor tensor[SHRINK_MOST];
    int n;
} Shrink;

/* A peak is rarely alone: first what takes most off all that is above the target, then what takes
 * most off the rest, until nothing is above it. */
Shrink step_shrink(Pool *pool, const StepFacts *f, int percent);

#endif
