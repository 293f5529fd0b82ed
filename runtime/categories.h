/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The different values of a column of text, numbered from 0.  Called by the data source csv. */
#ifndef SCRIMP_RUNTIME_CATEGORIES_H
#define SCRIMP_RUNTIME_CATEGORIES_H

#include "runtime/status.h"

/* All of a data set's are written into trainer.json, which has to stay small. */
enum { CATEGORIES_MAX = 500000, CATEGORIES_MAX_BYTES = 8 << 20 };

typedef struct Categories {
    int32_t n, room;
    int64_t *start; /* value i is text[start[i]] to text[start[i + 1]] */
    char *text;
    int64_t text_room;
    int32_t *slot; /* hash table of number + 1, 0 = free; its size is a power of two */
    int64_t slots;
} Categories;

void categories_free(Categories *c);
const char *category_text(const Categories *c, int32_t i, size_t *n);
/* -1 when it is not there. */
int32_t categories_find(const Categories *c, const char *text, size_t n);
/* The number of a value, a new one when it is not there; -1 with a message. */
int32_t categories_add(Categories *c, const char *text, size_t n, RtError *err);
/* Puts them in order: by value when all are whole numbers, else by their bytes.  number[old] (of
 * c->n) becomes the new number. */
bool categories_sort(Categories *c, int32_t *number, RtError *err);

#endif
