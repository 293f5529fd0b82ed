/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tree decompositions of undirected graphs by the minimum fill-in heuristic (Bodlaender and Koster
 * 2010, Treewidth computations I).  Called by twremat. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_TREE_DECOMPOSITION_H
#define SCRIMP_PASSES_REMAT_PAPERS_TREE_DECOMPOSITION_H

#include "passes/remat/model/csr.h"

typedef struct TreeDecomposition {
    int n_bags, width; /* width: the largest bag, less one */
    Csr bag;           /* the vertices of each bag */
    int *parent;       /* by bag: another bag, or -1: the root, of which there is one */
} TreeDecomposition;

/* edges: two vertices each, in any order, repeated or not.  No bag of the answer is a subset of a
 * neighbour (Kumar et al. 2019, lemma 1).  Deterministic.  O(n w^2 d) or so for width w and
 * degrees d in the filled graph. */
TreeDecomposition tree_decomposition(Pool *pool, int n_vertices, const int *edges, int n_edges);

#endif
