/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/sort.h"

#include <stdlib.h>

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

void sort_ints(int *x, size_t n)
{
    if (n > 1) /* x may be NULL */
        qsort(x, n, sizeof *x, compare_ints);
}
