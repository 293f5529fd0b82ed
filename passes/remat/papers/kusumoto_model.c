/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Equations 1 and 2 of a sequence, term by term (see kusumoto.h). */
#include "passes/remat/papers/kusumoto.h"

/* v is in the boundary of L_i: it is in L_i and something outside L_i reads it.  That holds for the
 * sets from set_of[v] up to, and without, the last set_of of its readers. */
static int last_use(const ForwardGraph *g, const int *set_of, int v)
{
    int last = set_of[v];
    for (int k = g->succ.begin[v]; k < g->succ.begin[v + 1]; k++)
        last = set_of[g->succ.item[k]] > last ? set_of[g->succ.item[k]] : last;
    return last;
}

double kusumoto_eq1(const ForwardGraph *g, const int *set_of)
{
    double overhead = 0;
    for (int v = 0; v < g->n; v++)
        overhead += last_use(g, set_of, v) == set_of[v] ? g->time[v] : 0;
    return overhead;
}

/* Adds `bytes` to sum[first] .. sum[last - 1], as differences. */
static void add_range(int64_t *difference, int first, int last, int64_t bytes)
{
    if (first >= last)
        return;
    difference[first] += bytes;
    difference[last] -= bytes;
}

/* The first set that holds a predecessor of v; n_sets without any. */
static int first_pred(const ForwardGraph *g, const int *set_of, int v, int n_sets)
{
    int first = n_sets;
    for (int k = g->pred.begin[v]; k < g->pred.begin[v + 1]; k++)
        first = set_of[g->pred.item[k]] < first ? set_of[g->pred.item[k]] : first;
    return first;
}

int64_t kusumoto_eq2(Pool *scratch, const ForwardGraph *g, const int *set_of, int n_sets)
{
    int64_t *terms = POOL_ARRAY(scratch, (size_t)n_sets + 2, int64_t), peak = 0, sum = 0;
    int *entered = POOL_ARRAY(scratch, (size_t)g->n + 1, int);
    for (int v = 0; v < g->n; v++)
        entered[v] = first_pred(g, set_of, v, n_sets);
    for (int v = 0; v < g->n; v++) {
        int own = set_of[v], around = n_sets;
        if (last_use(g, set_of, v) > own)
            add_range(terms, own + 1, n_sets, g->bytes[v]); /* (i) M(U_{i-1}) */
        add_range(terms, own, own + 1, 2 * g->bytes[v]);    /* (ii) 2 M(V_i) */
        add_range(terms, entered[v], own, g->bytes[v]);     /* (iii) M(d+(L_i) \ L_i) */
        for (int k = g->succ.begin[v]; k < g->succ.begin[v + 1]; k++)
            if (entered[g->succ.item[k]] < around)
                around = entered[g->succ.item[k]];
        add_range(terms, around, own, g->bytes[v]); /* (iv) M(d-(d+(L_i)) \ L_i) */
    }
    for (int i = 0; i < n_sets; i++) {
        sum += terms[i];
        peak = sum > peak ? sum : peak;
    }
    return peak;
}
