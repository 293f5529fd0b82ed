/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables of the elements that each output of an axis reads, with their weights. */
#include "codegen/forms/resample.h"

#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "ir/support/pool.h"

#include <string.h>

enum { UNBLOCKED_TAPS = 32 }; /* a power of two */

/* What one forward output reads; weight of the first element, and of each further one. */
typedef struct Reads {
    int64_t first, count;
    double weight[2];
} Reads;

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

static bool is_gradient(const ResampleDesc *d)
{
    return d->op == OP_avgpool_grad || d->op == OP_adaptive_avgpool_grad || d->op == OP_resize_grad;
}

/* What output i of the forward operation reads along an axis. */
static Reads reads_of(const ResampleDesc *d, int axis, int64_t i)
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
        Reads r = reads_of(d, axis, i);
        for (int64_t k = 0; k < r.count; k++)
            t->end[(is_gradient(d) ? r.first + k : i) + 1]++;
    }
    for (int64_t i = 0; i < t->n; i++)
        t->end[i + 1] += t->end[i];
    return t->end[t->n];
}

/* In the order of the elements that are read, so that they are consecutive for each output. */
static void set_taps(const ResampleDesc *d, int axis, Taps *t, int64_t *filled)
{
    for (int64_t i = 0; i < d->to[axis]; i++) {
        Reads r = reads_of(d, axis, i);
        for (int64_t k = 0; k < r.count; k++) {
            int64_t out = is_gradient(d) ? r.first + k : i, in = is_gradient(d) ? i : r.first + k;
            int64_t at = t->end[out] + filled[out]++;
            if (at == t->end[out])
                t->shift[out] = in - at;
            if (t->shift[out] + at != in)
                BUG("%s: taps with a gap", op_name((OpKind)d->op));
            t->weight[at] = (float)r.weight[k > 0];
        }
    }
}

/* Near the root, so that the rounding of a sum of n elements grows as root n and not as n. */
static int64_t block_of(int64_t longest)
{
    int64_t block = UNBLOCKED_TAPS;
    while (block * block < longest)
        block *= 2;
    return longest > UNBLOCKED_TAPS ? block : 0;
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
    t.block = block_of(t.longest);
    t.copies = t.longest == 1 && total == t.n;
    for (int64_t k = 0; k < total && t.copies; k++)
        t.copies = t.weight[k] == 1;
    return t;
}

/* --- the description --- */

/* Elements that an axis reads for all its outputs together. */
static double all_reads(const ResampleDesc *d, int axis)
{
    double n = 0;
    for (int64_t i = 0; i < d->to[axis]; i++)
        n += (double)reads_of(d, axis, i).count;
    return n;
}

/* Rows first, unless a line of them does not fit, or that reads twice as much, or all is copied. */
static bool adds_directly(const ResampleDesc *d)
{
    double rows = all_reads(d, 0) / (double)d->out[0], columns = all_reads(d, 1);
    double apart = rows * (double)d->in[1] + columns, together = rows * columns;
    int64_t room = (SCRIMP_WORK_BYTES - RESAMPLE_SLACK) / (int64_t)sizeof(float) / d->in[1];
    int64_t least = d->channels < RESAMPLE_CHANNELS ? d->channels : RESAMPLE_CHANNELS;
    bool copies = d->op == OP_resize && d->nearest && d->channels >= RESAMPLE_CHANNELS;
    return room < least || copies || 2 * together < apart;
}

ResampleDesc resample_describe(const Lowering *l, const Node *n)
{
    const Type *in = value_type(l->graph, n->in[0]), *out = value_type(l->graph, n->out[0]);
    bool nhwc = node_flag(n, ATTR_nhwc);
    int row = nhwc ? 1 : 2;
    ResampleDesc d = {.op = n->op, .images = in->dim[0], .channels = in->dim[nhwc ? 3 : 1]};
    memcpy(d.in, &in->dim[row], sizeof d.in);
    memcpy(d.out, &out->dim[row], sizeof d.out);
    memcpy(d.from, is_gradient(&d) ? d.out : d.in, sizeof d.from);
    memcpy(d.to, is_gradient(&d) ? d.in : d.out, sizeof d.to);
    for (int i = 0; i < 2; i++) {
        d.kernel[i] = node_ints_at(n, ATTR_kernel, i, 1);
        d.stride[i] = node_ints_at(n, ATTR_stride, i, d.kernel[i]);
        d.padding[i] = node_ints_at(n, ATTR_padding, i, 0);
    }
    d.count_pad = node_flag(n, ATTR_count_pad);
    d.nearest = node_flag(n, ATTR_nearest);
    d.align_corners = node_flag(n, ATTR_align_corners);
    if (!nhwc) {
        d.images *= d.channels;
        d.channels = 1;
    }
    d.direct = adds_directly(&d);
    return d;
}
