/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the elements of concatenations and slices come from.  Every value is made up of pieces of
 * roots, values that are computed; a root is cut where slices of it begin and end, and what lies
 * between cuts is an atom: no slice reads a part of one.  Used by relax_pieces.c. */
#ifndef SCRIMP_PASSES_REMAT_MODEL_PIECES_H
#define SCRIMP_PASSES_REMAT_MODEL_PIECES_H

#include "ir/support/vec.h"
#include "ir/type.h"

/* Places [lo, hi) of a root, of which lo lies at `at` in the value. */
typedef struct Piece {
    int root;
    int64_t lo[TYPE_MAX_RANK], hi[TYPE_MAX_RANK], at[TYPE_MAX_RANK];
} Piece;

/* A value: all that it is made up of. */
typedef struct Layout {
    Type type;   /* whose dims `at` is in */
    bool placed; /* false: what it is made up of is known, not where it lies */
    VEC(Piece) pieces;
} Layout;

typedef VEC(int64_t) CutList;
typedef VEC(int) AtomList;

typedef struct Root {
    Type type;
    bool fixed;                 /* there are pieces with places in these dims */
    CutList cut[TYPE_MAX_RANK]; /* ascending, without both ends */
    int first_atom, n_atoms;    /* by pieces_number */
} Root;

typedef struct Pieces {
    Pool *pool;
    VEC(Root) root;
} Pieces;

int pieces_add_root(Pieces *p, const Type *type);
Layout pieces_of_root(const Pieces *p, int root);
/* The same elements under other dims; false when their places are not known in these. */
bool pieces_reshape(Pieces *p, Layout *l, const Type *type);
/* Cuts [start, start + dims of type) out of a layout; false when it cannot be told which atoms that
 * are, or there would be too many. */
bool pieces_slice(Pieces *p, const Layout *from, const int64_t *start, const Type *type,
                  Layout *out);
/* Puts part into whole, whose type is set, `at` places along the axis. */
void pieces_append(Pieces *p, Layout *whole, const Layout *part, int axis, int64_t at);

/* After the last cut: numbers the atoms of all roots, and returns how many there are. */
int pieces_number(Pieces *p);
/* Elements of a root's k-th atom. */
int64_t pieces_atom_elements(const Root *r, int k);
/* Appends the atoms of l. */
void pieces_list_atoms(const Pieces *p, const Layout *l, AtomList *out);

#endif
