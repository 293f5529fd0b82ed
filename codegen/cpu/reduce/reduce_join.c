/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/reduce/reduce_join.h"

#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/forms/point.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

KERNEL_DESC_BEGIN
/* Sizes and the scale are numbers of the call, so that reductions of all sizes share a kernel. */
typedef struct JoinDesc {
    int64_t max;  /* flag: the largest, not the sum */
    int64_t rest; /* flag: results do not end with a whole vector */
} JoinDesc;
KERNEL_DESC(JoinDesc)

enum { JOIN_CHUNKS = 2, JOIN_FLOATS, JOIN_COUNT, JOIN_SCALE, JOIN_BUFS, JOIN_RESULTS = 512 };

/* Partial result `chunk` of one vector of results. */
static JitValue partial_result(Jit *j, Lanes v, JitValue chunk)
{
    JitValue at = jit_mul(j, chunk, jit_number(j, JOIN_FLOATS));
    return load_lanes(j, buf_f32(j, 0), jit_tmp(j, at), v, 0);
}

static JitLoop each_chunk(Jit *j)
{
    return jit_for(j, jit_i64(j, 0), jit_tmp(j, jit_number(j, JOIN_CHUNKS)), 1, "chunk");
}

static JitValue joined_max(Jit *j, Lanes v)
{
    JitVar max = jit_var(j, jit_types(j)->vf, "max");
    jit_set(j, max, jit_vf(j, -(double)INFINITY));
    JitLoop chunk = each_chunk(j);
    jit_set(j, max, jit_vmax(j, partial_result(j, v, jit_index(&chunk)), jit_get(max)));
    jit_end_for(j, &chunk);
    return jit_get(max);
}

static JitValue joined_sum(Jit *j, Lanes v)
{
    CompensatedSum sum = compensated_sum(j);
    JitLoop chunk = each_chunk(j);
    compensated_add(j, &sum, partial_result(j, v, jit_index(&chunk)));
    jit_end_for(j, &chunk);
    return mul(j, compensated_total(j, &sum), point_number_lanes(j, DTYPE_F32, JOIN_SCALE));
}

/* Joins the partial results of one vector of results. */
static void join_vector(Jit *j, Lanes v, void *user)
{
    const JoinDesc *d = user;
    store_lanes(j, buf_f32(j, 1), NULL, v, d->max ? joined_max(j, v) : joined_sum(j, v));
}

static void emit_join(Jit *j, const void *desc)
{
    JoinDesc d = *(const JoinDesc *)desc;
    JitValue size = jit_i64(j, JOIN_RESULTS), first = mul(j, jit_task_begin(j), size);
    JitValue last = jit_min_i64(j, jit_mul(j, jit_task_end(j), size), jit_number(j, JOIN_COUNT));
    each_vector_between(j, first, jit_tmp(j, last), d.rest ? -1 : 0, 1, join_vector, &d);
}

void reduce_join_call(Lowering *l, const Node *n, const ReduceDesc *d)
{
    JoinDesc join = {d->op == OP_reduce_max, d->results % l->target->vector_floats != 0};
    const CallBuf bufs[JOIN_BUFS] = {{VALUE_NONE, 0},
                                     {n->out[0], 0},
                                     [JOIN_CHUNKS] = {CALL_NUMBER, d->chunks},
                                     [JOIN_FLOATS] = {CALL_NUMBER, d->partial_bytes / 4},
                                     [JOIN_COUNT] = {CALL_NUMBER, d->results},
                                     [JOIN_SCALE] = {CALL_NUMBER, point_word(DTYPE_F32, d->scale)}};
    lower_pod_join(l, "reduce_join", emit_join, &join, DESC_BYTES(JoinDesc),
                   divide_up(d->results, JOIN_RESULTS), bufs, JOIN_BUFS);
}
