/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolution with narrow groups (NHWC; depthwise: one channel per group) and its data gradient.
 *
 * Vectors run along the channels.  A tile is a run of pixels of one result row times one vector of
 * channels; its sums stay in registers while the taps are gone through row by row: a source vector
 * is loaded once per row of taps and used under every tap that it lies under.  The source is read
 * where it lies.  Which taps of a tile fall outside of the image to the left or right is known when
 * the code is made; rows above or below shorten the loop over rows of taps.
 *
 * In a group of `width` channels every channel of the result takes all channels of the source: a
 * source vector is spread into `width` vectors, the i-th of which has channel i of the group in all
 * lanes of the group, and lies under as many taps as before.  The weights [r, s, i, channels] have
 * their lanes in place; those of the data gradient are transposed within each group first.
 *
 * The data gradient of stride s has s * s phases, each with taps of its own; a task does all phases
 * of a band of rows, so that dy is read from memory once. */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/cpu/point/prologue.h"
#include "ir/support/divide.h"
#include "ir/workspace.h"

enum {
    TASKS_WANTED = 24,
    BAND_LEAST = 4,   /* rows of a task */
    PIXELS_MOST = 16, /* of a tile */
    PIXELS_WIDE = 12, /* with groups of several channels: weights want registers, too */
    PIXELS_AHEAD = 8  /* of the result that is asked for */
};

typedef struct DepthEmit {
    Jit *j;
    const ConvDepth *d;
    ConvAxis y, x; /* of the phase */
    int phase;
    JitValue image, row0, row1; /* result rows of the task's band, counted within a phase */
} DepthEmit;

/* Floats of a row of taps. */
static int64_t weight_row(const ConvGeometry *q)
{
    return q->s * conv_group_in(q) * q->c;
}

/* Phases of the result along an axis. */
static int64_t phases(const ConvDepth *d, int axis)
{
    return d->part == CONV_DGRAD ? d->q.stride[axis] : 1;
}

static ConvAxis phase_axis(const ConvDepth *d, int axis, int64_t phase)
{
    return d->part == CONV_DGRAD ? conv_gradient_axis(&d->q, axis, phase)
                                 : conv_forward_axis(&d->q, axis);
}

int64_t conv_depthwise_weights(const ConvGeometry *q)
{
    return q->r * q->s * conv_group_in(q) * q->c;
}

JitValue conv_depthwise_spread(Jit *j, const ConvGeometry *q, JitValue v, int64_t i)
{
    int lane[64];
    int64_t width = conv_group_in(q);
    if (width == 1)
        return v;
    for (int64_t l = 0; l < jit_lanes(j); l++)
        lane[l] = (int)(l / width * width + i);
    return jit_shuffle(j, v, v, lane);
}

/* --- tiles --- */

/* Pixels next to one another; source columns [low, high) from the first pixel's first tap on lie
 * within the image. */
typedef struct DepthTile {
    int64_t pixels, low, high;
} DepthTile;

DepthSpan conv_depthwise_span(const ConvAxis *x, int64_t first, int64_t pixels)
{
    int64_t from = x->origin + first * x->source_step;
    int64_t extent = (pixels - 1) * x->source_step + (x->taps - 1) * x->tap_step + 1;
    int64_t low = from < 0 ? -from : 0, high = x->source - from;
    DepthSpan s = {low < extent ? low : extent, high < extent ? high : extent};
    if (s.high < s.low)
        s.high = s.low;
    return s;
}

/* With 16 registers, 3x3 taps go by fewer pixels than these hold: the fewer the columns that a tile
 * reads, the better memory keeps up, and the sums of one vector are done while those of the next
 * begin.  Those of larger kernels are not. */
static int pixels_most(const DepthEmit *e)
{
    int most = conv_group_in(&e->d->q) == 1 ? PIXELS_MOST : PIXELS_WIDE;
    if (jit_target(e->j)->vector_registers >= 32)
        return most;
    if (conv_group_in(&e->d->q) == 1 && e->x.taps <= 3 && e->y.taps <= 3)
        return e->x.source_step > 1 ? 2 : 4;
    return most / 2;
}

/* Parameters of a tile's function, in order. */
enum { P_BUFS, P_SOURCE, P_WEIGHT, P_TAP_ROWS, P_ROW, P_AHEAD, P_COUNT };

typedef struct TileEmit {
    Jit *j;
    const DepthEmit *e;
    DepthTile tile;
    JitVar sum[PIXELS_MOST];
    JitValue weight[CONV_NARROW_TAPS];
} TileEmit;

static JitValue load(const TileEmit *t, JitVar p, int64_t at, JitValue n_valid)
{
    JitValue index = jit_i64(t->j, at);
    return n_valid ? jit_vload_partial(t->j, jit_get(p), index, n_valid, 0)
                   : jit_vload(t->j, jit_get(p), index);
}

/* The tap under which source column `place` lies for a pixel; -1: none. */
static int64_t tap_over(const ConvAxis *x, int64_t place, int64_t pixel)
{
    int64_t far = place - pixel * x->source_step;
    int64_t tap = x->tap_step ? far / x->tap_step : 0;
    return far >= 0 && tap < x->taps && tap * x->tap_step == far ? tap : -1;
}

/* Channel i of the groups of source column `place`. */
static void add_spread(TileEmit *t, JitValue v, int64_t place, int64_t i)
{
    Jit *j = t->j;
    int64_t width = conv_group_in(&t->e->d->q);
    JitValue x = conv_depthwise_spread(j, &t->e->d->q, v, i);
    for (int64_t p = 0; p < t->tile.pixels; p++) {
        int64_t tap = tap_over(&t->e->x, place, p);
        if (tap >= 0)
            jit_set(j, t->sum[p], jit_vfma(j, x, t->weight[tap * width + i], jit_get(t->sum[p])));
    }
}

static void add_column(TileEmit *t, JitVar source, int64_t place, JitValue n_valid)
{
    const ConvGeometry *q = &t->e->d->q;
    bool used = false;
    for (int64_t p = 0; p < t->tile.pixels; p++)
        used |= tap_over(&t->e->x, place, p) >= 0;
    if (!used)
        return;
    JitValue v = load(t, source, place * q->c, n_valid);
    for (int64_t i = 0; i < conv_group_in(q); i++)
        add_spread(t, v, place, i);
}

static void add_tap_row(TileEmit *t, JitVar source, JitVar weight, JitValue n_valid)
{
    const ConvAxis *x = &t->e->x;
    const ConvGeometry *q = &t->e->d->q;
    int64_t width = conv_group_in(q);
    for (int64_t s = 0; s < x->taps; s++)
        for (int64_t i = 0; i < width; i++) {
            int64_t row = (x->weight_first + s * x->weight_step) * width + i;
            t->weight[s * width + i] = load(t, weight, row * q->c, n_valid);
        }
    for (int64_t place = t->tile.low; place < t->tile.high; place++)
        add_column(t, source, place, n_valid);
}

/* The lines of the result, and of what the epilogue reads, that tiles soon will want: their pixels
 * follow, as far apart as the lines of a vector of channels are. */
static void ask_next_pixels(const TileEmit *t, JitValue c)
{
    Jit *j = t->j;
    const ConvDepth *d = t->e->d;
    int64_t first = t->tile.pixels > PIXELS_AHEAD ? t->tile.pixels : PIXELS_AHEAD;
    for (int64_t p = first; p < first + t->tile.pixels; p++) {
        JitValue ahead = jit_i64(j, p * t->e->x.step);
        epilogue_ask(j, &d->epilogue, d->out_buf, jit_add(j, jit_param(j, P_ROW), ahead), c,
                     jit_lanes(j));
    }
}

/* Floats of the rows that the next result row is the first to read, for each pixel and channel of
 * this one; the phases along a row read the same. */
static int64_t floats_ahead(const DepthEmit *e)
{
    return e->phase % phases(e->d, 1) == 0 ? e->y.source_step * e->x.source_step : 0;
}

/* A tile reads a vector of every pixel, which the hardware does not foresee when pixels are far
 * apart.  So each tile and vector asks for a share of the next rows, in the order of memory. */
static void ask_next_row(const TileEmit *t, JitValue c)
{
    Jit *j = t->j;
    int64_t floats = floats_ahead(t->e) * t->tile.pixels;
    if (!floats)
        return;
    JitValue from = jit_offset(j, jit_param(j, P_AHEAD), jit_mul(j, c, jit_i64(j, floats)));
    jit_prefetch(j, jit_tmp(j, from), jit_i64(j, floats * jit_lanes(j)));
}

/* Channels [c, c + lanes) of the tile. */
static void emit_vector(TileEmit *t, JitValue c, JitValue n_valid)
{
    Jit *j = t->j;
    const ConvDepth *d = t->e->d;
    const ConvAxis *x = &t->e->x, *y = &t->e->y;
    JitVar source = jit_var(j, jit_type_of(jit_param(j, P_SOURCE)), "source");
    JitVar weight = jit_var(j, jit_type_of(jit_param(j, P_WEIGHT)), "weight");
    jit_set(j, source, jit_offset(j, jit_param(j, P_SOURCE), c));
    jit_set(j, weight, jit_offset(j, jit_param(j, P_WEIGHT), c));
    for (int64_t p = 0; p < t->tile.pixels; p++)
        jit_set(j, t->sum[p], jit_vf(j, 0));
    if (!n_valid) {
        ask_next_pixels(t, c);
        ask_next_row(t, c);
    }
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_param(j, P_TAP_ROWS), 1, "r");
    add_tap_row(t, source, weight, n_valid);
    jit_set(j, source,
            jit_offset(j, jit_get(source), jit_i64(j, y->tap_step * x->source * d->q.c)));
    jit_set(j, weight,
            jit_offset(j, jit_get(weight), jit_i64(j, y->weight_step * weight_row(&d->q))));
    jit_end_for(j, &r);
    for (int64_t p = 0; p < t->tile.pixels; p++)
        epilogue_store(j, &d->epilogue, d->out_buf, jit_get(t->sum[p]),
                       jit_add(j, jit_param(j, P_ROW), jit_i64(j, p * x->step)), c, n_valid);
}

/* The last channels are done with the ones before them once more where that fills a vector: masked
 * loads are slower.  Not where the epilogue reads what the first time overwrote. */
static void emit_channels(TileEmit *t)
{
    Jit *j = t->j;
    int64_t channels = t->e->d->q.c, whole = channels / jit_lanes(j) * jit_lanes(j);
    if (whole) {
        JitLoop c = jit_for(j, jit_i64(j, 0), jit_i64(j, whole), jit_lanes(j), "c");
        emit_vector(t, jit_tmp(j, jit_index(&c)), NULL);
        jit_end_for(j, &c);
    }
    if (whole == channels)
        return;
    if (whole && !epilogue_may_alias(&t->e->d->epilogue))
        emit_vector(t, jit_i64(j, channels - jit_lanes(j)), NULL);
    else
        emit_vector(t, jit_i64(j, whole), jit_i64(j, channels - whole));
}

static JitFunction tile_function(const DepthEmit *e, const DepthTile *tile)
{
    Jit *j = e->j;
    const JitTypes *ty = jit_types(j);
    char name[96];
    snprintf(name, sizeof name, "depthwise_%d_%lld_%lld_%lld", e->phase, (long long)tile->pixels,
             (long long)tile->low, (long long)tile->high);
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[P_COUNT] = {[P_BUFS] = jit_pointer_to(j, ty->p_char),
                                    [P_SOURCE] = jit_real_pointer(j, e->d->a_buf),
                                    [P_WEIGHT] = jit_real_pointer(j, e->d->weight_buf),
                                    [P_TAP_ROWS] = ty->i64,
                                    [P_ROW] = ty->i64,
                                    [P_AHEAD] = jit_real_pointer(j, e->d->a_buf)};
    f = jit_function_begin(j, name, ty->none, P_COUNT, types);
    jit_function_bufs(j, P_BUFS);
    TileEmit t = {.j = j, .e = e, .tile = *tile};
    for (int64_t p = 0; p < tile->pixels; p++)
        t.sum[p] = jit_var(j, ty->vf, "sum");
    emit_channels(&t);
    jit_function_end(j);
    return f;
}

/* --- rows --- */

/* What the tiles of one result row share. */
typedef struct DepthRow {
    JitValue source;   /* column 0 of the source row under the first tap row, channel 0 */
    JitValue weight;   /* of the first tap row */
    JitValue tap_rows; /* that lie within the image */
    JitValue row;      /* of the result: pixel 0 */
    JitValue ahead;    /* of the source: behind the rows of all taps */
} DepthRow;

static JitValue row_ahead(const DepthEmit *e, JitValue i)
{
    Jit *j = e->j;
    const ConvAxis *y = &e->y;
    int64_t taps = y->taps ? (y->taps - 1) * y->tap_step + 1 : 0;
    JitValue at = jit_muladd_i64(j, i, y->source_step, jit_i64(j, y->origin + taps));
    at = jit_muladd_i64(j, e->image, y->source, at);
    JitValue from = jit_mul(j, at, jit_i64(j, e->x.source * e->d->q.c));
    int buf = e->d->a_buf + (e->d->a_made != 0);
    return jit_tmp(j, jit_offset(j, jit_buf(j, buf, jit_types(j)->p_f32), from));
}

static DepthRow find_row(const DepthEmit *e, JitValue i)
{
    Jit *j = e->j;
    const ConvAxis *y = &e->y, *x = &e->x;
    const ConvGeometry *q = &e->d->q;
    int64_t step = y->tap_step ? y->tap_step : 1;
    JitValue zero = jit_i64(j, 0), by = jit_i64(j, step), more = jit_i64(j, step - 1);
    JitValue top = jit_tmp(j, jit_muladd_i64(j, i, y->source_step, jit_i64(j, y->origin)));
    JitValue above = jit_max_i64(j, jit_sub(j, zero, top), zero);
    JitValue below = jit_max_i64(j, jit_sub(j, jit_i64(j, y->source), top), zero);
    JitValue low = jit_tmp(j, jit_div(j, jit_add(j, above, more), by));
    JitValue high = jit_min_i64(j, jit_div(j, jit_add(j, below, more), by), jit_i64(j, y->taps));
    JitValue from =
        jit_muladd_i64(j, e->image, y->source, jit_muladd_i64(j, low, y->tap_step, top));
    JitValue tap = jit_muladd_i64(j, low, y->weight_step, jit_i64(j, y->weight_first));
    JitValue to = jit_muladd_i64(j, i, y->step, jit_i64(j, y->first));
    to = jit_muladd_i64(j, e->image, y->result, to);
    JitType p = jit_types(j)->p_f32;
    DepthRow r = {
        jit_offset(j, jit_buf(j, e->d->a_buf, p), jit_mul(j, from, jit_i64(j, x->source * q->c))),
        jit_offset(j, jit_buf(j, e->d->weight_buf, p), jit_mul(j, tap, jit_i64(j, weight_row(q)))),
        jit_tmp(j, jit_sub(j, high, low)), jit_tmp(j, jit_mul(j, to, jit_i64(j, x->result))),
        row_ahead(e, i)};
    r.source = jit_tmp(j, r.source);
    r.weight = jit_tmp(j, r.weight);
    return r;
}

/* `count` equal tiles one after the other. */
static void emit_tiles(const DepthEmit *e, const DepthRow *row, const DepthTile *tile,
                       int64_t first, int64_t count)
{
    Jit *j = e->j;
    const ConvAxis *x = &e->x;
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, count), 1, "tile");
    JitValue pixel = jit_tmp(j, jit_muladd_i64(j, jit_index(&l), tile->pixels, jit_i64(j, first)));
    JitValue column = jit_muladd_i64(j, pixel, x->source_step, jit_i64(j, x->origin));
    JitValue place = jit_muladd_i64(j, pixel, x->step, jit_i64(j, x->first));
    const JitValue args[P_COUNT] = {
        [P_BUFS] = jit_bufs(j),
        [P_SOURCE] = jit_offset(j, row->source, jit_mul(j, column, jit_i64(j, e->d->q.c))),
        [P_WEIGHT] = row->weight,
        [P_TAP_ROWS] = row->tap_rows,
        [P_ROW] = jit_add(j, row->row, place),
        [P_AHEAD] =
            jit_offset(j, row->ahead, jit_mul(j, pixel, jit_i64(j, floats_ahead(e) * e->d->q.c)))};
    jit_call_void(j, tile_function(e, tile), P_COUNT, args);
    jit_end_for(j, &l);
}

static DepthTile tile_at(const DepthEmit *e, const TileSplit *split, int64_t i, int64_t *first)
{
    int64_t pixels = split->base + (i < split->extra);
    *first = i * split->base + (i < split->extra ? i : split->extra);
    DepthSpan s = conv_depthwise_span(&e->x, *first, pixels);
    DepthTile t = {pixels, s.low, s.high};
    return t;
}

static void emit_row(const DepthEmit *e, const DepthRow *row)
{
    TileSplit split = tile_split(e->x.count, pixels_most(e));
    for (int64_t i = 0, next; i < split.tiles; i = next) {
        int64_t first, other;
        DepthTile tile = tile_at(e, &split, i, &first);
        for (next = i + 1; next < split.tiles; next++) {
            DepthTile t = tile_at(e, &split, next, &other);
            if (t.pixels != tile.pixels || t.low != tile.low || t.high != tile.high)
                break;
        }
        emit_tiles(e, row, &tile, first, next - i);
    }
}

static void emit_phase_rows(DepthEmit *e, int64_t phase_y)
{
    Jit *j = e->j;
    e->y = phase_axis(e->d, 0, phase_y);
    JitValue end = jit_min_i64(j, e->row1, jit_i64(j, e->y.count));
    JitLoop i = jit_for(j, e->row0, end, 1, "i");
    JitValue row = jit_tmp(j, jit_index(&i));
    for (int64_t px = 0; px < phases(e->d, 1); px++) {
        e->x = phase_axis(e->d, 1, px);
        e->phase = (int)(phase_y * phases(e->d, 1) + px);
        if (!e->x.count)
            continue;
        DepthRow r = find_row(e, row);
        emit_row(e, &r);
    }
    jit_end_for(j, &i);
}

static int64_t rows_of_first_phase(const ConvDepth *d)
{
    return phase_axis(d, 0, 0).count;
}

static int64_t bands(const ConvDepth *d)
{
    return divide_up(rows_of_first_phase(d), d->band_rows);
}

int64_t conv_depthwise_tasks(const ConvDepth *d)
{
    return phase_axis(d, 1, 0).count && d->q.c ? d->q.images * bands(d) : 0;
}

static ConvBands spans_of(const ConvDepth *d)
{
    return (ConvBands){.units = d->q.images, .images = 1, .rows = d->band_rows, .tasks = 1};
}

/* Of a data gradient, a band is rows of all phases. */
TaskSpans *conv_depthwise_writes(Pool *pool, const ConvDepth *d)
{
    ConvAxis y = phase_axis(d, 0, 0);
    ConvBands b = spans_of(d);
    return conv_bands_written(pool, &b, &y, phase_axis(d, 1, 0).result * d->q.c);
}

TaskSpans *conv_depthwise_reads(Pool *pool, const ConvDepth *d)
{
    ConvAxis y = phase_axis(d, 0, 0);
    ConvBands b = spans_of(d);
    if (phases(d, 0) * phases(d, 1) > 1)
        return NULL;
    return conv_bands_read(pool, &b, &y, phase_axis(d, 1, 0).source * d->q.c);
}

/* Of the source, under a band. */
static int64_t band_floats(const ConvDepth *d)
{
    ConvAxis y = phase_axis(d, 0, 0);
    return conv_axis_span(&y, d->band_rows) * d->q.w * d->q.c;
}

void conv_depthwise_plan(ConvDepth *d)
{
    d->band_rows = rows_of_first_phase(d) ? rows_of_first_phase(d) : 1;
    while (d->band_rows > BAND_LEAST && d->q.images * bands(d) < TASKS_WANTED)
        d->band_rows = divide_up(d->band_rows, 2);
    while (d->a_made && d->band_rows > 1 && band_floats(d) > PROLOGUE_BAND)
        d->band_rows = divide_up(d->band_rows, 2);
}

void conv_depthwise_emit(Jit *j, const void *desc)
{
    DepthEmit e = {.j = j, .d = desc};
    JitValue parts = jit_i64(j, bands(e.d)), size = jit_i64(j, e.d->band_rows);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    e.image = jit_tmp(j, jit_div(j, jit_index(&task), parts));
    e.row0 = jit_tmp(j, jit_mul(j, jit_mod(j, jit_index(&task), parts), size));
    e.row1 = jit_tmp(j, jit_add(j, e.row0, size));
    for (int64_t py = 0; py < phases(e.d, 0); py++)
        emit_phase_rows(&e, py);
    jit_end_for(j, &task);
}

/* --- weights of the data gradient: [r, s, i, c] = weight [r, s, c mod width, group of c, i] --- */

int64_t conv_depthwise_pack_tasks(const ConvDepth *d)
{
    return d->q.r * d->q.s * conv_group_in(&d->q);
}

void conv_depthwise_pack_emit(Jit *j, const void *desc)
{
    const ConvDepth *d = desc;
    const ConvGeometry *q = &d->q;
    JitType p = jit_types(j)->p_f32;
    JitValue width = jit_i64(j, conv_group_in(q)), zero = jit_i64(j, 0);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue tap = jit_tmp(j, jit_div(j, jit_index(&task), width));
    JitValue i = jit_tmp(j, jit_mod(j, jit_index(&task), width));
    JitLoop group = jit_for(j, zero, jit_i64(j, q->groups), 1, "group");
    JitLoop l = jit_for(j, zero, width, 1, "l");
    JitValue first = jit_tmp(j, jit_mul(j, jit_index(&group), width));
    JitValue row = jit_muladd_i64(j, tap, conv_group_in(q), jit_index(&l));
    JitValue from = jit_muladd_i64(j, row, q->k, jit_add(j, first, i));
    JitValue to = jit_muladd_i64(j, jit_index(&task), q->c, jit_add(j, first, jit_index(&l)));
    jit_store(j, jit_buf(j, d->weight_buf, p), to, jit_load(j, jit_buf(j, d->b_buf, p), from));
    jit_end_for(j, &l);
    jit_end_for(j, &group);
    jit_end_for(j, &task);
}
