/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Accuracy and argmax.  Logits are [outer, classes, inner], as in loss.c. */
#include "codegen/cpu/reduce/loss_totals.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "ir/workspace.h"

/* First index of the largest of `length` elements at p[offset + k * step]; nan_wins: a NaN counts
 * as largest. */
static JitValue first_largest(Jit *j, JitValue p, JitValue offset, int64_t length, int64_t step,
                              bool nan_wins)
{
    const JitTypes *t = jit_types(j);
    JitVar best = jit_var(j, t->i64, "best"), value = jit_var(j, t->f32, "value");
    jit_set(j, best, jit_i64(j, 0));
    jit_set(j, value, jit_load(j, p, offset));
    JitLoop k = jit_for(j, jit_i64(j, 1), jit_i64(j, length), 1, "k");
    JitValue x = jit_load(j, p, jit_tmp(j, jit_muladd_i64(j, jit_index(&k), step, offset)));
    JitValue better = jit_compare(j, JIT_GT, x, jit_get(value));
    if (nan_wins) {
        JitValue fresh = jit_and(j, jit_compare(j, JIT_NE, x, x),
                                 jit_compare(j, JIT_EQ, jit_get(value), jit_get(value)));
        better = jit_or(j, better, fresh);
    }
    JitIf s = jit_if(j, better);
    jit_set(j, best, jit_index(&k));
    jit_set(j, value, x);
    jit_end_if(j, &s);
    jit_end_for(j, &k);
    return jit_get(best);
}

static JitValue line_offset(Jit *j, const LossDesc *d, JitValue line)
{
    JitValue inner = jit_i64(j, d->inner);
    JitValue outer = jit_div(j, line, inner);
    JitValue at = jit_muladd_i64(j, outer, d->classes * d->inner, jit_mod(j, line, inner));
    return jit_tmp(j, at);
}

/* logits, labels, workspace: right answers and labels, both i64 */
static void emit_accuracy(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    const JitTypes *t = jit_types(j);
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    int64_t lines = d->outer * d->inner;
    LossTotals s = loss_totals(j, d, t->i64);
    JitLoop line = jit_for(j, part_start(j, jit_index(&chunk), lines, d->chunks),
                           part_start(j, next, lines, d->chunks), 1, "line");
    JitValue label = loss_label(j, d, jit_index(&line));
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    JitValue best = first_largest(j, buf_f32(j, 0), line_offset(j, d, jit_index(&line)), d->classes,
                                  d->inner, false);
    loss_add(j, s.count, jit_i64(j, 1));
    JitIf right = jit_if(j, jit_compare(j, JIT_EQ, best, label));
    loss_add(j, s.sum, jit_i64(j, 1));
    jit_end_if(j, &right);
    jit_end_if(j, &valid);
    jit_end_for(j, &line);
    loss_store_totals(j, d, jit_index(&chunk), &s, t->i64);
    jit_end_for(j, &chunk);
}

static void emit_accuracy_join(Jit *j, const void *desc)
{
    loss_emit_ratio(j, desc, jit_types(j)->i64);
}

void cpu_accuracy(Lowering *l, const Node *n)
{
    loss_lower_chunked(l, n, emit_accuracy, emit_accuracy_join, "accuracy_join");
}

static int64_t argmax_items(const LossDesc *d)
{
    return items_per_task(d->classes);
}

static void emit_argmax(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    const JitTypes *t = jit_types(j);
    JitValue first, last;
    task_items(j, argmax_items(d), d->outer * d->inner, &first, &last);
    JitLoop line = jit_for(j, first, last, 1, "line");
    JitValue best = first_largest(j, buf_f32(j, 0), line_offset(j, d, jit_index(&line)), d->classes,
                                  d->inner, true);
    jit_store(j, jit_buf(j, 1, t->p_i32), jit_index(&line), jit_cast(j, best, t->i32));
    jit_end_for(j, &line);
}

void cpu_argmax(Lowering *l, const Node *n)
{
    AxisShape a = axis_shape(value_type(l->graph, n->in[0]), node_int(n, ATTR_axis, -1));
    LossDesc d = {.outer = a.outer, .classes = a.length, .inner = a.inner};
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    if (!dtype_is_real(value_type(l->graph, n->in[0])->dtype))
        BUG("argmax of %s", dtype_name(value_type(l->graph, n->in[0])->dtype));
    lower_pod_call(l, "argmax", emit_argmax, &d, DESC_BYTES(LossDesc),
                   divide_up(a.outer * a.inner, argmax_items(&d)), bufs, 2);
}
