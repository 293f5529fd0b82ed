/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What another program prints. */
#ifndef SCRIMP_TESTS_OUTPUT_H
#define SCRIMP_TESTS_OUTPUT_H

#include "ir/support/pool.h"

/* Standard output of a command; NULL where it fails. */
char *output_of(Pool *pool, const char *command);

#endif
