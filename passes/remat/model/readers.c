/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/readers.h"

Csr remat_readers(Pool *pool, const RematProblem *p)
{
    int total = 0;
    Csr readers = csr_new(pool, p->n_tensors);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++, total++)
            csr_count(&readers, p->node[n].in[k]);
    csr_close(&readers, pool, total);
    for (int n = 0; n < p->n_nodes; n++)
        for (int k = 0; k < p->node[n].n_in; k++)
            csr_store(&readers, p->node[n].in[k], n);
    return readers;
}
