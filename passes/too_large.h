/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The error of order, remat and plan for a step whose sizes add up to too many bytes. */
#ifndef SCRIMP_PASSES_TOO_LARGE_H
#define SCRIMP_PASSES_TOO_LARGE_H

#include "passes/pass.h"

/* For a graph that is not memplan_is_countable; false, as passes return it. */
static inline bool memplan_too_large(PassContext *ctx)
{
    return pass_fail(ctx, "E406", "the tensors of the step take more than 2^60 bytes",
                     "use a smaller batch or smaller layers");
}

#endif
