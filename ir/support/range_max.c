/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/range_max.h"

RangeMax range_max_new(Pool *pool, int n)
{
    RangeMax t = {.leaves = 1};
    while (t.leaves < n)
        t.leaves *= 2;
    t.most = POOL_ARRAY(pool, 2 * (size_t)t.leaves, int64_t);
    t.added = POOL_ARRAY(pool, 2 * (size_t)t.leaves, int64_t);
    /* Leaves past the last place never have the most. */
    range_max_add(&t, n, t.leaves - 1, INT64_MIN / 4);
    return t;
}

RangeMax range_max_of(Pool *pool, const int64_t *numbers, int n)
{
    RangeMax t = range_max_new(pool, n);
    for (int i = 0; i < n; i++)
        t.most[t.leaves + i] = t.added[t.leaves + i] = numbers[i];
    for (int i = t.leaves - 1; i >= 1; i--) {
        int64_t left = t.most[2 * i], right = t.most[2 * i + 1];
        t.most[i] = (left > right ? left : right) + t.added[i];
    }
    return t;
}

static void add(RangeMax *t, int node, int lo, int hi, int first, int last, int64_t value)
{
    if (first <= lo && hi <= last) {
        t->most[node] += value;
        t->added[node] += value;
        return;
    }
    int mid = (lo + hi) / 2;
    if (first <= mid)
        add(t, 2 * node, lo, mid, first, last, value);
    if (last > mid)
        add(t, 2 * node + 1, mid + 1, hi, first, last, value);
    int64_t left = t->most[2 * node], right = t->most[2 * node + 1];
    t->most[node] = (left > right ? left : right) + t->added[node];
}

void range_max_add(RangeMax *t, int first, int last, int64_t value)
{
    if (first <= last && value != 0)
        add(t, 1, 0, t->leaves - 1, first, last, value);
}

static int64_t most(const RangeMax *t, int node, int lo, int hi, int first, int last)
{
    if (first <= lo && hi <= last)
        return t->most[node];
    int mid = (lo + hi) / 2;
    int64_t best = INT64_MIN;
    if (first <= mid)
        best = most(t, 2 * node, lo, mid, first, last);
    if (last > mid) {
        int64_t right = most(t, 2 * node + 1, mid + 1, hi, first, last);
        best = right > best ? right : best;
    }
    return best + t->added[node];
}

int64_t range_max_most(const RangeMax *t, int first, int last)
{
    return most(t, 1, 0, t->leaves - 1, first, last);
}

int range_max_argmost(const RangeMax *t)
{
    int node = 1;
    while (node < t->leaves)
        node = t->most[2 * node] >= t->most[2 * node + 1] ? 2 * node : 2 * node + 1;
    return node - t->leaves;
}

/* Marks the places below a tree node that are above the limit, from the last one on. */
static void mark_above(const RangeMax *t, int node, int64_t limit, int *next, int n)
{
    if (t->most[node] <= limit)
        return;
    if (node >= t->leaves) {
        if (node - t->leaves < n)
            next[node - t->leaves] = node - t->leaves;
        return;
    }
    mark_above(t, 2 * node + 1, limit - t->added[node], next, n);
    mark_above(t, 2 * node, limit - t->added[node], next, n);
}

void range_max_above(const RangeMax *t, int64_t limit, int *next, int n)
{
    for (int i = 0; i < n; i++)
        next[i] = n;
    mark_above(t, 1, limit, next, n);
    for (int i = n - 2; i >= 0; i--)
        if (next[i] == n)
            next[i] = next[i + 1];
}
