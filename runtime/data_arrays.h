/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the sources of arrays share: one array per field, whose first axis counts examples. */
#ifndef SCRIMP_RUNTIME_DATA_ARRAYS_H
#define SCRIMP_RUNTIME_DATA_ARRAYS_H

#include "runtime/data_internal.h"
#include "runtime/npy.h"

/* By field. */
typedef struct ArraySet {
    NpyArray array[DATA_MAX_FIELDS];
} ArraySet;

/* The next field of ds; suffix: what its name has behind it in messages. */
bool arrays_add(Dataset *ds, ArraySet *set, const char *name, const char *suffix,
                const NpyArray *array, RtError *err);
/* Field f of example i. */
void arrays_example(const Dataset *ds, const ArraySet *set, int64_t i, int f, void *dst);

#endif
