/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Joins the partial sums of a weight gradient: out[row, column] = sum over chunks, in their order.
 */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/cpu/point/vector_loops.h"

int64_t conv_join_tasks(const ConvJoin *d)
{
    return d->columns ? d->rows : 0;
}

/* Columns col.. of `row`, whose partial sums begin at `at` within a chunk's row. */
static void join_vector(Jit *j, const ConvJoin *d, JitValue row, JitValue at, JitValue col,
                        JitValue n_valid)
{
    const JitTypes *t = jit_types(j);
    JitValue partial = jit_buf(j, d->partial_buf, t->p_f32);
    CompensatedSum sum = compensated_sum(j);
    JitValue first = jit_tmp(j, jit_muladd_i64(j, row, d->row_floats, at));
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    JitValue from = jit_muladd_i64(j, jit_index(&l), d->rows * d->row_floats, first);
    JitValue x =
        n_valid ? jit_vload_partial(j, partial, from, n_valid, 0) : jit_vload(j, partial, from);
    compensated_add(j, &sum, x);
    jit_end_for(j, &l);
    epilogue_store(j, &d->epilogue, d->out_buf, compensated_total(j, &sum), row, col, n_valid);
}

void conv_join_emit(Jit *j, const void *desc)
{
    const ConvJoin *d = desc;
    int64_t lanes = jit_lanes(j), whole = d->columns / lanes * lanes, rest = d->columns - whole;
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue row = jit_tmp(j, jit_index(&task));
    if (whole) {
        JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, whole), lanes, "c");
        JitValue col = jit_tmp(j, jit_index(&c));
        join_vector(j, d, row, col, col, NULL);
        jit_end_for(j, &c);
    }
    if (rest)
        join_vector(j, d, row, jit_i64(j, whole + d->rest_skip), jit_i64(j, whole),
                    jit_i64(j, rest));
    jit_end_for(j, &task);
}
