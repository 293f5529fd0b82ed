/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A case of op_cases.h that runs: its calls, and buffers of exactly the right size. */
#ifndef SCRIMP_TESTS_PROPERTY_OP_RUN_H
#define SCRIMP_TESTS_PROPERTY_OP_RUN_H

#include "op_cases.h"
#include "tests/support/run/kernel_farm.h"

typedef struct OpRun {
    OpCase c;
    OpKind op;
    Lowering *calls;
    Fenced *value, *work; /* by value, by node */
} OpRun;

/* Draws shapes until they fit; false when they never do.  Drawn by the operation's name: a new row
 * of the table leaves the cases of the others alone. */
bool op_run_draw(Pool *pool, OpKind op, OpCaseMake *make, uint64_t seed, OpCase *c);
/* The same with floats of bf16; false, too, when the operation has no code for them. */
bool op_run_draw_bf16(Pool *pool, OpKind op, OpCaseMake *make, uint64_t seed, OpCase *c);
/* "softmax f32[3,5] -> f32[3,5] axis=1" */
const char *op_run_text(const OpRun *r);
void op_run_buffers(OpRun *r);
void op_run_free_buffers(OpRun *r);
/* Inputs have the case's data, all else is 0x7f. */
void op_run_fill(const OpRun *r);
/* Fills, and runs all kernels, which the farm has: tasks `group` at a time, the last group first
 * when backward. */
void op_run_calls(const Farm *f, const OpRun *r, int64_t group, bool backward, char *scratch);
/* Elements that differ; what kind of NaN a result is, is the processor's to choose.  The first
 * such, or the number of elements. */
int64_t op_first_difference(const Type *t, const char *a, const char *b);

#endif
