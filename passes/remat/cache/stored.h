/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bytes of schedules in a store: a name of the format, the key, numbers, a checksum.  Numbers
 * have seven bits a byte, the low ones first; a schedule is its length and how far each node is
 * from the one behind the node before, so that most runs take one byte.  Used by solution_cache.c.
 */
#ifndef SCRIMP_PASSES_REMAT_CACHE_STORED_H
#define SCRIMP_PASSES_REMAT_CACHE_STORED_H

#include "ir/support/strbuf.h"
#include "passes/remat/model/problem.h"

StrBuf stored_begin(Pool *pool, const char *key);
void stored_put(StrBuf *b, uint64_t x);
void stored_put_schedule(StrBuf *b, const RematSchedule *s);
void stored_end(StrBuf *b);

/* Reads what may be damaged: after a fault every number is 0. */
typedef struct StoredReader {
    const unsigned char *at, *end;
    bool ok;
} StoredReader;

/* False: not of this format or key, or damaged. */
bool stored_open(StoredReader *r, const char *key, const char *data, size_t bytes);
uint64_t stored_get(StoredReader *r);
/* Nodes are below n_nodes; all else is remat_check's business. */
bool stored_get_schedule(StoredReader *r, Pool *pool, int n_nodes, RematSchedule *out);
/* All was read, without a fault. */
bool stored_at_end(const StoredReader *r);

#endif
