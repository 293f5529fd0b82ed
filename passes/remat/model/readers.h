/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The readers of every tensor. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_READERS_H
#define SCRIMP_PASSES_REMAT_MODEL_READERS_H

#include "passes/remat/model/csr.h"
#include "passes/remat/model/problem.h"

/* By tensor: the nodes that read it, ascending.  O(reads). */
Csr remat_readers(Pool *pool, const RematProblem *p);

#endif
