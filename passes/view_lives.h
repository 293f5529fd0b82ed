/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Bytes alive at each operation, while pass_views tries rewrites.  A rewrite changes the lives of a
 * few roots.  It is kept when the peak falls, or stays the same and fewer bytes are alive in sum
 * (where a copy is saved: no more bytes). */
#ifndef SCRIMP_PASSES_VIEW_LIVES_H
#define SCRIMP_PASSES_VIEW_LIVES_H

#include "ir/support/vec.h"
#include "passes/memplan/memplan.h"

/* birth > last: it has no storage of its own.  overwritten: the operation that reads it last writes
 * its result over it, whose life begins there. */
typedef struct Life {
    int birth, last;
    bool overwritten;
} Life;

typedef struct OldLife {
    ValueId root;
    Life life;
} OldLife;

typedef struct ViewLives {
    const Graph *g;
    Pool *scratch;
    MemLives m;
    Life *life; /* by value_root */
    VEC(OldLife) old;
    int64_t peak_bytes; /* the largest load, without persistent tensors */
    double area;        /* byte slots of the changes so far */
} ViewLives;

ViewLives *view_lives_new(Pool *scratch, const Graph *g);
void view_lives_set(ViewLives *l, ValueId root, Life life);
/* Root is no longer in its storage: what it was written over ends where it began. */
void view_lives_remove(ViewLives *l, ValueId root);
/* Root is read at `slot` as well. */
void view_lives_extend(ViewLives *l, ValueId root, int slot);
/* Ends a change: true when it is worth it, else everything is as before. */
bool view_lives_keep(ViewLives *l, bool saves_copy);
void view_lives_undo(ViewLives *l);

#endif
