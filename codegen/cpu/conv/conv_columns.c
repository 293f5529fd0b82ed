/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution, and its data gradient, of images smaller than their weights, as matrix products of
 * the weights where they lie: "im2col" and "col2im" (Chellapilla, Puri and Simard, "High
 * Performance Convolutional Neural Networks for Document Processing", 2006).
 *
 * A row of the columns [images * oh * ow][r][s][c] has what a pixel of the result reads of x, with
 * zeros outside of the image.  Forward, they are copied from x and multiplied by the weights.  The
 * data gradient multiplies dy by the transposed weights, and adds the columns up.
 *
 * The sums are those of CONV_WINDOW whose places are chains of their own
 * (codegen/forms/convolution.h), in the same order: the bits are the same.  What is saved is the
 * packing of the weights, which takes longer than the products of a few pixels; and of a data
 * gradient, products with the zeros outside of dy. */
#include "codegen/cpu/conv/conv.h"

#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/conv_columns.h"

KERNEL_DESC_BEGIN
typedef struct ConvColumns {
    ConvGeometry q;
    int64_t row_floats;         /* from one row of the columns to the next */
    int image_buf, columns_buf; /* image: x */
    Epilogue epilogue;          /* of the data gradient */
} ConvColumns;
KERNEL_DESC(ConvColumns)

static int64_t places(const ConvGeometry *q)
{
    return q->r * q->s;
}

static int64_t columns(const ConvGeometry *q)
{
    return places(q) * q->c;
}

static int64_t result_pixels(const ConvGeometry *q)
{
    return q->images * q->oh * q->ow;
}

/* --- columns of x --- */

typedef struct Columns {
    const ConvColumns *d;
    JitValue row;         /* the pixel of the task: of the result, or of the data gradient */
    JitValue image, y, x; /* where it is */
    JitValue from, to;    /* pointers of a copy */
    JitVar sum;
} Columns;

static void set_pixel(Jit *j, Columns *e, JitValue pixel, int64_t height, int64_t width)
{
    JitValue row = jit_tmp(j, jit_div(j, pixel, jit_i64(j, width)));
    e->x = jit_tmp(j, jit_mod(j, pixel, jit_i64(j, width)));
    e->y = jit_tmp(j, jit_mod(j, row, jit_i64(j, height)));
    e->image = jit_tmp(j, jit_div(j, row, jit_i64(j, height)));
    e->row = pixel;
}

static void copy_vector(Jit *j, Lanes v, void *user)
{
    const Columns *e = user;
    store_lanes(j, e->to, NULL, v, load_lanes(j, e->from, NULL, v, 0));
}

/* Place (r, s) of the kernel. */
static void copy_place(Jit *j, Columns *e, JitValue r, JitValue s)
{
    const ConvGeometry *q = &e->d->q;
    JitValue y =
        jit_tmp(j, jit_muladd_i64(j, e->y, q->stride[0],
                                  jit_muladd_i64(j, r, q->dilation[0], jit_i64(j, -q->pad[0]))));
    JitValue x =
        jit_tmp(j, jit_muladd_i64(j, e->x, q->stride[1],
                                  jit_muladd_i64(j, s, q->dilation[1], jit_i64(j, -q->pad[1]))));
    JitValue place = jit_mul(j, jit_muladd_i64(j, r, q->s, s), jit_i64(j, q->c));
    JitValue at = jit_muladd_i64(j, e->row, e->d->row_floats, place);
    e->to = jit_tmp(j, jit_offset(j, buf_f32(j, e->d->columns_buf), at));
    JitValue valid = jit_and(j, inside(j, y, q->h), inside(j, x, q->w));
    JitIf within = jit_if(j, jit_compare(j, JIT_NE, valid, jit_i32(j, 0)));
    at = jit_muladd_i64(j, jit_muladd_i64(j, e->image, q->h, y), q->w, x);
    at = jit_mul(j, at, jit_i64(j, q->c));
    e->from = jit_tmp(j, jit_offset(j, buf_f32(j, e->d->image_buf), at));
    each_vector(j, q->c, 1, copy_vector, e);
    jit_else(j, &within);
    pack_zero(j, e->to, jit_i64(j, q->c));
    jit_end_if(j, &within);
}

/* Task: a pixel of the result. */
static void emit_copy(Jit *j, const void *desc)
{
    Columns e = {.d = desc};
    const ConvGeometry *q = &e.d->q;
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    set_pixel(j, &e, jit_tmp(j, jit_index(&task)), q->oh, q->ow);
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_i64(j, q->r), 1, "r");
    JitLoop s = jit_for(j, jit_i64(j, 0), jit_i64(j, q->s), 1, "s");
    copy_place(j, &e, jit_tmp(j, jit_index(&r)), jit_tmp(j, jit_index(&s)));
    jit_end_for(j, &s);
    jit_end_for(j, &r);
    jit_end_for(j, &task);
}

/* --- the data gradient's sums --- */

/* The pixel of dy that place `tap` of an axis takes to `at`. */
static JitValue reached(Jit *j, const ConvGeometry *q, int axis, JitValue at, JitValue tap)
{
    JitValue far = jit_mul(j, tap, jit_i64(j, q->dilation[axis]));
    return jit_tmp(j, jit_sub(j, jit_add(j, at, jit_i64(j, q->pad[axis])), far));
}

static void add_place(Jit *j, Columns *e, Lanes v, JitValue r, JitValue s)
{
    const ConvGeometry *q = &e->d->q;
    JitValue y = reached(j, q, 0, e->y, r), x = reached(j, q, 1, e->x, s);
    JitValue valid = jit_and(j, inside(j, y, q->oh), inside(j, x, q->ow));
    JitIf within = jit_if(j, jit_compare(j, JIT_NE, valid, jit_i32(j, 0)));
    JitValue row = jit_muladd_i64(j, jit_muladd_i64(j, e->image, q->oh, y), q->ow, x);
    JitValue at = jit_muladd_i64(j, jit_muladd_i64(j, r, q->s, s), q->c,
                                 jit_mul(j, row, jit_i64(j, e->d->row_floats)));
    JitValue term = load_lanes(j, buf_f32(j, e->d->columns_buf), jit_tmp(j, at), v, 0);
    jit_set(j, e->sum, add(j, jit_get(e->sum), term));
    jit_end_if(j, &within);
}

/* Places in the order of dy's pixels, which is backwards. */
static void add_vector(Jit *j, Lanes v, void *user)
{
    Columns *e = user;
    const ConvGeometry *q = &e->d->q;
    jit_set(j, e->sum, jit_vf(j, 0));
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_i64(j, q->r), 1, "r");
    JitLoop s = jit_for(j, jit_i64(j, 0), jit_i64(j, q->s), 1, "s");
    JitValue from_r = jit_tmp(j, jit_sub(j, jit_i64(j, q->r - 1), jit_index(&r)));
    JitValue from_s = jit_tmp(j, jit_sub(j, jit_i64(j, q->s - 1), jit_index(&s)));
    add_place(j, e, v, from_r, from_s);
    jit_end_for(j, &s);
    jit_end_for(j, &r);
    epilogue_store(j, &e->d->epilogue, 0, jit_get(e->sum), e->row, v.at, v.n);
}

/* Task: a pixel of the data gradient. */
static void emit_sums(Jit *j, const void *desc)
{
    Columns e = {.d = desc};
    const ConvGeometry *q = &e.d->q;
    e.sum = jit_var(j, jit_types(j)->vf, "sum");
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    set_pixel(j, &e, jit_tmp(j, jit_index(&task)), q->h, q->w);
    each_vector(j, q->c, 1, add_vector, &e);
    jit_end_for(j, &task);
}

/* --- calls --- */

static int add_workspace(CallDraft *call)
{
    call->buf[call->n_bufs] = (CallBuf){VALUE_NONE, 0};
    return call->n_bufs++;
}

/* A call of pixels between an image and its columns. */
static void lower_pixels(const MatrixNode *m, CallDraft *call, ConvColumns *d, const char *what,
                         int64_t pixels)
{
    call->key = MATRIX_KEY(m->l->pool, what, ConvColumns, d);
    call->label = conv_label(m->l->pool, what, &d->q);
    call->desc = d;
    call->n_tasks = pixels;
    call->bytes = 8.0 * (double)(result_pixels(&d->q) * columns(&d->q));
    lower_call(m->l, *call);
}

static void lower_product(const MatrixNode *m, CallDraft *call, Gemm *g, const ConvGeometry *q,
                          const char *what)
{
    call->label = conv_label(m->l->pool, what, q);
    call->bytes = matrix_bytes(m);
    gemm_lower(m->l, g, call, what);
}

static void lower_forward(const MatrixNode *m, const ConvGeometry *q)
{
    ConvColumns *d = POOL_NEW(m->l->pool, ConvColumns);
    CallDraft copy = matrix_call(m), call = copy;
    *d = (ConvColumns){.q = *q,
                       .row_floats = columns(q) + CONV_COLUMNS_PAD,
                       .epilogue = epilogue_none(matrix_operand_type(m, 0))};
    d->image_buf = matrix_add_operand(m, &copy, 0);
    d->columns_buf = add_workspace(&copy);
    copy.emit = emit_copy;
    lower_pixels(m, &copy, d, "conv columns", result_pixels(q));
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    *g = (Gemm){.m = result_pixels(q),
                .n = q->k,
                .k = columns(q),
                .chain = q->c,
                .a_row = d->row_floats,
                .a_k = 1,
                .b_k = q->k,
                .b_n = 1};
    g->a_buf = add_workspace(&call);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->epilogue = matrix_epilogue(m, &call, 2);
    lower_product(m, &call, g, q, "conv");
}

static void lower_gradient(const MatrixNode *m, const ConvGeometry *q, const char *what)
{
    Gemm *g = POOL_NEW(m->l->pool, Gemm);
    CallDraft call = matrix_call(m), sums = call;
    call.buf[0] = (CallBuf){VALUE_NONE, 0};
    int64_t dims[2] = {result_pixels(q), columns(q)};
    Type out = type_make(DTYPE_F32, 2, dims);
    *g = (Gemm){.m = dims[0],
                .n = dims[1],
                .k = q->k,
                .chain = q->k,
                .a_row = q->k,
                .a_k = 1,
                .b_k = 1,
                .b_n = q->k};
    g->a_buf = matrix_add_operand(m, &call, 0);
    g->b_buf = matrix_add_operand(m, &call, 1);
    g->epilogue = epilogue_none(&out);
    lower_product(m, &call, g, q, what);
    ConvColumns *d = POOL_NEW(m->l->pool, ConvColumns);
    *d = (ConvColumns){.q = *q, .row_floats = columns(q)};
    d->columns_buf = add_workspace(&sums);
    d->epilogue = matrix_epilogue(m, &sums, 2);
    sums.emit = emit_sums;
    lower_pixels(m, &sums, d, "conv sums", q->images * q->h * q->w);
}

void conv_columns_lower(const MatrixNode *m, const ConvGeometry *q, ConvPart part, const char *what)
{
    if (part == CONV_FORWARD)
        lower_forward(m, q);
    else
        lower_gradient(m, q, what);
}
