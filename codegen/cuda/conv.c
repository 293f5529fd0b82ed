/* SPDX-License-Identifier: GPL-3.0-or-later */
/* conv2d, deconv2d and the data gradient: device/conv_sum.cuh for every form, device/conv_tile.cuh
 * where there are enough channels, a matrix product for 1x1 kernels. */
#include "codegen/cuda/conv.h"
#include "codegen/cuda/library/library.h"
#include "codegen/cuda/matrix.h"
#include "codegen/cuda/point.h"
#include "codegen/cuda/text.h"

#include "ir/support/divide.h"

/* --- what all kernels have in common --- */

ConvDesc *cuda_conv_describe(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                             CallDraft *call)
{
    ConvDesc *d = POOL_NEW(m->l->pool, ConvDesc);
    *d = (ConvDesc){.q = *q, .part = part, .form = conv_form(q, part), .partial_buf = -1};
    *call = matrix_call(m);
    d->a_buf = matrix_add_operand(m, call, 0);
    d->b_buf = matrix_add_operand(m, call, 1);
    d->epilogue = matrix_epilogue(m, call, 2);
    d->bias_buf = d->epilogue.bias_buf;
    d->epilogue.bias_buf = -1;
    call->flops = conv_flops(q);
    call->bytes = matrix_bytes(m);
    return d;
}

void cuda_conv_call(const MatrixNode *m, CallDraft *call, const ConvDesc *d, const char *what,
                    KernelText *text, int threads)
{
    call->desc = d;
    call->label = conv_label(m->l->pool, what, &d->q);
    cuda_call(m->l, call, text, threads);
}

int64_t cuda_conv_columns(const ConvDesc *d)
{
    return d->part == CONV_DGRAD ? conv_group_in(&d->q) : conv_group_out(&d->q);
}

bool cuda_conv_tiled(const ConvDesc *d)
{
    return d->form == CONV_WINDOW && cuda_conv_columns(d) >= CONV_TILE_LEAST;
}

static void define_geometry(StrBuf *out, const ConvGeometry *q)
{
    static const char *const axis[] = {"Y", "X"};
    text_define(out, "NHWC", q->nhwc);
    text_define(out, "IMAGES", q->images);
    text_define(out, "HEIGHT", q->h);
    text_define(out, "WIDTH", q->w);
    text_define(out, "CHANNELS", q->c);
    text_define(out, "OUT_HEIGHT", q->oh);
    text_define(out, "OUT_WIDTH", q->ow);
    text_define(out, "OUT_CHANNELS", q->k);
    text_define(out, "TAP_ROWS", q->r);
    text_define(out, "TAP_COLUMNS", q->s);
    text_define(out, "GROUPS", q->groups);
    for (int i = 0; i < 2; i++) {
        text_define(out, pool_printf(out->pool, "STRIDE_%s", axis[i]), q->stride[i]);
        text_define(out, pool_printf(out->pool, "PAD_%s", axis[i]), q->pad[i]);
        text_define(out, pool_printf(out->pool, "DILATION_%s", axis[i]), q->dilation[i]);
    }
}

void cuda_conv_begin(StrBuf *out, const ConvDesc *d, const char *const *parts)
{
    text_begin(out, d->n_args, (const char *const[]){"common", "math", "random", NULL});
    define_geometry(out, &d->q);
    text_define(out, "TRANSPOSED", d->part == CONV_DGRAD);
    text_define(out, "BACKWARDS", d->part == CONV_DGRAD && d->form != CONV_PLAIN);
    text_define(out, "SKIP_OUTSIDE", d->form != CONV_WINDOW);
    text_define(out, "ROW_CHAINS", conv_chains(&d->q, d->part) == CONV_ROW_CHAINS);
    text_define(out, "PLACE_CHAINS", conv_chains(&d->q, d->part) == CONV_PLACE_CHAINS);
    text_define(out, "A_BUF", d->a_buf);
    text_define(out, "B_BUF", d->b_buf);
    text_include(out, "conv");
    for (; *parts; parts++)
        text_include(out, *parts);
}

/* --- a thread an element --- */

static void define_bias(StrBuf *out, const ConvDesc *d)
{
    if (d->bias_buf < 0)
        strbuf_put(out, "#define ADD_BIAS(sum, channel) (sum)\n");
    else
        strbuf_printf(out,
                      "#define ADD_BIAS(sum, channel) ((sum) + BUF(const float, %d)[channel])\n",
                      d->bias_buf);
}

static void write_sum(StrBuf *out, const char *symbol, const void *desc)
{
    const ConvDesc *d = desc;
    cuda_conv_begin(out, d, (const char *const[]){NULL});
    define_bias(out, d);
    cuda_epilogue(out, &d->epilogue, 0);
    text_include(out, "conv_sum");
    strbuf_printf(out,
                  "\nKERNEL(%s, %d)\n{\n    conv_element(a, (i64)blockIdx.x * %d + threadIdx.x);"
                  "\n}\n",
                  symbol, CONV_THREADS, CONV_THREADS);
}

/* --- tiles --- */

static int64_t phases(const ConvDesc *d, int axis)
{
    return d->part == CONV_DGRAD ? d->q.stride[axis] : 1;
}

static ConvAxis phase_axis(const ConvDesc *d, int axis, int64_t phase)
{
    return d->part == CONV_DGRAD ? conv_gradient_axis(&d->q, axis, phase)
                                 : conv_forward_axis(&d->q, axis);
}

/* Of the first phase, which has the most. */
static int64_t pixels(const ConvDesc *d)
{
    return d->q.images * phase_axis(d, 0, 0).count * phase_axis(d, 1, 0).count;
}

/* By phase and group, the same number of pixels and channels. */
static int64_t parts(const ConvDesc *d)
{
    return d->q.groups * phases(d, 0) * phases(d, 1);
}

/* The function axis_y or axis_x. */
static void write_axis(StrBuf *out, const ConvDesc *d, int axis)
{
    strbuf_printf(out, "\nDEVICE Axis axis_%s(int phase)\n{\n    (void)phase;\n", axis ? "x" : "y");
    for (int64_t p = phases(d, axis) - 1; p >= 0; p--) {
        ConvAxis x = phase_axis(d, axis, p);
        strbuf_put(out, "    ");
        if (p)
            strbuf_printf(out, "if (phase == %lld) ", (long long)p);
        strbuf_printf(out,
                      "{\n        const Axis axis = {%lld, %lld, %lld, %lld, %lld, %lld, %lld, "
                      "%lld, %lld};\n        return axis;\n    }\n",
                      (long long)x.count, (long long)x.first, (long long)x.step,
                      (long long)x.origin, (long long)x.source_step, (long long)x.taps,
                      (long long)x.tap_step, (long long)x.weight_first, (long long)x.weight_step);
    }
    strbuf_put(out, "}\n");
}

void cuda_conv_place(StrBuf *out, const ConvGeometry *q)
{
    bool fits =
        q->images * q->h * q->w * q->c < INT32_MAX && q->images * q->oh * q->ow * q->k < INT32_MAX;
    strbuf_printf(out, "#define PLACE %s\n", fits ? "int" : "i64");
}

static void write_tile(StrBuf *out, const char *symbol, const void *desc)
{
    const ConvDesc *d = desc;
    cuda_conv_begin(out, d, (const char *const[]){"conv_axis", NULL});
    text_tile(out, &d->tile);
    text_define(out, "PHASES_X", phases(d, 1));
    text_define(out, "PIXEL_TILES", divide_up(pixels(d), cuda_tile_rows(&d->tile)));
    cuda_conv_place(out, &d->q);
    define_bias(out, d);
    write_axis(out, d, 0);
    write_axis(out, d, 1);
    cuda_epilogue(out, &d->epilogue, 0);
    text_include(out, "conv_tile");
    text_tile_kernel(out, symbol, &d->tile, "conv_tile");
}

/* --- rules --- */

static void lower_pixels(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                         const char *what)
{
    CallDraft call;
    ConvDesc *d = cuda_conv_describe(m, q, part, &call);
    bool tiled = cuda_conv_tiled(d);
    int64_t elements = type_elements(matrix_result_type(m));
    int64_t columns = cuda_conv_columns(d);
    d->n_args = call.n_bufs;
    if (tiled)
        d->tile = cuda_tile_shape(parts(d), pixels(d), columns, 1);
    call.key = MATRIX_KEY(m->l->pool, tiled ? "conv_tile" : "conv_sum", ConvDesc, d);
    call.n_tasks = tiled ? cuda_tiles(&d->tile, parts(d), pixels(d), columns)
                         : divide_up(elements, CONV_THREADS);
    cuda_conv_call(m, &call, d, what, tiled ? write_tile : write_sum,
                   tiled ? cuda_tile_threads(&d->tile) : CONV_THREADS);
}

static void lower_part(const MatrixNode *m, ConvPart part, const char *what)
{
    if (cuda_library_lowers(m, what))
        return;
    ConvGeometry q = conv_geometry(m, part);
    Product product = conv_product(&q, part);
    if (conv_form(&q, part) == CONV_PRODUCT)
        cuda_product(m, &product, what);
    else if (part == CONV_WGRAD)
        cuda_lower_conv_weights(m, &q);
    else
        lower_pixels(m, &q, part, what);
}

void cuda_lower_conv2d(const MatrixNode *m)
{
    lower_part(m, CONV_FORWARD, "conv");
}

void cuda_lower_conv2d_dgrad(const MatrixNode *m)
{
    lower_part(m, CONV_DGRAD, "conv dx");
}

/* The data gradient of a convolution, and may have a bias. */
void cuda_lower_deconv2d(const MatrixNode *m)
{
    lower_part(m, CONV_DGRAD, "deconv");
}

void cuda_lower_conv2d_wgrad(const MatrixNode *m)
{
    lower_part(m, CONV_WGRAD, "conv dw");
}
