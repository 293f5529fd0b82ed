/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How the tasks of a call go along what they write, or read, so that another call can follow piece
 * by piece (codegen/build/strips.h). */
#ifndef SCRIMP_CODEGEN_BUILD_SPANS_H
#define SCRIMP_CODEGEN_BUILD_SPANS_H

#include "ir/support/pool.h"
#include "ir/support/vec.h"

#include <stdint.h>

/* Of a buffer whose elements lie one behind another, tasks [task[i], task[i + 1]) touch elements
 * [from[i], to[i]) alone.  Both ends grow with i; of what is written, each span begins where the
 * one before it ends, and the first with element 0. */
typedef struct TaskSpans {
    int64_t n;
    int64_t *task;      /* n + 1 of them */
    int64_t *from, *to; /* n each */
} TaskSpans;

/* n spans of so many tasks each, to be filled in; NULL where there are none, or too many. */
TaskSpans *task_spans_new(Pool *pool, int64_t n, int64_t tasks_each);

/* Where part i of `parts` begins, as kernels share units out. */
static inline int64_t span_part(int64_t i, int64_t units, int64_t parts)
{
    return i * units / parts;
}

enum { SPAN_BUFS = 2 };
/* Of these buffers of a call; spans NULL: nothing is known of any.  More of them than are worth a
 * table in the step are not for turns (codegen/build/strips.h). */
enum { TASK_SPANS_MOST = 4096 };
typedef struct CallSpans {
    const TaskSpans *spans;
    int buf[SPAN_BUFS], n;
} CallSpans;

/* Tasks [task, task_end), and of a kernel that adds up what it reads, steps [step, step_end) of its
 * sums, read elements [from, to) of a buffer alone. */
typedef struct ReadPiece {
    int64_t task, task_end, step, step_end, from, to;
} ReadPiece;

/* In this order, the pieces are all that a kernel does: what it reads can be made piece by piece.
 */
typedef struct ReadPieces {
    VEC(ReadPiece) of;
    int steps; /* number of the call that says with which step to begin; the next one, before which
                  to end; -1: the kernel does all steps of a task at once */
    VEC(int64_t)
    column; /* tasks [i * of_columns, (i + 1) * of_columns) read columns [column[i],
               column[i + 1]) of each row alone; none: they read all */
    int64_t of_columns;
} ReadPieces;

/* Those of what a kernel's tasks read, as many together as have `most` elements; one that has more
 * stays one. */
ReadPieces *read_pieces_of_spans(Pool *pool, const TaskSpans *reads, int64_t most);

/* In the place of the bytes of a cache that strips are for: no call follows another. */
enum { STRIPS_NONE = -1 };

#endif
