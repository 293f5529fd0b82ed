/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/data/dataset_case.h"

#include "check.h"

#include <stdlib.h>
#include <string.h>

Dataset *open_or_fail(const DataSpec *spec)
{
    RtError err = {{0}};
    Dataset *ds = dataset_open(spec, &err);
    CHECK_MSG(ds, "%s", err.message);
    if (!ds)
        exit(test_result());
    return ds;
}

void refuse(const DataSpec *spec, const char *expect)
{
    RtError err = {{0}};
    Dataset *ds = dataset_open(spec, &err);
    CHECK_MSG(!ds && strstr(err.message, expect), "wanted '%s', got '%s'", expect, err.message);
    dataset_close(ds);
}
