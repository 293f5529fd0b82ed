/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Placement from the tightest buffers outwards, and its bundles.  steps/ holds the tight part of
 * two training steps (scrimp plan --arena-csv: U-Net, batch 8, at its least budget; Inception-v3,
 * batch 32, at 50%), which have layouts at their load that neither the search from large to small
 * nor squeaky wheel nor branch and bound alone finds. */
#include "check.h"
#include "passes/memplan/buffer_csv.h"
#include "passes/memplan/place_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *read_text(Pool *pool, const char *name, size_t *length)
{
    const char *root = getenv("SCRIMP_SOURCE");
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/unit/passes/steps/%s", root ? root : ".", name);
    FILE *f = fopen(path, "rb");
    CHECK_MSG(f != NULL, "no %s", path);
    char *text = POOL_ARRAY(pool, 1 << 16, char);
    *length = f ? fread(text, 1, (1 << 16) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

static bool meet(const MemBuffer *a, const MemBuffer *b)
{
    return a->lower < b->upper && b->lower < a->upper;
}

/* Every pair, without any of memplan's code. */
static int count_overlaps(const MemBuffer *b, int n, const int64_t *offset)
{
    int overlaps = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            overlaps += meet(&b[i], &b[j]) && offset[i] < offset[j] + b[j].size &&
                        offset[j] < offset[i] + b[i].size;
    return overlaps;
}

/* All that live when `of` is born: the largest such sum is the largest load. */
static int64_t largest_load(const MemBuffer *b, int n)
{
    int64_t largest = 0;
    for (int of = 0; of < n; of++) {
        int64_t load = 0;
        for (int i = 0; i < n; i++)
            load += b[i].lower <= b[of].lower && b[of].lower < b[i].upper ? b[i].size : 0;
        largest = load > largest ? load : largest;
    }
    return largest;
}

static int64_t top_of(const MemBuffer *b, int n, const int64_t *offset)
{
    int64_t top = 0;
    for (int i = 0; i < n; i++) {
        CHECK(offset[i] >= 0 && offset[i] % 64 == 0);
        top = offset[i] + b[i].size > top ? offset[i] + b[i].size : top;
    }
    return top;
}

static void check_step(const char *name, int at_least)
{
    Pool *pool = pool_new();
    size_t length;
    const char *text = read_text(pool, name, &length), *fault = "";
    BufferCsv csv = {.n = 0};
    CHECK_MSG(buffer_csv_read(pool, text, length, &csv, &fault), "%s: %s", name, fault);
    CHECK(csv.n >= at_least);
    MemLayout l = memplan_place(pool, csv.buffer, csv.n, 64);
    int64_t load = largest_load(csv.buffer, csv.n), top = top_of(csv.buffer, csv.n, l.offset);
    CHECK_MSG(top == load, "%s: %lld above the load", name, (long long)(top - load));
    CHECK(l.arena_bytes == top && l.lower_bound_bytes == load);
    CHECK(count_overlaps(csv.buffer, csv.n, l.offset) == 0);
    MemLayout again = memplan_place(pool, csv.buffer, csv.n, 64);
    CHECK(memcmp(l.offset, again.offset, (size_t)csv.n * sizeof *l.offset) == 0);
    pool_free(pool);
}

static uint64_t random_state = 20261122;

static int64_t random_below(int64_t n)
{
    return (int64_t)(place_random(&random_state) % (uint64_t)n);
}

/* Many small ones and a few large ones. */
static PlaceProblem *random_problem(Pool *pool, MemBuffer *b, int n)
{
    int *index = POOL_ARRAY(pool, (size_t)n, int);
    for (int i = 0; i < n; i++) {
        b[i].lower = random_below(200);
        b[i].upper = b[i].lower + 1 + random_below(i % 3 ? 20 : 150);
        b[i].size = 64 * (1 + random_below(i % 4 ? 20 : 2000));
        index[i] = i;
    }
    return place_compress(pool, b, index, n);
}

/* Whole buffers at the offsets of some layout, one above the other: their members must not overlap
 * and stay inside.  And no slot of the bundled problem has more bytes than the limit. */
static void check_bundles(Pool *pool, int64_t room)
{
    enum { N = 300 };
    MemBuffer b[N];
    int64_t offset[N], *bottom, sum = 0;
    PlaceProblem *p = random_problem(pool, b, N);
    PlaceWork work = {0, INT64_MAX};
    int64_t limit = p->bound + room;
    PlaceBundles *g = place_bundle(pool, p, limit, 64 * 21, &work);
    CHECK(g->problem->bound <= limit);
    CHECK_MSG(room == 0 || g->problem->n < N / 2, "%d of %d are left", g->problem->n, N);
    bottom = POOL_ARRAY(pool, (size_t)g->problem->n, int64_t);
    for (int w = 0; w < g->problem->n; w++) {
        bottom[w] = sum;
        sum += g->problem->size[w];
    }
    for (int i = 0; i < N; i++) {
        int w = g->whole_of[i];
        CHECK(w >= 0 && w < g->problem->n);
        CHECK(g->inner[i] >= 0 && g->inner[i] + b[i].size <= g->problem->size[w]);
        offset[i] = bottom[w] + g->inner[i];
    }
    CHECK(count_overlaps(b, N, offset) == 0);
}

/* Lives of two slots, each with the one before and the one behind, and every slot full: no two fit
 * into a bundle. */
static bool bundle_full_slots(int n)
{
    Pool *pool = pool_new();
    MemBuffer *b = POOL_ARRAY(pool, (size_t)n, MemBuffer);
    int *index = POOL_ARRAY(pool, (size_t)n, int);
    for (int i = 0; i < n; i++) {
        b[i] = (MemBuffer){i, i + 2, i % 2 ? 64 : 128};
        index[i] = i;
    }
    PlaceProblem *p = place_compress(pool, b, index, n);
    PlaceWork work = {0, INT64_MAX};
    bool alone = place_bundle(pool, p, p->bound, INT64_MAX, &work)->problem->n == n;
    pool_free(pool);
    return alone;
}

/* A gigabyte, had each bundle of 12,000 room for all slots. */
static void check_many_bundles(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they need terabytes */
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_AS, &(struct rlimit){256 << 20, 256 << 20});
        _exit(bundle_full_slots(12000) ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
#else
    CHECK(bundle_full_slots(1000));
#endif
}

/* What an attempt finds is within its limit and has no overlap; with room it must be found. */
static int attempt_finds(Pool *pool, int attempt, int64_t percent)
{
    enum { N = 300 };
    MemBuffer b[N];
    int64_t offset[N];
    PlaceProblem *p = random_problem(pool, b, N);
    PlaceWork work = {0, INT64_MAX};
    int64_t limit = p->bound + p->bound * percent / 100 / 64 * 64;
    if (!place_tight_first(p, limit, attempt, offset, &work))
        return 0;
    CHECK(top_of(b, N, offset) <= limit && count_overlaps(b, N, offset) == 0);
    return 1;
}

int main(void)
{
    Pool *pool = pool_new();
    for (int k = 0; k < 20; k++)
        check_bundles(pool, k % 2 ? 64 * 1000 : 0);
    check_many_bundles();
    int found = 0, roomy = 0;
    for (int k = 0; k < 18; k++) {
        found += attempt_finds(pool, k, 0);
        roomy += attempt_finds(pool, k, 10);
    }
    printf("random buffers within their load: %d of 18, with a tenth more: %d\n", found, roomy);
    CHECK(roomy == 18);
    pool_free(pool);
    check_step("unet_min.csv", 90);
    check_step("inception_v3_50.csv", 500);
    return test_result();
}
