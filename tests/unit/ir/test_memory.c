/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pool and the map, and: every allocation of building, copying, verifying, printing and reading
 * a graph may fail.  Each failure arrives at the recovery point; leaks show under AddressSanitizer.
 */
#include "check.h"
#include "ir/print.h"
#include "ir/support/bitset.h"
#include "ir/support/map.h"
#include "ir/verify.h"
#include "tests/support/random_graph.h"

#include <string.h>

/* True when the work was done, false when memory ran out. */
static bool work(uint64_t fail_at)
{
    jmp_buf oom;
    pool_fail_at(fail_at);
    Pool *volatile pool = pool_new();
    if (!pool)
        return false;
    if (setjmp(oom)) {
        pool_free(pool);
        return false;
    }
    pool_on_oom(pool, &oom);
    Random r = {99};
    Graph *g = random_graph(pool, &r);
    StrBuf b = strbuf_new(pool);
    graph_print(graph_copy(pool, g), (PrintOptions){0}, &b);
    Diag *diag = diag_new(pool);
    Graph *again = graph_read(pool, "t.ir", b.text, b.len, diag);
    const char *fault;
    CHECK(again && graph_verify(again, &fault));
    CHECK(!graph_read(pool, "t.ir", b.text, b.len / 2, diag));
    pool_free(pool);
    return true;
}

static void check_every_failure(void)
{
    uint64_t k = 1;
    while (k < 1000000 && !work(k))
        k += k < 3000 ? 1 : 37;
    pool_fail_at(0);
    CHECK_MSG(k > 1000 && k < 1000000, "%llu allocations", (unsigned long long)k);
}

static void check_pool(void)
{
    Pool *pool = pool_new();
    char *big = pool_alloc(pool, 1 << 20), *small = pool_alloc(pool, 3);
    CHECK((uintptr_t)big % 16 == 0 && (uintptr_t)small % 16 == 0);
    CHECK(big[0] == 0 && big[(1 << 20) - 1] == 0 && small[2] == 0);
    int64_t out;
    CHECK(size_mul(1LL << 31, 1LL << 31, &out) && out == 1LL << 62);
    CHECK(!size_mul(1LL << 32, 1LL << 31, &out) && !size_mul(-1, 1, &out));
    CHECK(!size_add(INT64_MAX, 1, &out) && size_add(INT64_MAX, 0, &out) && !size_add(1, -1, &out));
    /* What is left of the family goes with the parent; the leak check sees what does not. */
    Pool *first = pool_new_child(pool), *middle = pool_new_child(pool),
         *last = pool_new_child(pool);
    pool_alloc(pool_new_child(first), 100);
    pool_alloc(last, 100);
    pool_free(middle);
    pool_free(pool);
    pool_free(NULL);
}

static void check_overflow(void)
{
    jmp_buf oom;
    Pool *volatile pool = pool_new();
    volatile bool caught = false;
    if (setjmp(oom) == 0) {
        pool_on_oom(pool, &oom);
        pool_array(pool, SIZE_MAX / 4, 8);
    } else {
        caught = true;
    }
    CHECK(caught);
    pool_free(pool);
}

static void check_map(void)
{
    Pool *pool = pool_new();
    Map m = map_new(pool);
    CHECK(!map_find(&m, "a"));
    for (int i = 0; i < 5000; i++)
        map_set(&m, pool_printf(pool, "key%d", i % 2500), (uint64_t)i);
    CHECK(m.len == 2500);
    for (int i = 0; i < 2500; i++) {
        const uint64_t *v = map_find(&m, pool_printf(pool, "key%d", i));
        CHECK(v && *v == (uint64_t)i + 2500);
        CHECK(strcmp(m.entries[i].key, pool_printf(pool, "key%d", i)) == 0);
    }
    Map copy = map_copy(pool, &m), nothing = map_new(pool), empty = map_copy(pool, &nothing);
    map_set(&copy, "another", 1);
    map_set(&copy, "key7", 2);
    map_set(&empty, "a", 3);
    CHECK(m.len == 2500 && copy.len == 2501 && *map_find(&m, "key7") == 2507);
    CHECK(*map_find(&copy, "key7") == 2 && *map_find(&copy, "key2499") == 4999);
    CHECK(!map_find(&nothing, "a") && *map_find(&empty, "a") == 3);
    const char *const words[] = {"dropout", "depth", "relu"};
    CHECK(nearest_word("dropuot", words, 3) == words[0]);
    CHECK(nearest_word("dept", words, 3) == words[1]);
    CHECK(nearest_word("ReLU", words, 3) == words[2] && nearest_word("rleu", words, 3) == words[2]);
    CHECK(!nearest_word("softmax", words, 3) && !nearest_word("", words, 3));
    /* of another meaning, not a slip */
    const char *const others[] = {"silu", "max", "layernorm"};
    const char *const unlike[] = {"tile", "var", "batchnorm"};
    for (int i = 0; i < 3; i++)
        CHECK_MSG(!nearest_word(unlike[i], others, 3), "%s", unlike[i]);
    /* FNV-1a's published value */
    CHECK(hash_bytes("foobar", 6, 0) == 0x85944171f73967e8U);
    Bitset s = bitset_new(pool, 130);
    bitset_add(&s, 129);
    bitset_add(&s, 64);
    bitset_remove(&s, 64);
    CHECK(bitset_has(&s, 129) && !bitset_has(&s, 64) && !bitset_has(&s, 0));
    pool_free(pool);
}

int main(void)
{
    check_pool();
    check_overflow();
    check_map();
    check_every_failure();
    return test_result();
}
