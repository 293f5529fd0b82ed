/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Loops over vectors, and small things that the reducing kernels share. */
#ifndef SCRIMP_CODEGEN_CPU_POINT_VECTOR_LOOPS_H
#define SCRIMP_CODEGEN_CPU_POINT_VECTOR_LOOPS_H

#include "codegen/forms/pod.h"
#include "codegen/jit/jit.h"
#include "ir/support/divide.h"

/* Elements [at, at + n) of a line; n NULL: a whole vector. */
typedef struct Lanes {
    JitValue at, n;
    int way; /* which of the loop's ways: picks an accumulator */
} Lanes;

typedef void EachVector(Jit *j, Lanes v, void *user);

enum { MAX_WAYS = 32 };

/* Calls body for the vectors of elements 0..length-1, `ways` at a time, the last one partial.  With
 * ways >= the number of vectors the code has no loop, and way is the number of the vector. */
void each_vector(Jit *j, int64_t length, int ways, EachVector *body, void *user);
/* The same for elements [from, to) known at run time.  end: where the last range ends when all
 * others have whole vectors, else -1; without partial vectors their code is left out. */
void each_vector_between(Jit *j, JitValue from, JitValue to, int64_t end, int ways,
                         EachVector *body, void *user);

/* p[offset + v.at ..], lanes past the end filled; f32. */
JitValue load_lanes(Jit *j, JitValue p, JitValue offset, Lanes v, double fill);
void store_lanes(Jit *j, JitValue p, JitValue offset, Lanes v, JitValue value);
/* value in the lanes that exist, `other` in the rest. */
JitValue valid_lanes(Jit *j, Lanes v, JitValue value, double other);

/* Accumulators, one per way. */
typedef struct Accumulator {
    JitVar var[MAX_WAYS];
    int n;
} Accumulator;
Accumulator accumulator(Jit *j, int n, JitValue start);
void accumulate(Jit *j, Accumulator *a, Lanes v, JitValue term);     /* + */
void accumulate_max(Jit *j, Accumulator *a, Lanes v, JitValue term); /* NaN in term may be lost */
JitValue accumulated(Jit *j, Accumulator *a); /* the sum of all ways, in order */
JitValue accumulated_max(Jit *j, Accumulator *a);

/* Along a line, element i is in partial sum i modulo LINE_SUMS, and the partial sums are joined in
 * one order, whatever the width of the vectors: the same bits everywhere.  line_ways: for
 * each_vector. */
enum { LINE_LANES = 16, LINE_SUMS = 64 };
int line_ways(const Jit *j);
Accumulator line_accumulator(Jit *j, JitValue start);
JitValue line_sum(Jit *j, const Accumulator *a); /* a scalar f32 */
/* The sum of LINE_LANES elements, the lanes of line_vectors vectors, half onto half: a scalar f32.
 */
int line_vectors(const Jit *j);
JitValue line_fold(Jit *j, const JitValue *vector);
/* Elements [from, to) known at run time, from a multiple of LINE_LANES: those behind the last whole
 * round of LINE_SUMS are in partial sum i modulo LINE_LANES.  end as in each_vector_between. */
void each_line_vector_between(Jit *j, JitValue from, JitValue to, int64_t end, EachVector *body,
                              void *user);

/* Elements 0..length-1, the length known at run time, in the partial sums that each_vector puts
 * them in with line_ways. */
void each_line_vector(Jit *j, JitValue length, EachVector *body, void *user);

/* A sum of vectors that keeps what its additions round off: as good as one of twice the precision.
 * For the joining of partial sums, which are few, and whose errors would all be seen. */
typedef struct CompensatedSum {
    JitVar sum, lost;
} CompensatedSum;
CompensatedSum compensated_sum(Jit *j);
void compensated_add(Jit *j, CompensatedSum *s, JitValue term);
JitValue compensated_total(Jit *j, CompensatedSum *s);

/* The hardware foresees rows one behind another.  Where they lie apart, what is read is asked for
 * so many rows ahead. */
enum { AHEAD_ROWS = 16 };

/* A pointer to elements that are moved as they are. */
JitType bits_pointer(Jit *j, int64_t bytes);

/* How many vectors of a row may stay in registers between passes. */
int row_registers(const Jit *j);

/* Tasks of `per` items each: items [first, last) of the kernel call. */
void task_items(Jit *j, int64_t per, int64_t total, JitValue *first, JitValue *last);
/* Items of `elements` elements each in a task of about 16K elements, at least 1. */
int64_t items_per_task(int64_t elements);
/* The first unit of part `part` (i64) of `parts` nearly equal ones of 0..units-1; units for the one
 * behind the last. */
JitValue part_start(Jit *j, JitValue part, int64_t units, int64_t parts);
/* The same, both known at run time. */
JitValue part_start_of(Jit *j, JitValue part, JitValue units, JitValue parts);

/* Lines of [outer, length, inner] that lie side by side: a task has blocks of at most LINE_BLOCK of
 * them, n from column `first` on. */
enum { LINE_BLOCK = 64 };
typedef struct LineBlock {
    JitValue outer, first, n;
} LineBlock;
int64_t line_blocks(const AxisShape *a);     /* of all lines */
int64_t line_block_most(const AxisShape *a); /* lines of a block */
LineBlock line_block(Jit *j, const AxisShape *a, JitValue number);
/* The place of element k of its first line, where lines have `length` elements. */
JitValue line_block_place(Jit *j, const AxisShape *a, const LineBlock *b, int64_t length,
                          JitValue k);

/* Adds a call whose desc is plain data of DESC_BYTES(its type). */
void lower_pod_call(Lowering *l, const char *name, KernelEmit *emit, const void *desc, size_t bytes,
                    int64_t n_tasks, const CallBuf *bufs, int n_bufs);
/* The second call of a chunked reduction: its work was counted with the first; it reads the
 * workspace. */
void lower_pod_join(Lowering *l, const char *name, KernelEmit *emit, const void *desc, size_t bytes,
                    int64_t n_tasks, const CallBuf *bufs, int n_bufs);

#endif
