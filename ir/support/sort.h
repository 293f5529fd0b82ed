/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorting of plain numbers, and of items by a number. */
#ifndef SCRIMP_IR_SUPPORT_SORT_H
#define SCRIMP_IR_SUPPORT_SORT_H

#include <stddef.h>
#include <stdint.h>

/* An item by a whole number, or by a real one.  For a descending order keys are negated. */
typedef struct Ranked {
    int64_t key;
    int item;
} Ranked;
typedef struct Weighted {
    double key;
    int item;
} Weighted;

/* Ascending, in place: O(n log n).  Equal keys: the smaller item first. */
void sort_ints(int *x, size_t n);
void sort_ranked(Ranked *x, size_t n);
void sort_weighted(Weighted *x, size_t n);

#endif
