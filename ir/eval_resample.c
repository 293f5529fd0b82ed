/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of adaptive average pooling and of resizing: one output after the other, as
 * their definitions say.  Source: torch.nn.AdaptiveAvgPool2d and torch.nn.functional.interpolate;
 * nearest takes floor(i * in / out) without PyTorch's rounding of in / out to a float. */
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* What one output reads along one axis: elements and their weights. */
typedef struct Reads {
    int64_t n;
    int64_t at[2];
    double weight[2];
} Reads;

typedef struct Resample {
    const Node *node;
    EvalImage x, y; /* forward input and output */
    const double *in;
    double *out;
    bool backward; /* in is dy, out is dx; else in is x, out is y */
} Resample;

static Resample resample(EvalState *s, const Node *n, bool backward)
{
    bool nhwc = node_flag(n, ATTR_nhwc);
    EvalImage in = eval_image(eval_in_type(s, n, 0), nhwc),
              out = eval_image(eval_out_type(s, n, 0), nhwc);
    memset(eval_out(s, n, 0), 0, (size_t)eval_out_count(s, n, 0) * sizeof(double));
    return (Resample){.node = n,
                      .x = backward ? out : in,
                      .y = backward ? in : out,
                      .in = eval_in(s, n, 0),
                      .out = eval_out(s, n, 0),
                      .backward = backward};
}

/* y += weight * x, or dx += weight * dy, of one pixel of all images and channels. */
static void add_pixel(const Resample *r, int64_t xh, int64_t xw, int64_t yh, int64_t yw,
                      double weight)
{
    for (int64_t b = 0; b < r->y.n; b++)
        for (int64_t c = 0; c < r->y.c; c++) {
            int64_t x = eval_image_at(&r->x, b, c, xh, xw), y = eval_image_at(&r->y, b, c, yh, yw);
            if (r->backward)
                r->out[x] += weight * r->in[y];
            else
                r->out[y] += weight * r->in[x];
        }
}

/* --- adaptive average pooling --- */

static void pool_pixel(const Resample *r, int64_t i, int64_t j)
{
    int64_t h0 = i * r->x.h / r->y.h, h1 = ((i + 1) * r->x.h + r->y.h - 1) / r->y.h;
    int64_t w0 = j * r->x.w / r->y.w, w1 = ((j + 1) * r->x.w + r->y.w - 1) / r->y.w;
    double part = 1 / (double)((h1 - h0) * (w1 - w0));
    for (int64_t h = h0; h < h1; h++)
        for (int64_t w = w0; w < w1; w++)
            add_pixel(r, h, w, i, j, part);
}

/* --- resizing --- */

/* Where output i of `to` lies in the input of `from` elements, and its two neighbours there. */
static Reads neighbours(const Node *n, int64_t from, int64_t to, int64_t i)
{
    if (node_flag(n, ATTR_nearest))
        return (Reads){.n = 1, .at = {i * from / to}, .weight = {1}};
    double place;
    if (node_flag(n, ATTR_align_corners))
        place = to > 1 ? (double)(i * (from - 1)) / (double)(to - 1) : 0;
    else
        place = fmax(0, ((double)i + 0.5) * (double)from / (double)to - 0.5);
    int64_t below = (int64_t)floor(place);
    if (below > from - 1)
        below = from - 1;
    double part = place - (double)below;
    int64_t above = below < from - 1 ? below + 1 : below;
    return (Reads){.n = 2, .at = {below, above}, .weight = {1 - part, part}};
}

static void resize_pixel(const Resample *r, int64_t i, int64_t j)
{
    Reads rows = neighbours(r->node, r->x.h, r->y.h, i);
    Reads columns = neighbours(r->node, r->x.w, r->y.w, j);
    for (int64_t a = 0; a < rows.n; a++)
        for (int64_t b = 0; b < columns.n; b++)
            if (rows.weight[a] * columns.weight[b] != 0)
                add_pixel(r, rows.at[a], columns.at[b], i, j, rows.weight[a] * columns.weight[b]);
}

static void each_output(const Resample *r, void (*pixel)(const Resample *, int64_t, int64_t))
{
    for (int64_t i = 0; i < r->y.h; i++)
        for (int64_t j = 0; j < r->y.w; j++)
            pixel(r, i, j);
}

void eval_adaptive_avgpool(EvalState *s, const Node *n)
{
    Resample r = resample(s, n, false);
    each_output(&r, pool_pixel);
}
void eval_adaptive_avgpool_grad(EvalState *s, const Node *n)
{
    Resample r = resample(s, n, true);
    each_output(&r, pool_pixel);
}
void eval_resize(EvalState *s, const Node *n)
{
    Resample r = resample(s, n, false);
    each_output(&r, resize_pixel);
}
void eval_resize_grad(EvalState *s, const Node *n)
{
    Resample r = resample(s, n, true);
    each_output(&r, resize_pixel);
}
