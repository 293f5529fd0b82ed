/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Crop and resize in one: a separable triangle filter.  Source: Pillow's documentation of
 * Image.resize(BILINEAR) and its reducing behaviour; Heckbert, "Filtered image rescaling",
 * Graphics Gems III (1992). */
#include "runtime/image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void image_scratch_free(ImageScratch *scratch)
{
    free(scratch->data);
    *scratch = (ImageScratch){0};
}

ImageWindow image_center(const Image *image, int64_t size, int64_t resize)
{
    double w = (double)image->width, h = (double)image->height;
    double side = (w < h ? w : h) * (double)size / (double)resize;
    return (ImageWindow){.x = (w - side) / 2,
                         .y = (h - side) / 2,
                         .width = side,
                         .height = side,
                         .right = image->width,
                         .bottom = image->height};
}

/* One direction: output i reads n[i] inputs from first[i] on, with weights weight[i * most]. */
typedef struct Taps {
    int64_t most;
    int64_t *first, *n;
    float *weight;
} Taps;

/* Inputs that output i of `size` over [at, at + extent] can reach. */
static int64_t most_taps(double extent, int64_t size)
{
    double step = extent / (double)size, support = step > 1 ? step : 1;
    return 2 * (int64_t)ceil(support) + 2;
}

static void one_output(Taps *t, int64_t i, double center, double support, int64_t lo, int64_t hi)
{
    int64_t first = (int64_t)floor(center - support + 0.5);
    int64_t end = (int64_t)floor(center + support + 0.5);
    first = first < lo ? lo : first >= hi ? hi - 1 : first;
    end = end > hi ? hi : end;
    int64_t n = end - first;
    n = n < 1 ? 1 : n > t->most ? t->most : n;
    float *weight = t->weight + i * t->most;
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        double away = fabs((double)(first + k) + 0.5 - center) / support;
        double w = away < 1 ? 1 - away : 0;
        weight[k] = (float)w;
        sum += w;
    }
    for (int64_t k = 0; k < n; k++)
        weight[k] = sum > 0 ? (float)((double)weight[k] / sum) : k == 0;
    t->first[i] = first;
    t->n[i] = n;
}

static void fill_taps(Taps *t, double at, double extent, int64_t size, int64_t lo, int64_t hi)
{
    double step = extent / (double)size, support = step > 1 ? step : 1;
    for (int64_t i = 0; i < size; i++)
        one_output(t, i, at + ((double)i + 0.5) * step, support, lo, hi);
}

static void mirror(Taps *t, int64_t size)
{
    for (int64_t i = 0, j = size - 1; i < j; i++, j--) {
        int64_t first = t->first[i], n = t->n[i];
        t->first[i] = t->first[j], t->n[i] = t->n[j];
        t->first[j] = first, t->n[j] = n;
        for (int64_t k = 0; k < t->most; k++) {
            float w = t->weight[i * t->most + k];
            t->weight[i * t->most + k] = t->weight[j * t->most + k];
            t->weight[j * t->most + k] = w;
        }
    }
}

/* One row of the picture, shrunk or stretched: out[3][size]. */
static void sample_row(const unsigned char *row, const Taps *t, int64_t size, float *out)
{
    for (int64_t i = 0; i < size; i++) {
        const unsigned char *at = row + 3 * t->first[i];
        const float *w = t->weight + i * t->most;
        float r = 0, g = 0, b = 0;
        for (int64_t k = 0; k < t->n[i]; k++, at += 3) {
            r += w[k] * (float)at[0];
            g += w[k] * (float)at[1];
            b += w[k] * (float)at[2];
        }
        out[i] = r;
        out[size + i] = g;
        out[2 * size + i] = b;
    }
}

/* Adds a shrunk row of the picture to every output row that reads it.  Rows come in order, and so
 * do the outputs' taps: *done counts outputs that will read no more. */
static void add_row(const float *row, int64_t y, const Taps *t, int64_t size, int64_t *done,
                    float *planes)
{
    while (*done < size && t->first[*done] + t->n[*done] <= y)
        ++*done;
    for (int64_t i = *done; i < size && t->first[i] <= y; i++) {
        float w = t->weight[i * t->most + (y - t->first[i])];
        for (int c = 0; c < 3; c++) {
            float *out = planes + (c * size + i) * size;
            for (int64_t x = 0; x < size; x++)
                out[x] += w * row[c * size + x];
        }
    }
}

static void normalize(float *planes, int64_t size, const double mean[3], const double std[3])
{
    for (int c = 0; c < 3; c++) {
        float *out = planes + c * size * size;
        float scale = (float)(1 / (255 * std[c])), shift = (float)(mean[c] / std[c]);
        for (int64_t i = 0; i < size * size; i++)
            out[i] = out[i] * scale - shift;
    }
}

/* Cuts n aligned bytes off the scratch memory. */
static void *cut(char **at, int64_t n)
{
    void *here = *at;
    *at += (n + 15) / 16 * 16;
    return here;
}

static int64_t taps_bytes(int64_t size, int64_t most)
{
    return 2 * ((size * (int64_t)sizeof(int64_t) + 15) / 16 * 16) +
           (size * most * (int64_t)sizeof(float) + 15) / 16 * 16;
}

static Taps cut_taps(char **at, int64_t size, int64_t most)
{
    Taps t = {.most = most};
    t.first = cut(at, size * (int64_t)sizeof *t.first);
    t.n = cut(at, size * (int64_t)sizeof *t.n);
    t.weight = cut(at, size * most * (int64_t)sizeof *t.weight);
    return t;
}

static int64_t row_bytes(int64_t size)
{
    return 3 * size * (int64_t)sizeof(float);
}

/* A window is no larger than its picture, and fewer pixels have fewer taps. */
int64_t image_scratch_bytes(int64_t width, int64_t height, int64_t size)
{
    return taps_bytes(size, most_taps((double)width, size)) +
           taps_bytes(size, most_taps((double)height, size)) + row_bytes(size);
}

bool image_scratch_reserve(ImageScratch *scratch, int64_t bytes, RtError *err)
{
    if (bytes <= scratch->room)
        return true;
    free(scratch->data);
    scratch->data = rt_alloc(bytes, 1, err);
    scratch->room = scratch->data ? bytes : 0;
    return scratch->data != NULL;
}

bool image_sample(const Image *image, const ImageWindow *w, int64_t size, const double mean[3],
                  const double std[3], ImageScratch *scratch, float *planes, RtError *err)
{
    int64_t across = most_taps(w->width, size), down = most_taps(w->height, size);
    int64_t bytes = taps_bytes(size, across) + taps_bytes(size, down) + row_bytes(size);
    if (!image_scratch_reserve(scratch, bytes, err))
        return false;
    char *at = (char *)scratch->data;
    Taps x = cut_taps(&at, size, across), y = cut_taps(&at, size, down);
    fill_taps(&x, w->x, w->width, size, w->left, w->right);
    fill_taps(&y, w->y, w->height, size, w->top, w->bottom);
    if (w->mirrored)
        mirror(&x, size);
    float *shrunk = (float *)(void *)at;
    int64_t end = y.first[size - 1] + y.n[size - 1], done = 0;
    memset(planes, 0, (size_t)(3 * size * size) * sizeof *planes);
    for (int64_t row = y.first[0]; row < end; row++) {
        sample_row(image->rgb + 3 * row * image->width, &x, size, shrunk);
        add_row(shrunk, row, &y, size, &done, planes);
    }
    normalize(planes, size, mean, std);
    return true;
}
