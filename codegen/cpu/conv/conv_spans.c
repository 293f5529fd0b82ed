/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/point/prologue.h"
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

/* Row of x, images one behind another, that row `row` of dy is the first to read, or the one behind
 * the last that it reads. */
static int64_t x_row(const ConvGeometry *q, int64_t row, bool behind)
{
    int64_t y = row % q->oh * q->stride[0] - q->pad[0];
    y += behind ? (q->r - 1) * q->dilation[0] + 1 : 0;
    return row / q->oh * q->h + within(y, q->h);
}

static ReadPiece rows_piece(const ConvGeometry *q, int64_t from, int64_t to)
{
    int64_t row = q->w * q->c;
    return (ReadPiece){.step = from,
                       .step_end = to,
                       .from = x_row(q, from, false) * row,
                       .to = x_row(q, to - 1, true) * row};
}

/* As many bands from row `from` on as may be made together, at least one, before row `end`. */
static ReadPiece piece_from(const ConvGeometry *q, int64_t from, int64_t end, int64_t band)
{
    ReadPiece piece = rows_piece(q, from, least(from + band, end));
    while (piece.step_end < end) {
        ReadPiece more = rows_piece(q, from, least(piece.step_end + band, end));
        if (more.to - more.from > PROLOGUE_BAND)
            break;
        piece = more;
    }
    return piece;
}

ReadPieces *conv_sum_pieces(Pool *pool, const ConvGeometry *q, int steps, int64_t chunks,
                            int64_t tasks, int64_t band_rows)
{
    int64_t rows = q->images * q->oh;
    ReadPieces *pieces = POOL_NEW(pool, ReadPieces);
    pieces->steps = steps;
    for (int64_t i = 0; i < chunks; i++) {
        int64_t end = span_part(i + 1, rows, chunks);
        for (int64_t at = span_part(i, rows, chunks); at < end;) {
            ReadPiece piece = piece_from(q, at, end, band_rows);
            piece.task = i * tasks;
            piece.task_end = (i + 1) * tasks;
            vec_push(pool, &pieces->of, piece);
            at = piece.step_end;
        }
    }
    return pieces;
}
