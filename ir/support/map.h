/* SPDX-License-Identifier: GPL-3.0-or-later */
/* String-keyed hash map on a pool; keys are copied, iteration is in insertion order. */
#ifndef SCRIMP_IR_SUPPORT_MAP_H
#define SCRIMP_IR_SUPPORT_MAP_H

#include "ir/support/pool.h"

typedef struct MapEntry {
    const char *key;
    uint64_t value;
} MapEntry;

typedef struct Map {
    Pool *pool;
    MapEntry *entries; /* insertion order */
    size_t len, cap;
    uint32_t *slots; /* entry index + 1; 0 is empty */
    size_t n_slots;
} Map;

Map map_new(Pool *pool);
/* With copies of the keys; nothing is hashed again. */
Map map_copy(Pool *pool, const Map *map);
/* The value slot of key, or NULL. */
uint64_t *map_find(const Map *map, const char *key);
/* Inserts or overwrites. */
void map_set(Map *map, const char *key, uint64_t value);

/* FNV-1a, the compiler's only content hash of short strings. */
uint64_t hash_bytes(const void *data, size_t n, uint64_t seed);

/* The candidate that word is most likely a slip of, or NULL: at most a third of its letters differ.
 * Case does not matter. */
const char *nearest_word(const char *word, const char *const *candidates, size_t n);

#endif
