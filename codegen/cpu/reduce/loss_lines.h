/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What cross-entropy (loss.c) and its gradient (loss_grad.c) share: a line is the logits of one
 * label, and of it both need the largest logit and the sum of the exponentials.  Logits are [outer,
 * classes, inner]: with inner = 1 vectors lie along the classes of one line, else across lines, a
 * lane each. */
#ifndef SCRIMP_CODEGEN_CPU_REDUCE_LOSS_LINES_H
#define SCRIMP_CODEGEN_CPU_REDUCE_LOSS_LINES_H

#include "codegen/cpu/reduce/loss_totals.h"

/* A line, or those under a vector.  The scans fill in max, sum, all, picked and label_weight. */
typedef struct LossLine {
    const LossDesc *d;
    JitValue x, out; /* logits; their gradient, NULL in the loss */
    JitValue offset; /* of the line's first class, or of the class at hand */
    Accumulator acc; /* what the scan at hand sums */
    Accumulator all; /* of w (x - max), when smoothing needs it */
    JitValue max,
        sum; /* largest logit; sum of e^(x - max), which the gradient replaces by its factor */
    JitValue label, k;    /* vi, across lines: labels (-1: none), the class at hand */
    JitVar picked;        /* x - max of the label, across lines */
    JitValue scale, zero; /* the gradient's: of the loss by the count; 0 in all lanes */
    /* Class weights, NULL without: of all classes, of the class at hand (across lines), their sum.
     */
    JitValue weight, class_weight, all_weights;
    JitValue label_weight; /* of the label, a vector */
    JitVar picked_weight;
} LossLine;

/* All lines of a kernel. */
typedef struct LossLines {
    LossLine l;
    LossTotals s;
    JitValue outer; /* the outer element at hand */
    JitValue each;  /* reduction = none: losses, or their gradients */
    JitValue scale; /* of the gradient, one for all lines; NULL: every line has its own */
    /* Across lines: of vectors that wait for others of line_fold, losses and what labels count. */
    JitValue loss[LINE_LANES], one[LINE_LANES];
    int waiting;
} LossLines;

/* Finds the class weights in buffer `buf`, if there are any. */
void loss_use_weights(Jit *j, LossLine *l, int buf);
/* The weight of one class (i64). */
JitValue loss_class_weight(Jit *j, const LossLine *l, JitValue k);
/* Weights of the classes under v: along the classes, or of the class at hand. */
JitValue loss_class_weights(Jit *j, const LossLine *l, Lanes v);
/* e^(x - max) of the logits under v, which go to *x. */
JitValue loss_shifted_exp(Jit *j, const LossLine *l, Lanes v, JitValue *x);

/* Along the classes, for a line at l->offset: max and sum, in all lanes. */
void loss_scan_line(Jit *j, LossLine *l);
/* Across lines, for those under v of outer element `outer`: the same lane by lane, and the labels.
 */
void loss_scan_lines(Jit *j, LossLine *l, Lanes v, JitValue outer);
typedef void LossLineStep(Jit *j, LossLine *l, Lanes v);
/* Across lines: step for every class, with l->offset, l->k and l->class_weight set for it. */
void loss_each_class(Jit *j, LossLine *l, Lanes v, LossLineStep *step);
/* Masks: lanes whose label is the class at hand; lanes that have a label. */
JitValue loss_is_label(Jit *j, const LossLine *l);
JitValue loss_valid_labels(Jit *j, const LossLine *l);
/* The index of the first line of the outer element at hand. */
JitValue loss_first_line(Jit *j, const LossLines *a);
typedef void LossLineCode(Jit *j, LossLines *a);
/* Code for the outer elements [first, last), of which a->outer is one: `line` for its one line
 * along the classes, or `lines` for all of its lines. */
void loss_each_line(Jit *j, LossLines *a, JitValue first, JitValue last, LossLineCode *line,
                    LossLineCode *lines);

/* One call over the lines, each task taking loss_task_lines outer elements: the node's inputs, then
 * its result. */
int64_t loss_task_lines(const LossDesc *d);
void loss_lower_lines(Lowering *l, const Node *n, const char *name, KernelEmit *emit,
                      const LossDesc *d);

#endif
