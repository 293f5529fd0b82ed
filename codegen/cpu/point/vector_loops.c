/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"

#include "ir/support/bug.h"
#include "ir/support/strbuf.h"

#include <string.h>

enum { TASK_ELEMENTS = 16384 };

static JitValue plus(Jit *j, JitValue a, int64_t k)
{
    return k ? add(j, a, jit_i64(j, k)) : a;
}

void each_vector(Jit *j, int64_t length, int ways, EachVector *body, void *user)
{
    int64_t lanes = jit_lanes(j), full = length / lanes, looped = 0;
    if (full > ways) {
        looped = full / ways * ways;
        JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, looped * lanes), ways * lanes, "v");
        for (int w = 0; w < ways; w++)
            body(j, (Lanes){plus(j, jit_index(&l), w * lanes), NULL, w}, user);
        jit_end_for(j, &l);
    }
    for (int64_t k = looped; k < full; k++)
        body(j, (Lanes){jit_i64(j, k * lanes), NULL, (int)(k - looped)}, user);
    if (length % lanes)
        body(j,
             (Lanes){jit_i64(j, full * lanes), jit_i64(j, length % lanes),
                     (int)((full - looped) % MAX_WAYS)},
             user);
}

/* Vectors from `from` on, `ways` at a time; returns where it stopped. */
static JitValue vectors_between(Jit *j, JitValue from, JitValue to, int ways, EachVector *body,
                                void *user)
{
    int64_t lanes = jit_lanes(j);
    JitLoop l = jit_for(j, from, jit_sub(j, to, jit_i64(j, ways * lanes - 1)), ways * lanes, "v");
    for (int w = 0; w < ways; w++)
        body(j, (Lanes){plus(j, jit_index(&l), w * lanes), NULL, w}, user);
    jit_end_for(j, &l);
    return jit_index(&l);
}

void each_vector_between(Jit *j, JitValue from, JitValue to, int64_t end, int ways,
                         EachVector *body, void *user)
{
    JitValue at = vectors_between(j, from, to, ways, body, user);
    if (ways > 1)
        at = vectors_between(j, at, to, 1, body, user);
    if (end >= 0 && end % jit_lanes(j) == 0)
        return;
    JitIf tail = jit_if(j, jit_compare(j, JIT_LT, at, to));
    body(j, (Lanes){at, sub(j, to, at), 0}, user);
    jit_end_if(j, &tail);
}

static JitValue place(Jit *j, JitValue offset, Lanes v)
{
    return offset ? add(j, offset, v.at) : v.at;
}

JitValue load_lanes(Jit *j, JitValue p, JitValue offset, Lanes v, double fill)
{
    JitValue at = place(j, offset, v);
    return v.n ? jit_vload_partial(j, p, at, v.n, fill) : jit_vload(j, p, at);
}

void store_lanes(Jit *j, JitValue p, JitValue offset, Lanes v, JitValue value)
{
    JitValue at = place(j, offset, v);
    if (v.n)
        jit_vstore_partial(j, p, at, v.n, value);
    else
        jit_vstore(j, p, at, value);
}

JitValue valid_lanes(Jit *j, Lanes v, JitValue value, double other)
{
    if (!v.n)
        return value;
    JitValue n = splat(j, jit_cast(j, v.n, jit_types(j)->i32));
    JitValue mask = jit_vmask(j, JIT_LT, jit_lane_numbers(j), n);
    return jit_vselect(j, mask, value, vf(j, other));
}

Accumulator accumulator(Jit *j, int n, JitValue start)
{
    Accumulator a = {.n = n > MAX_WAYS ? MAX_WAYS : n};
    for (int i = 0; i < a.n; i++) {
        a.var[i] = jit_var(j, jit_type_of(start), "acc");
        jit_set(j, a.var[i], start);
    }
    return a;
}

static JitVar way_of(const Accumulator *a, Lanes v)
{
    return a->var[v.way % a->n];
}

void accumulate(Jit *j, Accumulator *a, Lanes v, JitValue term)
{
    jit_set(j, way_of(a, v), jit_add(j, jit_get(way_of(a, v)), term));
}

void accumulate_max(Jit *j, Accumulator *a, Lanes v, JitValue term)
{
    jit_set(j, way_of(a, v), jit_vmax_keep(j, term, jit_get(way_of(a, v))));
}

/* Pairwise, always in the same order. */
static JitValue join(Jit *j, Accumulator *a, JitValue (*op)(Jit *, JitValue, JitValue))
{
    JitValue v[MAX_WAYS];
    int n = a->n;
    for (int i = 0; i < n; i++)
        v[i] = jit_get(a->var[i]);
    while (n > 1) {
        for (int i = 0; i < n / 2; i++)
            v[i] = jit_tmp(j, op(j, v[2 * i], v[2 * i + 1]));
        if (n % 2)
            v[n / 2] = v[n - 1];
        n = n / 2 + n % 2;
    }
    return v[0];
}

JitValue accumulated(Jit *j, Accumulator *a)
{
    return join(j, a, jit_add);
}

JitValue accumulated_max(Jit *j, Accumulator *a)
{
    return join(j, a, jit_vmax_keep);
}

/* --- lines --- */

int line_vectors(const Jit *j)
{
    return LINE_LANES / jit_lanes(j);
}

int line_ways(const Jit *j)
{
    return LINE_SUMS / jit_lanes(j);
}

Accumulator line_accumulator(Jit *j, JitValue start)
{
    return accumulator(j, line_ways(j), start);
}

JitValue line_fold(Jit *j, const JitValue *vector)
{
    JitValue v[LINE_LANES];
    int n = line_vectors(j);
    for (int i = 0; i < n; i++)
        v[i] = vector[i];
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            v[i] = add(j, v[i], v[i + n / 2]);
    return jit_hsum(j, v[0]);
}

/* The widest vectors would be four: they are added in pairs. */
JitValue line_sum(Jit *j, const Accumulator *a)
{
    int n = line_vectors(j);
    JitValue v[LINE_LANES];
    for (int i = 0; i < n; i++) {
        JitValue low = add(j, jit_get(a->var[i]), jit_get(a->var[n + i]));
        JitValue high = add(j, jit_get(a->var[2 * n + i]), jit_get(a->var[3 * n + i]));
        v[i] = add(j, low, high);
    }
    return line_fold(j, v);
}

/* What is left of less than `ways` vectors, one after the other. */
static void line_tail(Jit *j, JitValue at, JitValue to, int ways, EachVector *body, void *user)
{
    JitValue lanes = jit_i64(j, jit_lanes(j));
    for (int way = 0; way < ways; way++) {
        JitValue first = way ? add(j, at, jit_i64(j, (int64_t)way * jit_lanes(j))) : at;
        JitIf any = jit_if(j, jit_compare(j, JIT_LT, first, to));
        JitValue n = jit_tmp(j, jit_min_i64(j, jit_sub(j, to, first), lanes));
        body(j, (Lanes){first, n, way}, user);
        jit_end_if(j, &any);
    }
}

void each_line_vector_between(Jit *j, JitValue from, JitValue to, int64_t end, EachVector *body,
                              void *user)
{
    JitValue at = vectors_between(j, from, to, line_ways(j), body, user);
    at = vectors_between(j, at, to, line_vectors(j), body, user);
    if (end < 0 || end % LINE_LANES != 0)
        line_tail(j, jit_tmp(j, at), to, line_vectors(j), body, user);
}

void each_line_vector(Jit *j, JitValue length, EachVector *body, void *user)
{
    JitValue at = vectors_between(j, jit_i64(j, 0), length, line_ways(j), body, user);
    line_tail(j, jit_tmp(j, at), length, line_ways(j), body, user);
}

CompensatedSum compensated_sum(Jit *j)
{
    CompensatedSum s = {jit_var(j, jit_types(j)->vf, "sum"), jit_var(j, jit_types(j)->vf, "lost")};
    jit_set(j, s.sum, jit_vf(j, 0));
    jit_set(j, s.lost, jit_vf(j, 0));
    return s;
}

/* Knuth's two-sum (The Art of Computer Programming, volume 2, 4.2.2): sum + lost is exact whichever
 * of the two summands is the larger. */
void compensated_add(Jit *j, CompensatedSum *s, JitValue term)
{
    JitValue x = jit_tmp(j, term), old = jit_tmp(j, jit_get(s->sum));
    JitValue sum = add(j, old, x), part = sub(j, sum, old);
    JitValue lost_of_old = sub(j, old, sub(j, sum, part));
    JitValue lost = add(j, lost_of_old, sub(j, x, part));
    jit_set(j, s->lost, jit_add(j, jit_get(s->lost), lost));
    jit_set(j, s->sum, sum);
}

/* Where the sum overflowed, what was lost is NaN: then the sum alone counts. */
JitValue compensated_total(Jit *j, CompensatedSum *s)
{
    JitValue sum = jit_tmp(j, jit_get(s->sum)), lost = jit_tmp(j, jit_get(s->lost));
    return jit_tmp(j, jit_vchoose(j, JIT_EQ, lost, lost, add(j, sum, lost), sum));
}

JitType bits_pointer(Jit *j, int64_t bytes)
{
    const JitTypes *t = jit_types(j);
    return bytes == 4 ? t->p_i32 : bytes == 8 ? t->p_i64 : bytes == 2 ? t->p_i16 : t->p_u8;
}

int row_registers(const Jit *j)
{
    return jit_target(j)->vector_registers / 2;
}

int64_t items_per_task(int64_t elements)
{
    return elements >= TASK_ELEMENTS ? 1 : TASK_ELEMENTS / (elements ? elements : 1);
}

void task_items(Jit *j, int64_t per, int64_t total, JitValue *first, JitValue *last)
{
    JitValue size = jit_i64(j, per);
    *first = mul(j, jit_task_begin(j), size);
    *last = jit_tmp(j, jit_min_i64(j, jit_mul(j, jit_task_end(j), size), jit_i64(j, total)));
}

static int64_t blocks_beside(const AxisShape *a)
{
    return divide_up(a->inner, LINE_BLOCK);
}

int64_t line_blocks(const AxisShape *a)
{
    return a->outer * blocks_beside(a);
}

int64_t line_block_most(const AxisShape *a)
{
    return a->inner < LINE_BLOCK ? a->inner : LINE_BLOCK;
}

LineBlock line_block(Jit *j, const AxisShape *a, JitValue number)
{
    JitValue rest = jit_tmp(j, number), size = jit_i64(j, LINE_BLOCK);
    JitValue first = mul(j, take_digit(j, &rest, blocks_beside(a)), size);
    JitValue n = jit_min_i64(j, sub(j, jit_i64(j, a->inner), first), size);
    return (LineBlock){rest, first, jit_tmp(j, n)};
}

JitValue line_block_place(Jit *j, const AxisShape *a, const LineBlock *b, int64_t length,
                          JitValue k)
{
    JitValue row = jit_tmp(j, jit_muladd_i64(j, b->outer, length, k));
    return jit_tmp(j, jit_muladd_i64(j, row, a->inner, b->first));
}

JitValue part_start_of(Jit *j, JitValue part, JitValue units, JitValue parts)
{
    return divide(j, jit_mul(j, part, units), parts);
}

JitValue part_start(Jit *j, JitValue part, int64_t units, int64_t parts)
{
    return part_start_of(j, part, jit_i64(j, units), jit_i64(j, parts));
}

void lower_pod_call(Lowering *l, const char *name, KernelEmit *emit, const void *desc, size_t bytes,
                    int64_t n_tasks, const CallBuf *bufs, int n_bufs)
{
    CallDraft call = pod_call(l, name, desc, bytes, n_tasks, bufs, n_bufs);
    call.emit = emit;
    pod_count_work(l, &call);
    if (n_tasks > 0)
        lower_call(l, call);
}

void lower_pod_join(Lowering *l, const char *name, KernelEmit *emit, const void *desc, size_t bytes,
                    int64_t n_tasks, const CallBuf *bufs, int n_bufs)
{
    CallDraft call = pod_call(l, name, desc, bytes, n_tasks, bufs, n_bufs);
    call.emit = emit;
    pod_count_join(l, &call);
    if (n_tasks > 0)
        lower_call(l, call);
}
