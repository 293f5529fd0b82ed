/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef SCRIMP_TESTS_REPORT_DATA_H
#define SCRIMP_TESTS_REPORT_DATA_H

#include <jansson.h>

/* The data of the page of `report` at $TMP/`name`, with what is stored in short written out. */
json_t *report_data(const char *name);

#endif
