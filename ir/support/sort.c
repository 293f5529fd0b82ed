/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/sort.h"

#include <stdlib.h>

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static int compare_weighted(const void *a, const void *b)
{
    const Weighted *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

void sort_ints(int *x, size_t n)
{
    if (n > 1) /* x may be NULL */
        qsort(x, n, sizeof *x, compare_ints);
}

void sort_ranked(Ranked *x, size_t n)
{
    if (n > 1)
        qsort(x, n, sizeof *x, compare_ranked);
}

void sort_weighted(Weighted *x, size_t n)
{
    if (n > 1)
        qsort(x, n, sizeof *x, compare_weighted);
}
