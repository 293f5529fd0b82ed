/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time compression and loads (P0). */
#include "passes/memplan/place_internal.h"

#include <stdlib.h>
#include <string.h>

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int point_index(const int64_t *points, int n, int64_t time)
{
    int lo = 0, hi = n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (points[mid] < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The distinct times at which something is born or dies, ascending. */
static int64_t *event_points(Pool *scratch, const MemBuffer *buffers, const int *index, int n,
                             int *n_points)
{
    int64_t *points = POOL_ARRAY(scratch, (size_t)n * 2, int64_t);
    for (int i = 0; i < n; i++) {
        points[2 * i] = buffers[index[i]].lower;
        points[2 * i + 1] = buffers[index[i]].upper;
    }
    qsort(points, (size_t)n * 2, sizeof *points, compare_int64);
    int m = 0;
    for (int i = 0; i < 2 * n; i++)
        if (m == 0 || points[m - 1] != points[i])
            points[m++] = points[i];
    *n_points = m;
    return points;
}

static void compress_slots(PlaceProblem *p, int n_points)
{
    bool *born = POOL_ARRAY(p->scratch, (size_t)n_points, bool);
    bool *dead = POOL_ARRAY(p->scratch, (size_t)n_points, bool);
    int *slot = POOL_ARRAY(p->scratch, (size_t)n_points, int);
    for (int i = 0; i < p->n; i++) {
        born[p->start[i]] = true;
        dead[p->end[i]] = true;
    }
    bool any_birth = false, any_death = false;
    int current = 0;
    for (int t = 0; t < n_points; t++) {
        any_death |= dead[t];
        if (born[t]) {
            if (any_death && any_birth)
                current++;
            any_death = false;
            any_birth = true;
        }
        slot[t] = current;
    }
    for (int i = 0; i < p->n; i++) {
        int last = slot[p->end[i] - 1];
        p->start[i] = slot[p->start[i]];
        p->end[i] = last + 1;
    }
    p->n_slots = current + 1;
}

static void compute_loads(PlaceProblem *p)
{
    p->load = POOL_ARRAY(p->scratch, (size_t)p->n_slots + 1, int64_t);
    for (int i = 0; i < p->n; i++) {
        p->load[p->start[i]] += p->size[i];
        p->load[p->end[i]] -= p->size[i];
    }
    int64_t sum = 0;
    for (int t = 0; t < p->n_slots; t++) {
        sum += p->load[t];
        p->load[t] = sum;
        if (sum > p->bound)
            p->bound = sum;
    }
}

/* Range maxima from a sparse table: O(slots log slots) once, O(1) a buffer. */
static void compute_max_loads(PlaceProblem *p)
{
    int levels = 1;
    while ((1 << levels) <= p->n_slots)
        levels++;
    int64_t **table = POOL_ARRAY(p->scratch, (size_t)levels, int64_t *);
    table[0] = p->load;
    for (int k = 1; k < levels; k++) {
        table[k] = POOL_ARRAY(p->scratch, (size_t)p->n_slots, int64_t);
        int half = 1 << (k - 1);
        for (int t = 0; t + 2 * half <= p->n_slots; t++) {
            int64_t a = table[k - 1][t], b = table[k - 1][t + half];
            table[k][t] = a > b ? a : b;
        }
    }
    p->max_load = POOL_ARRAY(p->scratch, (size_t)p->n, int64_t);
    for (int i = 0; i < p->n; i++) {
        int k = 0;
        while ((2 << k) <= p->end[i] - p->start[i])
            k++;
        int64_t a = table[k][p->start[i]], b = table[k][p->end[i] - (1 << k)];
        p->max_load[i] = a > b ? a : b;
    }
}

PlaceProblem *place_compress(Pool *scratch, const MemBuffer *buffers, const int *index, int n)
{
    PlaceProblem *p = POOL_NEW(scratch, PlaceProblem);
    p->scratch = scratch;
    p->n = n;
    p->start = POOL_ARRAY(scratch, (size_t)n, int);
    p->end = POOL_ARRAY(scratch, (size_t)n, int);
    p->size = POOL_ARRAY(scratch, (size_t)n, int64_t);
    int n_points;
    int64_t *points = event_points(scratch, buffers, index, n, &n_points);
    for (int i = 0; i < n; i++) {
        p->start[i] = point_index(points, n_points, buffers[index[i]].lower);
        p->end[i] = point_index(points, n_points, buffers[index[i]].upper);
        p->size[i] = buffers[index[i]].size;
    }
    compress_slots(p, n_points);
    compute_loads(p);
    compute_max_loads(p);
    return p;
}

int64_t place_unit(const PlaceProblem *p)
{
    int64_t divisor = p->size[0];
    for (int b = 1; b < p->n; b++)
        for (int64_t other = p->size[b]; other > 0;) {
            int64_t rest = divisor % other;
            divisor = other;
            other = rest;
        }
    return divisor;
}

int64_t place_height(const PlaceProblem *p, const int64_t *offset)
{
    int64_t height = 0;
    for (int b = 0; b < p->n; b++)
        if (offset[b] + p->size[b] > height)
            height = offset[b] + p->size[b];
    return height;
}
