/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening data sets in tests: one that must open, one that must be refused. */
#ifndef SCRIMP_TESTS_DATASET_CASE_H
#define SCRIMP_TESTS_DATASET_CASE_H

#include "check.h"
#include "runtime/data.h"

#include <stdlib.h>
#include <string.h>

static inline Dataset *open_or_fail(const DataSpec *spec)
{
    RtError err = {{0}};
    Dataset *ds = dataset_open(spec, &err);
    CHECK_MSG(ds, "%s", err.message);
    if (!ds)
        exit(test_result());
    return ds;
}

static inline void refuse(const DataSpec *spec, const char *expect)
{
    RtError err = {{0}};
    Dataset *ds = dataset_open(spec, &err);
    CHECK_MSG(!ds && strstr(err.message, expect), "wanted '%s', got '%s'", expect, err.message);
    dataset_close(ds);
}

#endif
