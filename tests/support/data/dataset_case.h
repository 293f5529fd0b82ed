/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening data sets in tests: one that must open, one that must be refused. */
#ifndef SCRIMP_TESTS_DATASET_CASE_H
#define SCRIMP_TESTS_DATASET_CASE_H

#include "runtime/data.h"

Dataset *open_or_fail(const DataSpec *spec);
void refuse(const DataSpec *spec, const char *expect);

#endif
