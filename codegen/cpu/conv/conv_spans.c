/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/conv/conv.h"
#include "ir/support/divide.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

TaskSpans *conv_bands_written(Pool *pool, const ConvBands *b, const ConvAxis *y, int64_t row)
{
    int64_t bands = divide_up(y->count, b->rows), band = b->rows * y->step;
    TaskSpans *s = task_spans_new(pool, b->units * bands, b->tasks);
    for (int64_t i = 0; s && i < s->n; i++) {
        int64_t image = i / bands * b->images, last = image + b->images - 1, at = i % bands;
        s->from[i] = (image * y->result + at * band) * row;
        s->to[i] = (last * y->result + least((at + 1) * band, y->result)) * row;
    }
    return s;
}

static int64_t within(int64_t place, int64_t most)
{
    return place < 0 ? 0 : least(place, most);
}

TaskSpans *conv_bands_read(Pool *pool, const ConvBands *b, const ConvAxis *y, int64_t row)
{
    int64_t bands = divide_up(y->count, b->rows);
    TaskSpans *s = task_spans_new(pool, b->units * bands, b->tasks);
    for (int64_t i = 0; s && i < s->n; i++) {
        int64_t image = i / bands * b->images, last = image + b->images - 1;
        int64_t at = i % bands * b->rows, first = y->origin + at * y->source_step;
        int64_t next = first + conv_axis_span(y, least(b->rows, y->count - at));
        s->from[i] = (image * y->source + within(first, y->source)) * row;
        s->to[i] = (last * y->source + within(next, y->source)) * row;
    }
    return s;
}
