/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compressed rows: the items of row r are item[begin[r]] .. item[begin[r + 1] - 1].  Built in two
 * rounds over the pairs: csr_count each, csr_close, csr_store each. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_CSR_H
#define SCRIMP_PASSES_REMAT_MODEL_CSR_H

#include "ir/support/pool.h"

typedef struct Csr {
    int n;
    int *begin, *item;
} Csr;

static inline Csr csr_new(Pool *pool, int n)
{
    return (Csr){n, POOL_ARRAY(pool, (size_t)n + 3, int), NULL};
}

static inline void csr_count(Csr *c, int row)
{
    c->begin[row + 2]++;
}

/* begin[r + 1] becomes the start of row r, and its end once the row is stored. */
static inline void csr_close(Csr *c, Pool *pool, int total)
{
    for (int r = 2; r <= c->n + 1; r++)
        c->begin[r] += c->begin[r - 1];
    c->item = POOL_ARRAY(pool, (size_t)total + 1, int);
}

static inline void csr_store(Csr *c, int row, int item)
{
    c->item[c->begin[row + 1]++] = item;
}

static inline int csr_length(const Csr *c, int row)
{
    return c->begin[row + 1] - c->begin[row];
}

#endif
