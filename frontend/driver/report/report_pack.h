/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What makes a report small: each name once, a table by column, a text by what it shares with
 * another.  docs/report.md describes the form, which the page undoes (page_0_data.js). */
#ifndef SCRIMP_FRONTEND_DRIVER_REPORT_REPORT_PACK_H
#define SCRIMP_FRONTEND_DRIVER_REPORT_REPORT_PACK_H

#include <jansson.h>

typedef struct Packer {
    json_t *strings; /* every text of the tables, once */
    json_t *index;   /* its position, by text */
} Packer;

Packer packer_new(void);
/* Returns the strings, which then are the caller's. */
json_t *packer_end(Packer *p);

/* Objects whose members are neither objects nor lists of texts, as columns: by key a list with a
 * value for each row, null where it has none.  Of a text, which a "$" before the key tells, it is
 * the position in the strings.  Takes over the rows. */
json_t *packed_rows(Packer *p, json_t *rows);

/* The lines of a text: [from, n] for those that are lines from, ..., from + n - 1 of another, and
 * the line itself for one that is not. */
json_t *packed_text(const char *text, const char *like);

#endif
