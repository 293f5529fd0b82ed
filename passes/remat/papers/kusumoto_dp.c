/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Algorithm 1 of Kusumoto et al. 2019 over a family of lower sets (see kusumoto.h).
 *
 * opt[L', .] is gathered from all L < L' at once, so that the dense row over t exists for one set
 * at a time; what is kept of it are the (t, m) that no other one dominates.  T is quantised by
 * block, not by node, so that errors do not add up.  The budget prunes: with m >= least(L),
 * most pairs of sets fail before they are compared. */
#include "passes/remat/papers/kusumoto.h"

#include <string.h>

static const int64_t MAX_STATES = 16000000; /* 384 MB */

/* opt[L, t] = m and how it came about. */
typedef struct State {
    int64_t m;
    int t, from, from_state;
} State;

/* Of one set: m falls strictly, while t rises (time-centric) or falls (memory-centric). */
typedef struct Frontier {
    State *state;
    int n;
} Frontier;

typedef struct Program {
    Family *f;
    Pool *pool;
    int64_t budget;
    bool memory_centric;
    Frontier *frontier; /* by set */
    int64_t *floor;     /* by set: least m - 2 M(L); INT64_MAX: not reached */
    State *row;         /* of the set at hand, by t; m = INT64_MAX: none */
    int low, high;      /* the part of it that is in use */
    int64_t n_states;
} Program;

static void extend_states(Program *d, const Block *b)
{
    const Frontier *from = &d->frontier[b->from];
    int k = from->n - 1;
    for (; k >= 0 && from->state[k].m + b->need <= d->budget; k--) {
        int t = from->state[k].t + b->units;
        t = t < d->f->units ? t : d->f->units;
        if (from->state[k].m + b->cached < d->row[t].m)
            d->row[t] = (State){from->state[k].m + b->cached, t, b->from, k};
        d->low = t < d->low ? t : d->low;
        d->high = t > d->high ? t : d->high;
    }
    d->f->steps += from->n - 1 - k;
}

/* Calls `extend` for every block into a set that may fit the budget. */
static void for_each_block(Program *d, int to, void (*extend)(Program *d, const Block *b))
{
    Family *f = d->f;
    if (f->block) {
        for (int64_t k = f->block_begin[to]; k < f->block_begin[to + 1]; k++) {
            const Block *b = &f->block[k];
            if (d->floor[b->from] < INT64_MAX &&
                d->floor[b->from] + 2 * f->set[b->from].bytes + b->need <= d->budget)
                extend(d, b);
        }
        f->steps += f->block_begin[to + 1] - f->block_begin[to];
        return;
    }
    int64_t most = d->budget - 2 * f->set[to].bytes - f->set[to].after;
    Block block;
    for (int from = 0; from < to; from++)
        if (d->floor[from] <= most && kusumoto_block(f, from, to, &block))
            extend(d, &block);
    f->steps += to;
}

/* The states of the row that no other dominates; clears the row. */
static void close_row(Program *d, int set)
{
    Frontier *frontier = &d->frontier[set];
    int n = d->high - d->low + 1, step = d->memory_centric ? -1 : 1;
    State *kept = POOL_ARRAY(d->pool, (size_t)(n > 0 ? n : 0) + 1, State);
    int64_t least = INT64_MAX;
    for (int k = 0, t = d->memory_centric ? d->high : d->low; k < n; k++, t += step) {
        if (d->row[t].m < least)
            kept[frontier->n++] = d->row[t];
        least = d->row[t].m < least ? d->row[t].m : least;
        d->row[t].m = INT64_MAX;
    }
    frontier->state = kept;
    d->floor[set] = least == INT64_MAX ? INT64_MAX : least - 2 * d->f->set[set].bytes;
    d->n_states += frontier->n;
    d->low = d->f->units;
    d->high = 0;
}

static Program new_program(Family *f, int64_t budget)
{
    Program d = {.f = f, .pool = pool_new_child(f->pool), .budget = budget, .low = f->units};
    d.frontier = POOL_ARRAY(d.pool, (size_t)f->n, Frontier);
    d.floor = POOL_ARRAY(d.pool, (size_t)f->n, int64_t);
    d.row = POOL_ARRAY(d.pool, (size_t)f->units + 1, State);
    for (int t = 0; t <= f->units; t++)
        d.row[t].m = INT64_MAX;
    return d;
}

/* False when V cannot be reached. */
static bool fill_table(Program *d)
{
    Family *f = d->f;
    d->row[0] = (State){0, 0, -1, -1};
    d->low = 0;
    close_row(d, 0);
    for (int to = 1; to < f->n; to++) {
        for_each_block(d, to, extend_states);
        if (f->steps > f->max_steps || d->n_states > MAX_STATES) {
            f->limited = true;
            return false;
        }
        close_row(d, to);
    }
    return d->frontier[f->n - 1].n > 0;
}

void kusumoto_write_sequence(const Family *f, const int *sets, int n_sets, int *set_of)
{
    for (int i = 0; i < n_sets; i++)
        for (int u = 0; u < f->g->n; u++)
            if (bitset_has(&f->set[sets[i]].nodes, (size_t)u))
                set_of[u] = n_sets - 1 - i;
}

/* t* is the first state of V: the smallest t, or, memory-centric, the largest. */
static int trace_back(const Program *d, int *set_of)
{
    int *sets = POOL_ARRAY(d->pool, (size_t)d->f->g->n + 2, int), n = 0;
    for (int set = d->f->n - 1, k = 0; set > 0; n++) {
        const State *s = &d->frontier[set].state[k];
        sets[n] = set;
        set = s->from;
        k = s->from_state;
    }
    kusumoto_write_sequence(d->f, sets, n, set_of);
    return n;
}

int kusumoto_solve(Family *f, int64_t budget, bool memory_centric, int *set_of)
{
    Program d = new_program(f, budget);
    d.memory_centric = memory_centric;
    int n_sets = fill_table(&d) ? trace_back(&d, set_of) : 0;
    pool_free(d.pool);
    return n_sets;
}

/* ---- the smallest budget ---- */

/* Whether V can be reached is a question of the least m of each set. */
typedef struct Search {
    Family *f;
    int64_t budget;
    int64_t *least, *floor, *peak; /* by set: m, m - 2 M(L), and equation 2 on the way to it */
    int64_t next;                  /* no budget below it makes more possible than this one */
} Search;

static void reach(Search *s, int to, const Block *b)
{
    int64_t need = s->least[b->from] + b->need;
    if (need > s->budget) {
        s->next = need < s->next ? need : s->next;
        return;
    }
    if (s->least[b->from] + b->cached >= s->least[to])
        return;
    s->least[to] = s->least[b->from] + b->cached;
    s->peak[to] = s->peak[b->from] > need ? s->peak[b->from] : need;
}

static void reach_set(Search *s, int to)
{
    Family *f = s->f;
    int64_t own = 2 * f->set[to].bytes + f->set[to].after;
    Block block;
    if (f->block) {
        for (int64_t k = f->block_begin[to]; k < f->block_begin[to + 1]; k++)
            if (s->floor[f->block[k].from] < INT64_MAX)
                reach(s, to, &f->block[k]);
        f->steps += f->block_begin[to + 1] - f->block_begin[to];
        return;
    }
    for (int from = 0; from < to; from++) {
        if (s->floor[from] == INT64_MAX)
            continue;
        if (s->floor[from] + own > s->budget)
            s->next = s->floor[from] + own < s->next ? s->floor[from] + own : s->next;
        else if (kusumoto_block(f, from, to, &block))
            reach(s, to, &block);
    }
    f->steps += to;
}

static bool is_feasible(Search *s, int64_t budget)
{
    Family *f = s->f;
    s->budget = budget;
    s->next = INT64_MAX;
    s->least[0] = s->floor[0] = s->peak[0] = 0;
    for (int to = 1; to < f->n && f->steps <= f->max_steps / 2; to++) {
        s->least[to] = INT64_MAX;
        reach_set(s, to);
        s->floor[to] = s->least[to] < INT64_MAX ? s->least[to] - 2 * f->set[to].bytes : INT64_MAX;
    }
    f->limited |= f->steps > f->max_steps / 2;
    return s->least[f->n - 1] < INT64_MAX;
}

/* Binary search; each answer moves its end of the interval to a value that the sets can have. */
int64_t kusumoto_smallest_budget(Family *f)
{
    Pool *pool = pool_new_child(f->pool);
    size_t n = (size_t)f->n;
    Search s = {.f = f, .least = POOL_ARRAY(pool, n, int64_t)};
    s.floor = POOL_ARRAY(pool, n, int64_t);
    s.peak = POOL_ARRAY(pool, n, int64_t);
    int64_t low = 0, high = 2 * f->set[f->n - 1].bytes;
    while (low < high && f->steps <= f->max_steps / 2) {
        s.least[f->n - 1] = INT64_MAX;
        if (is_feasible(&s, low + (high - low) / 2))
            high = s.peak[f->n - 1];
        else
            low = s.next;
    }
    pool_free(pool);
    return high;
}
