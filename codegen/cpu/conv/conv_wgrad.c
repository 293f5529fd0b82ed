/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight gradient: dw[r, s, c, k] = sum over pixels of x[.., c] * dy[.., k].  A task owns one
 * kernel row r, a block of input channels and a group of panels of output channels, and goes over
 * all rows of dy in order: the order of an element's sum is fixed, whatever the number of threads.
 *
 * A small gradient of large images would have few tasks that each read everything; there a task
 * owns a chunk of the rows of dy instead, with partial sums in the workspace (conv_join.c). */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/gemm/gemm_ahead.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "ir/support/divide.h"
#include "runtime/abi.h"

enum { CHANNELS_LEAST = 32 /* of a block */ };

/* What a variant has in the place of the default. */
typedef struct WgradVariant {
    const char *name;
    int vectors; /* of the tile; 0: by its cost */
    int64_t tasks;
    int64_t dy_bytes; /* of dy that is packed once for all kernel rows */
} WgradVariant;

static const WgradVariant variants[] = {
    {"default", 0, 6, 192 * 1024},  {"tile1", 1, 6, 192 * 1024}, {"tile2", 2, 6, 192 * 1024},
    {"tile3", 3, 6, 192 * 1024},    {"tile4", 4, 6, 192 * 1024}, {"tasks2", 0, 2, 192 * 1024},
    {"tasks12", 0, 12, 192 * 1024}, {"dy_panel", 0, 6, 0},       {"dy_double", 0, 6, 384 * 1024},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static const char *variant_name(int index)
{
    return index < N_VARIANTS ? variants[index].name : NULL;
}

const KernelFamily conv_wgrad_family = {"conv_dw", variant_name};

static int64_t x_row_floats(const ConvWgrad *w)
{
    return conv_x_columns(&w->q) * w->channel_block;
}

/* Channels of one block under all s are neighbours in the copy and in the result. */
static bool joined(const ConvWgrad *w)
{
    return w->q.dilation[1] == 1 && w->channel_blocks == 1;
}

int64_t conv_wgrad_tasks(const ConvWgrad *w)
{
    const ConvGeometry *q = &w->q;
    return w->chunks * q->groups * (w->split_rows ? q->r : 1) * w->channel_blocks * w->panel_groups;
}

/* Of one panel of a band of dy. */
static int64_t packed_floats(const ConvWgrad *w, int lanes)
{
    return w->band_rows * w->q.ow * w->shape.vectors * lanes;
}

static int64_t scratch_bytes(const ConvWgrad *w, const Target *t)
{
    int64_t dy = (w->pack_once ? w->panels : 1) * packed_floats(w, t->vector_floats);
    return 4 * (w->band_rows * x_row_floats(w) + 64 + dy);
}

static void set_channel_blocks(ConvWgrad *w, int64_t blocks)
{
    w->channel_block = divide_up(conv_group_in(&w->q), blocks);
    w->channel_blocks = divide_up(conv_group_in(&w->q), w->channel_block);
}

/* False where scratch has no room. */
static bool plan_as(ConvWgrad *w, const Target *t, const WgradVariant *v)
{
    const ConvGeometry *q = &w->q;
    int64_t channels = conv_group_in(q);
    set_channel_blocks(w, 1);
    w->shape = tile_shape_of(t, divide_up(conv_group_out(q), t->vector_floats),
                             joined(w) ? q->s * channels : channels, v->vectors);
    w->panels = divide_up(conv_group_out(q), (int64_t)w->shape.vectors * t->vector_floats);
    w->panel_groups = 1;
    w->split_rows = false;
    w->band_rows = conv_band_rows(q);
    int64_t blocks = 1;
    while (conv_wgrad_tasks(w) < v->tasks && w->panels >= 2 * w->panel_groups)
        w->panel_groups *= 2;
    /* Whole pixels are read faster than parts of them, so channels are split last. */
    w->split_rows = conv_wgrad_tasks(w) < v->tasks;
    while (conv_wgrad_tasks(w) < v->tasks && channels / (2 * blocks) >= CHANNELS_LEAST)
        set_channel_blocks(w, blocks *= 2);
    while (4 * x_row_floats(w) > CONV_BAND_BYTES && w->channel_block > 1)
        set_channel_blocks(w, blocks *= 2);
    w->pack_once = !w->split_rows && q->r > 1 && w->panel_groups == 1 &&
                   4 * w->panels * packed_floats(w, t->vector_floats) <= v->dy_bytes;
    return scratch_bytes(w, t) <= SCRIMP_WORK_BYTES;
}

void conv_wgrad_plan(ConvWgrad *w, const Target *t, int variant)
{
    if (!plan_as(w, t, &variants[variant]) && !plan_as(w, t, &variants[0]))
        BUG("a weight gradient needs %lld bytes of scratch memory", (long long)scratch_bytes(w, t));
}

/* --- code --- */

/* What emit_panels does with each panel. */
typedef enum PanelWork { PACKING_AND_TILES, PACKING, TILES } PanelWork;

typedef struct WgradEmit {
    Jit *j;
    const ConvWgrad *w;
    PanelWork doing;
    JitValue group, r, block, panel0, panel1;
    JitValue channel0, channels; /* of the block, within the group */
    JitValue row0, rows;         /* of dy, images after one another */
    JitValue begin, end;         /* rows of the task's chunk */
    JitValue sums;               /* where sums wait: the result, or the chunk's part of workspace */
    JitValue first, last;
    JitValue x, dy;        /* copies in scratch */
    Ahead next_x, next_dy; /* of the next band */
    JitVar turn;           /* tiles of this band so far */
} WgradEmit;

static int64_t panel_floats(const WgradEmit *e)
{
    return (int64_t)e->w->shape.vectors * jit_lanes(e->j);
}

/* chunk: used when there are several. */
static void find_chunk(WgradEmit *e, JitValue chunk)
{
    Jit *j = e->j;
    const ConvWgrad *w = e->w;
    const ConvGeometry *q = &w->q;
    int64_t rows = q->images * q->oh, floats = q->r * q->s * conv_group_in(q) * q->k;
    JitType p = jit_types(j)->p_f32;
    e->begin = jit_i64(j, 0);
    e->end = jit_i64(j, rows);
    e->sums = jit_buf(j, w->out_buf, p);
    if (w->chunks == 1)
        return;
    e->begin = part_start(j, chunk, rows, w->chunks);
    e->end = part_start(j, jit_add(j, chunk, jit_i64(j, 1)), rows, w->chunks);
    e->sums = jit_tmp(
        j, jit_offset(j, jit_buf(j, w->partial_buf, p), jit_mul(j, chunk, jit_i64(j, floats))));
}

static void decode_task(WgradEmit *e, JitValue task)
{
    Jit *j = e->j;
    const ConvWgrad *w = e->w;
    JitValue rest = task, one = jit_i64(j, 1);
    JitValue part = take_digit(j, &rest, w->panel_groups);
    e->panel0 = part_start(j, part, w->panels, w->panel_groups);
    e->panel1 = part_start(j, jit_add(j, part, one), w->panels, w->panel_groups);
    e->block = take_digit(j, &rest, w->channel_blocks);
    e->r = w->split_rows ? take_digit(j, &rest, w->q.r) : NULL;
    e->group = w->chunks == 1 ? rest : take_digit(j, &rest, w->q.groups);
    find_chunk(e, rest);
    e->channel0 = jit_tmp(j, jit_mul(j, e->block, jit_i64(j, w->channel_block)));
    e->channels =
        jit_tmp(j, jit_min_i64(j, jit_i64(j, w->channel_block),
                               jit_sub(j, jit_i64(j, conv_group_in(&w->q)), e->channel0)));
}

static JitValue clamp(Jit *j, JitValue v, JitValue most)
{
    return jit_min_i64(j, jit_max_i64(j, v, jit_i64(j, 0)), most);
}

/* x under row `row` of dy: kernel row r, the block's channels, zeros outside of the image. */
static void copy_inside(const WgradEmit *e, JitValue to, JitValue image, JitValue y)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->w->q;
    int64_t lo = q->pad[1] < conv_x_columns(q) ? q->pad[1] : conv_x_columns(q);
    int64_t hi = q->w + q->pad[1] < conv_x_columns(q) ? q->w + q->pad[1] : conv_x_columns(q);
    int64_t pixel = e->w->channel_block;
    JitValue at =
        jit_muladd_i64(j, jit_muladd_i64(j, image, q->h, y), q->w, jit_i64(j, lo - q->pad[1]));
    at = jit_muladd_i64(j, at, q->c, jit_muladd_i64(j, e->group, conv_group_in(q), e->channel0));
    JitValue from = jit_offset(j, jit_buf(j, e->w->x_buf, jit_types(j)->p_f32), at);
    JitValue zero = jit_i64(j, 0);
    if (lo)
        pack_zero(j, to, jit_i64(j, lo * pixel));
    if (hi < conv_x_columns(q))
        pack_zero(j, jit_offset(j, to, jit_i64(j, hi * pixel)),
                  jit_i64(j, (conv_x_columns(q) - hi) * pixel));
    JitValue target = jit_offset(j, to, jit_i64(j, lo * pixel));
    if (e->w->channel_blocks == 1 && q->groups == 1)
        pack_rows(j, target, zero, from, zero, jit_i64(j, 1), jit_i64(j, (hi - lo) * pixel));
    else
        pack_rows(j, target, jit_i64(j, pixel), from, jit_i64(j, q->c), jit_i64(j, hi - lo),
                  e->channels);
}

static void copy_x(const WgradEmit *e)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->w->q;
    int64_t floats = x_row_floats(e->w);
    JitLoop l = jit_for(j, jit_i64(j, 0), e->rows, 1, "row");
    JitValue row = jit_tmp(j, jit_add(j, e->row0, jit_index(&l)));
    JitValue image = jit_tmp(j, jit_div(j, row, jit_i64(j, q->oh)));
    JitValue y = jit_muladd_i64(j, e->r, q->dilation[0], jit_i64(j, -q->pad[0]));
    y = jit_tmp(j, jit_muladd_i64(j, jit_mod(j, row, jit_i64(j, q->oh)), q->stride[0], y));
    JitValue to = jit_tmp(j, jit_offset(j, e->x, jit_mul(j, jit_index(&l), jit_i64(j, floats))));
    JitValue near = clamp(j, y, jit_i64(j, q->h - 1));
    JitIf s = jit_if(j, jit_compare(j, JIT_EQ, y, near));
    copy_inside(e, to, image, y);
    jit_else(j, &s);
    pack_zero(j, to, jit_i64(j, floats));
    jit_end_if(j, &s);
    jit_end_for(j, &l);
}

/* One piece of the result's rows: channels of one s, or of all. */
typedef struct Segment {
    JitValue a;     /* in the copy */
    JitValue row;   /* of the result */
    int64_t length; /* rows */
} Segment;

static Tile make_tile(const WgradEmit *e, int rows, int64_t columns)
{
    const ConvWgrad *w = e->w;
    int lanes = jit_lanes(e->j), vectors = (int)divide_up(columns, lanes);
    int64_t width = (int64_t)vectors * lanes;
    Tile t = {.rows = rows,
              .vectors = vectors,
              .last_lanes = (int)(columns - (width - lanes)),
              .b_packed = true,
              .partial_stride = w->q.k,
              .n_loops = 2,
              .out_buf = w->out_buf,
              .epilogue = &w->epilogue};
    for (int i = 0; i < rows; i++)
        t.a_row[i] = t.out_row[i] = i;
    t.loop[0] = (TileLoop){TILE_STEPS, x_row_floats(w), w->q.ow * width};
    t.loop[1] = (TileLoop){w->q.ow, w->q.stride[1] * w->channel_block, width};
    return t;
}

static void sweep(const WgradEmit *e, const Segment *s, JitValue col, int64_t columns, int rows,
                  int64_t from, int64_t count)
{
    Jit *j = e->j;
    if (!count)
        return;
    Tile tile = make_tile(e, rows, columns);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, count), 1, "tile");
    ahead_ask(j, &e->next_x, jit_get(e->turn));
    ahead_ask(j, &e->next_dy, jit_get(e->turn));
    jit_set(j, e->turn, jit_add(j, jit_get(e->turn), jit_i64(j, 1)));
    JitValue at = jit_tmp(j, jit_muladd_i64(j, jit_index(&l), rows, jit_i64(j, from)));
    JitValue row = jit_tmp(j, jit_add(j, s->row, at));
    TileArgs args = {.a = jit_offset(j, s->a, at),
                     .b = e->dy,
                     .partial = jit_offset(j, e->sums, jit_muladd_i64(j, row, e->w->q.k, col)),
                     .row = row,
                     .col = col,
                     .steps = e->rows,
                     .first = e->first,
                     .last = e->last};
    tile_call(j, &tile, &args);
    jit_end_for(j, &l);
}

static void emit_segment(const WgradEmit *e, const Segment *s, JitValue col, int64_t columns)
{
    TileSplit t = tile_split(s->length, e->w->shape.rows);
    sweep(e, s, col, columns, (int)t.base + 1, 0, t.extra);
    sweep(e, s, col, columns, (int)t.base, t.extra * (t.base + 1), t.tiles - t.extra);
}

/* Rows of the result of kernel column s and channels of the block. */
static void emit_block(const WgradEmit *e, JitValue s, int64_t channels, JitValue col,
                       int64_t columns)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->w->q;
    JitValue rs = jit_muladd_i64(j, e->r, q->s, s);
    Segment g = {
        .a =
            jit_tmp(j, jit_offset(j, e->x,
                                  jit_mul(j, s, jit_i64(j, q->dilation[1] * e->w->channel_block)))),
        .row = jit_tmp(j, jit_muladd_i64(j, rs, conv_group_in(q), e->channel0)),
        .length = channels};
    emit_segment(e, &g, col, columns);
}

static void emit_channels(const WgradEmit *e, JitValue col, int64_t columns)
{
    Jit *j = e->j;
    const ConvWgrad *w = e->w;
    int64_t channels = conv_group_in(&w->q), rest = channels % w->channel_block;
    if (joined(w)) {
        emit_block(e, jit_i64(j, 0), w->q.s * channels, col, columns);
        return;
    }
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, w->q.s), 1, "s");
    JitValue s = jit_tmp(j, jit_index(&l));
    JitIf full = jit_if(j, jit_compare(j, JIT_EQ, e->channels, jit_i64(j, w->channel_block)));
    emit_block(e, s, w->channel_block, col, columns);
    jit_else(j, &full);
    if (rest)
        emit_block(e, s, rest, col, columns);
    jit_end_if(j, &full);
    jit_end_for(j, &l);
}

/* First output channel of a panel. */
static JitValue panel_column(const WgradEmit *e, JitValue panel)
{
    Jit *j = e->j;
    return jit_tmp(j, jit_muladd_i64(j, e->group, conv_group_out(&e->w->q),
                                     jit_mul(j, panel, jit_i64(j, panel_floats(e)))));
}

static void pack_dy(const WgradEmit *e, JitValue panel, int64_t columns)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->w->q;
    int lanes = jit_lanes(j), vectors = (int)divide_up(columns, lanes);
    JitValue pixel = jit_tmp(j, jit_mul(j, e->row0, jit_i64(j, q->ow)));
    JitValue from = jit_offset(j, jit_buf(j, e->w->dy_buf, jit_types(j)->p_f32),
                               jit_muladd_i64(j, pixel, q->k, panel_column(e, panel)));
    PackPanel p = {vectors, columns, q->k, 1};
    /* The last pixels of dy have nothing behind them that may be read. */
    int64_t over = (int64_t)vectors * lanes - columns;
    int64_t all = q->images * q->oh * q->ow - (over + q->k - 1) / q->k;
    pack_panel(j, &p, e->dy, from, jit_mul(j, e->rows, jit_i64(j, q->ow)),
               jit_sub(j, jit_i64(j, all), pixel));
}

static void emit_panel(const WgradEmit *e, JitValue panel, int64_t columns)
{
    if (e->doing != TILES)
        pack_dy(e, panel, columns);
    if (e->doing != PACKING)
        emit_channels(e, panel_column(e, panel), columns);
}

/* Packed dy of a panel. */
static WgradEmit at_panel(const WgradEmit *e, JitValue panel)
{
    WgradEmit at = *e;
    JitValue floats = jit_i64(e->j, packed_floats(e->w, jit_lanes(e->j)));
    if (e->w->pack_once)
        at.dy = jit_tmp(e->j, jit_offset(e->j, e->dy, jit_mul(e->j, panel, floats)));
    return at;
}

static void emit_panels(const WgradEmit *e)
{
    Jit *j = e->j;
    int64_t columns = conv_group_out(&e->w->q);
    int64_t whole = columns / panel_floats(e), rest = columns % panel_floats(e);
    if (whole) {
        JitLoop l = jit_for(j, e->panel0, jit_min_i64(j, e->panel1, jit_i64(j, whole)), 1, "panel");
        JitValue panel = jit_tmp(j, jit_index(&l));
        WgradEmit at = at_panel(e, panel);
        emit_panel(&at, panel, panel_floats(e));
        jit_end_for(j, &l);
    }
    if (rest) {
        JitIf s = jit_if(j, jit_compare(j, JIT_GT, e->panel1, jit_i64(j, whole)));
        WgradEmit at = at_panel(e, jit_i64(j, whole));
        emit_panel(&at, jit_i64(j, whole), rest);
        jit_end_if(j, &s);
    }
}

static void plan_scratch(WgradEmit *e)
{
    Jit *j = e->j;
    int64_t floats = (e->w->band_rows * x_row_floats(e->w) + 15) / 16 * 16;
    e->x = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    e->dy = jit_tmp(j, jit_offset(j, e->x, jit_i64(j, floats)));
}

/* Tiles that a band has. */
static JitValue band_tiles(const WgradEmit *e)
{
    const ConvWgrad *w = e->w;
    const ConvGeometry *q = &w->q;
    int64_t length = joined(w) ? q->s * conv_group_in(q) : w->channel_block;
    int64_t tiles = tile_split(length, w->shape.rows).tiles * (joined(w) ? 1 : q->s);
    JitValue panels = jit_sub(e->j, e->panel1, e->panel0);
    return jit_tmp(e->j, jit_mul(e->j, panels, jit_i64(e->j, tiles * (w->split_rows ? 1 : q->r))));
}

/* The rows of x and dy that the next band is the first to read: as many of an image, wherever it
 * ends. */
static void plan_next_band(WgradEmit *e)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->w->q;
    JitType p = jit_types(j)->p_f32;
    JitValue next = jit_tmp(j, jit_add(j, e->row0, e->rows));
    JitValue rows = jit_tmp(j, jit_min_i64(j, jit_sub(j, e->end, next), e->rows));
    JitValue tiles = band_tiles(e), columns = jit_i64(j, panel_floats(e));
    JitValue image = jit_tmp(j, jit_div(j, next, jit_i64(j, q->oh)));
    JitValue r = e->w->split_rows ? e->r : jit_i64(j, q->r - 1);
    JitValue y = jit_muladd_i64(j, r, q->dilation[0], jit_i64(j, -q->pad[0]));
    y = jit_muladd_i64(j, jit_mod(j, next, jit_i64(j, q->oh)), q->stride[0], y);
    JitValue at = jit_mul(j, jit_muladd_i64(j, image, q->h, y), jit_i64(j, q->w * q->c));
    at = jit_add(j, at, jit_muladd_i64(j, e->group, conv_group_in(q), e->channel0));
    JitValue pixels = jit_tmp(j, jit_mul(j, rows, jit_i64(j, q->stride[0] * q->w)));
    int x = e->w->x_buf + (e->w->x_made != 0);
    e->next_x = ahead_of(j, jit_offset(j, jit_buf(j, x, p), at), pixels, q->c, e->channels, tiles);
    pixels = jit_tmp(j, jit_mul(j, rows, jit_i64(j, q->ow)));
    at = jit_muladd_i64(j, jit_mul(j, next, jit_i64(j, q->ow)), q->k, panel_column(e, e->panel0));
    columns = jit_tmp(j, jit_mul(j, columns, jit_sub(j, e->panel1, e->panel0)));
    e->next_dy =
        ahead_of(j, jit_offset(j, jit_buf(j, e->w->dy_buf, p), at), pixels, q->k, columns, tiles);
    jit_set(j, e->turn, jit_i64(j, 0));
}

static void emit_kernel_row(const WgradEmit *e)
{
    copy_x(e);
    emit_panels(e);
}

/* All kernel rows while the band's x and dy are near. */
static void emit_kernel_rows(WgradEmit *e)
{
    if (e->w->pack_once) {
        e->doing = PACKING;
        emit_panels(e);
        e->doing = TILES;
    }
    JitLoop l = jit_for(e->j, jit_i64(e->j, 0), jit_i64(e->j, e->w->q.r), 1, "r");
    e->r = jit_tmp(e->j, jit_index(&l));
    emit_kernel_row(e);
    jit_end_for(e->j, &l);
}

static void emit_band(WgradEmit *e, JitValue row0)
{
    Jit *j = e->j;
    JitValue band = jit_i64(j, e->w->band_rows);
    e->row0 = row0;
    e->rows = jit_min_i64(j, band, jit_sub(j, e->end, row0));
    e->first = jit_tmp(j, jit_compare(j, JIT_EQ, row0, e->begin));
    e->last = jit_tmp(j, jit_compare(j, JIT_GE, jit_add(j, row0, band), e->end));
    if (e->w->chunks > 1)
        e->last = jit_cast(j, jit_i32(j, 0), jit_types(j)->boolean);
    plan_next_band(e);
    if (e->w->split_rows)
        emit_kernel_row(e);
    else
        emit_kernel_rows(e);
}

void conv_wgrad_emit(Jit *j, const void *desc)
{
    WgradEmit e = {.j = j, .w = desc};
    const ConvGeometry *q = &e.w->q;
    plan_scratch(&e);
    e.turn = jit_var(j, jit_types(j)->i64, "turn");
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    decode_task(&e, jit_tmp(j, jit_index(&task)));
    /* Without pixels one empty band stores zeros. */
    JitValue from = e.begin, to = q->images && q->oh ? e.end : jit_i64(j, 1);
    if (e.w->x_made) {
        from = jit_tmp(j, jit_max_i64(j, from, jit_number(j, e.w->steps)));
        to = jit_tmp(j, jit_min_i64(j, to, jit_number(j, e.w->steps + 1)));
    }
    JitLoop band = jit_for(j, from, to, e.w->band_rows, "band");
    emit_band(&e, jit_tmp(j, jit_index(&band)));
    jit_end_for(j, &band);
    jit_end_for(j, &task);
}

ReadPieces *conv_wgrad_pieces(Pool *pool, const ConvWgrad *w)
{
    int64_t tasks = conv_wgrad_tasks(w) / w->chunks;
    return conv_sum_pieces(pool, &w->q, w->steps, w->chunks, tasks, w->band_rows);
}

void conv_wgrad_join(ConvJoin *join, const ConvWgrad *w)
{
    const ConvGeometry *q = &w->q;
    *join = (ConvJoin){.chunks = w->chunks,
                       .rows = q->r * q->s * conv_group_in(q),
                       .columns = q->k,
                       .row_floats = q->k,
                       .partial_buf = w->partial_buf,
                       .out_buf = w->out_buf,
                       .epilogue = w->epilogue};
}
