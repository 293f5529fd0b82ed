/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution and its gradients element by element, for any layout, stride, dilation and number of
 * groups: what is left when no faster kernel fits (NCHW graphs that no pass has rewritten, windows
 * larger than scratch). */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/point/epilogue_jit.h"

typedef struct PlainEmit {
    Jit *j;
    const ConvSimple *s;
    JitVar
        sum; /* in all lanes, for jit_vfma: every step is fused, whatever GCC makes of the loops */
} PlainEmit;

/* Index of x[n, c, y, x], of weight [r, s, c, k] and of y, in the node's layout. */
static JitValue image_at(Jit *j, bool nhwc, int64_t channels, int64_t h, int64_t w, JitValue n,
                         JitValue c, JitValue y, JitValue x)
{
    if (nhwc)
        return jit_muladd_i64(j, jit_muladd_i64(j, jit_muladd_i64(j, n, h, y), w, x), channels, c);
    return jit_muladd_i64(j, jit_muladd_i64(j, jit_muladd_i64(j, n, channels, c), h, y), w, x);
}

static JitValue x_at(const PlainEmit *e, JitValue n, JitValue c, JitValue y, JitValue x)
{
    const ConvGeometry *q = &e->s->q;
    return image_at(e->j, q->nhwc, q->c, q->h, q->w, n, c, y, x);
}

static JitValue y_at(const PlainEmit *e, JitValue n, JitValue k, JitValue y, JitValue x)
{
    const ConvGeometry *q = &e->s->q;
    return image_at(e->j, q->nhwc, q->k, q->oh, q->ow, n, k, y, x);
}

/* c counts within the group. */
static JitValue w_at(const PlainEmit *e, JitValue r, JitValue s, JitValue c, JitValue k)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    int64_t cg = conv_group_in(q);
    if (q->nhwc)
        return jit_muladd_i64(j, jit_muladd_i64(j, jit_muladd_i64(j, r, q->s, s), cg, c), q->k, k);
    return jit_muladd_i64(j, jit_muladd_i64(j, jit_muladd_i64(j, k, cg, c), q->r, r), q->s, s);
}

static JitValue load(const PlainEmit *e, int buf, JitValue at)
{
    return jit_load(e->j, jit_buf(e->j, buf, jit_types(e->j)->p_f32), at);
}

static void add_product(const PlainEmit *e, JitValue a_at, JitValue b_at)
{
    Jit *j = e->j;
    JitValue a = jit_tmp(j, jit_splat(j, load(e, e->s->a_buf, a_at)));
    JitValue b = jit_tmp(j, jit_splat(j, load(e, e->s->b_buf, b_at)));
    jit_set(j, e->sum, jit_vfma(j, a, b, jit_get(e->sum)));
}

static JitValue within(Jit *j, JitValue v, int64_t size)
{
    const JitTypes *t = jit_types(j);
    JitValue low = jit_compare(j, JIT_GE, v, jit_i64(j, 0));
    JitValue high = jit_compare(j, JIT_LT, v, jit_i64(j, size));
    return jit_and(j, jit_cast(j, low, t->i32), jit_cast(j, high, t->i32));
}

static JitIf if_inside(Jit *j, JitValue y, int64_t h, JitValue x, int64_t w)
{
    JitValue both = jit_and(j, within(j, y, h), within(j, x, w));
    return jit_if(j, jit_compare(j, JIT_NE, both, jit_i32(j, 0)));
}

static JitLoop count_to(Jit *j, int64_t n)
{
    return jit_for(j, jit_i64(j, 0), jit_i64(j, n), 1, "i");
}

/* Place of x under place o of y and tap t. */
static JitValue x_place(const PlainEmit *e, int axis, JitValue o, JitValue t)
{
    const ConvGeometry *q = &e->s->q;
    JitValue tap = jit_muladd_i64(e->j, t, q->dilation[axis], jit_i64(e->j, -q->pad[axis]));
    return jit_tmp(e->j, jit_muladd_i64(e->j, o, q->stride[axis], tap));
}

static JitValue group_of(const PlainEmit *e, JitValue channel, int64_t per_group)
{
    return jit_tmp(e->j, jit_div(e->j, channel, jit_i64(e->j, per_group)));
}

/* y[n, k, oy, ox] */
static void sum_forward(const PlainEmit *e, JitValue n, JitValue k, JitValue oy, JitValue ox)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    JitValue group = group_of(e, k, conv_group_out(q));
    JitLoop r = count_to(j, q->r), s = count_to(j, q->s);
    JitValue y = x_place(e, 0, oy, jit_index(&r)), x = x_place(e, 1, ox, jit_index(&s));
    JitIf in = if_inside(j, y, q->h, x, q->w);
    JitLoop c = count_to(j, conv_group_in(q));
    JitValue channel = jit_muladd_i64(j, group, conv_group_in(q), jit_index(&c));
    add_product(e, x_at(e, n, channel, y, x),
                w_at(e, jit_index(&r), jit_index(&s), jit_index(&c), k));
    jit_end_for(j, &c);
    jit_end_if(j, &in);
    jit_end_for(j, &s);
    jit_end_for(j, &r);
}

/* Place of dy that reaches place `at` of x through tap t; out of range when there is none. */
static JitValue y_place(const PlainEmit *e, int axis, JitValue at, JitValue t)
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

/* dx[n, c, y, x] */
static void sum_dgrad(const PlainEmit *e, JitValue n, JitValue c, JitValue y, JitValue x)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    JitValue group = group_of(e, c, conv_group_in(q));
    JitValue inner = jit_tmp(j, jit_mod(j, c, jit_i64(j, conv_group_in(q))));
    JitLoop r = count_to(j, q->r), s = count_to(j, q->s);
    JitValue oy = y_place(e, 0, y, jit_index(&r)), ox = y_place(e, 1, x, jit_index(&s));
    JitIf in = if_inside(j, oy, q->oh, ox, q->ow);
    JitLoop l = count_to(j, conv_group_out(q));
    JitValue k = jit_tmp(j, jit_muladd_i64(j, group, conv_group_out(q), jit_index(&l)));
    add_product(e, y_at(e, n, k, oy, ox), w_at(e, jit_index(&r), jit_index(&s), inner, k));
    jit_end_for(j, &l);
    jit_end_if(j, &in);
    jit_end_for(j, &s);
    jit_end_for(j, &r);
}

/* dw[r, s, c, k] */
static void sum_wgrad(const PlainEmit *e, JitValue r, JitValue s, JitValue c, JitValue k)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->s->q;
    JitValue group = group_of(e, k, conv_group_out(q));
    JitValue channel = jit_tmp(j, jit_muladd_i64(j, group, conv_group_in(q), c));
    JitLoop n = count_to(j, q->images), oy = count_to(j, q->oh), ox = count_to(j, q->ow);
    JitValue y = x_place(e, 0, jit_index(&oy), r), x = x_place(e, 1, jit_index(&ox), s);
    JitIf in = if_inside(j, y, q->h, x, q->w);
    add_product(e, x_at(e, jit_index(&n), channel, y, x),
                y_at(e, jit_index(&n), k, jit_index(&oy), jit_index(&ox)));
    jit_end_if(j, &in);
    jit_end_for(j, &ox);
    jit_end_for(j, &oy);
    jit_end_for(j, &n);
}

/* The result's dims in storage order. */
static void result_dims(const ConvSimple *s, int64_t *dim)
{
    for (int i = 0; i < 4; i++)
        dim[i] = s->epilogue.out.dim[i];
}

int64_t conv_plain_tasks(const ConvSimple *s)
{
    return s->epilogue.out.dim[0] * s->epilogue.out.dim[1] *
           (s->epilogue.out.dim[2] && s->epilogue.out.dim[3]);
}

static void emit_element(const PlainEmit *e, const JitValue *i)
{
    const ConvGeometry *q = &e->s->q;
    bool nhwc = q->nhwc;
    if (e->s->part == CONV_FORWARD)
        sum_forward(e, i[0], i[nhwc ? 3 : 1], i[nhwc ? 1 : 2], i[nhwc ? 2 : 3]);
    else if (e->s->part == CONV_DGRAD)
        sum_dgrad(e, i[0], i[nhwc ? 3 : 1], i[nhwc ? 1 : 2], i[nhwc ? 2 : 3]);
    else if (nhwc)
        sum_wgrad(e, i[0], i[1], i[2], i[3]);
    else
        sum_wgrad(e, i[2], i[3], i[1], i[0]);
    if (e->s->bias_buf < 0)
        return;
    JitValue bias = load(e, e->s->bias_buf, i[nhwc ? 3 : 1]);
    jit_set(e->j, e->sum, jit_add(e->j, jit_get(e->sum), jit_splat(e->j, bias)));
}

/* One task: one place along the first two dims of the result. */
void conv_plain_emit(Jit *j, const void *desc)
{
    PlainEmit e = {.j = j, .s = desc};
    int64_t dim[4];
    result_dims(e.s, dim);
    e.sum = jit_var(j, jit_types(j)->vf, "sum");
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitLoop row = count_to(j, dim[2]), column = count_to(j, dim[3]);
    JitValue i[4] = {jit_tmp(j, jit_div(j, jit_index(&task), jit_i64(j, dim[1]))),
                     jit_tmp(j, jit_mod(j, jit_index(&task), jit_i64(j, dim[1]))),
                     jit_tmp(j, jit_index(&row)), jit_tmp(j, jit_index(&column))};
    jit_set(j, e.sum, jit_vf(j, 0));
    emit_element(&e, i);
    JitValue at = jit_muladd_i64(j, jit_index(&task), dim[2], jit_index(&row));
    epilogue_store(j, &e.s->epilogue, e.s->out_buf, jit_get(e.sum), at, jit_index(&column),
                   jit_i64(j, 1));
    jit_end_for(j, &column);
    jit_end_for(j, &row);
    jit_end_for(j, &task);
}
