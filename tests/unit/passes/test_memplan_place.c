/* SPDX-License-Identifier: GPL-3.0-or-later */
/* memplan_place and its branch and bound against brute force on small instances, on instances cut
 * out of a rectangle, at size on random intervals, and memplan_check against broken layouts. */
#include "check.h"
#include "passes/memplan/memplan.h"
#include "passes/memplan/place_internal.h"

#include <string.h>
#include <time.h>

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state >> 11;
}

static int64_t random_below(int64_t n)
{
    return (int64_t)(next_random() % (uint64_t)n);
}

static void random_buffers(MemBuffer *b, int n, int64_t horizon, int64_t max_life, int64_t max_size)
{
    for (int i = 0; i < n; i++) {
        b[i].lower = random_below(horizon);
        b[i].upper = b[i].lower + 1 + random_below(max_life);
        b[i].size = 64 * (1 + random_below(max_size));
    }
}

static bool meet(const MemBuffer *a, const MemBuffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* The lowest place for b above everything already placed that it meets, gaps included. */
static int64_t lowest_place(const MemBuffer *b, int i, const int *order, int k, const int64_t *at)
{
    for (int64_t offset = 0;; offset += 64) {
        bool fits = true;
        for (int j = 0; j < k && fits; j++) {
            int o = order[j];
            fits =
                !meet(&b[i], &b[o]) || offset + b[i].size <= at[o] || at[o] + b[o].size <= offset;
        }
        if (fits)
            return offset;
    }
}

/* Some order of lowest placement is optimal: press an optimal layout down and read it bottom up. */
static void brute_force(const MemBuffer *b, int n, int *order, int k, int64_t *at, int64_t height,
                        int64_t *best)
{
    if (height >= *best)
        return;
    if (k == n) {
        *best = height;
        return;
    }
    for (int i = k; i < n; i++) {
        int chosen = order[i];
        order[i] = order[k];
        order[k] = chosen;
        at[chosen] = lowest_place(b, chosen, order, k, at);
        int64_t top = at[chosen] + b[chosen].size;
        brute_force(b, n, order, k + 1, at, top > height ? top : height, best);
        order[k] = order[i];
        order[i] = chosen;
    }
}

enum { MAX_BRUTE = 12 };

/* The least height, or `at_most` when there is none below it. */
static int64_t optimum(const MemBuffer *b, int n, int64_t at_most)
{
    int order[MAX_BRUTE];
    int64_t at[MAX_BRUTE], best = at_most;
    for (int i = 0; i < n; i++)
        order[i] = i;
    brute_force(b, n, order, 0, at, 0, &best);
    return best;
}

/* Branch and bound alone, from the worst layout there is: it must end at the optimum and say so. */
static void check_exact(Pool *pool, const MemBuffer *b, int n, int64_t best)
{
    int index[MAX_BRUTE];
    int64_t offset[MAX_BRUTE], height = 0;
    MemLayout l = {.offset = offset};
    for (int i = 0; i < n; i++) {
        index[i] = i;
        offset[i] = height;
        height += b[i].size;
    }
    PlaceProblem *p = place_compress(pool, b, index, n);
    int64_t lower = l.lower_bound_bytes = p->bound;
    place_exact(p, offset, &height, &lower, 10000000);
    l.arena_bytes = height;
    const char *fault = "";
    CHECK_MSG(memplan_check(pool, b, n, &l, &fault), "%s", fault);
    CHECK_MSG(height == best && lower == best, "%lld, proven %lld, optimum %lld", (long long)height,
              (long long)lower, (long long)best);
}

/* The search from large to small alone, within so much work. */
static MemLayout levels_layout(Pool *pool, const MemBuffer *b, int n, int64_t steps)
{
    int *index = POOL_ARRAY(pool, (size_t)n, int);
    for (int i = 0; i < n; i++)
        index[i] = i;
    PlaceProblem *p = place_compress(pool, b, index, n);
    p->target = p->bound;
    PlaceWork work = {0, steps};
    MemLayout l = {.offset = POOL_ARRAY(pool, (size_t)n, int64_t), .lower_bound_bytes = p->bound};
    l.arena_bytes = place_levels(p, l.offset, 0, &work);
    const char *fault = "";
    CHECK_MSG(memplan_check(pool, b, n, &l, &fault), "%s", fault);
    for (int i = 0; i < n; i++)
        CHECK(l.offset[i] % 64 == 0);
    return l;
}

static void check_small(Pool *pool)
{
    for (int k = 0; k < 600; k++) {
        MemBuffer b[7];
        int n = 1 + (int)random_below(7);
        random_buffers(b, n, 8, 5, k % 2 ? 6 : 30);
        MemLayout l = memplan_place(pool, b, n, 64);
        const char *fault = "";
        CHECK_MSG(memplan_check(pool, b, n, &l, &fault), "%s", fault);
        int64_t best = optimum(b, n, INT64_MAX);
        CHECK_MSG(l.arena_bytes == best && best >= l.lower_bound_bytes, "%lld, optimum %lld",
                  (long long)l.arena_bytes, (long long)best);
        check_exact(pool, b, n, best);
        CHECK(levels_layout(pool, b, n, 20000).arena_bytes >= best);
    }
}

/* As in a training step under a budget: sizes of all scales, most lives short.  From large to small
 * the bound is missed by little; the skyline alone is far above. */
static void check_levels(Pool *pool)
{
    enum { N = 1500 };
    MemBuffer *b = POOL_ARRAY(pool, N, MemBuffer);
    int order[N], index[N];
    int64_t offset[N];
    for (int i = 0; i < N; i++) {
        index[i] = i;
        b[i].lower = random_below(N);
        int64_t life = random_below(8) ? 6 : (N - b[i].lower) / 2 + 1;
        b[i].upper = b[i].lower + 1 + random_below(life);
        b[i].size = random_below(4096); /* one draw a statement: compilers choose the order */
        b[i].size = 64 * (1 + (b[i].size >> random_below(13)));
    }
    PlaceProblem *p = place_compress(pool, b, index, N);
    p->target = p->bound;
    PlaceWork work = {0, 15000000};
    place_order(p, "TZW", order);
    double skyline = (double)place_skyline(p, order, offset, &work) / (double)p->bound;
    MemLayout l = levels_layout(pool, b, N, 15000000);
    double levels = (double)l.arena_bytes / (double)p->bound;
    printf("%d sizes of all scales: skyline %.4f of the bound, levels %.4f\n", N, skyline, levels);
    CHECK_MSG(levels < 1.005 && skyline > levels, "%.4f", levels);
}

/* Found by search among sets that fill every slot: no placement reaches their bounds. */
static void check_above_bound(Pool *pool)
{
    static const struct {
        int64_t bound;
        MemBuffer b[11];
    } set[] = {{5,
                {{0, 1, 2},
                 {0, 2, 3},
                 {1, 5, 1},
                 {1, 4, 1},
                 {2, 3, 2},
                 {2, 5, 1},
                 {3, 4, 1},
                 {3, 6, 1},
                 {4, 5, 2},
                 {5, 6, 2},
                 {5, 6, 2}}},
               {7,
                {{0, 2, 3},
                 {0, 1, 3},
                 {0, 6, 1},
                 {1, 4, 2},
                 {1, 5, 1},
                 {2, 4, 2},
                 {2, 3, 1},
                 {3, 5, 1},
                 {4, 6, 1},
                 {4, 6, 3},
                 {5, 6, 2}}},
               {8,
                {{0, 2, 3},
                 {0, 4, 3},
                 {0, 1, 2},
                 {1, 3, 1},
                 {1, 4, 1},
                 {2, 4, 1},
                 {2, 3, 2},
                 {3, 5, 3},
                 {4, 6, 2},
                 {4, 6, 3},
                 {5, 6, 3}}}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        MemBuffer b[11];
        for (int i = 0; i < 11; i++) {
            b[i] = set[k].b[i];
            b[i].size *= 64;
        }
        MemLayout l = memplan_place(pool, b, 11, 64);
        CHECK(l.lower_bound_bytes == 64 * set[k].bound);
        CHECK(l.arena_bytes == 64 * (set[k].bound + 1));
        if (k == 0) /* seconds each */
            CHECK(optimum(b, 11, l.arena_bytes) == l.arena_bytes);
        check_exact(pool, b, 11, l.arena_bytes);
    }
}

/* Cuts [lower,upper) x size into n buffers that fill it; the cut is one of time or of bytes. */
static void cut(MemBuffer whole, int n, MemBuffer *out)
{
    if (n == 1) {
        *out = whole;
        return;
    }
    int first = 1 + (int)random_below(n - 1);
    MemBuffer a = whole, b = whole;
    if (random_below(2) && whole.upper - whole.lower > n)
        a.upper = b.lower = whole.lower + first + random_below(whole.upper - whole.lower - n + 1);
    else {
        a.size = 64 * (first + random_below(whole.size / 64 - n + 1));
        b.size -= a.size;
    }
    cut(a, first, out);
    cut(b, n - first, out + first);
}

/* Full rectangles have no byte to lose anywhere: the bound is reached, and heuristics miss it. */
static void check_perfect(Pool *pool, int n, int cases)
{
    int missed = 0;
    for (int k = 0; k < cases; k++) {
        Pool *scratch = pool_new_child(pool);
        MemBuffer *b = POOL_ARRAY(scratch, (size_t)n, MemBuffer);
        cut((MemBuffer){0, 1000, 64 * 1000}, n, b);
        MemLayout l = memplan_place(scratch, b, n, 64);
        const char *fault = "";
        CHECK_MSG(memplan_check(scratch, b, n, &l, &fault), "%s", fault);
        CHECK(l.lower_bound_bytes == 64 * 1000);
        missed += l.arena_bytes > l.lower_bound_bytes;
        pool_free(scratch);
    }
    printf("rectangles cut into %d: %d of %d above the bound\n", n, missed, cases);
    CHECK_MSG(missed == 0, "%d of %d", missed, cases);
}

static void check_large(Pool *pool, int n, int64_t horizon, int64_t life, double max_gap_percent)
{
    MemBuffer *b = POOL_ARRAY(pool, (size_t)n, MemBuffer);
    random_buffers(b, n, horizon, life, 4096);
    clock_t begin = clock();
    MemLayout l = memplan_place(pool, b, n, 64);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    const char *fault = "";
    CHECK_MSG(memplan_check(pool, b, n, &l, &fault), "%s", fault);
    double gap =
        100.0 * (double)(l.arena_bytes - l.lower_bound_bytes) / (double)l.lower_bound_bytes;
    printf("%d intervals of life <= %lld: gap %.3f%% in %.2f s\n", n, (long long)life, gap,
           seconds);
    CHECK_MSG(gap <= max_gap_percent, "gap %.2f%%", gap);
    MemLayout sketch = memplan_place_within(pool, b, n, 64, MEMPLAN_SKETCH);
    CHECK_MSG(memplan_check(pool, b, n, &sketch, &fault), "%s", fault);
    CHECK(sketch.arena_bytes >= l.arena_bytes);
    MemLayout again = memplan_place(pool, b, n, 64);
    CHECK(memcmp(l.offset, again.offset, (size_t)n * sizeof *l.offset) == 0);
}

/* Lives as in a training step: made going forward, needed again on the way back. */
static void check_nested(Pool *pool)
{
    enum { LAYERS = 2000 };
    MemBuffer *b = POOL_ARRAY(pool, 2 * LAYERS, MemBuffer);
    for (int i = 0; i < LAYERS; i++) {
        b[2 * i] = (MemBuffer){i, 2 * LAYERS - i, 64 * (1 + random_below(5000))};
        b[2 * i + 1] =
            (MemBuffer){2 * LAYERS - i - 1, 2 * LAYERS - i + 1, 64 * (1 + random_below(5000))};
    }
    MemLayout l = memplan_place(pool, b, 2 * LAYERS, 64);
    const char *fault = "";
    CHECK_MSG(memplan_check(pool, b, 2 * LAYERS, &l, &fault), "%s", fault);
    CHECK_MSG(l.arena_bytes == l.lower_bound_bytes, "gap %lld",
              (long long)(l.arena_bytes - l.lower_bound_bytes));
}

static void check_special(Pool *pool)
{
    MemLayout none = memplan_place(pool, NULL, 0, 64);
    CHECK(none.arena_bytes == 0 && none.lower_bound_bytes == 0);
    MemBuffer b[] = {{0, 4, 0}, {0, 2, 128}, {2, 4, 128}, {1, 3, 128}, {10, 11, 64}, {12, 20, 64}};
    MemLayout l = memplan_place(pool, b, 6, 64);
    CHECK(l.offset[0] == 0 && l.arena_bytes == 256 && l.lower_bound_bytes == 256);
    MemBuffer equal[40];
    random_buffers(equal, 40, 30, 9, 1);
    MemLayout e = memplan_place(pool, equal, 40, 64);
    CHECK(e.arena_bytes == e.lower_bound_bytes);
}

/* Every way of breaking a layout must be noticed. */
static void check_mutants(Pool *pool)
{
    for (int k = 0; k < 300; k++) {
        MemBuffer b[30];
        random_buffers(b, 30, 20, 12, 10);
        MemLayout l = memplan_place(pool, b, 30, 64);
        const char *fault;
        int i = (int)random_below(30), j = (int)random_below(30);
        if (i != j && meet(&b[i], &b[j])) {
            int64_t kept = l.offset[i];
            l.offset[i] = l.offset[j] + 64 * random_below(b[j].size / 64);
            CHECK(!memplan_check(pool, b, 30, &l, &fault));
            l.offset[i] = kept;
        }
        l.arena_bytes += 64;
        CHECK(!memplan_check(pool, b, 30, &l, &fault));
        l.arena_bytes -= 64;
        l.lower_bound_bytes -= 64;
        CHECK(!memplan_check(pool, b, 30, &l, &fault));
        l.lower_bound_bytes += 64;
        l.offset[i] = -64;
        CHECK(!memplan_check(pool, b, 30, &l, &fault));
    }
}

/* First fit alone: nothing overlaps, the height is what it reaches, and no buffer could lie lower
 * among those before it. */
static void check_first_fit(Pool *parent)
{
    enum { MOST = 60 };
    for (int k = 0; k < 100; k++) {
        Pool *pool = pool_new_child(parent);
        MemBuffer b[MOST];
        int n = 2 + (int)random_below(MOST - 1), index[MOST], order[MOST];
        int64_t offset[MOST];
        random_buffers(b, n, k % 2 ? 300 : 20, k % 3 ? 12 : 150, 9);
        for (int i = 0; i < n; i++)
            index[i] = i;
        PlaceProblem *p = place_compress(pool, b, index, n);
        PlaceWork work = {0, INT64_MAX};
        place_order(p, "ATZ", order);
        MemLayout l = {.offset = offset, .lower_bound_bytes = p->bound};
        l.arena_bytes = place_first_fit(p, order, offset, &work);
        const char *fault = "";
        CHECK_MSG(memplan_check(pool, b, n, &l, &fault), "%s", fault);
        for (int i = 0; i < n; i++)
            CHECK(offset[order[i]] == lowest_place(b, order[i], order, i, offset));
        pool_free(pool);
    }
}

int main(void)
{
    Pool *pool = pool_new();
    random_state = 20240607;
    printf("seed %llu\n", (unsigned long long)random_state);
    check_special(pool);
    check_first_fit(pool);
    check_small(pool);
    check_levels(pool);
    check_above_bound(pool);
    check_perfect(pool, 20, 40);
    check_perfect(pool, 60, 20);
    check_mutants(pool);
    check_nested(pool);
    check_large(pool, 3000, 3000, 60, 2);
    check_large(pool, 20000, 20000, 40, 2);
#ifndef __SANITIZE_ADDRESS__ /* nothing that the others do not do; ten times as long */
    check_large(pool, 20000, 20000, 2000, 4);
    check_large(pool, 20000, 20000, 20000, 1);
    check_large(pool, 20000, 1000, 40, 2);
#endif
    pool_free(pool);
    return test_result();
}
