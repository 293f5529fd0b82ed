/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers in a store: equal questions are read, others are not, and nothing that was damaged or
 * made for something else is believed.  SCRIMP_PLACES: in how many places each kind of answer is
 * damaged. */
#include "check.h"
#include "ir/support/clock.h"
#include "ir/support/map.h"
#include "passes/remat/cache/solution_cache.h"
#include "passes/remat/cache/stored.h"
#include "passes/remat/model/pieces_schedule.h"
#include "passes/remat/model/schedule.h"
#include "passes/remat/solve.h"
#include "passes/remat/solvers.h"
#include "tests/support/layered_problem.h"
#include "tests/support/sample.h"

#include <string.h>

/* A store in memory that counts. */
typedef struct Shelf {
    Pool *pool;
    Map at; /* key -> index */
    struct {
        char *data;
        size_t bytes;
    } entry[200];
    int n, n_get, n_found, n_put;
    SolutionStore store;
} Shelf;

static const char *shelf_get(void *user, Pool *pool, const char *key, size_t *bytes)
{
    Shelf *s = user;
    const uint64_t *at = map_find(&s->at, key);
    s->n_get++;
    if (!at)
        return NULL;
    s->n_found++;
    *bytes = s->entry[*at].bytes;
    char *copy = pool_alloc(pool, *bytes + 1); /* no more than the sanitizers know of */
    memcpy(copy, s->entry[*at].data, *bytes);
    return copy;
}

static void shelf_put(void *user, const char *key, const char *data, size_t bytes)
{
    Shelf *s = user;
    const uint64_t *at = map_find(&s->at, key);
    uint64_t k = at ? *at : (uint64_t)s->n++;
    map_set(&s->at, key, k);
    s->entry[k].data = pool_alloc(s->pool, bytes + 1);
    memcpy(s->entry[k].data, data, bytes);
    s->entry[k].bytes = bytes;
    s->n_put++;
}

static Shelf *shelf_new(Pool *pool)
{
    Shelf *s = POOL_NEW(pool, Shelf);
    s->pool = pool;
    s->at = map_new(pool);
    s->store = (SolutionStore){shelf_get, shelf_put, s};
    return s;
}

static RematProblem *problem_new(Pool *pool)
{
    Random r = {7};
    return layered_problem(pool, &r, 6, 2);
}

/* As a new run of the program asks. */
static RematAnswer ask_with(Pool *pool, const RematProblem *p, const Shelf *s, const char *solver,
                            RematOptions o)
{
    o.context.solution_cache = solution_cache_new(pool, s ? &s->store : NULL);
    o.effort = o.effort > 0 ? o.effort : sample_effort();
    return remat_solve(p, remat_solver_find(solver), &o, pool);
}

static RematAnswer ask(Pool *pool, const RematProblem *p, const Shelf *s, const char *solver,
                       int64_t budget)
{
    RematNotes notes = {0};
    return ask_with(pool, p, s, solver, (RematOptions){.budget_bytes = budget, .notes = &notes});
}

static bool same_answer(const RematAnswer *a, const RematAnswer *b)
{
    return a->solver == b->solver && a->limited == b->limited &&
           a->figures.peak_bytes == b->figures.peak_bytes && a->figures.time == b->figures.time &&
           a->schedule.len == b->schedule.len &&
           memcmp(a->schedule.node, b->schedule.node, (size_t)a->schedule.len * sizeof(int)) == 0;
}

static int64_t keep_all_peak(Pool *pool, const RematProblem *p)
{
    RematSchedule base = remat_base_schedule(pool, p);
    return remat_check(pool, p, &base).peak_bytes;
}

/* One search is kept and serves all budgets, with the answers of a search; but where all fits as it
 * is, there is none. */
static void test_front(void)
{
    Pool *pool = pool_new();
    RematProblem *p = problem_new(pool);
    Shelf *s = shelf_new(pool);
    int64_t high = keep_all_peak(pool, p), low = p->persistent_bytes;
    RematAnswer all = ask(pool, p, s, "scrimp", high);
    CHECK(s->n_put == 0 && all.figures.recomputed == 0 && all.peak_bytes == high);
    ask(pool, p, s, "scrimp", high - 1);
    CHECK(s->n_put == 1 && s->n == 1 && s->n_found == 0);
    int recomputed = 0;
    for (int k = 0; k <= 8; k++) {
        int64_t budget = low + (high - low) * k / 8;
        RematAnswer a = ask(pool, p, s, "scrimp", budget);
        RematAnswer b = ask(pool, p, NULL, "scrimp", budget);
        CHECK_MSG(same_answer(&a, &b), "budget %d of 8", k);
        recomputed += a.figures.recomputed;
    }
    CHECK(recomputed > 0);
    CHECK(s->n_put == 1 && s->n_found == 8);
    pool_free(pool);
}

/* The problem itself as that of its pieces, with tensors of its own. */
static AliasedProblem *own_pieces(Pool *pool, const RematProblem *p)
{
    AliasedProblem *x = POOL_NEW(pool, AliasedProblem);
    x->problem = *p;
    x->problem.tensor = POOL_ARRAY(pool, (size_t)p->n_tensors, RematTensor);
    memcpy(x->problem.tensor, p->tensor, (size_t)p->n_tensors * sizeof *p->tensor);
    x->node_of = POOL_ARRAY(pool, (size_t)p->n_nodes, int);
    x->index_of = POOL_ARRAY(pool, (size_t)p->n_nodes, int);
    x->follows = POOL_ARRAY(pool, (size_t)p->n_nodes, bool);
    for (int n = 0; n < p->n_nodes; n++)
        x->node_of[n] = x->index_of[n] = n;
    return x;
}

/* Another key for whatever an answer depends on. */
static void test_keys(void)
{
    Pool *pool = pool_new();
    Shelf *s = shelf_new(pool);
    RematProblem *p = problem_new(pool);
    RematNode *node = &p->node[p->n_nodes / 2];
    RematOptions o = {.notes = POOL_NEW(pool, RematNotes)};
    int n = 0;
#define OTHER(change)                                                                              \
    do {                                                                                           \
        change;                                                                                    \
        ask_with(pool, p, s, "scrimp", o);                                                         \
        CHECK_MSG(s->n == ++n, "%s", #change);                                                     \
    } while (0)
    OTHER((void)0);
    OTHER(node->cost += 1e-9);
    OTHER(node->workspace += 64);
    OTHER(node->rerun = !node->rerun);
    OTHER(node->hint = REMAT_KEEP);
    OTHER(p->tensor[node->out[0]].bytes += 64);
    OTHER(p->tensor[node->out[0]].keep = true);
    OTHER(node->n_in--);
    OTHER(o.seed = 3);
    OTHER(o.effort = 0.07);
    OTHER(p->loss_node--);
    AliasedProblem *pieces = own_pieces(pool, p);
    OTHER(o.context.pieces = pieces);
    OTHER(pieces->problem.tensor[node->out[0]].bytes -= 64);
    OTHER(pieces->follows[0] = true);
#undef OTHER
    n = s->n;
    o.budget_bytes = 0;
    ask_with(pool, p, s, "scrimp", o);
    p->node[0].name = "another name";
    o.budget_bytes = 1;
    ask_with(pool, p, s, "scrimp", o);
    CHECK(s->n == n && s->n_put == n); /* budgets and names are none of it */
    pool_free(pool);
}

/* Solvers without a front: one answer each, with its notes. */
static void test_answers(void)
{
    Pool *pool = pool_new();
    Shelf *s = shelf_new(pool);
    RematProblem *p = problem_new(pool);
    int64_t budget = p->persistent_bytes; /* too little: the smallest answers */
    RematNotes first = {0}, second = {0};
    RematOptions o = {.budget_bytes = budget, .notes = &first};
    RematAnswer a = ask_with(pool, p, s, "twremat", o);
    CHECK(s->n == 1 && first.treewidth > 0);
    o.notes = &second;
    RematAnswer b = ask_with(pool, p, s, "twremat", o);
    CHECK(s->n_found == 1 && s->n_put == 1 && same_answer(&a, &b));
    CHECK(second.treewidth == first.treewidth);
    static const char *const other[] = {"kusumoto_exact", "mincut", "dtr", "random"};
    int recomputed = 0;
    for (int k = 0; k < 4; k++) {
        a = ask(pool, p, s, other[k], budget);
        b = ask(pool, p, s, other[k], budget);
        CHECK_MSG(same_answer(&a, &b) && s->n == 2 + k && s->n_put == 2 + k, "%s", other[k]);
        recomputed += a.figures.recomputed;
    }
    CHECK(recomputed > 0);
    int n = s->n;
    ask(pool, p, s, "twremat", budget + 64);
    o.twremat_leaf_bags = 5;
    ask_with(pool, p, s, "twremat", o);
    o.twremat_leaf_bags = 0;
    o.objective = REMAT_MIN_MEMORY;
    ask_with(pool, p, s, "twremat", o);
    CHECK(s->n == n + 3);
    ask(pool, p, s, "chen", budget); /* quicker than a file */
    CHECK(s->n == n + 3);
    pool_free(pool);
}

/* What depended on the clock is not kept; what was kept may be used. */
static void test_time_limit(void)
{
    Pool *pool = pool_new();
    Shelf *s = shelf_new(pool);
    RematProblem *p = problem_new(pool);
    RematOptions o = {.budget_bytes = p->persistent_bytes,
                      .notes = POOL_NEW(pool, RematNotes),
                      .deadline_seconds = clock_seconds() + 1000};
    ask_with(pool, p, s, "scrimp", o);
    ask_with(pool, p, s, "twremat", o);
    CHECK(s->n_put == 0 && s->n_get == 2);
    RematAnswer a = ask(pool, p, s, "scrimp", o.budget_bytes);
    o.deadline_seconds = clock_seconds() - 1;
    RematAnswer b = ask_with(pool, p, s, "scrimp", o);
    CHECK(s->n_put == 1 && same_answer(&a, &b));
    pool_free(pool);
}

/* What a search found until its time was up answers what is asked then: a smaller target because an
 * arena missed its peak, the budget that is the least peak. */
static void test_time_is_up(void)
{
    Pool *pool = pool_new();
    Random r = {3};
    RematProblem *p = layered_problem(pool, &r, 70, 1);
    RematOptions o = {.effort = 100};
    RematAnswer least = {0};
    for (double seconds = 0.2; seconds < 100 && least.figures.recomputed == 0; seconds *= 2) {
        o.context.solution_cache = solution_cache_new(pool, NULL);
        o.budget_bytes = 0;
        o.deadline_seconds = clock_seconds() + seconds;
        least = remat_solve(p, remat_solver_find("scrimp"), &o, pool);
    }
    CHECK(least.limited && least.figures.recomputed > 0);
    o.budget_bytes = least.figures.peak_bytes;
    RematAnswer again = remat_solve(p, remat_solver_find("scrimp"), &o, pool);
    CHECK_MSG(same_answer(&least, &again), "peak %lld, then %lld",
              (long long)least.figures.peak_bytes, (long long)again.figures.peak_bytes);
    pool_free(pool);
}

static void renew_checksum(char *data, size_t bytes)
{
    uint64_t sum = hash_bytes(data, bytes - 8, 0);
    for (int k = 0; k < 8; k++)
        data[bytes - 8 + (size_t)k] = (char)(sum >> 8 * k);
}

/* What was put for `solver`, changed at one byte or cut: the answer stays, the entry is renewed. */
static void check_damage(const char *solver, bool with_checksum)
{
    int places = sample_number("SCRIMP_PLACES", 4);
    Pool *pool = pool_new();
    Shelf *s = shelf_new(pool);
    RematProblem *p = problem_new(pool);
    int64_t budget = (keep_all_peak(pool, p) + p->persistent_bytes) / 2;
    RematAnswer good = ask(pool, p, s, solver, budget);
    size_t bytes = s->entry[0].bytes;
    char *data = pool_alloc(pool, bytes);
    memcpy(data, s->entry[0].data, bytes);
    for (int k = 0; k < places; k++) {
        size_t at = bytes * (size_t)k / (size_t)places;
        memcpy(s->entry[0].data, data, bytes);
        s->entry[0].bytes = k % 4 == 3 ? at : bytes;
        s->entry[0].data[at] = (char)(data[at] ^ (1 << k % 8));
        if (with_checksum && k % 4 != 3)
            renew_checksum(s->entry[0].data, bytes);
        int n_put = s->n_put;
        RematAnswer a = ask(pool, p, s, solver, budget);
        CHECK_MSG(a.figures.ok && (with_checksum || same_answer(&a, &good)), "%s, damage %d",
                  solver, k);
        CHECK_MSG(with_checksum || s->n_put == n_put + 1, "%s, damage %d", solver, k);
        CHECK(with_checksum || memcmp(s->entry[0].data, data, bytes) == 0);
    }
    pool_free(pool);
}

/* Under the right key and with a right checksum, but about another problem. */
static void test_foreign(void)
{
    Pool *pool = pool_new();
    Shelf *s = shelf_new(pool);
    RematProblem *p = problem_new(pool);
    Random r = {8};
    RematProblem *other = layered_problem(pool, &r, 6, 2);
    int64_t budget = (keep_all_peak(pool, p) + p->persistent_bytes) / 2;
    RematAnswer good = ask(pool, p, s, "scrimp", budget);
    ask(pool, other, s, "scrimp", budget);
    CHECK(s->n == 2);
    size_t head = strlen("scrimp.plans.1 ") + 32;
    memcpy(s->entry[1].data, s->entry[0].data, head);
    renew_checksum(s->entry[1].data, s->entry[1].bytes);
    s->entry[0] = s->entry[1];
    RematAnswer a = ask(pool, p, s, "scrimp", budget);
    CHECK(s->n_put == 3 && same_answer(&a, &good));
    pool_free(pool);
}

int main(void)
{
    test_front();
    test_keys();
    test_answers();
    test_time_limit();
    test_time_is_up();
    check_damage("scrimp", false);
    check_damage("twremat", false);
    check_damage("scrimp", true);
    check_damage("twremat", true);
    test_foreign();
    return test_result();
}
