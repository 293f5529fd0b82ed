/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What each instruction of an element-wise program depends on, which decides where it is computed.
 */
#ifndef SCRIMP_CODEGEN_CPU_POINT_POINT_DEPEND_H
#define SCRIMP_CODEGEN_CPU_POINT_POINT_DEPEND_H

#include "codegen/forms/point.h"

enum { ON_ROW = 1, ON_COLUMN = 2, ON_BOTH = 3 };

/* By instruction. */
typedef struct PointDepend {
    unsigned char *on; /* ON_ROW and ON_COLUMN; 0: on neither */
    bool *needed;      /* computed in the inner loop */
    int *slot;         /* hoisted column value: its place in scratch + 1 */
    int n_slots;
} PointDepend;

/* most: of column values that may be hoisted. */
PointDepend point_depend(Pool *pool, const PointProgram *p, int64_t most);

#endif
