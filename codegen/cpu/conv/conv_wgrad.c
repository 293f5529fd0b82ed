/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight gradient: dw[r, s, c, k] = sum over pixels of x[.., c] * dy[.., k].  A task owns one
 * kernel row r, a block of input channels and a group of panels of output channels, and goes over
 * all rows of dy in order: the order of an element's sum is fixed, whatever the number of threads.
 * Tasks that a thread has one after another go over the rows together, band by band, as long as the
 * second-level cache has their sums: else each of them would read x and dy from memory anew.
 *
 * A small gradient of large images would have few tasks that each read everything; there a task
 * owns a chunk of the rows of dy besides, with partial sums in the workspace (conv_join.c). */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/gemm/gemm_ahead.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/divide.h"

/* What emit_panels does with each panel. */
typedef enum PanelWork { PACKING_AND_TILES, PACKING, TILES } PanelWork;

typedef struct WgradEmit {
    Jit *j;
    const ConvWgrad *w;
    PanelWork doing;
    JitValue group, block0;          /* of the set: its group, and its first block of channels */
    JitValue task0, task1;           /* of the run, within the set */
    JitValue run_panel0, run_panel1; /* panels of the run's tasks */
    JitValue run_block0, run_block1; /* blocks of channels of these, within the set */
    JitValue r, panel0, panel1;      /* row of the kernel, and what the run has of panels there */
    JitValue channel0, channels;     /* within the group */
    JitValue row0, rows;             /* of dy, images after one another */
    JitValue begin, end;             /* rows of the task's chunk */
    JitValue sums; /* where sums wait: the result, or the chunk's part of workspace */
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

static JitValue part_of_panels(const WgradEmit *e, JitValue group)
{
    return part_start(e->j, group, e->w->panels, e->w->panel_groups);
}

/* Channels of blocks [block, end) within the group. */
static void take_channels(WgradEmit *e, JitValue block, JitValue end)
{
    Jit *j = e->j;
    JitValue each = jit_i64(j, e->w->channel_block), all = jit_i64(j, conv_group_in(&e->w->q));
    e->channel0 = jit_tmp(j, jit_mul(j, block, each));
    e->channels = jit_tmp(j, jit_sub(j, jit_min_i64(j, jit_mul(j, end, each), all), e->channel0));
}

static void find_set(WgradEmit *e, JitValue set)
{
    JitValue rest = set;
    e->block0 = jit_i64(e->j, 0);
    if (e->w->run_blocks < e->w->channel_blocks)
        e->block0 = take_digit(e->j, &rest, e->w->channel_blocks);
    e->group = e->w->chunks == 1 ? rest : take_digit(e->j, &rest, e->w->q.groups);
    find_chunk(e, rest);
}

/* Tasks of one block have some panels, tasks of more than one block may have any. */
static void find_run(WgradEmit *e, JitValue task0, JitValue task1)
{
    Jit *j = e->j;
    const ConvWgrad *w = e->w;
    JitValue one = jit_i64(j, 1), r = jit_i64(j, w->q.r);
    JitValue per = jit_i64(j, w->panel_groups * w->q.r);
    e->task0 = task0;
    e->task1 = jit_tmp(j, task1);
    JitValue last = jit_tmp(j, jit_sub(j, e->task1, one));
    e->run_block0 = jit_tmp(j, jit_div(j, task0, per));
    JitValue last_block = jit_tmp(j, jit_div(j, last, per));
    e->run_block1 = jit_tmp(j, jit_add(j, last_block, one));
    JitVar panel0 = jit_var(j, jit_types(j)->i64, "panel0");
    JitVar panel1 = jit_var(j, jit_types(j)->i64, "panel1");
    JitIf same = jit_if(j, jit_compare(j, JIT_EQ, e->run_block0, last_block));
    JitValue first_group = jit_div(j, jit_tmp(j, jit_mod(j, task0, per)), r);
    JitValue last_group = jit_div(j, jit_tmp(j, jit_mod(j, last, per)), r);
    jit_set(j, panel0, part_of_panels(e, jit_tmp(j, first_group)));
    jit_set(j, panel1, part_of_panels(e, jit_tmp(j, jit_add(j, last_group, one))));
    jit_else(j, &same);
    jit_set(j, panel0, jit_i64(j, 0));
    jit_set(j, panel1, jit_i64(j, w->panels));
    jit_end_if(j, &same);
    e->run_panel0 = jit_tmp(j, jit_get(panel0));
    e->run_panel1 = jit_tmp(j, jit_get(panel1));
}

/* Groups of panels whose tasks, every r-th from `first` on, come before a task of the set. */
static JitValue groups_before(const WgradEmit *e, JitValue first, JitValue task)
{
    Jit *j = e->j;
    JitValue n = jit_max_i64(j, jit_tmp(j, jit_sub(j, task, first)), jit_i64(j, 0));
    JitValue up = jit_add(j, n, jit_i64(j, e->w->q.r - 1));
    return jit_tmp(j, jit_min_i64(j, jit_tmp(j, jit_div(j, up, jit_i64(j, e->w->q.r))),
                                  jit_i64(j, e->w->panel_groups)));
}

/* Panels that the run has of a block of the set and a row of the kernel. */
static void find_panels(WgradEmit *e, JitValue block)
{
    Jit *j = e->j;
    JitValue first = jit_tmp(j, jit_muladd_i64(j, block, e->w->panel_groups * e->w->q.r, e->r));
    e->panel0 = jit_tmp(j, part_of_panels(e, groups_before(e, first, e->task0)));
    e->panel1 = jit_tmp(j, part_of_panels(e, groups_before(e, first, e->task1)));
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
    int64_t floats = conv_wgrad_x_row(e->w);
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
    t.loop[0] = (TileLoop){TILE_STEPS, conv_wgrad_x_row(w), w->q.ow * width};
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
    if (conv_wgrad_joined(w)) {
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
    JitValue floats = jit_i64(e->j, conv_wgrad_packed(e->w, jit_lanes(e->j)));
    JitValue place = jit_sub(e->j, panel, e->run_panel0);
    if (e->w->pack_once)
        at.dy = jit_tmp(e->j, jit_offset(e->j, e->dy, jit_mul(e->j, place, floats)));
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
    int64_t floats = (e->w->band_rows * conv_wgrad_x_row(e->w) + 15) / 16 * 16;
    e->x = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    e->dy = jit_tmp(j, jit_offset(j, e->x, jit_i64(j, floats)));
}

/* Tiles that a band has, about. */
static JitValue band_tiles(const WgradEmit *e)
{
    Jit *j = e->j;
    const ConvWgrad *w = e->w;
    const ConvGeometry *q = &w->q;
    int64_t length = conv_wgrad_joined(w) ? q->s * conv_group_in(q) : w->channel_block;
    int64_t tiles = tile_split(length, w->shape.rows).tiles * (conv_wgrad_joined(w) ? 1 : q->s);
    JitValue tasks = jit_sub(j, e->task1, e->task0);
    return jit_tmp(j, jit_mul(j, tasks, jit_i64(j, tiles * w->panels / w->panel_groups)));
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
    take_channels(e, jit_tmp(j, jit_add(j, e->block0, e->run_block0)),
                  jit_tmp(j, jit_add(j, e->block0, e->run_block1)));
    JitValue image = jit_tmp(j, jit_div(j, next, jit_i64(j, q->oh)));
    JitValue y = jit_i64(j, (q->r - 1) * q->dilation[0] - q->pad[0]);
    y = jit_muladd_i64(j, jit_mod(j, next, jit_i64(j, q->oh)), q->stride[0], y);
    JitValue at = jit_mul(j, jit_muladd_i64(j, image, q->h, y), jit_i64(j, q->w * q->c));
    at = jit_add(j, at, jit_muladd_i64(j, e->group, conv_group_in(q), e->channel0));
    JitValue pixels = jit_tmp(j, jit_mul(j, rows, jit_i64(j, q->stride[0] * q->w)));
    int x = e->w->x_buf + (e->w->x_made != 0);
    e->next_x = ahead_of(j, jit_offset(j, jit_buf(j, x, p), at), pixels, q->c, e->channels, tiles);
    pixels = jit_tmp(j, jit_mul(j, rows, jit_i64(j, q->ow)));
    at = jit_muladd_i64(j, jit_mul(j, next, jit_i64(j, q->ow)), q->k,
                        panel_column(e, e->run_panel0));
    columns = jit_tmp(j, jit_mul(j, columns, jit_sub(j, e->run_panel1, e->run_panel0)));
    e->next_dy =
        ahead_of(j, jit_offset(j, jit_buf(j, e->w->dy_buf, p), at), pixels, q->k, columns, tiles);
    jit_set(j, e->turn, jit_i64(j, 0));
}

/* What the run has of a block and a row of the kernel. */
static void emit_kernel_row(WgradEmit *e, JitValue block)
{
    Jit *j = e->j;
    find_panels(e, block);
    JitIf any = jit_if(j, jit_compare(j, JIT_LT, e->panel0, e->panel1));
    copy_x(e);
    emit_panels(e);
    jit_end_if(j, &any);
}

/* All tasks of the run, while the band's x and dy are near. */
static void emit_kernel_rows(WgradEmit *e)
{
    Jit *j = e->j;
    if (e->w->pack_once) {
        e->doing = PACKING;
        e->panel0 = e->run_panel0;
        e->panel1 = e->run_panel1;
        emit_panels(e);
        e->doing = TILES;
    }
    JitLoop b = jit_for(j, jit_i64(j, 0), jit_i64(j, e->w->run_blocks), 1, "block");
    JitValue block = jit_tmp(j, jit_index(&b));
    JitValue channels = jit_tmp(j, jit_add(j, e->block0, block));
    take_channels(e, channels, jit_tmp(j, jit_add(j, channels, jit_i64(j, 1))));
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, e->w->q.r), 1, "r");
    e->r = jit_tmp(j, jit_index(&l));
    emit_kernel_row(e, block);
    jit_end_for(j, &l);
    jit_end_for(j, &b);
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
    emit_kernel_rows(e);
}

static void emit_run(WgradEmit *e)
{
    Jit *j = e->j;
    const ConvGeometry *q = &e->w->q;
    /* Without pixels one empty band stores zeros. */
    JitValue from = e->begin, to = q->images && q->oh ? e->end : jit_i64(j, 1);
    if (e->w->x_made) {
        from = jit_tmp(j, jit_max_i64(j, from, jit_number(j, e->w->steps)));
        to = jit_tmp(j, jit_min_i64(j, to, jit_number(j, e->w->steps + 1)));
    }
    JitLoop band = jit_for(j, from, to, e->w->band_rows, "band");
    emit_band(e, jit_tmp(j, jit_index(&band)));
    jit_end_for(j, &band);
}

void conv_wgrad_emit(Jit *j, const void *desc)
{
    WgradEmit e = {.j = j, .w = desc};
    JitValue begin = jit_task_begin(j), end = jit_task_end(j),
             per = jit_i64(j, conv_wgrad_set(e.w));
    plan_scratch(&e);
    e.turn = jit_var(j, jit_types(j)->i64, "turn");
    JitValue sets = jit_add(j, end, jit_i64(j, conv_wgrad_set(e.w) - 1));
    JitLoop set =
        jit_for(j, jit_tmp(j, jit_div(j, begin, per)), jit_tmp(j, jit_div(j, sets, per)), 1, "set");
    JitValue number = jit_tmp(j, jit_index(&set));
    find_set(&e, number);
    JitValue before = jit_tmp(j, jit_mul(j, number, per));
    JitValue first = jit_max_i64(j, jit_tmp(j, jit_sub(j, begin, before)), jit_i64(j, 0));
    JitValue last = jit_tmp(j, jit_min_i64(j, jit_tmp(j, jit_sub(j, end, before)), per));
    JitLoop run = jit_for(j, jit_tmp(j, first), last, e.w->run, "run");
    JitValue task = jit_tmp(j, jit_index(&run));
    find_run(&e, task, jit_min_i64(j, jit_tmp(j, jit_add(j, task, jit_i64(j, e.w->run))), last));
    emit_run(&e);
    jit_end_for(j, &run);
    jit_end_for(j, &set);
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
