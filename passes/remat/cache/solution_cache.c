/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/cache/solution_cache.h"

#include "ir/support/map.h"
#include "passes/remat/cache/stored.h"
#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/solver_id.h"

#include <stdio.h>
#include <string.h>

SolutionCache *solution_cache_new(Pool *pool, const SolutionStore *store)
{
    SolutionCache *cache = POOL_NEW(pool, SolutionCache);
    cache->pool = pool;
    cache->store = store;
    return cache;
}

SolutionCache *solution_cache_second(SolutionCache *cache)
{
    if (!cache->second)
        cache->second = solution_cache_new(cache->pool, cache->store);
    return cache->second;
}

double remat_effort(const RematOptions *o)
{
    return o->effort > 0 ? o->effort : 1;
}

/* ---- keys ---- */

static void hash_more(uint64_t *hash, const void *data, size_t bytes)
{
    *hash = hash_bytes(data, bytes, *hash);
}

static void hash_int(uint64_t *hash, int64_t x)
{
    hash_more(hash, &x, sizeof x);
}

static void hash_node(uint64_t *hash, const RematNode *n)
{
    hash_more(hash, &n->cost, sizeof n->cost);
    hash_int(hash, n->workspace);
    hash_int(hash, n->rerun + 2 * n->forward + 4 * (int)n->hint);
    hash_more(hash, n->in, (size_t)n->n_in * sizeof *n->in);
    hash_more(hash, n->out, (size_t)n->n_out * sizeof *n->out);
    hash_more(hash, n->overwrites, (size_t)n->n_overwrites * sizeof *n->overwrites);
    hash_more(hash, n->in_place, (size_t)n->n_in_place * sizeof *n->in_place);
    hash_int(hash, n->n_in + ((int64_t)n->n_out << 32));
    hash_int(hash, n->n_overwrites + ((int64_t)n->n_in_place << 32));
}

static uint64_t hash_question(const RematProblem *p, const AliasedProblem *pieces,
                              const char *question, uint64_t hash)
{
    hash_more(&hash, question, strlen(question));
    for (int n = 0; n < p->n_nodes; n++)
        hash_node(&hash, &p->node[n]);
    for (int t = 0; t < p->n_tensors; t++) {
        hash_int(&hash, p->tensor[t].bytes);
        hash_int(&hash, p->tensor[t].producer);
        hash_int(&hash, p->tensor[t].persistent + 2 * p->tensor[t].keep);
    }
    hash_int(&hash, p->persistent_bytes);
    hash_int(&hash, p->loss_node);
    for (int n = 0; pieces && n < p->n_nodes; n++)
        hash_int(&hash, 2 * (int64_t)pieces->index_of[n] + pieces->follows[n]);
    return pieces ? hash_question(&pieces->problem, NULL, question, hash) : hash;
}

/* 32 hexadecimal digits: two hashes, as for kernels. */
static void question_key(const RematProblem *p, const RematOptions *o, const char *question,
                         char key[33])
{
    const AliasedProblem *pieces = o->context.pieces;
    snprintf(key, 33, "%016llx%016llx", (unsigned long long)hash_question(p, pieces, question, 1),
             (unsigned long long)hash_question(p, pieces, question, 0x9e3779b97f4a7c15u));
}

static void front_key(const RematProblem *p, const RematOptions *o, char key[33])
{
    char question[120];
    snprintf(question, sizeof question, "%s front seed=%llu effort=%a", SOLVER_ID,
             (unsigned long long)o->seed, remat_effort(o));
    question_key(p, o, question, key);
}

static void answer_key(const RematProblem *p, const RematSolver *solver, const RematOptions *o,
                       char key[33])
{
    char question[300];
    snprintf(question, sizeof question,
             "%s answer of %s budget=%lld objective=%d seed=%llu effort=%a twremat_leaf_bags=%d "
             "steps=%lld",
             SOLVER_ID, solver->name, (long long)o->budget_bytes, (int)o->objective,
             (unsigned long long)o->seed, remat_effort(o), o->twremat_leaf_bags,
             (long long)o->max_steps);
    question_key(p, o, question, key);
}

/* ---- fronts ---- */

static void forget(SolutionCache *cache)
{
    pool_free(cache->front.pool);
    cache->front = (ParetoFront){.pool = pool_new_child(cache->pool)};
    cache->with_copies = (ParetoFront){.pool = cache->front.pool};
    cache->exact = false;
}

/* The next point of a stored front; false when it is none. */
static bool read_point(ParetoFront *front, const RematProblem *p, const AliasedProblem *pieces,
                       StoredReader *r)
{
    ParetoPoint x = {.pool = pool_new_child(front->pool)};
    bool ok = stored_get_schedule(r, x.pool, p->n_nodes, &x.schedule);
    RematFigures f = ok ? remat_check(x.pool, p, &x.schedule) : (RematFigures){0};
    const ParetoPoint *last = front->points.len ? &front->points.data[front->points.len - 1] : NULL;
    x.peak_bytes = f.ok ? pieces_peak(x.pool, pieces, &x.schedule, f.peak_bytes) : 0;
    if (!f.ok || (last && (x.peak_bytes <= last->peak_bytes || f.time >= last->time)))
        return false;
    x.time = f.time;
    vec_push(front->pool, &front->points, x);
    return true;
}

/* The smallest schedule with copies, if there is one. */
static bool read_with_copies(SolutionCache *cache, const RematProblem *p, StoredReader *r)
{
    if (stored_get(r) == 0)
        return true;
    RematSchedule s;
    Pool *scratch = pool_new_child(cache->pool);
    bool ok = stored_get_schedule(r, scratch, p->n_nodes, &s);
    RematFigures f = ok ? remat_check(scratch, p, &s) : (RematFigures){0};
    if (f.ok)
        pareto_offer(&cache->with_copies, f.peak_bytes, f.time, &s);
    pool_free(scratch);
    return f.ok;
}

static bool read_front(SolutionCache *cache, const RematProblem *p, const AliasedProblem *pieces)
{
    Pool *scratch = pool_new_child(cache->pool);
    StoredReader r;
    size_t bytes;
    const char *data = cache->store->get(cache->store->user, scratch, cache->key, &bytes);
    bool ok = data && stored_open(&r, cache->key, data, bytes);
    cache->exact = ok && stored_get(&r) != 0;
    uint64_t n = ok ? stored_get(&r) : 0;
    for (uint64_t i = 0; i < n && ok; i++)
        ok = read_point(&cache->front, p, pieces, &r);
    ok = ok && n > 0 && read_with_copies(cache, p, &r) && stored_at_end(&r);
    pool_free(scratch);
    if (!ok)
        forget(cache);
    return ok;
}

bool solution_cache_recall_front(SolutionCache *cache, const RematProblem *p, const RematOptions *o)
{
    char key[33];
    front_key(p, o, key);
    bool ended = cache->complete || (cache->front.points.len > 0 && remat_out_of_time(o));
    if (ended && strcmp(cache->key, key) == 0) /* one without time would find less */
        return true;
    forget(cache);
    memcpy(cache->key, key, sizeof key);
    cache->complete = cache->store && read_front(cache, p, o->context.pieces);
    return cache->complete;
}

void solution_cache_keep_front(SolutionCache *cache, const RematOptions *o)
{
    cache->complete = !remat_out_of_time(o);
    if (!cache->store || o->deadline_seconds > 0)
        return;
    Pool *scratch = pool_new_child(cache->pool);
    StrBuf b = stored_begin(scratch, cache->key);
    stored_put(&b, cache->exact);
    stored_put(&b, cache->front.points.len);
    for (size_t i = 0; i < cache->front.points.len; i++)
        stored_put_schedule(&b, &cache->front.points.data[i].schedule);
    stored_put(&b, cache->with_copies.points.len > 0);
    if (cache->with_copies.points.len > 0)
        stored_put_schedule(&b, &cache->with_copies.points.data[0].schedule);
    stored_end(&b);
    cache->store->put(cache->store->user, cache->key, b.text, b.len);
    pool_free(scratch);
}

/* ---- answers ---- */

static const SolutionStore *answers_of(const RematSolver *only, const RematOptions *o)
{
    bool asked = only && !only->in_portfolio && o->notes && !o->seen;
    return o->context.solution_cache && asked ? o->context.solution_cache->store : NULL;
}

static bool read_answer(const RematProblem *p, StoredReader *r, const RematOptions *o, Pool *pool,
                        RematAnswer *out)
{
    RematNotes notes = {0};
    out->limited = stored_get(r) != 0;
    uint64_t treewidth = stored_get(r);
    notes.treewidth = (int)treewidth;
    notes.proven = stored_get(r) != 0;
    if (treewidth > (uint64_t)p->n_nodes ||
        !stored_get_schedule(r, pool, p->n_nodes, &out->schedule) || !stored_at_end(r))
        return false;
    out->figures = remat_check(pool, p, &out->schedule);
    out->peak_bytes = out->figures.peak_bytes;
    if (out->figures.ok)
        *o->notes = notes;
    return out->figures.ok;
}

bool solution_cache_recall_answer(const RematProblem *p, const RematSolver *only,
                                  const RematOptions *o, Pool *pool, RematAnswer *out)
{
    char key[33];
    StoredReader r;
    size_t bytes;
    const SolutionStore *store = answers_of(only, o);
    if (!store)
        return false;
    Pool *scratch = pool_new_child(pool);
    answer_key(p, only, o, key);
    *out = (RematAnswer){.solver = only};
    const char *data = store->get(store->user, scratch, key, &bytes);
    bool ok = data && stored_open(&r, key, data, bytes) && read_answer(p, &r, o, pool, out);
    pool_free(scratch);
    return ok;
}

void solution_cache_keep_answer(const RematProblem *p, const RematSolver *only,
                                const RematOptions *o, const RematAnswer *a)
{
    char key[33];
    const SolutionStore *store = answers_of(only, o);
    if (!store || o->deadline_seconds > 0)
        return;
    Pool *scratch = pool_new_child(o->context.solution_cache->pool);
    answer_key(p, only, o, key);
    StrBuf b = stored_begin(scratch, key);
    stored_put(&b, a->limited);
    stored_put(&b, (uint64_t)o->notes->treewidth);
    stored_put(&b, o->notes->proven);
    stored_put_schedule(&b, &a->schedule);
    stored_end(&b);
    store->put(store->user, key, b.text, b.len);
    pool_free(scratch);
}
