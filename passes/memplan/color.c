/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interval colouring of equal sizes (P1): taking buffers by birth and giving each the lowest free
 * colour uses exactly as many colours as are ever alive together, which no placement beats. */
#include "passes/memplan/place_internal.h"

static void sort_by_start(const PlaceProblem *p, int *order)
{
    int *count = POOL_ARRAY(p->scratch, (size_t)p->n_slots + 1, int);
    for (int i = 0; i < p->n; i++)
        count[p->start[i] + 1]++;
    for (int t = 0; t < p->n_slots; t++)
        count[t + 1] += count[t];
    for (int i = 0; i < p->n; i++)
        order[count[p->start[i]]++] = i;
}

bool place_color(const PlaceProblem *p, int64_t *offset, int64_t *height)
{
    for (int i = 1; i < p->n; i++)
        if (p->size[i] != p->size[0])
            return false;
    int *order = POOL_ARRAY(p->scratch, (size_t)p->n, int);
    int *next_dead = POOL_ARRAY(p->scratch, (size_t)p->n, int); /* buffers by end slot, linked */
    int *dies = POOL_ARRAY(p->scratch, (size_t)p->n_slots + 1, int);
    int *color = POOL_ARRAY(p->scratch, (size_t)p->n, int);
    int *free_colors = POOL_ARRAY(p->scratch, (size_t)p->n, int);
    int n_free = 0, n_colors = 0, slot = 0;
    sort_by_start(p, order);
    for (int t = 0; t <= p->n_slots; t++)
        dies[t] = -1;
    for (int k = 0; k < p->n; k++) {
        int b = order[k];
        for (; slot <= p->start[b]; slot++)
            for (int d = dies[slot]; d >= 0; d = next_dead[d])
                free_colors[n_free++] = color[d];
        color[b] = n_free > 0 ? free_colors[--n_free] : n_colors++;
        next_dead[b] = dies[p->end[b]];
        dies[p->end[b]] = b;
        offset[b] = (int64_t)color[b] * p->size[b];
    }
    *height = (int64_t)n_colors * p->size[0];
    return true;
}
