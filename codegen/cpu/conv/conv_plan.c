/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How window passes are cut into tiles, units, bands and tasks. */
#include "codegen/cpu/conv/conv.h"
#include "ir/prologue.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "runtime/abi.h"

enum {
    UNIT_COPY_BYTES = 256 * 1024,
    TILES_MOST = 9, /* different tiles of a unit that spans rows or images: code size */
    FEW_ROWS = 8    /* of a tile: weights are read so often that a shorter tile waits for them */
};

/* What a variant has in the place of the default. */
typedef struct WindowVariant {
    const char *name;
    int vectors; /* of the tile; 0: by its cost */
    double copy; /* factor on the share of the cache in copy_bytes */
    int64_t tasks;
} WindowVariant;

static const WindowVariant variants[] = {
    {"default", 0, 1, 24},     {"tile1", 1, 1, 24},   {"tile2", 2, 1, 24},
    {"tile3", 3, 1, 24},       {"tile4", 4, 1, 24},   {"copy_half", 0, 0.5, 24},
    {"copy_double", 0, 2, 24}, {"tasks12", 0, 1, 12}, {"tasks48", 0, 1, 48},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const char *variant_name(int index)
{
    return index < N_VARIANTS ? variants[index].name : NULL;
}

const KernelFamily conv_window_family = {"conv", variant_name};

static bool empty(const ConvWindow *w)
{
    return !w->axis[0].taps || !w->axis[1].taps;
}

/* What the padded copy of a band may have.  A panel of weights is to stay in the second-level cache
 * beside it; the longer the band, the less often all weights come there.  A prologue makes no more
 * at a time than PROLOGUE_ELEMENTS. */
static int64_t copy_bytes(const ConvWindow *w, const Target *t, const WindowVariant *v)
{
    enum { LEAST = 192 * 1024, MOST = 384 * 1024 };
    int64_t share = t->l2_bytes * 3 / 16;
    share = share < LEAST ? LEAST : share > MOST ? MOST : share;
    int64_t bytes = (int64_t)(v->copy * (double)share);
    return w->made && bytes > MOST ? MOST : bytes;
}

/* Time per pixel and vector column: multiply-adds, the tile's fixed part, and streaming the packed
 * weights once per band from a far cache; a band has one image's rows, or the whole unit. */
static double unit_cost(const ConvWindow *w, int64_t images, int64_t rows)
{
    int64_t pixels = images * rows * w->axis[1].count;
    int64_t streamed = images * w->axis[0].count * w->axis[1].count;
    TileSplit s = tile_split(pixels, w->shape.rows);
    double v = w->shape.vectors, tile = w->shape.rows > FEW_ROWS ? 2 : 3;
    return v + tile * (double)s.tiles / (double)pixels + 6 * v / (double)streamed;
}

static int64_t copy_floats(const ConvWindow *w, int64_t rows)
{
    return w->unit_images * conv_axis_span(&w->axis[0], rows) *
           conv_axis_span(&w->axis[1], w->unit_columns) * w->pixel_floats;
}

static bool copy_fits(const ConvWindow *w, int64_t rows, int64_t bytes)
{
    return w->direct || copy_floats(w, rows) * 4 <= bytes;
}

static bool unit_allowed(const ConvWindow *w, int64_t images, int64_t rows)
{
    int64_t pixels = images * rows * w->axis[1].count;
    if (w->axis[0].count % rows || w->q.images % images ||
        pixels > (int64_t)TILES_MOST * w->shape.rows)
        return false;
    ConvWindow trial = *w;
    trial.unit_images = images;
    int64_t most = images > 1 && pixels <= 64 ? SCRIMP_WORK_BYTES / 2 : UNIT_COPY_BYTES;
    if (w->made && images > 1 &&
        images * w->axis[0].source * w->axis[1].source * w->source_c > PROLOGUE_ELEMENTS)
        return false;
    return copy_fits(&trial, rows, most);
}

/* One row of the result is the unit, unless rows are so short that blocks of rows or images fill
 * tiles better. */
static void plan_unit(ConvWindow *w)
{
    int64_t rows = w->axis[0].count, most = w->shape.rows > FEW_ROWS ? 1 : 3;
    if (w->axis[1].count >= most * w->shape.rows)
        return;
    double best = unit_cost(w, 1, 1) * 0.97;
    for (int64_t images = 1; images <= w->q.images; images++)
        for (int64_t u = images > 1 ? rows : 2; u <= rows; u++) {
            if (!unit_allowed(w, images, u) || unit_cost(w, images, u) >= best)
                continue;
            best = unit_cost(w, images, u);
            w->unit_images = images;
            w->unit_rows = u;
        }
}

/* Splits rows that do not fit into scratch into equal parts: of one pixel at least, which fits
 * (conv_form). */
static void plan_columns(ConvWindow *w)
{
    int64_t columns = w->axis[1].count;
    for (int64_t parts = 1; parts <= columns; parts++)
        if (columns % parts == 0) {
            w->unit_columns = columns / parts;
            if (copy_fits(w, w->unit_rows, SCRIMP_WORK_BYTES))
                return;
        }
    BUG("the window of a pixel does not fit into scratch memory");
}

/* The other phases should find the band in the second-level cache; but the weights are read once a
 * band. */
static int64_t source_bytes_wanted(const ConvWindow *w, int64_t copy)
{
    int64_t weights = 4 * w->axis[0].taps * w->axis[1].taps * w->red * w->cols;
    return weights > copy ? weights : copy;
}

static int64_t source_bytes(const ConvWindow *w)
{
    return 4 * w->band_units * w->unit_rows * w->axis[0].source_step * w->axis[1].source *
           w->source_c;
}

/* More tasks by shorter bands first (a halo is copied again), then by groups of panels (the band
 * is). */
static void plan_tasks(ConvWindow *w, const Target *t, const WindowVariant *v)
{
    int64_t copy = copy_bytes(w, t, v);
    w->panel_groups = 1;
    w->band_units = w->axis[0].count / w->unit_rows;
    while (w->band_units > 1 && !copy_fits(w, w->band_units * w->unit_rows, copy))
        w->band_units--;
    while (w->phase && w->band_units > 1 && source_bytes(w) > source_bytes_wanted(w, copy))
        w->band_units = divide_up(w->band_units, 2);
    while (w->band_units > 4 && conv_window_tasks(w) < v->tasks)
        w->band_units = divide_up(w->band_units, 2);
    w->band_units = divide_up(w->axis[0].count / w->unit_rows,
                              divide_up(w->axis[0].count / w->unit_rows, w->band_units));
    while (conv_window_tasks(w) < v->tasks && w->panels >= 2 * w->panel_groups)
        w->panel_groups *= 2;
}

void conv_window_plan(ConvWindow *w, const Target *t, int variant)
{
    const WindowVariant *v = &variants[variant];
    w->unit_images = w->unit_rows = w->band_units = 1;
    w->unit_columns = w->axis[1].count;
    w->shape = tile_shape_of(t, divide_up(w->cols, t->vector_floats), TILE_MAX_ROWS, v->vectors);
    w->panels = divide_up(w->cols, (int64_t)w->shape.vectors * t->vector_floats);
    w->panel_groups = 1;
    w->direct =
        empty(w) || (!w->q.bf16 && conv_axis_inside(&w->axis[0]) && conv_axis_inside(&w->axis[1]));
    w->pixel_floats = conv_pixel_floats(w->red);
    if (!w->axis[0].count || !w->axis[1].count)
        return;
    plan_columns(w);
    if (w->unit_columns == w->axis[1].count)
        plan_unit(w);
    plan_tasks(w, t, v);
}
