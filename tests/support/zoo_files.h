/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tests of the example networks share. */
#ifndef SCRIMP_TESTS_ZOO_FILES_H
#define SCRIMP_TESTS_ZOO_FILES_H

#include "ir/support/pool.h"

enum { MAX_DEFS = 7 };
/* "depth=50 aux=false", for a batch of one. */
void read_defs(Pool *pool, const char *text, const char *defs[MAX_DEFS + 1]);
void check_int(const char *network, const char *what, long long ours, long long wanted);

#endif
