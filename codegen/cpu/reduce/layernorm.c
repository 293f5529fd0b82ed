/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Layer norm over the last axis and its input gradient.  Rows that fit stay in registers; the
 * variance is taken around the row's mean in a second pass, which also finds by how much the mean
 * was rounded (the corrected two-pass algorithm of Chan, Golub and LeVeque 1983): a row whose
 * elements lie closer together than its mean is exact would otherwise be shifted by that.  Where
 * the mean is not subtracted (rms), the first pass is left out, and 0 is what the others take for
 * it. */
#include "codegen/forms/layernorm.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

typedef struct Row {
    const LayernormDesc *d;
    JitValue x, dy, gamma, beta, out;
    JitValue offset;
    bool held;
    JitValue a[MAX_WAYS + 1], b[MAX_WAYS + 1];
    Accumulator acc, acc2;
    JitValue mean, rest, rstd, mean_g, mean_gx; /* vectors; the mean is mean + rest */
} Row;

/* Sum of the lanes over the length, in all lanes. */
static JitValue average(Jit *j, const Row *r, const Accumulator *a)
{
    JitValue sum = line_sum(j, a);
    return splat(j, jit_mul(j, sum, jit_f32(j, 1 / (double)r->d->length)));
}

static void each(Jit *j, Row *r, EachVector *pass)
{
    each_vector(j, r->d->length, r->held ? MAX_WAYS : line_ways(j), pass, r);
}

/* --- forward --- */

static void sum_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue x = load_lanes(j, r->x, r->offset, v, 0);
    if (r->held)
        r->a[v.way] = x;
    accumulate(j, &r->acc, v, x);
}

static JitValue centred(Jit *j, Row *r, Lanes v)
{
    if (r->d->rms)
        return load_lanes(j, r->x, r->offset, v, 0);
    JitValue x = r->held ? r->a[v.way] : load_lanes(j, r->x, r->offset, v, 0);
    return sub(j, x, r->mean);
}

static void square_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue d = valid_lanes(j, v, centred(j, r, v), 0);
    accumulate(j, &r->acc, v, mul(j, d, d));
    if (!r->d->rms)
        accumulate(j, &r->acc2, v, d);
}

static void write_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue d = r->d->rms ? centred(j, r, v) : sub(j, centred(j, r, v), r->rest);
    JitValue y = mul(j, d, r->rstd);
    if (r->d->gamma)
        y = mul(j, y, load_lanes(j, r->gamma, NULL, v, 0));
    if (r->d->beta)
        y = add(j, y, load_lanes(j, r->beta, NULL, v, 0));
    store_lanes(j, r->out, r->offset, v, y);
}

static void forward_row(Jit *j, Row *r)
{
    r->mean = r->rest = jit_vf(j, 0);
    if (!r->d->rms) {
        r->acc = line_accumulator(j, jit_vf(j, 0));
        each(j, r, sum_pass);
        r->mean = average(j, r, &r->acc);
    }
    r->acc = line_accumulator(j, jit_vf(j, 0));
    r->acc2 = line_accumulator(j, jit_vf(j, 0));
    each(j, r, square_pass);
    JitValue var = average(j, r, &r->acc);
    if (!r->d->rms) {
        r->rest = average(j, r, &r->acc2);
        var = sub(j, var, mul(j, r->rest, r->rest));
    }
    var = jit_add(j, jit_vmax(j, var, jit_vf(j, 0)), jit_vf(j, r->d->eps));
    r->rstd = divide(j, jit_vf(j, 1), jit_vsqrt(j, jit_tmp(j, var)));
    each(j, r, write_pass);
}

/* One element of a vector whose lanes are equal. */
static void store_scalar(Jit *j, JitValue p, JitValue at, JitValue v)
{
    Lanes one = {at, jit_i64(j, 1), 0};
    store_lanes(j, p, NULL, one, v);
}

static bool fits(const Jit *j, int64_t length, int vectors)
{
    return divide_up(length, jit_lanes(j)) * vectors <= row_registers(j);
}

static JitValue row_offset(Jit *j, JitValue row, const LayernormDesc *d)
{
    return mul(j, row, jit_i64(j, d->length));
}

/* x, gamma?, beta?, y, mean, rstd */
static void emit_layernorm(Jit *j, const void *desc)
{
    const LayernormDesc *d = desc;
    int n = 1;
    Row r = {.d = d, .x = buf_f32(j, 0), .held = fits(j, d->length, 1)};
    r.gamma = d->gamma ? buf_f32(j, n++) : NULL;
    r.beta = d->beta ? buf_f32(j, n++) : NULL;
    r.out = buf_f32(j, n);
    JitValue mean = buf_f32(j, n + 1), rstd = buf_f32(j, n + 2), first, last;
    task_items(j, items_per_task(d->length), d->rows, &first, &last);
    JitLoop rows = jit_for(j, first, last, 1, "row");
    r.offset = row_offset(j, jit_index(&rows), d);
    forward_row(j, &r);
    store_scalar(j, mean, jit_index(&rows), add(j, r.mean, r.rest));
    store_scalar(j, rstd, jit_index(&rows), r.rstd);
    jit_end_for(j, &rows);
}

static void call(Lowering *l, const Node *n, KernelEmit *emit)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    LayernormDesc d = layernorm_describe(l, n);
    int64_t tasks = divide_up(d.rows, items_per_task(d.length));
    lower_pod_call(l, op_name(n->op), emit, &d, DESC_BYTES(LayernormDesc), d.length ? tasks : 0,
                   bufs, n_bufs);
}

void cpu_layernorm(Lowering *l, const Node *n)
{
    call(l, n, emit_layernorm);
}

/* --- gradient: rstd * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma --- */
/* Without mean(g) where no mean was subtracted. */

static void load_grad(Jit *j, Row *r, Lanes v, JitValue *g, JitValue *xhat)
{
    *g = load_lanes(j, r->dy, r->offset, v, 0);
    if (r->d->gamma)
        *g = mul(j, *g, load_lanes(j, r->gamma, NULL, v, 0));
    *xhat = mul(j, sub(j, load_lanes(j, r->x, r->offset, v, 0), r->mean), r->rstd);
}

static void grad_sums_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue g, xhat;
    load_grad(j, r, v, &g, &xhat);
    if (r->held) {
        r->a[v.way] = g;
        r->b[v.way] = xhat;
    }
    if (!r->d->rms)
        accumulate(j, &r->acc, v, g);
    accumulate(j, &r->acc2, v, valid_lanes(j, v, mul(j, g, xhat), 0));
}

static void grad_write_pass(Jit *j, Lanes v, void *user)
{
    Row *r = user;
    JitValue g = r->a[v.way], xhat = r->b[v.way];
    if (!r->held)
        load_grad(j, r, v, &g, &xhat);
    JitValue d = r->d->rms ? g : sub(j, g, r->mean_g);
    d = sub(j, d, mul(j, xhat, r->mean_gx));
    store_lanes(j, r->out, r->offset, v, mul(j, d, r->rstd));
}

static JitValue load_splat(Jit *j, int i, JitValue at)
{
    return splat(j, jit_load(j, buf_f32(j, i), at));
}

/* dy, x, mean, rstd, gamma?, dx */
static void emit_layernorm_grad(Jit *j, const void *desc)
{
    const LayernormDesc *d = desc;
    Row r = {.d = d, .dy = buf_f32(j, 0), .x = buf_f32(j, 1), .held = fits(j, d->length, 2)};
    JitValue first, last;
    r.gamma = d->gamma ? buf_f32(j, 4) : NULL;
    r.out = buf_f32(j, d->gamma ? 5 : 4);
    task_items(j, items_per_task(d->length), d->rows, &first, &last);
    JitLoop rows = jit_for(j, first, last, 1, "row");
    r.offset = row_offset(j, jit_index(&rows), d);
    r.mean = load_splat(j, 2, jit_index(&rows));
    r.rstd = load_splat(j, 3, jit_index(&rows));
    r.acc = line_accumulator(j, jit_vf(j, 0));
    r.acc2 = line_accumulator(j, jit_vf(j, 0));
    each(j, &r, grad_sums_pass);
    r.mean_g = d->rms ? NULL : average(j, &r, &r.acc);
    r.mean_gx = average(j, &r, &r.acc2);
    each(j, &r, grad_write_pass);
    jit_end_for(j, &rows);
}

void cpu_layernorm_grad(Lowering *l, const Node *n)
{
    call(l, n, emit_layernorm_grad);
}
