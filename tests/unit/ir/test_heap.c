/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Heaps against sorting, and the largest of a range against a loop. */
#include "check.h"
#include "ir/support/heap.h"
#include "ir/support/range_max.h"

enum { MOST = 60, ROUNDS = 500 };

static uint64_t random_below(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

/* Items are indices into `key`; where[] is told of every move. */
typedef struct Keys {
    int key[MOST];
    size_t where[MOST];
} Keys;

static bool goes_before(const Keys *k, int a, int b)
{
    return k->key[a] != k->key[b] ? k->key[a] < k->key[b] : a < b;
}

static void placed(Keys *k, int item, size_t i)
{
    k->where[item] = i;
}

HEAP_DEFINE(items, Keys, int, goes_before, placed)

/* Pops all n items: they come in order, and each was where the heap said. */
static void check_order(Keys *k, int *heap, int n, uint64_t seed)
{
    int last = -1;
    for (int i = 0; i < n; i++)
        CHECK_MSG(heap[k->where[heap[i]]] == heap[i], "seed %llu", (unsigned long long)seed);
    for (size_t left = (size_t)n; left > 0; left--) {
        int top = items_pop(k, heap, left);
        CHECK_MSG(last < 0 || goes_before(k, last, top), "seed %llu", (unsigned long long)seed);
        last = top;
    }
}

static void test_heap(uint64_t seed)
{
    uint64_t state = seed;
    Keys k;
    int heap[MOST], n = 1 + (int)random_below(&state, MOST);
    for (int i = 0; i < n; i++) { /* one after the other */
        k.key[i] = (int)random_below(&state, 20);
        heap[i] = i;
        items_up(&k, heap, (size_t)i);
    }
    for (int change = 0; change < n; change++) {
        int item = (int)random_below(&state, (uint64_t)n);
        k.key[item] = (int)random_below(&state, 20);
        items_fix(&k, heap, (size_t)n, k.where[item]);
    }
    check_order(&k, heap, n, seed);
    for (int i = 0; i < n; i++) /* all at once */
        heap[i] = n - 1 - i;
    for (int i = 0; i < n; i++)
        k.where[heap[i]] = (size_t)i;
    items_make(&k, heap, (size_t)n);
    check_order(&k, heap, n, seed);
}

static int64_t largest(const int64_t *numbers, int first, int last)
{
    int64_t most = INT64_MIN;
    for (int i = first; i <= last; i++)
        most = numbers[i] > most ? numbers[i] : most;
    return most;
}

static void check_range_max(const RangeMax *t, const int64_t *numbers, int n, uint64_t *state,
                            uint64_t seed)
{
    int first = (int)random_below(state, (uint64_t)n);
    int last = first + (int)random_below(state, (uint64_t)(n - first));
    int64_t limit = (int64_t)random_below(state, 40) - 20, most = largest(numbers, 0, n - 1);
    int next[MOST], at = range_max_argmost(t);
    CHECK_MSG(range_max_most(t, first, last) == largest(numbers, first, last), "seed %llu",
              (unsigned long long)seed);
    CHECK_MSG(at < n && numbers[at] == most && (at == 0 || largest(numbers, 0, at - 1) < most),
              "seed %llu", (unsigned long long)seed);
    range_max_above(t, limit, next, n);
    for (int i = n - 1, above = n; i >= 0; i--) {
        above = numbers[i] > limit ? i : above;
        CHECK_MSG(next[i] == above, "seed %llu", (unsigned long long)seed);
    }
}

static void test_range_max(uint64_t seed)
{
    uint64_t state = seed;
    Pool *pool = pool_new();
    int n = 1 + (int)random_below(&state, MOST);
    int64_t numbers[MOST] = {0};
    bool from_zero = random_below(&state, 2) == 0;
    for (int i = 0; i < n && !from_zero; i++)
        numbers[i] = (int64_t)random_below(&state, 40) - 20;
    RangeMax t = from_zero ? range_max_new(pool, n) : range_max_of(pool, numbers, n);
    for (int round = 0; round < 40; round++) {
        int first = (int)random_below(&state, (uint64_t)n);
        int last = (int)random_below(&state, (uint64_t)n); /* below first: nothing */
        int64_t more = (int64_t)random_below(&state, 21) - 10;
        for (int i = first; i <= last; i++)
            numbers[i] += more;
        range_max_add(&t, first, last, more);
        check_range_max(&t, numbers, n, &state, seed);
    }
    pool_free(pool);
}

int main(void)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        test_heap(seed);
        test_range_max(seed);
    }
    return test_result();
}
