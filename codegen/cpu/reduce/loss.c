/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Cross-entropy.  With class weights a label counts as much as its class weighs; smoothing weighs
 * every class (torch.nn.CrossEntropyLoss).
 *
 * Exponentials are of differences from the line's largest logit.  A label that is ignore_index, or
 * no class at all, takes no part.  Sums over lines are made in chunks, in double, and joined in
 * order. */
#include "codegen/cpu/reduce/loss_lines.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

/* --- the loss of a line --- */

/* (1-e) w[label] (log sum - (x[label] - max)) + e mean(w (log sum - (x - max))), vectors; all: sum
 * of w (x - max) */
static JitValue line_loss(Jit *j, const LossLine *l, JitValue log_sum, JitValue picked,
                          JitValue all)
{
    double e = l->d->smoothing;
    JitValue loss = mul(j, sub(j, log_sum, picked), jit_vf(j, 1 - e));
    if (l->weight)
        loss = mul(j, loss, l->label_weight);
    if (e == 0)
        return loss;
    if (l->weight) {
        JitValue rest = sub(j, mul(j, log_sum, l->all_weights), all);
        rest = mul(j, rest, jit_vf(j, e / (double)l->d->classes));
        return add(j, loss, rest);
    }
    JitValue mean = mul(j, all, jit_vf(j, 1 / (double)l->d->classes));
    return add(j, loss, mul(j, sub(j, log_sum, mean), jit_vf(j, e)));
}

/* --- loss along the classes --- */

/* The loss of a line with a label. */
static JitValue loss_of_line(Jit *j, LossLine *l, JitValue line, JitValue label)
{
    l->offset = mul(j, line, jit_i64(j, l->d->classes));
    loss_scan_line(j, l);
    JitValue x = jit_load(j, l->x, add(j, l->offset, label));
    JitValue picked = sub(j, splat(j, x), l->max);
    JitValue all = splat(j, line_sum(j, &l->all));
    if (l->weight)
        l->label_weight = splat(j, loss_class_weight(j, l, label));
    return jit_lane(j, line_loss(j, l, jit_vlog(j, l->sum), picked, all), 0);
}

static void add_line(Jit *j, LossLines *a)
{
    const JitTypes *t = jit_types(j);
    LossLine *l = &a->l;
    JitValue label = loss_label(j, l->d, a->outer);
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    loss_add(j, a->s.sum, jit_cast(j, loss_of_line(j, l, a->outer, label), t->f64));
    JitValue one = l->weight ? jit_cast(j, loss_class_weight(j, l, label), t->f64) : jit_i64(j, 1);
    loss_add(j, a->s.count, one);
    jit_end_if(j, &valid);
}

/* reduction = none: 0 where there is no label. */
static void store_line(Jit *j, LossLines *a)
{
    LossLine *l = &a->l;
    JitVar loss = jit_var(j, jit_types(j)->f32, "loss");
    jit_set(j, loss, jit_f32(j, 0));
    JitValue label = loss_label(j, l->d, a->outer);
    JitIf valid = jit_if(j, loss_label_is_valid(j, label));
    jit_set(j, loss, loss_of_line(j, l, a->outer, label));
    jit_end_if(j, &valid);
    jit_store(j, a->each, a->outer, jit_get(loss));
}

/* --- loss across lines --- */

/* Losses of the lines under v, 0 without a label. */
static JitValue loss_of_lines(Jit *j, Lanes v, LossLines *a)
{
    LossLine *l = &a->l;
    loss_scan_lines(j, l, v, a->outer);
    JitValue all = accumulated(j, &l->all);
    JitValue loss = line_loss(j, l, jit_vlog(j, l->sum), jit_get(l->picked), all);
    return jit_vselect(j, loss_valid_labels(j, l), loss, vf(j, 0));
}

/* Adds what waits: neighbouring lines are folded before they are added in double. */
static void add_waiting(Jit *j, LossLines *a)
{
    for (int i = a->waiting; i < line_vectors(j); i++)
        a->loss[i] = a->one[i] = vf(j, 0);
    a->waiting = 0;
    loss_add(j, a->s.sum, jit_cast(j, line_fold(j, a->loss), jit_types(j)->f64));
    loss_add(j, a->s.count, jit_cast(j, line_fold(j, a->one), loss_count_type(j, a->l.d)));
}

static void add_vector(Jit *j, Lanes v, void *user)
{
    LossLines *a = user;
    JitValue loss = loss_of_lines(j, v, a), mask = loss_valid_labels(j, &a->l);
    JitValue each = a->l.weight ? a->l.label_weight : jit_vf(j, 1);
    a->loss[a->waiting] = jit_tmp(j, loss);
    a->one[a->waiting++] = jit_tmp(j, jit_vselect(j, mask, jit_tmp(j, each), vf(j, 0)));
    if (a->waiting == line_vectors(j))
        add_waiting(j, a);
}

static void add_lines(Jit *j, LossLines *a)
{
    each_vector(j, a->l.d->inner, line_vectors(j), add_vector, a);
    if (a->waiting > 0)
        add_waiting(j, a);
}

static void store_vector(Jit *j, Lanes v, void *user)
{
    LossLines *a = user;
    store_lanes(j, a->each, loss_first_line(j, a), v, loss_of_lines(j, v, a));
}

static void store_lines(Jit *j, LossLines *a)
{
    each_vector(j, a->l.d->inner, 1, store_vector, a);
}

/* --- kernels of the loss --- */

/* logits, labels, weights?, workspace.  Task: a chunk of the lines (inner = 1) or of the outer dim.
 */
static void emit_loss(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitType f64 = jit_types(j)->f64;
    LossLines a = {.l = {.d = d, .x = buf_f32(j, 0)}};
    loss_use_weights(j, &a.l, 2);
    JitLoop chunk = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "chunk");
    JitValue next = jit_add(j, jit_index(&chunk), jit_i64(j, 1));
    a.s = loss_totals(j, d, f64);
    loss_each_line(j, &a, part_start(j, jit_index(&chunk), d->outer, d->chunks),
                   part_start(j, next, d->outer, d->chunks), add_line, add_lines);
    loss_store_totals(j, d, jit_index(&chunk), &a.s, f64);
    jit_end_for(j, &chunk);
}

/* logits, labels, weights?, losses */
static void emit_loss_each(Jit *j, const void *desc)
{
    const LossDesc *d = desc;
    JitValue first, last;
    LossLines a = {.l = {.d = d, .x = buf_f32(j, 0)}, .each = buf_f32(j, d->weighted ? 3 : 2)};
    loss_use_weights(j, &a.l, 2);
    task_items(j, loss_task_lines(d), d->outer, &first, &last);
    loss_each_line(j, &a, first, last, store_line, store_lines);
}

static void emit_loss_join(Jit *j, const void *desc)
{
    loss_emit_ratio(j, desc, jit_types(j)->f64);
}

void cpu_cross_entropy(Lowering *l, const Node *n)
{
    LossDesc d = loss_describe(l, n);
    if (d.reduction == LOSS_NONE) {
        loss_lower_lines(l, n, "cross_entropy_each", emit_loss_each, &d);
        return;
    }
    loss_lower_chunked(l, n, emit_loss, emit_loss_join, "loss_join");
}
