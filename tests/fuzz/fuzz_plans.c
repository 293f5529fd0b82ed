/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a kept plan (KEY.plans): read as nothing, or as schedules that all replay.  The
 * first byte chooses the problem, the question, and whether the rest is a whole file or what lies
 * between a correct heading and a correct checksum, which damage on a disk does not produce, but a
 * mistake of scrimp's could. */
#include "fuzz_target.h"

#include "ir/support/bug.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/cache/stored.h"
#include "passes/remat/external/external.h"
#include "passes/remat/solvers.h"

#include <string.h>

/* A chain that is walked back, and one with several outputs, an update and a kept value. */
static const char *const graphs[] = {
    "{\"format\": \"scrimp.graph.1\", \"kind\": \"forward\", \"nodes\": ["
    "{\"time\": 1, \"outputs\": [{\"bytes\": 3}]},"
    "{\"time\": 2, \"inputs\": [[0, 0]], \"outputs\": [{\"bytes\": 4}]},"
    "{\"time\": 3, \"inputs\": [[1, 0]], \"outputs\": [{\"bytes\": 5}]}]}",
    "{\"format\": \"scrimp.graph.1\", \"kind\": \"step\", \"nodes\": ["
    "{\"time\": 1, \"outputs\": [{\"bytes\": 1}, {\"bytes\": 7}]},"
    "{\"time\": 0, \"outputs\": [{\"bytes\": 0}, {\"bytes\": 1, \"keep\": true}]},"
    "{\"time\": 1, \"inputs\": [[0, 0], [1, 0]], \"outputs\": [{\"bytes\": 1}]},"
    "{\"time\": 2, \"inputs\": [[0, 1], [2, 0]], \"outputs\": [{\"bytes\": 9}]},"
    "{\"time\": 1, \"inputs\": [[0, 0]], \"overwrites\": [[0, 0]]}]}"};

typedef struct File {
    const uint8_t *data;
    size_t size;
    bool whole;
} File;

static const char *get(void *user, Pool *pool, const char *key, size_t *bytes)
{
    const File *f = user;
    StrBuf b = f->whole ? strbuf_new(pool) : stored_begin(pool, key);
    strbuf_putn(&b, (const char *)f->data, f->size);
    if (!f->whole)
        stored_end(&b);
    *bytes = b.len;
    return b.text;
}

static void put(void *user, const char *key, const char *data, size_t bytes)
{
    (void)user, (void)key, (void)data, (void)bytes;
}

static RematProblem *problem_of(Pool *pool, const char *text)
{
    RematError error = {0};
    const ExternalGraph *g = external_read(pool, text, strlen(text), &error);
    RematProblem *p = g ? external_problem(pool, g, &error) : NULL;
    if (!p)
        BUG("%s", error.message);
    return p;
}

static void check_front(Pool *pool, const RematProblem *p, const ParetoFront *front)
{
    for (size_t k = 0; k < front->points.len; k++) {
        const ParetoPoint *x = &front->points.data[k];
        RematFigures f = remat_check(pool, p, &x->schedule);
        if (!f.ok || f.peak_bytes != x->peak_bytes || f.time != x->time)
            BUG("point %zu is not what it says", k);
        if (k > 0 && (x->peak_bytes <= x[-1].peak_bytes || x->time >= x[-1].time))
            BUG("point %zu is out of order", k);
    }
}

static void ask_front(Pool *pool, const RematProblem *p, SolutionCache *cache)
{
    RematOptions o = {0};
    if (solution_cache_recall_front(cache, p, &o) && cache->front.points.len == 0)
        BUG("a front without a point");
    check_front(pool, p, &cache->front);
    check_front(pool, p, &cache->with_copies);
}

static void ask_answer(Pool *pool, const RematProblem *p, SolutionCache *cache)
{
    RematNotes notes = {0};
    RematOptions o = {.budget_bytes = 100, .notes = &notes, .context.solution_cache = cache};
    RematAnswer a;
    if (!solution_cache_recall_answer(p, remat_solver_find("twremat"), &o, pool, &a))
        return;
    RematFigures f = remat_check(pool, p, &a.schedule);
    if (!f.ok || f.peak_bytes != a.peak_bytes || f.time != a.figures.time || notes.treewidth < 0 ||
        notes.treewidth > p->n_nodes)
        BUG("the answer is not what it says");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    Pool *pool = pool_new();
    File file = {data + 1, size - 1, data[0] & 1};
    SolutionStore store = {.get = get, .put = put, .user = &file};
    RematProblem *p = problem_of(pool, graphs[data[0] >> 1 & 1]);
    SolutionCache *cache = solution_cache_new(pool, &store);
    if (data[0] & 4)
        ask_answer(pool, p, cache);
    else
        ask_front(pool, p, cache);
    pool_free(pool);
    return 0;
}
