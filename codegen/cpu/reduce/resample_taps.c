/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of the elements that each output of an axis reads, with their weights. */
#include "codegen/cpu/reduce/resample.h"

#include "ir/support/bug.h"
#include "ir/support/pool.h"

/* In ceil mode a window ends at the padded border. */
static Reads window_reads(const ResampleDesc *d, int axis, int64_t i)
{
    int64_t from = d->from[axis], pad = d->padding[axis];
    int64_t first = i * d->stride[axis] - pad, end = first + d->kernel[axis];
    end = end < from + pad ? end : from + pad;
    int64_t padded = end - first;
    first = first > 0 ? first : 0;
    end = end < from ? end : from;
    double part = 1 / (double)(d->count_pad ? padded : end - first);
    return (Reads){first, end - first, {part, part}};
}

static Reads adaptive_reads(int64_t from, int64_t to, int64_t i)
{
    int64_t first = i * from / to, end = divide_up((i + 1) * from, to);
    double part = 1 / (double)(end - first);
    return (Reads){first, end - first, {part, part}};
}

/* The place of output i is number / unit, exactly; elements of weight 0 are not read. */
static Reads resize_reads(const ResampleDesc *d, int64_t from, int64_t to, int64_t i)
{
    int64_t number = (2 * i + 1) * from - to, unit = 2 * to;
    if (d->nearest)
        return (Reads){i * from / to, 1, {1, 0}};
    if (d->align_corners) {
        number = to > 1 ? i * (from - 1) : 0;
        unit = to > 1 ? to - 1 : 1;
    }
    number = number < 0 ? 0 : number;
    int64_t below = number / unit;
    if (below >= from - 1)
        return (Reads){from - 1, 1, {1, 0}};
    double part = (double)(number % unit) / (double)unit;
    return (Reads){below, part > 0 ? 2 : 1, {1 - part, part}};
}

bool resample_is_gradient(const ResampleDesc *d)
{
    return d->op == OP_avgpool_grad || d->op == OP_adaptive_avgpool_grad || d->op == OP_resize_grad;
}

Reads resample_reads(const ResampleDesc *d, int axis, int64_t i)
{
    if (d->op == OP_avgpool || d->op == OP_avgpool_grad)
        return window_reads(d, axis, i);
    if (d->op == OP_resize || d->op == OP_resize_grad)
        return resize_reads(d, d->from[axis], d->to[axis], i);
    return adaptive_reads(d->from[axis], d->to[axis], i);
}

/* Counts the taps of each output into t->end[output + 1]. */
static int64_t count_taps(const ResampleDesc *d, int axis, Taps *t)
{
    for (int64_t i = 0; i < d->to[axis]; i++) {
        Reads r = resample_reads(d, axis, i);
        for (int64_t k = 0; k < r.count; k++)
            t->end[(resample_is_gradient(d) ? r.first + k : i) + 1]++;
    }
    for (int64_t i = 0; i < t->n; i++)
        t->end[i + 1] += t->end[i];
    return t->end[t->n];
}

/* In the order of the elements that are read, so that they are consecutive for each output. */
static void set_taps(const ResampleDesc *d, int axis, Taps *t, int64_t *filled)
{
    for (int64_t i = 0; i < d->to[axis]; i++) {
        Reads r = resample_reads(d, axis, i);
        for (int64_t k = 0; k < r.count; k++) {
            int64_t out = resample_is_gradient(d) ? r.first + k : i,
                    in = resample_is_gradient(d) ? i : r.first + k;
            int64_t at = t->end[out] + filled[out]++;
            if (at == t->end[out])
                t->shift[out] = in - at;
            if (t->shift[out] + at != in)
                BUG("%s: taps with a gap", op_name((OpKind)d->op));
            t->weight[at] = (float)r.weight[k > 0];
        }
    }
}

Taps resample_taps(Pool *pool, const ResampleDesc *d, int axis)
{
    Taps t = {.n = d->out[axis]};
    t.shift = POOL_ARRAY(pool, (size_t)t.n, int64_t);
    t.end = POOL_ARRAY(pool, (size_t)t.n + 1, int64_t);
    int64_t total = count_taps(d, axis, &t);
    t.weight = POOL_ARRAY(pool, (size_t)total, float);
    set_taps(d, axis, &t, POOL_ARRAY(pool, (size_t)t.n, int64_t));
    for (int64_t i = 0; i < t.n; i++)
        t.longest = t.end[i + 1] - t.end[i] > t.longest ? t.end[i + 1] - t.end[i] : t.longest;
    t.copies = t.longest == 1 && total == t.n;
    for (int64_t k = 0; k < total && t.copies; k++)
        t.copies = t.weight[k] == 1;
    return t;
}
