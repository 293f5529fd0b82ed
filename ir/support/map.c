/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/map.h"

#include <ctype.h>
#include <string.h>

uint64_t hash_bytes(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = seed ? seed : 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

Map map_new(Pool *pool)
{
    Map m = {.pool = pool};
    return m;
}

Map map_copy(Pool *pool, const Map *map)
{
    Map c = {.pool = pool, .len = map->len, .cap = map->len, .n_slots = map->n_slots};
    c.entries = POOL_ARRAY(pool, c.cap + 1, MapEntry);
    for (size_t i = 0; i < c.len; i++)
        c.entries[i] = (MapEntry){pool_strdup(pool, map->entries[i].key), map->entries[i].value};
    c.slots = POOL_ARRAY(pool, c.n_slots + 1, uint32_t);
    if (c.n_slots)
        memcpy(c.slots, map->slots, c.n_slots * sizeof *c.slots);
    return c;
}

static size_t slot_of(const Map *map, const char *key)
{
    size_t i = hash_bytes(key, strlen(key), 0) & (map->n_slots - 1);
    while (map->slots[i] && strcmp(map->entries[map->slots[i] - 1].key, key) != 0)
        i = (i + 1) & (map->n_slots - 1);
    return i;
}

uint64_t *map_find(const Map *map, const char *key)
{
    if (!map->n_slots)
        return NULL;
    uint32_t e = map->slots[slot_of(map, key)];
    return e ? &map->entries[e - 1].value : NULL;
}

static void map_rehash(Map *map, size_t n_slots)
{
    map->slots = POOL_ARRAY(map->pool, n_slots, uint32_t);
    map->n_slots = n_slots;
    for (size_t i = 0; i < map->len; i++)
        map->slots[slot_of(map, map->entries[i].key)] = (uint32_t)i + 1;
}

void map_set(Map *map, const char *key, uint64_t value)
{
    uint64_t *found = map_find(map, key);
    if (found) {
        *found = value;
        return;
    }
    if (map->len == map->cap) {
        size_t cap = map->cap ? 2 * map->cap : 16;
        map->entries = pool_grow(map->pool, map->entries, map->len * sizeof *map->entries,
                                 cap * sizeof *map->entries);
        map->cap = cap;
    }
    map->entries[map->len++] = (MapEntry){pool_strdup(map->pool, key), value};
    if (2 * map->len > map->n_slots)
        map_rehash(map, map->n_slots ? 2 * map->n_slots : 32);
    else
        map->slots[slot_of(map, key)] = (uint32_t)map->len;
}

enum { NEAREST_MAX_LENGTH = 63 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits of one letter, exchanging two neighbours among them (optimal string alignment), with no
 * regard to case. */
static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NEAREST_MAX_LENGTH + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]))
                row[j] = least(row[j], above2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t n)
{
    size_t length = strlen(word), best = (length < 3 ? 1 : length / 3) + 1;
    const char *nearest = NULL;
    if (length > NEAREST_MAX_LENGTH)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(candidates[i]);
        if (m > NEAREST_MAX_LENGTH)
            continue;
        size_t d = edit_distance(word, length, candidates[i], m);
        if (d < best && d < length) {
            best = d;
            nearest = candidates[i];
        }
    }
    return nearest;
}
