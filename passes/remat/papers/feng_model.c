/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The graph and the cost of Feng and Huang's model (see feng.h). */
#include "passes/remat/papers/feng.h"

#include <string.h>

static int count_ends(const Csr *c, int n)
{
    int ends = 0;
    for (int v = 0; v < n; v++)
        ends += csr_length(c, v) == 0;
    return ends;
}

static void add_edge(FengGraph *f, int u, int w, bool store)
{
    if (store) {
        csr_store(&f->g.pred, w, u);
        csr_store(&f->g.succ, u, w);
    } else {
        csr_count(&f->g.pred, w);
        csr_count(&f->g.succ, u);
    }
}

/* The graph's edges, and those to its virtual ends.  Returns how many. */
static int add_edges(FengGraph *f, const ForwardGraph *g, bool store)
{
    int total = 0, target = f->g.n - 1, shift = f->shift;
    for (int w = 0; w < g->n; w++) {
        for (int k = g->pred.begin[w]; k < g->pred.begin[w + 1]; k++, total++)
            add_edge(f, g->pred.item[k] + shift, w + shift, store);
        if (shift && csr_length(&g->pred, w) == 0) {
            add_edge(f, 0, w + shift, store);
            total++;
        }
        if (target > w + shift && csr_length(&g->succ, w) == 0) {
            add_edge(f, w + shift, target, store);
            total++;
        }
    }
    return total;
}

FengGraph feng_graph(Pool *pool, const ForwardGraph *g)
{
    int shift = g->has_inputs && count_ends(&g->pred, g->n) == 1 ? 0 : 1;
    int n = g->n + shift + (count_ends(&g->succ, g->n) == 1 && g->n > 1 ? 0 : 1);
    FengGraph f = {.g = {.n = n, .has_inputs = true}, .shift = shift, .n_real = g->n};
    double *time = POOL_ARRAY(pool, (size_t)n, double);
    int64_t *bytes = POOL_ARRAY(pool, (size_t)n, int64_t);
    for (int v = 0; v < g->n; v++) {
        time[v + shift] = g->time[v];
        bytes[v + shift] = g->bytes[v];
    }
    f.g.time = time;
    f.g.bytes = bytes;
    f.g.pred = csr_new(pool, n);
    f.g.succ = csr_new(pool, n);
    int total = add_edges(&f, g, false);
    csr_close(&f.g.pred, pool, total);
    csr_close(&f.g.succ, pool, total);
    add_edges(&f, g, true);
    return f;
}

/* One segment: what can be walked to from a vertex without passing a checkpoint. */
typedef struct Walk {
    const FengGraph *f;
    const bool *checkpoint;
    bool *seen;
    int *stack, top;
    int entry, exit; /* checkpoints beside it; -1 none, -2 several */
} Walk;

static bool is_checkpoint(const Walk *w, int v)
{
    return v == 0 || v == w->f->g.n - 1 || w->checkpoint[v];
}

static void look_at(Walk *w, const Csr *c, int v, int *end)
{
    for (int k = c->begin[v]; k < c->begin[v + 1]; k++) {
        int u = c->item[k];
        if (is_checkpoint(w, u)) {
            *end = *end == -1 || *end == u ? u : -2;
        } else if (!w->seen[u]) {
            w->seen[u] = true;
            w->stack[w->top++] = u;
        }
    }
}

int64_t feng_cost(Pool *scratch, const FengGraph *f, const bool *checkpoint)
{
    size_t n = (size_t)f->g.n;
    Walk w = {.f = f, .checkpoint = checkpoint, .seen = POOL_ARRAY(scratch, n, bool)};
    w.stack = POOL_ARRAY(scratch, n, int);
    int64_t kept = 0, largest = 0;
    for (int v = 0; v < f->g.n; v++) {
        kept += is_checkpoint(&w, v) ? f->g.bytes[v] : 0;
        if (is_checkpoint(&w, v) || w.seen[v])
            continue;
        int64_t segment = 0;
        w.entry = w.exit = -1;
        w.seen[v] = true;
        w.stack[w.top++] = v;
        while (w.top > 0) {
            int u = w.stack[--w.top];
            segment += f->g.bytes[u];
            look_at(&w, &f->g.pred, u, &w.entry);
            look_at(&w, &f->g.succ, u, &w.exit);
        }
        if (w.entry < 0 || w.exit < 0)
            return -1;
        largest = segment > largest ? segment : largest;
    }
    return kept + largest;
}

void feng_kept(const FengGraph *f, const bool *checkpoint, bool *keep)
{
    int target = f->g.n - 1;
    for (int w = target; w >= 0; w--) { /* readers first */
        bool last = w == target;
        for (int k = f->g.succ.begin[w]; k < f->g.succ.begin[w + 1]; k++) {
            int u = f->g.succ.item[k], real = u - f->shift;
            last |= u == target || (!checkpoint[u] && real < f->n_real && keep[real]);
        }
        if (w >= f->shift && w - f->shift < f->n_real)
            keep[w - f->shift] = last || checkpoint[w];
    }
}
