/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small made-up data in the real format of a source, so that a model's training can be tried where
 * its data set is not: the same bytes everywhere, with a structure that can be learned.  Called by
 * `scrimp data`. */
#ifndef SCRIMP_RUNTIME_STANDIN_H
#define SCRIMP_RUNTIME_STANDIN_H

#include "runtime/data.h"

typedef struct StandIn {
    char said[400]; /* what was written, for people */
} StandIn;

/* Writes files where spec->path says.  spec->field: the fields that the model reads, as for
 * synthetic data.  Never writes over what is there. */
bool standin_write(const DataSpec *spec, StandIn *out, RtError *err);

#endif
