/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The shape of an element-wise program, as far as its code depends on it.  Sizes, strides other
 * than 0 and 1 and constants are numbers of the call, so that programs which differ in these alone
 * share a kernel. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_POINT_SHAPE_H
#define SCRIMP_CODEGEN_CPU_POINT_POINT_SHAPE_H

#include "codegen/forms/point.h"
#include "codegen/jit/jit.h"

/* How rows are split into tasks: there is one, in parts; some to a task; each in parts. */
typedef enum PointTasks { POINT_ONE_ROW, POINT_WHOLE_ROWS, POINT_PARTS_OF_ROWS } PointTasks;

KERNEL_DESC_BEGIN
/* Sizes are as point_size reads them. */
typedef struct PointLoops {
    int64_t tasks; /* PointTasks */
    int64_t rows, columns;
    int64_t rows_a_task, parts; /* what the kind of tasks needs of these; else 0 */
    int64_t has_vector;         /* flag: a row has a whole vector */
    int64_t has_rest;           /* flag: it does not end with one */
    int64_t hoisted;            /* at most so many values of columns fit into scratch memory */
} PointLoops;
KERNEL_DESC(PointLoops)

/* What is emitted; the sizes in the program, too, are as point_size reads them. */
typedef struct PointShape {
    PointProgram program;
    PointLoops loops;
} PointShape;

/* Moves what does not shape the code from the program to the call's numbers; p stays as it is.
 * Gives the call its key and its tasks. */
enum { POINT_TASK_ELEMENTS = 16384 };
const PointShape *point_shape(CallDraft *call, const PointProgram *p, int lanes);

/* A size or stride as code; jit_number where it is one of the call. */
JitValue point_size(Jit *j, int64_t size);
/* The place `stride` elements times `at` behind `from`. */
JitValue point_walk(Jit *j, JitValue at, int64_t stride, JitValue from);

#endif
