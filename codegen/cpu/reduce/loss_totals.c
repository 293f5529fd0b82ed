/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Labels, and sums over lines, made in chunks and joined in order. */
#include "codegen/cpu/reduce/loss_totals.h"

#include "codegen/cpu/point/point_jit.h"

/* --- labels --- */

JitValue loss_label(Jit *j, const LossDesc *d, JitValue i)
{
    const JitTypes *t = jit_types(j);
    JitVar label = jit_var(j, t->i64, "label");
    JitValue labels = jit_buf(j, 1, point_pointer(j, (DType)d->label_type));
    jit_set(j, label, jit_cast(j, jit_load(j, labels, i), t->i64));
    const JitCompare wrong[] = {JIT_EQ, JIT_LT, JIT_GE};
    const int64_t bound[] = {d->ignore, 0, d->classes};
    for (int k = 0; k < 3; k++) {
        JitIf s = jit_if(j, jit_compare(j, wrong[k], jit_get(label), jit_i64(j, bound[k])));
        jit_set(j, label, jit_i64(j, -1));
        jit_end_if(j, &s);
    }
    return jit_get(label);
}

JitValue loss_label_is_valid(Jit *j, JitValue label)
{
    return jit_compare(j, JIT_GE, label, jit_i64(j, 0));
}

/* --- partial results: sum of losses (f64) and number of labels (i64), or of weights (f64) --- */

JitType loss_count_type(Jit *j, const LossDesc *d)
{
    return d->weighted ? jit_types(j)->f64 : jit_types(j)->i64;
}

LossTotals loss_totals(Jit *j, const LossDesc *d, JitType sum_type)
{
    LossTotals s = {jit_var(j, sum_type, "sum"), jit_var(j, loss_count_type(j, d), "count")};
    jit_set(j, s.sum, jit_zero(j, sum_type));
    jit_set(j, s.count, jit_zero(j, loss_count_type(j, d)));
    return s;
}

void loss_add(Jit *j, JitVar var, JitValue v)
{
    jit_set(j, var, jit_add(j, jit_get(var), v));
}

static JitValue partial(Jit *j, const LossDesc *d, int buf, JitValue chunk, JitType pointer)
{
    JitValue bytes = jit_mul(j, chunk, jit_i64(j, d->partial_bytes));
    JitValue p = jit_offset(j, jit_buf(j, buf, jit_types(j)->p_u8), jit_tmp(j, bytes));
    return jit_tmp(j, jit_cast(j, p, pointer));
}

void loss_store_totals(Jit *j, const LossDesc *d, JitValue chunk, const LossTotals *s, JitType type)
{
    JitType pointer = jit_pointer_to(j, type);
    JitType counts = jit_pointer_to(j, loss_count_type(j, d));
    int buf = d->weighted ? 3 : 2;
    jit_store(j, partial(j, d, buf, chunk, pointer), jit_i64(j, 0), jit_get(s->sum));
    jit_store(j, partial(j, d, buf, chunk, counts), jit_i64(j, 1), jit_get(s->count));
}

/* workspace -> sum / count, 0 without labels, or the sum; type: of the sums */
void loss_emit_ratio(Jit *j, const LossDesc *d, JitType type)
{
    const JitTypes *t = jit_types(j);
    LossTotals s = loss_totals(j, d, t->f64);
    JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, d->chunks), 1, "chunk");
    JitValue sums = partial(j, d, 0, jit_index(&c), jit_pointer_to(j, type));
    JitValue counts = partial(j, d, 0, jit_index(&c), jit_pointer_to(j, loss_count_type(j, d)));
    loss_add(j, s.sum, jit_cast(j, jit_load(j, sums, jit_i64(j, 0)), t->f64));
    loss_add(j, s.count, jit_load(j, counts, jit_i64(j, 1)));
    jit_end_for(j, &c);
    JitVar result = jit_var(j, t->f32, "result");
    jit_set(j, result, jit_f32(j, 0));
    if (d->reduction == LOSS_SUM) {
        jit_set(j, result, jit_cast(j, jit_get(s.sum), t->f32));
    } else {
        JitValue none = jit_zero(j, loss_count_type(j, d));
        JitIf some = jit_if(j, jit_compare(j, JIT_GT, jit_get(s.count), none));
        JitValue ratio = jit_div(j, jit_get(s.sum), jit_cast(j, jit_get(s.count), t->f64));
        jit_set(j, result, jit_cast(j, ratio, t->f32));
        jit_end_if(j, &some);
    }
    jit_store(j, jit_buf(j, 1, t->p_f32), jit_i64(j, 0), jit_get(result));
}

void loss_lower_chunked(Lowering *l, const Node *n, KernelEmit *emit, KernelEmit *join,
                        const char *join_name)
{
    LossDesc d = loss_describe(l, n);
    CallBuf in[4] = {{n->in[0], 0}, {n->in[1], 0}, {VALUE_NONE, 0}, {VALUE_NONE, 0}};
    const CallBuf out[] = {{VALUE_NONE, 0}, {n->out[0], 0}};
    if (d.weighted)
        in[2].value = n->in[2];
    lower_pod_call(l, op_name(n->op), emit, &d, DESC_BYTES(LossDesc), d.chunks, in,
                   d.weighted ? 4 : 3);
    lower_pod_join(l, join_name, join, &d, DESC_BYTES(LossDesc), 1, out, 2);
}
