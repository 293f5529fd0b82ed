/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Priority orders of buffers. */
#include "passes/memplan/place_internal.h"

#include <stdlib.h>

enum { WINDOW = 8 }; /* a shuffle moves by less */

typedef struct SortItem {
    double key[3];
    int buffer;
} SortItem;

static int compare_items(const void *a, const void *b)
{
    const SortItem *x = a, *y = b;
    for (int k = 0; k < 3; k++)
        if (x->key[k] != y->key[k])
            return x->key[k] > y->key[k] ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

static double sort_key(const PlaceProblem *p, int b, char key)
{
    double life = p->end[b] - p->start[b], size = (double)p->size[b];
    switch (key) {
    case 'T':
        return (double)p->max_load[b];
    case 'Z':
        return size;
    case 'W':
        return life;
    default:
        return life * size;
    }
}

void place_order(const PlaceProblem *p, const char *keys, int *order)
{
    Pool *pool = pool_new_child(p->scratch);
    SortItem *items = POOL_ARRAY(pool, (size_t)p->n, SortItem);
    for (int b = 0; b < p->n; b++) {
        items[b].buffer = b;
        for (int k = 0; k < 3; k++)
            items[b].key[k] = sort_key(p, b, keys[k]);
    }
    qsort(items, (size_t)p->n, sizeof *items, compare_items);
    for (int k = 0; k < p->n; k++)
        order[k] = items[k].buffer;
    pool_free(pool);
}

void place_shuffle(int *order, int n, uint64_t seed)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15u;
    for (int i = 0; i + 1 < n; i++) {
        int reach = n - i < WINDOW ? n - i : WINDOW;
        int j = i + (int)(place_random(&random) % (uint64_t)reach), b = order[i];
        order[i] = order[j];
        order[j] = b;
    }
}
