/* Depthwise convolution (one channel per group, NHWC): vectors run along the channels, one result
 * vector at a time. */
#include "codegen/conv.h"

typedef struct DepthEmit {
    Jit *j;
    const ConvSimple *s;
    JitValue channel, n_valid; /* n_valid NULL: a whole vector */
    JitVar sum;
} DepthEmit;

static JitLoop count_to(Jit *j, int64_t n)
{
    return jit_for(j, jit_i64(j, 0), jit_i64(j, n), 1, "i");
}

/* Channels from e->channel on of row `row` of a buffer of rows of c channels. */
static JitValue load_row(const DepthEmit *e, int buf, JitValue row)
{
    Jit *j = e->j;
    JitValue p = jit_buf(j, buf, jit_types(j)->p_f32);
    JitValue at = jit_muladd_i64(j, row, e->s->q.c, e->channel);
    return e->n_valid ? jit_vload_partial(j, p, at, e->n_valid, 0) : jit_vload(j, p, at);
}

static void add_product(const DepthEmit *e, JitValue a_row, JitValue b_row)
{
    Jit *j = e->j;
    JitValue product = jit_mul(j, load_row(e, e->s->a_buf, a_row), load_row(e, e->s->b_buf, b_row));
    jit_set(j, e->sum, jit_add(j, jit_get(e->sum), product));
}

static JitIf if_within(Jit *j, JitValue v, int64_t size)
{
    JitType t = jit_types(j)->i32;
    JitValue low = jit_cast(j, jit_compare(j, JIT_GE, v, jit_i64(j, 0)), t);
    JitValue high = jit_cast(j, jit_compare(j, JIT_LT, v, jit_i64(j, size)), t);
    return jit_if(j, jit_compare(j, JIT_NE, jit_and(j, low, high), jit_i32(j, 0)));
}

static JitValue x_place(const DepthEmit *e, int axis, JitValue o, JitValue t)
{
    const ConvGeometry *q = &e->s->q;
    JitValue tap = jit_muladd_i64(e->j, t, q->dilation[axis], jit_i64(e->j, -q->pad[axis]));
    return jit_tmp(e->j, jit_muladd_i64(e->j, o, q->stride[axis], tap));
}

/* Place of dy that reaches place `at` of x through tap t; -1 when there is none. */
static JitValue y_place(const DepthEmit *e, int axis, JitValue at, JitValue t)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    JitValue far = jit_add(j, at, jit_i64(j, q->pad[axis]));
    far = jit_tmp(j, jit_sub(j, far, jit_mul(j, t, jit_i64(j, q->dilation[axis]))));
    JitVar o = jit_var(j, jit_types(j)->i64, "o");
    jit_set(j, o, jit_i64(j, -1));
    JitValue stride = jit_i64(j, q->stride[axis]);
    JitIf even = jit_if(j, jit_compare(j, JIT_EQ, jit_mod(j, far, stride), jit_i64(j, 0)));
    jit_set(j, o, jit_div(j, far, stride));
    jit_end_if(j, &even);
    return jit_get(o);
}

/* Sum over the taps for one pixel of the result of the forward pass or of the data gradient. */
static void sum_taps(const DepthEmit *e, JitValue image, JitValue row, JitValue column)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    bool forward = e->s->part == CONV_FORWARD;
    int64_t h = forward ? q->h : q->oh, w = forward ? q->w : q->ow;
    JitLoop r = count_to(j, q->r);
    JitValue y = (forward ? x_place : y_place)(e, 0, row, jit_index(&r));
    JitIf in_y = if_within(j, y, h);
    JitLoop s = count_to(j, q->s);
    JitValue x = (forward ? x_place : y_place)(e, 1, column, jit_index(&s));
    JitIf in_x = if_within(j, x, w);
    add_product(e, jit_muladd_i64(j, jit_muladd_i64(j, image, h, y), w, x),
                jit_muladd_i64(j, jit_index(&r), q->s, jit_index(&s)));
    jit_end_if(j, &in_x);
    jit_end_for(j, &s);
    jit_end_if(j, &in_y);
    jit_end_for(j, &r);
}

static void sum_pixels(const DepthEmit *e, JitValue r, JitValue s)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    JitLoop n = count_to(j, q->images), oy = count_to(j, q->oh);
    JitValue y = x_place(e, 0, jit_index(&oy), r);
    JitIf in_y = if_within(j, y, q->h);
    JitLoop ox = count_to(j, q->ow);
    JitValue x = x_place(e, 1, jit_index(&ox), s);
    JitIf in_x = if_within(j, x, q->w);
    JitValue from = jit_muladd_i64(j, jit_muladd_i64(j, jit_index(&n), q->h, y), q->w, x);
    JitValue to = jit_muladd_i64(j, jit_index(&n), q->oh, jit_index(&oy));
    add_product(e, from, jit_muladd_i64(j, to, q->ow, jit_index(&ox)));
    jit_end_if(j, &in_x);
    jit_end_for(j, &ox);
    jit_end_if(j, &in_y);
    jit_end_for(j, &oy);
    jit_end_for(j, &n);
}

/* Rows of the result: pixels, or kernel places. */
static int64_t rows_per_task(const ConvSimple *s)
{
    return s->part == CONV_WGRAD ? 1 : s->epilogue.out.dim[2];
}

int64_t conv_depthwise_tasks(const ConvSimple *s)
{
    const Type *out = &s->epilogue.out;
    return s->part == CONV_WGRAD ? s->q.r * s->q.s : out->dim[0] * out->dim[1];
}

static void emit_vector(DepthEmit *e, JitValue row)
{
    Jit *j = e->j;
    const Type *out = &e->s->epilogue.out;
    jit_set(j, e->sum, jit_vf(j, 0));
    if (e->s->part == CONV_WGRAD) {
        JitValue s = jit_i64(j, e->s->q.s);
        sum_pixels(e, jit_tmp(j, jit_div(j, row, s)), jit_tmp(j, jit_mod(j, row, s)));
    } else {
        JitValue line = jit_tmp(j, jit_div(j, row, jit_i64(j, out->dim[2])));
        sum_taps(e, jit_tmp(j, jit_div(j, line, jit_i64(j, out->dim[1]))),
                 jit_tmp(j, jit_mod(j, line, jit_i64(j, out->dim[1]))),
                 jit_tmp(j, jit_mod(j, row, jit_i64(j, out->dim[2]))));
    }
    epilogue_store(j, &e->s->epilogue, e->s->out_buf, jit_get(e->sum), row, e->channel, e->n_valid);
}

void conv_depthwise_emit(Jit *j, const void *desc)
{
    DepthEmit e = {.j = j, .s = desc, .sum = jit_var(j, jit_types(j)->vf, "sum")};
    int64_t channels = e.s->q.c, whole = channels / jit_lanes(j) * jit_lanes(j);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitLoop l = count_to(j, rows_per_task(e.s));
    JitValue row =
        jit_tmp(j, jit_muladd_i64(j, jit_index(&task), rows_per_task(e.s), jit_index(&l)));
    if (whole) {
        JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, whole), jit_lanes(j), "c");
        e.channel = jit_index(&c);
        emit_vector(&e, row);
        jit_end_for(j, &c);
    }
    if (whole < channels) {
        e.channel = jit_i64(j, whole);
        e.n_valid = jit_i64(j, channels - whole);
        emit_vector(&e, row);
    }
    jit_end_for(j, &l);
    jit_end_for(j, &task);
}
