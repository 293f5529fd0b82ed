/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Max pooling and its gradient.  Vectors lie across channels.  A gradient's task owns an image, or
 * a block of its channels: it adds window by window, and clears a row just before the first window
 * that reaches it.  Small windows that lie inside the image are unrolled.  Where the gradient is
 * bf16, a task goes over its pixels instead, and adds what the windows that reach one send it, in
 * the same order. */
#include "codegen/forms/pooling.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

#include <math.h>

KERNEL_DESC_BEGIN
typedef struct PoolTasks {
    PoolDesc pool;
    int64_t block; /* channels of a gradient's task */
} PoolTasks;
KERNEL_DESC(PoolTasks)

/* With so many images a task takes all channels of one. */
enum { CHANNEL_BLOCK = 64, MANY_IMAGES = 16, UNROLLED_PIXELS = 16 };

typedef struct Window {
    const PoolDesc *d;
    int64_t block;     /* channels of a gradient's task */
    JitValue x, y, dx; /* y: dy in the gradient */
    JitValue image;
    JitValue h0, h1, w0, w1; /* of the window */
    JitValue at_y;           /* offset of the window's output */
    bool inside;             /* known to be whole: unrolled */
    JitValue from, to;       /* channels of the task */
    JitVar best, index;      /* the index as f32 */
    JitValue chosen;         /* what maxpool_index made: buffer of bytes, NULL = x is read */
    JitValue dy;             /* of the window */
    JitValue number, pixel;  /* of a pixel in its window, as f32; offset of its channel 0 */
} Window;

static Window window_of(const void *desc)
{
    const PoolTasks *t = desc;
    return (Window){.d = &t->pool, .block = t->block};
}

/* A lone channel is loaded into all lanes: no partial vector. */
static JitValue load(Jit *j, const PoolDesc *d, JitValue p, JitValue offset, Lanes v)
{
    if (d->channels > 1)
        return load_lanes(j, p, offset, v, 0);
    return splat(j, jit_load(j, p, offset));
}

static void store(Jit *j, const PoolDesc *d, JitValue p, JitValue offset, Lanes v, JitValue x)
{
    if (d->channels > 1)
        store_lanes(j, p, offset, v, x);
    else
        jit_store(j, p, offset, jit_lane(j, x, 0));
}

/* Bytes as f32, one by one. */
static JitValue load_bytes(Jit *j, JitValue p, JitValue offset, Lanes v)
{
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_array_var(j, t->i32, jit_lanes(j), "bytes");
    JitValue to = jit_array_ptr(j, lanes, t->p_i32);
    if (v.n)
        jit_vstore_aligned(j, to, jit_i64(j, 0), jit_zero(j, t->vi));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue at = jit_add(j, jit_add(j, offset, v.at), jit_index(&l));
    jit_store(j, to, jit_index(&l), jit_cast(j, jit_load(j, p, at), t->i32));
    jit_end_for(j, &l);
    return jit_vi_to_vf(j, jit_vload_aligned(j, to, jit_i64(j, 0)));
}

static void store_bytes(Jit *j, JitValue p, JitValue offset, Lanes v, JitValue x)
{
    const JitTypes *t = jit_types(j);
    JitVar lanes = jit_array_var(j, t->i32, jit_lanes(j), "bytes");
    JitValue from = jit_array_ptr(j, lanes, t->p_i32);
    jit_vstore_aligned(j, from, jit_i64(j, 0), jit_vf_to_vi(j, x));
    JitLoop l = jit_for(j, jit_i64(j, 0), v.n ? v.n : jit_i64(j, jit_lanes(j)), 1, "lane");
    JitValue at = jit_add(j, jit_add(j, offset, v.at), jit_index(&l));
    jit_store(j, p, at, jit_cast(j, jit_load(j, from, jit_index(&l)), t->u8));
    jit_end_for(j, &l);
}

/* --- windows --- */

/* The rows (axis 0) or columns of the image under output i. */
static void window_range(Jit *j, const PoolDesc *d, int axis, JitValue i, JitValue *from,
                         JitValue *to)
{
    int64_t size = axis ? d->w : d->h, pad = d->padding[axis];
    JitValue first = jit_tmp(j, jit_muladd_i64(j, i, d->stride[axis], jit_i64(j, -pad)));
    JitValue last = add(j, first, jit_i64(j, d->kernel[axis]));
    *from = jit_tmp(j, jit_max_i64(j, first, jit_i64(j, 0)));
    *to = jit_tmp(j, jit_min_i64(j, last, jit_i64(j, size)));
}

static void set_window(Jit *j, Window *s, JitValue oh, JitValue ow)
{
    const PoolDesc *d = s->d;
    window_range(j, d, 0, oh, &s->h0, &s->h1);
    window_range(j, d, 1, ow, &s->w0, &s->w1);
    JitValue row = jit_muladd_i64(j, s->image, d->oh, oh);
    JitValue place = jit_muladd_i64(j, row, d->ow, ow);
    s->at_y = mul(j, place, jit_i64(j, d->channels));
}

typedef void PixelStep(Jit *j, Window *s, Lanes v);

static void whole_window(Jit *j, Window *s, Lanes v, PixelStep *step)
{
    const PoolDesc *d = s->d;
    JitValue row = jit_muladd_i64(j, s->image, d->h, s->h0);
    JitValue place = jit_tmp(j, jit_muladd_i64(j, row, d->w, s->w0));
    JitValue first = mul(j, place, jit_i64(j, d->channels));
    for (int64_t i = 0; i < d->kernel[0] * d->kernel[1]; i++) {
        int64_t at = i / d->kernel[1] * d->w + i % d->kernel[1];
        s->number = jit_f32(j, (double)i);
        s->pixel = add(j, first, jit_i64(j, at * d->channels));
        step(j, s, v);
    }
}

static void each_pixel(Jit *j, Window *s, Lanes v, PixelStep *step)
{
    const PoolDesc *d = s->d;
    if (s->inside) {
        whole_window(j, s, v, step);
        return;
    }
    JitLoop h = jit_for(j, s->h0, s->h1, 1, "h");
    JitLoop w = jit_for(j, s->w0, s->w1, 1, "w");
    JitValue position = jit_tmp(j, jit_muladd_i64(j, jit_index(&h), d->w, jit_index(&w)));
    JitValue place = jit_muladd_i64(j, s->image, d->h * d->w, position);
    JitValue row = jit_sub(j, jit_index(&h), s->h0), column = jit_sub(j, jit_index(&w), s->w0);
    JitValue number = jit_tmp(j, jit_muladd_i64(j, row, d->kernel[1], column));
    s->number = jit_tmp(j, jit_cast(j, number, jit_types(j)->f32));
    s->pixel = mul(j, place, jit_i64(j, d->channels));
    step(j, s, v);
    jit_end_for(j, &w);
    jit_end_for(j, &h);
}

/* The window's vectors of channels: code for windows that lie inside, and code for any. */
static void window_vectors(Jit *j, Window *s, EachVector *body)
{
    const PoolDesc *d = s->d;
    int64_t pixels = d->kernel[0] * d->kernel[1];
    int64_t end = s->block == d->channels ? d->channels : -1;
    if (pixels > UNROLLED_PIXELS) {
        each_vector_between(j, s->from, s->to, end, 1, body, s);
        return;
    }
    JitValue rows = jit_sub(j, s->h1, s->h0), columns = jit_sub(j, s->w1, s->w0);
    JitValue here = mul(j, rows, columns);
    JitIf whole = jit_if(j, jit_compare(j, JIT_EQ, here, jit_i64(j, pixels)));
    s->inside = true;
    each_vector_between(j, s->from, s->to, end, 1, body, s);
    s->inside = false;
    jit_else(j, &whole);
    each_vector_between(j, s->from, s->to, end, 1, body, s);
    jit_end_if(j, &whole);
}

/* --- forward --- */

static void max_pixel(Jit *j, Window *s, Lanes v)
{
    JitValue x = load(j, s->d, s->x, s->pixel, v);
    jit_set(j, s->best, jit_vmax(j, x, jit_get(s->best)));
}

static JitVar start(Jit *j, double value)
{
    JitVar var = jit_var(j, jit_types(j)->vf, "acc");
    jit_set(j, var, jit_vf(j, value));
    return var;
}

static void pool_vector(Jit *j, Lanes v, void *user)
{
    Window *s = user;
    s->best = start(j, -(double)INFINITY);
    each_pixel(j, s, v, max_pixel);
    store(j, s->d, s->y, s->at_y, v, jit_get(s->best));
}

/* Task: one row of outputs. */
static void each_output(Jit *j, Window s, EachVector *body)
{
    const PoolDesc *d = s.d;
    s.from = jit_i64(j, 0);
    s.to = jit_i64(j, d->channels);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    s.image = divide(j, jit_index(&task), jit_i64(j, d->oh));
    JitValue oh = jit_tmp(j, jit_mod(j, jit_index(&task), jit_i64(j, d->oh)));
    JitLoop ow = jit_for(j, jit_i64(j, 0), jit_i64(j, d->ow), 1, "ow");
    set_window(j, &s, oh, jit_index(&ow));
    window_vectors(j, &s, body);
    jit_end_for(j, &ow);
    jit_end_for(j, &task);
}

static void emit_pool(Jit *j, const void *desc)
{
    Window s = window_of(desc);
    s.x = buf_f32(j, 0);
    s.y = buf_f32(j, 1);
    each_output(j, s, pool_vector);
}

/* --- gradients --- */

/* The first largest so far; the last NaN, if there is one, as PyTorch's; the window's first pixel
 * when nothing is larger than -inf. */
static void argmax_pixel(Jit *j, Window *s, Lanes v)
{
    JitValue x = load(j, s->d, s->x, s->pixel, v), best = jit_tmp(j, jit_get(s->best));
    JitValue here = splat(j, s->number), index = jit_tmp(j, jit_get(s->index));
    index = jit_tmp(j, jit_vchoose(j, JIT_GT, x, best, here, index));
    jit_set(j, s->index, jit_vchoose(j, JIT_NE, x, x, here, index));
    jit_set(j, s->best, jit_vmax(j, x, best));
}

static void route_pixel(Jit *j, Window *s, Lanes v)
{
    JitValue here = splat(j, s->number), zero = vf(j, 0);
    JitValue index = jit_tmp(j, jit_get(s->index)), dx = load(j, s->d, s->dx, s->pixel, v);
    JitValue term = jit_tmp(j, jit_vchoose(j, JIT_EQ, here, index, s->dy, zero));
    store(j, s->d, s->dx, s->pixel, v, add(j, dx, term));
}

static void find_index(Jit *j, Window *s, Lanes v)
{
    s->best = start(j, -(double)INFINITY);
    s->index = start(j, 0);
    each_pixel(j, s, v, argmax_pixel);
}

static void index_vector(Jit *j, Lanes v, void *user)
{
    Window *s = user;
    find_index(j, s, v);
    store_bytes(j, s->chosen, s->at_y, v, jit_get(s->index));
}

static void emit_index(Jit *j, const void *desc)
{
    Window s = window_of(desc);
    s.x = buf_f32(j, 0);
    s.chosen = jit_buf(j, 1, jit_types(j)->p_u8);
    each_output(j, s, index_vector);
}

static void scatter_window(Jit *j, Lanes v, void *user)
{
    Window *s = user;
    s->dy = load(j, s->d, s->y, s->at_y, v);
    if (s->chosen) {
        s->index = start(j, 0);
        jit_set(j, s->index, load_bytes(j, s->chosen, s->at_y, v));
    } else {
        find_index(j, s, v);
    }
    each_pixel(j, s, v, route_pixel);
}

static void clear_pixel(Jit *j, Lanes v, void *user)
{
    Window *s = user;
    store(j, s->d, s->dx, s->pixel, v, vf(j, 0));
}

/* Rows of the task's image and channels that no window has reached yet. */
static void clear_rows(Jit *j, Window *s, JitValue from, JitValue to)
{
    const PoolDesc *d = s->d;
    JitValue first = mul(j, from, jit_i64(j, d->w));
    JitValue last = mul(j, to, jit_i64(j, d->w));
    JitLoop p = jit_for(j, first, last, 1, "p");
    JitValue place = jit_muladd_i64(j, s->image, d->h * d->w, jit_index(&p));
    s->pixel = mul(j, place, jit_i64(j, d->channels));
    int64_t end = s->block == d->channels ? d->channels : -1;
    each_vector_between(j, s->from, s->to, end, 1, clear_pixel, s);
    jit_end_for(j, &p);
}

static void grad_image(Jit *j, Window *s)
{
    const PoolDesc *d = s->d;
    JitValue from, to;
    JitVar cleared = jit_var(j, jit_types(j)->i64, "cleared");
    jit_set(j, cleared, jit_i64(j, 0));
    JitLoop oh = jit_for(j, jit_i64(j, 0), jit_i64(j, d->oh), 1, "oh");
    window_range(j, d, 0, jit_index(&oh), &from, &to);
    clear_rows(j, s, jit_get(cleared), to);
    jit_set(j, cleared, to);
    JitLoop ow = jit_for(j, jit_i64(j, 0), jit_i64(j, d->ow), 1, "ow");
    set_window(j, s, jit_index(&oh), jit_index(&ow));
    window_vectors(j, s, scatter_window);
    jit_end_for(j, &ow);
    jit_end_for(j, &oh);
    clear_rows(j, s, jit_get(cleared), jit_i64(j, d->h));
}

/* --- gradients of bf16, whose sums are rounded once: gathered, not scattered --- */

/* Windows along an axis that reach place i: [from, to). */
static void reaching(Jit *j, const PoolDesc *d, int axis, JitValue i, JitValue *from, JitValue *to)
{
    JitValue one = jit_i64(j, 1), stride = jit_i64(j, d->stride[axis]);
    JitValue padded = jit_tmp(j, jit_add(j, i, jit_i64(j, d->padding[axis])));
    JitValue before = jit_sub(j, jit_add(j, padded, stride), jit_i64(j, d->kernel[axis]));
    JitValue first = jit_div(j, jit_max_i64(j, jit_tmp(j, before), jit_i64(j, 0)), stride);
    JitValue end = jit_add(j, jit_div(j, padded, stride), one);
    *from = jit_tmp(j, first);
    *to = jit_min_i64(j, jit_tmp(j, end), jit_i64(j, axis ? d->ow : d->oh));
}

/* Adds what the window at hand sends the pixel whose number in it is s->number. */
static void add_sent(Jit *j, Window *s, Lanes v, JitVar sum)
{
    JitValue number = splat(j, s->number), dy = jit_tmp(j, load(j, s->d, s->y, s->at_y, v));
    if (s->chosen) {
        s->index = start(j, 0);
        jit_set(j, s->index, load_bytes(j, s->chosen, s->at_y, v));
    } else {
        find_index(j, s, v);
    }
    JitValue sent = jit_vchoose(j, JIT_EQ, jit_get(s->index), number, dy, vf(j, 0));
    jit_set(j, sum, jit_add(j, jit_get(sum), jit_tmp(j, sent)));
}

typedef struct Gather {
    Window s;
    JitValue h, w; /* the pixel */
} Gather;

static void gather_vector(Jit *j, Lanes v, void *user)
{
    Gather *g = user;
    Window *s = &g->s;
    const PoolDesc *d = s->d;
    JitValue oh0, oh1, ow0, ow1;
    JitVar sum = start(j, 0);
    reaching(j, d, 0, g->h, &oh0, &oh1);
    reaching(j, d, 1, g->w, &ow0, &ow1);
    JitLoop oh = jit_for(j, oh0, oh1, 1, "oh");
    JitLoop ow = jit_for(j, ow0, ow1, 1, "ow");
    set_window(j, s, jit_index(&oh), jit_index(&ow));
    JitValue row = jit_sub(j, g->h, s->h0), column = jit_sub(j, g->w, s->w0);
    JitValue number = jit_tmp(j, jit_muladd_i64(j, row, d->kernel[1], column));
    s->number = jit_tmp(j, jit_cast(j, number, jit_types(j)->f32));
    add_sent(j, s, v, sum);
    jit_end_for(j, &ow);
    jit_end_for(j, &oh);
    JitValue place = jit_muladd_i64(j, jit_muladd_i64(j, s->image, d->h, g->h), d->w, g->w);
    store(j, d, s->dx, mul(j, place, jit_i64(j, d->channels)), v, jit_get(sum));
}

static void gather_image(Jit *j, Window *s)
{
    const PoolDesc *d = s->d;
    int64_t end = s->block == d->channels ? d->channels : -1;
    JitLoop h = jit_for(j, jit_i64(j, 0), jit_i64(j, d->h), 1, "h");
    JitLoop w = jit_for(j, jit_i64(j, 0), jit_i64(j, d->w), 1, "w");
    Gather g = {*s, jit_index(&h), jit_index(&w)};
    each_vector_between(j, s->from, s->to, end, 1, gather_vector, &g);
    jit_end_for(j, &w);
    jit_end_for(j, &h);
}

/* A result of bf16 cannot hold a sum in the making. */
static bool rounds(const Jit *j, const Window *s)
{
    return jit_type_of(s->dx) == jit_types(j)->p_bf16;
}

static int64_t channel_blocks(const PoolDesc *d, int64_t block)
{
    return divide_up(d->channels, block);
}

static void each_image(Jit *j, Window s)
{
    const PoolDesc *d = s.d;
    JitValue blocks = jit_i64(j, channel_blocks(d, s.block));
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    s.image = divide(j, jit_index(&task), blocks);
    JitValue block = jit_mod(j, jit_index(&task), blocks);
    s.from = mul(j, block, jit_i64(j, s.block));
    JitValue to = add(j, s.from, jit_i64(j, s.block));
    s.to = jit_tmp(j, jit_min_i64(j, to, jit_i64(j, d->channels)));
    (rounds(j, &s) ? gather_image : grad_image)(j, &s);
    jit_end_for(j, &task);
}

/* dy, x, dx */
static void emit_pool_grad(Jit *j, const void *desc)
{
    Window s = window_of(desc);
    s.y = buf_f32(j, 0);
    s.x = buf_f32(j, 1);
    s.dx = buf_f32(j, 2);
    each_image(j, s);
}

/* dy, index, dx */
static void emit_index_grad(Jit *j, const void *desc)
{
    Window s = window_of(desc);
    s.y = buf_f32(j, 0);
    s.chosen = jit_buf(j, 1, jit_types(j)->p_u8);
    s.dx = buf_f32(j, 2);
    each_image(j, s);
}

/* --- lowering --- */

static void lower_forward(Lowering *l, const Node *n, const char *name, KernelEmit *emit)
{
    PoolTasks t = {.pool = pool_describe(l, n)};
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    t.block = t.pool.channels;
    lower_pod_call(l, name, emit, &t, DESC_BYTES(PoolTasks), t.pool.images * t.pool.oh, bufs, 2);
}

static void lower_gradient(Lowering *l, const Node *n, const char *name, KernelEmit *emit)
{
    PoolTasks t = {.pool = pool_describe(l, n)};
    const PoolDesc *d = &t.pool;
    const CallBuf bufs[] = {{n->in[0], 0}, {n->in[1], 0}, {n->out[0], 0}};
    bool few = d->images < MANY_IMAGES && d->channels > CHANNEL_BLOCK;
    t.block = few ? CHANNEL_BLOCK : d->channels;
    lower_pod_call(l, name, emit, &t, DESC_BYTES(PoolTasks), d->images * channel_blocks(d, t.block),
                   bufs, 3);
}

void cpu_maxpool(Lowering *l, const Node *n)
{
    lower_forward(l, n, "maxpool", emit_pool);
}

void cpu_maxpool_index(Lowering *l, const Node *n)
{
    lower_forward(l, n, "maxpool_index", emit_index);
}

void cpu_maxpool_grad(Lowering *l, const Node *n)
{
    lower_gradient(l, n, "maxpool_grad", emit_pool_grad);
}

void cpu_maxpool_index_grad(Lowering *l, const Node *n)
{
    lower_gradient(l, n, "maxpool_index_grad", emit_index_grad);
}
