/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A training step as it is built: autodiff.c copies the forward nodes of every micro-batch,
 * goals.c adds gradients and updates, step_outputs.c what the host reads. */
#ifndef SCRIMP_PASSES_AUTODIFF_STEP_BUILDER_H
#define SCRIMP_PASSES_AUTODIFF_STEP_BUILDER_H

#include "ir/graph.h"
#include "passes/pass.h"

/* One update: for a loss, of its parameters. */
typedef struct Move {
    const Node *node;    /* `minimize`; NULL: of the only loss, at the end */
    const char *name;    /* of the loss */
    ValueId loss;        /* of `from` */
    size_t ready;        /* the part of the step that computes it */
    int64_t time, times; /* how many moves for the same loss are before, and how many there are */
    VEC(ValueId) params; /* in `to`: of float type that are not frozen, in order */
    /* By place: a parameter (its number in params), its contents at some time that the loss may
     * have read, and the gradient with respect to that, added up over the micro-batches. */
    VEC(size_t) of;
    VEC(ValueId) wrt, grad;
} Move;

typedef struct Builder {
    PassContext *ctx;
    const Graph *from;
    Graph *to;
    Pool *scratch;
    int64_t micro;       /* micro-batches in a step */
    ValueId *map;        /* [micro-batch][value of `from`] -> its value in the step */
    ValueId *home;       /* persistent value of `from` -> the same in `to`, whatever map says */
    ValueId *results;    /* [output of from][micro-batch] */
    VEC(ValueId) params; /* in `to`: all of float type that are not frozen, in order */
    VEC(ValueId) batch;  /* pairs: an input of `from`, all micro-batches of it in `to` */
    VEC(Move) moves;     /* in order; the part of the step before each computes what stands there */
    VEC(ValueId) newest; /* pairs: a parameter in `to`, its contents after a move, in order */
} Builder;

static inline ValueId *micro_map(const Builder *b, int64_t j)
{
    return b->map + (size_t)j * b->from->values.len;
}

/* --- goals.c --- */

/* There is something to train; false after a message. */
bool goals_check(PassContext *ctx);
/* Finds the moves, once the parameters are in the step. */
void goals_find(Builder *b);
/* The gradients of the losses that this part of the step computes for micro-batch j: seeded with
 * 1/k and added to those of the micro-batches before, so that the mean of all needs no operation of
 * its own.  They stand before any update that comes after. */
bool goals_add_gradients(Builder *b, size_t part, int64_t j);
/* The updates of a move; its parameters are what they make from here on. */
bool goals_add_updates(Builder *b, size_t move);
/* Nothing reads weights that a move has overwritten; false after a message. */
bool goals_check_reads(const Builder *b);

/* --- step_outputs.c --- */

/* Numbers (loss, accuracy) are averaged over the micro-batches; anything else is stacked. */
void step_add_outputs(Builder *b);
/* Sources first; what only looks at a gradient right behind it, so that the gradient need not wait
 * for the end. */
void step_settle_order(Builder *b);

#endif
