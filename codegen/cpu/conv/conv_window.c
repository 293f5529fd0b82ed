/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution as register tiles of pixels x channels, over a padded copy of a band of the source.
 */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"

#include <string.h>

static int64_t panel_floats(const ConvWindow *w, const Jit *j)
{
    return (int64_t)w->shape.vectors * jit_lanes(j);
}

/* Packed weights of (group, panel). */
static JitValue packed_at(const ConvWindow *w, Jit *j, JitValue group, JitValue panel)
{
    JitValue p = jit_buf(j, w->packed_buf, jit_types(j)->p_f32);
    int64_t group_floats = conv_window_group_floats(w, jit_lanes(j));
    JitValue at = jit_muladd_i64(j, group, group_floats, jit_i64(j, w->packed_offset));
    return jit_offset(
        j, p, jit_muladd_i64(j, panel, conv_window_weight_floats(w) * panel_floats(w, j), at));
}

/* --- one task --- */

typedef struct WindowEmit {
    Jit *j;
    const ConvWindow *w;
    JitValue group, image, row0, row1, column0; /* of the result grid; image: first of the unit */
    JitValue panel0, panel1;
    JitValue a; /* source of the band's first pixel, first tap */
} WindowEmit;

static int64_t band_rows(const ConvWindow *w)
{
    return w->unit_rows * w->band_units;
}

static int64_t copy_columns(const ConvWindow *w)
{
    return conv_axis_span(&w->axis[1], w->unit_columns);
}

static int64_t row_floats(const ConvWindow *w)
{
    return w->direct ? w->axis[1].source * w->source_c : copy_columns(w) * w->pixel_floats;
}

static int64_t pixel_step(const ConvWindow *w)
{
    return w->direct ? w->source_c : w->pixel_floats;
}

static int64_t image_floats(const ConvWindow *w)
{
    return row_floats(w) *
           (w->direct ? w->axis[0].source : conv_axis_span(&w->axis[0], band_rows(w)));
}

static int64_t bands(const ConvWindow *w)
{
    return divide_up(w->axis[0].count, band_rows(w));
}

int64_t conv_window_tasks(const ConvWindow *w)
{
    if (!w->axis[0].count || !w->axis[1].count || !w->q.images || !w->cols)
        return 0;
    return w->q.groups * (w->q.images / w->unit_images) * bands(w) *
           (w->axis[1].count / w->unit_columns) * w->panel_groups;
}

static ConvBands spans_of(const ConvWindow *w)
{
    return (ConvBands){.units = w->q.images / w->unit_images,
                       .images = w->unit_images,
                       .rows = band_rows(w),
                       .tasks = w->axis[1].count / w->unit_columns * w->panel_groups};
}

/* Task for task, two passes have the same places of their own phases. */
static bool cut_alike(const ConvWindow *a, const ConvWindow *b)
{
    return a->unit_images == b->unit_images && a->unit_rows == b->unit_rows &&
           a->unit_columns == b->unit_columns && a->band_units == b->band_units &&
           a->panels == b->panels && a->panel_groups == b->panel_groups &&
           a->axis[0].count == b->axis[0].count && a->axis[1].count == b->axis[1].count;
}

TaskSpans *conv_window_writes(Pool *pool, const ConvWindow *w, int64_t n)
{
    const ConvAxis *y = &w->axis[0], *x = &w->axis[1];
    bool whole = n == y->step * x->step && y->count * y->step == y->result &&
                 x->count * x->step == x->result;
    for (int64_t i = 1; i < n; i++)
        whole = whole && cut_alike(w, &w[i]);
    if (w->q.groups > 1 || !conv_window_tasks(w) || !whole)
        return NULL;
    ConvBands b = spans_of(w);
    return conv_bands_written(pool, &b, y, x->result * w->result_c);
}

TaskSpans *conv_window_reads(Pool *pool, const ConvWindow *w, int64_t n)
{
    if (w->q.groups > 1 || !conv_window_tasks(w) || n != 1)
        return NULL;
    ConvBands b = spans_of(w);
    return conv_bands_read(pool, &b, &w->axis[0], w->axis[1].source * w->source_c);
}

static void decode_task(WindowEmit *e, JitValue task)
{
    Jit *j = e->j;
    const ConvWindow *w = e->w;
    JitValue rest = task, one = jit_i64(j, 1);
    JitValue part = take_digit(j, &rest, w->panel_groups);
    e->panel0 = part_start(j, part, w->panels, w->panel_groups);
    e->panel1 = part_start(j, jit_add(j, part, one), w->panels, w->panel_groups);
    JitValue block = take_digit(j, &rest, w->axis[1].count / w->unit_columns);
    e->column0 = jit_tmp(j, jit_mul(j, block, jit_i64(j, w->unit_columns)));
    JitValue band = take_digit(j, &rest, bands(w));
    e->row0 = jit_tmp(j, jit_mul(j, band, jit_i64(j, band_rows(w))));
    e->row1 =
        jit_min_i64(j, jit_add(j, e->row0, jit_i64(j, band_rows(w))), jit_i64(j, w->axis[0].count));
    JitValue images = take_digit(j, &rest, w->q.images / w->unit_images);
    e->image = jit_tmp(j, jit_mul(j, images, jit_i64(j, w->unit_images)));
    e->group = rest;
}

/* Source place of result place i's first tap along an axis. */
static JitValue source_place(Jit *j, const ConvAxis *x, JitValue i)
{
    return jit_tmp(j, jit_muladd_i64(j, i, x->source_step, jit_i64(j, x->origin)));
}

static JitValue source_at(const WindowEmit *e, JitValue image, JitValue row, JitValue column)
{
    Jit *j = e->j;
    const ConvWindow *w = e->w;
    JitValue at = jit_muladd_i64(j, image, w->axis[0].source, row);
    at = jit_muladd_i64(j, at, w->axis[1].source, column);
    at = jit_muladd_i64(j, at, w->source_c, jit_mul(j, e->group, jit_i64(j, w->red)));
    return jit_offset(j, jit_buf(j, w->source_buf, jit_types(j)->p_f32), at);
}

/* Columns [first, first + copy_columns) of one source row, zeros outside. */
static void copy_row(const WindowEmit *e, JitValue to, JitValue image, JitValue row, JitValue first)
{
    Jit *j = e->j;
    const ConvWindow *w = e->w;
    JitValue zero = jit_i64(j, 0), columns = jit_i64(j, copy_columns(w));
    JitValue lo = jit_min_i64(j, jit_max_i64(j, jit_sub(j, zero, first), zero), columns);
    JitValue hi = jit_min_i64(j, jit_sub(j, jit_i64(j, w->axis[1].source), first), columns);
    hi = jit_max_i64(j, hi, lo);
    JitValue pixel = jit_i64(j, w->pixel_floats), n = jit_tmp(j, jit_sub(j, hi, lo));
    JitValue at = jit_tmp(j, jit_offset(j, to, jit_mul(j, lo, pixel)));
    pack_zero(j, to, jit_mul(j, lo, pixel));
    JitIf s = jit_if(j, jit_compare(j, JIT_GT, n, zero));
    JitValue from = source_at(e, image, row, jit_add(j, first, lo));
    if (w->pixel_floats == w->red && w->source_c == w->red)
        pack_rows(j, at, zero, from, zero, jit_i64(j, 1), jit_mul(j, n, pixel));
    else
        pack_rows(j, at, pixel, from, jit_i64(j, w->source_c), n, jit_i64(j, w->red));
    jit_end_if(j, &s);
    pack_zero(j, jit_offset(j, to, jit_mul(j, hi, pixel)),
              jit_mul(j, jit_sub(j, columns, hi), pixel));
}

/* The band of every image of the unit, with its halo. */
static void copy_band(WindowEmit *e)
{
    Jit *j = e->j;
    const ConvWindow *w = e->w;
    const ConvAxis *x = &w->axis[0];
    JitValue zero = jit_i64(j, 0), last = jit_sub(j, jit_sub(j, e->row1, e->row0), jit_i64(j, 1));
    JitValue rows = jit_tmp(
        j, jit_muladd_i64(j, last, x->source_step, jit_i64(j, (x->taps - 1) * x->tap_step + 1)));
    JitValue top = source_place(j, x, e->row0);
    JitValue left = source_place(j, &w->axis[1], e->column0);
    JitLoop image = jit_for(j, zero, jit_i64(j, w->unit_images), 1, "image");
    JitLoop row = jit_for(j, zero, rows, 1, "row");
    JitValue to = jit_muladd_i64(j, jit_index(&image), image_floats(w),
                                 jit_mul(j, jit_index(&row), jit_i64(j, row_floats(w))));
    to = jit_tmp(j, jit_offset(j, e->a, to));
    JitValue y = jit_tmp(j, jit_add(j, top, jit_index(&row)));
    JitValue inside =
        jit_and(j, jit_cast(j, jit_compare(j, JIT_GE, y, zero), jit_types(j)->i32),
                jit_cast(j, jit_compare(j, JIT_LT, y, jit_i64(j, x->source)), jit_types(j)->i32));
    JitIf s = jit_if(j, jit_compare(j, JIT_NE, inside, jit_i32(j, 0)));
    copy_row(e, to, jit_add(j, e->image, jit_index(&image)), y, left);
    jit_else(j, &s);
    pack_zero(j, to, jit_i64(j, row_floats(w)));
    jit_end_if(j, &s);
    jit_end_for(j, &row);
    jit_end_for(j, &image);
}

static void find_source(WindowEmit *e)
{
    Jit *j = e->j;
    if (!e->w->direct) {
        e->a = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
        copy_band(e);
        return;
    }
    JitValue at = source_at(e, e->image, source_place(j, &e->w->axis[0], e->row0),
                            source_place(j, &e->w->axis[1], e->column0));
    e->a =
        jit_tmp(j, jit_cast(j, at, jit_types(j)->p_f32)); /* bf16: without taps, nothing is read */
}

/* --- tiles --- */

/* Pixel p of a unit: elements from the unit's first pixel in the source, rows of the result. */
typedef struct UnitPixel {
    int64_t a, out;
} UnitPixel;

static UnitPixel unit_pixel(const ConvWindow *w, int64_t p)
{
    int64_t column = p % w->unit_columns, row = p / w->unit_columns % w->unit_rows;
    int64_t image = p / w->unit_columns / w->unit_rows;
    const ConvAxis *y = &w->axis[0], *x = &w->axis[1];
    UnitPixel u = {image * image_floats(w) + row * y->source_step * row_floats(w) +
                       column * x->source_step * pixel_step(w),
                   (image * y->result + row * y->step) * x->result + column * x->step};
    return u;
}

static void set_loops(const ConvWindow *w, Tile *t, int64_t width)
{
    const ConvAxis *y = &w->axis[0], *x = &w->axis[1];
    int64_t pixel = pixel_step(w), n = 0;
    int64_t row_weights = x->taps * w->red * width;
    ConvChains chains = conv_chains(&w->q, w->transposed ? CONV_DGRAD : CONV_FORWARD);
    bool one_place = x->taps == 1, rows_on = x->tap_step == 1 && pixel == w->red;
    bool joined = one_place || (rows_on && chains != CONV_PLACE_CHAINS);
    if (y->taps != 1)
        t->loop[n++] = (TileLoop){y->taps, y->tap_step * row_floats(w), row_weights};
    t->chain_loops = chains == CONV_ONE_CHAIN ? 0 : (int)n;
    if (!joined)
        t->loop[n++] = (TileLoop){x->taps, x->tap_step * pixel, w->red * width};
    if (chains == CONV_PLACE_CHAINS)
        t->chain_loops = (int)n;
    t->loop[n++] = (TileLoop){joined ? x->taps * w->red : w->red, 1, width};
    t->n_loops = (int)n;
}

static Tile make_tile(const WindowEmit *e, int64_t columns, int64_t first, int64_t count)
{
    const ConvWindow *w = e->w;
    int lanes = jit_lanes(e->j);
    int vectors = (int)divide_up(columns, lanes);
    Tile t = {.rows = (int)count,
              .vectors = vectors,
              .last_lanes = (int)(columns - (int64_t)(vectors - 1) * lanes),
              .b_packed = true,
              .single = true,
              .out_buf = w->out_buf,
              .epilogue = &w->epilogue};
    UnitPixel base = unit_pixel(w, first);
    for (int64_t i = 0; i < count; i++) {
        UnitPixel u = unit_pixel(w, first + i);
        t.a_row[i] = u.a - base.a;
        t.out_row[i] = u.out - base.out;
    }
    set_loops(w, &t, (int64_t)vectors * lanes);
    return t;
}

/* Result row of the unit's first pixel at grid row y. */
static JitValue result_row(const WindowEmit *e, JitValue y)
{
    Jit *j = e->j;
    const ConvAxis *v = &e->w->axis[0], *x = &e->w->axis[1];
    JitValue row = jit_muladd_i64(j, y, v->step, jit_i64(j, v->first));
    JitValue column = jit_muladd_i64(j, e->column0, x->step, jit_i64(j, x->first));
    return jit_muladd_i64(j, jit_muladd_i64(j, e->image, v->result, row), x->result, column);
}

static void emit_unit(const WindowEmit *e, int64_t columns, JitValue y, JitValue b, JitValue col)
{
    Jit *j = e->j;
    const ConvWindow *w = e->w;
    JitValue below = jit_sub(j, y, e->row0);
    JitValue a = jit_tmp(
        j,
        jit_offset(j, e->a, jit_mul(j, below, jit_i64(j, w->axis[0].source_step * row_floats(w)))));
    JitValue row = jit_tmp(j, result_row(e, y));
    int64_t pixels = w->unit_images * w->unit_rows * w->unit_columns, first = 0;
    TileSplit split = tile_split(pixels, w->shape.rows);
    for (int64_t i = 0; i < split.tiles; i++) {
        int64_t count = split.base + (i < split.extra);
        Tile tile = make_tile(e, columns, first, count);
        UnitPixel u = unit_pixel(w, first);
        TileArgs args = {.a = jit_offset(j, a, jit_i64(j, u.a)),
                         .b = b,
                         .row = jit_add(j, row, jit_i64(j, u.out)),
                         .col = col};
        tile_call(j, &tile, &args);
        first += count;
    }
}

static void emit_panel(const WindowEmit *e, JitValue panel, int64_t columns)
{
    Jit *j = e->j;
    const ConvWindow *w = e->w;
    JitValue b = jit_tmp(j, packed_at(w, j, e->group, panel));
    JitValue col =
        jit_muladd_i64(j, e->group, w->cols, jit_mul(j, panel, jit_i64(j, panel_floats(w, j))));
    col = jit_tmp(j, col);
    JitLoop y = jit_for(j, e->row0, e->row1, w->unit_rows, "y");
    emit_unit(e, columns, jit_tmp(j, jit_index(&y)), b, col);
    jit_end_for(j, &y);
}

static void emit_task(Jit *j, const ConvWindow *w, JitValue task)
{
    WindowEmit e = {.j = j, .w = w};
    int64_t width = panel_floats(w, j), whole = w->cols / width, rest = w->cols % width;
    decode_task(&e, task);
    find_source(&e);
    if (whole) {
        JitValue end = jit_min_i64(j, e.panel1, jit_i64(j, whole));
        JitLoop p = jit_for(j, e.panel0, end, 1, "panel");
        emit_panel(&e, jit_tmp(j, jit_index(&p)), width);
        jit_end_for(j, &p);
    }
    if (rest) {
        JitIf s = jit_if(j, jit_compare(j, JIT_GT, e.panel1, jit_i64(j, whole)));
        emit_panel(&e, jit_i64(j, whole), rest);
        jit_end_if(j, &s);
    }
}

void conv_phases_emit(Jit *j, const void *desc)
{
    const ConvPhases *p = desc;
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue index = jit_tmp(j, jit_index(&task));
    for (int64_t i = 0; i < p->n; i++)
        emit_task(j, &p->window[i], index);
    jit_end_for(j, &task);
}
