/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sorting of plain numbers. */
#ifndef SCRIMP_IR_SUPPORT_SORT_H
#define SCRIMP_IR_SUPPORT_SORT_H

#include <stddef.h>

/* Ascending, in place: O(n log n). */
void sort_ints(int *x, size_t n);

#endif
