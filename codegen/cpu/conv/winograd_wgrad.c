/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weight gradients in Winograd's form, the transpose of the forward one: patches of x and tiles of
 * dy are transformed, every point sums their products over the tiles, and the sums are transformed
 * to taps.  A task has a block of the channels of x and one of dy, whose sums stay in scratch
 * memory, and a chunk of the tiles; more than one chunk are joined (conv_join.c). */
#include "codegen/cpu/conv/winograd.h"

#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "runtime/abi.h"

/* --- plan --- */

static int64_t side(const WinogradWgrad *w)
{
    return w->m + WINOGRAD_TAPS - 1;
}

static int64_t room_floats(const WinogradWgrad *w)
{
    return winograd_plane(side(w) * side(w) *
                          (w->x_block > WINOGRAD_DY_BLOCK ? w->x_block : WINOGRAD_DY_BLOCK));
}

static int64_t x_plane(const WinogradWgrad *w)
{
    return winograd_plane(WINOGRAD_TILES * w->x_block);
}

static int64_t dy_plane(void)
{
    return winograd_plane(WINOGRAD_TILES * WINOGRAD_DY_BLOCK);
}

static int64_t sums_plane(const WinogradWgrad *w)
{
    return winograd_plane(w->x_block * WINOGRAD_DY_BLOCK);
}

void winograd_wgrad_plan(WinogradWgrad *w, const Target *t)
{
    w->x_blocks = divide_up(w->q.c, WINOGRAD_X_BLOCK);
    w->x_block = divide_up(w->q.c, w->x_blocks);
    w->dy_blocks = divide_up(w->q.k, WINOGRAD_DY_BLOCK);
    w->shape = tile_shape(t, 2, w->x_block); /* so that panels divide a block */
    int64_t floats = room_floats(w) + w->points * (x_plane(w) + dy_plane() + sums_plane(w));
    if (4 * floats > SCRIMP_WORK_BYTES)
        BUG("a weight gradient needs %lld bytes of scratch memory", (long long)(4 * floats));
}

int64_t winograd_wgrad_tasks(const WinogradWgrad *w)
{
    return w->chunks * w->x_blocks * w->dy_blocks;
}

/* --- a task --- */

typedef struct WgradEmit {
    Jit *j;
    const WinogradWgrad *w;
    JitValue chunk, x0, channels; /* of the block of x */
    JitValue dy0, columns;        /* and of dy */
    JitValue begin, end;          /* tiles */
    JitValue room, x, dy, sums;   /* in scratch */
    JitValue tile, n, first;      /* of the band */
} WgradEmit;

static int64_t panel_floats(const WgradEmit *e)
{
    return (int64_t)e->w->shape.vectors * jit_lanes(e->j);
}

static void plan_scratch(WgradEmit *e)
{
    Jit *j = e->j;
    const WinogradWgrad *w = e->w;
    e->room = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    e->x = jit_tmp(j, jit_offset(j, e->room, jit_i64(j, room_floats(w))));
    e->dy = jit_tmp(j, jit_offset(j, e->x, jit_i64(j, w->points * x_plane(w))));
    e->sums = jit_tmp(j, jit_offset(j, e->dy, jit_i64(j, w->points * dy_plane())));
}

static void begin_task(WgradEmit *e, JitValue task)
{
    Jit *j = e->j;
    const WinogradWgrad *w = e->w;
    JitValue rest = task, one = jit_i64(j, 1);
    JitValue dy_block = take_digit(j, &rest, w->dy_blocks);
    JitValue x_block = take_digit(j, &rest, w->x_blocks);
    e->chunk = rest;
    e->dy0 = jit_tmp(j, jit_mul(j, dy_block, jit_i64(j, WINOGRAD_DY_BLOCK)));
    e->columns =
        jit_min_i64(j, jit_i64(j, WINOGRAD_DY_BLOCK), jit_sub(j, jit_i64(j, w->q.k), e->dy0));
    e->x0 = part_start(j, x_block, w->q.c, w->x_blocks);
    JitValue x1 = part_start(j, jit_add(j, x_block, one), w->q.c, w->x_blocks);
    e->channels = jit_tmp(j, jit_sub(j, x1, e->x0));
    e->begin = part_start(j, e->chunk, w->count, w->chunks);
    e->end = part_start(j, jit_add(j, e->chunk, one), w->count, w->chunks);
}

static void transform_x(const WgradEmit *e)
{
    const WinogradWgrad *w = e->w;
    WinogradPatch p = {.stage = WINOGRAD_PATCH,
                       .m = w->m,
                       .buf = w->x_buf,
                       .size = {w->q.h, w->q.w},
                       .channels = w->q.c,
                       .origin = {-w->q.pad[0], -w->q.pad[1]},
                       .tiles = {w->tiles[0], w->tiles[1]},
                       .most = w->x_block,
                       .row = w->x_block,
                       .plane = x_plane(w)};
    WinogradPatchArgs a = {e->tile, e->n, e->x0, e->channels, e->x, e->room};
    winograd_patches(e->j, &p, &a);
}

static void transform_dy(const WgradEmit *e)
{
    const WinogradWgrad *w = e->w;
    WinogradPatch p = {.stage = WINOGRAD_GRADIENT,
                       .m = w->m,
                       .buf = w->dy_buf,
                       .size = {w->q.oh, w->q.ow},
                       .channels = w->q.k,
                       .tiles = {w->tiles[0], w->tiles[1]},
                       .most = WINOGRAD_DY_BLOCK,
                       .panel = panel_floats(e),
                       .panel_step = WINOGRAD_TILES * panel_floats(e),
                       .row = panel_floats(e),
                       .plane = dy_plane()};
    WinogradPatchArgs a = {e->tile, e->n, e->dy0, e->columns, e->dy, e->room};
    winograd_patches(e->j, &p, &a);
}

/* --- products --- */

static Tile make_tile(const WgradEmit *e, int rows)
{
    Tile t = {.rows = rows,
              .vectors = e->w->shape.vectors,
              .end = TILE_PARTIAL,
              .last_lanes = jit_lanes(e->j),
              .b_packed = true,
              .partial_padded = true,
              .partial_stride = WINOGRAD_DY_BLOCK,
              .n_loops = 1,
              .loop = {{TILE_STEPS, e->w->x_block, panel_floats(e)}},
              .out_buf = e->w->out_buf};
    for (int i = 0; i < rows; i++)
        t.a_row[i] = i;
    return t;
}

/* `tiles` register tiles of `rows` channels from `from` on, of one point and panel. */
static void sweep(const WgradEmit *e, JitValue a, JitValue b, JitValue sums, int64_t from, int rows,
                  int64_t tiles)
{
    Jit *j = e->j;
    if (!tiles)
        return;
    Tile tile = make_tile(e, rows);
    JitLoop l = jit_for(j, jit_i64(j, from), jit_i64(j, from + tiles * rows), rows, "row");
    JitValue row = jit_tmp(j, jit_index(&l));
    TileArgs args = {.a = jit_offset(j, a, row),
                     .b = b,
                     .partial = jit_offset(j, sums, jit_mul(j, row, jit_i64(j, WINOGRAD_DY_BLOCK))),
                     .row = row,
                     .col = row,
                     .steps = e->n,
                     .first = e->first,
                     .last = e->first};
    tile_call(j, &tile, &args);
    jit_end_for(j, &l);
}

static void emit_products(const WgradEmit *e)
{
    Jit *j = e->j;
    const WinogradWgrad *w = e->w;
    JitLoop p = jit_for(j, jit_i64(j, 0), jit_i64(j, w->points), 1, "point");
    JitLoop col = jit_for(j, jit_i64(j, 0), e->columns, panel_floats(e), "col");
    JitValue point = jit_index(&p);
    JitValue a = jit_tmp(j, jit_offset(j, e->x, jit_mul(j, point, jit_i64(j, x_plane(w)))));
    JitValue at = jit_mul(j, jit_index(&col), jit_i64(j, WINOGRAD_TILES));
    JitValue b = jit_tmp(j, jit_offset(j, e->dy, jit_muladd_i64(j, point, dy_plane(), at)));
    at = jit_muladd_i64(j, point, sums_plane(w), jit_index(&col));
    JitValue sums = jit_tmp(j, jit_offset(j, e->sums, at));
    TileSplit s = tile_split(w->x_block, w->shape.rows);
    sweep(e, a, b, sums, 0, (int)s.base + 1, s.extra);
    sweep(e, a, b, sums, s.extra * (s.base + 1), (int)s.base, s.tiles - s.extra);
    jit_end_for(j, &col);
    jit_end_for(j, &p);
}

static void emit_bands(WgradEmit *e)
{
    Jit *j = e->j;
    JitLoop l = jit_for(j, e->begin, e->end, WINOGRAD_TILES, "band");
    e->tile = jit_tmp(j, jit_index(&l));
    e->n = jit_min_i64(j, jit_i64(j, WINOGRAD_TILES), jit_sub(j, e->end, e->tile));
    e->first = jit_tmp(j, jit_compare(j, JIT_EQ, e->tile, e->begin));
    transform_x(e);
    transform_dy(e);
    emit_products(e);
    jit_end_for(j, &l);
}

/* --- results --- */

static void store_vector(const WgradEmit *e, JitValue at, JitValue row, JitValue c, JitValue n)
{
    Jit *j = e->j;
    const WinogradWgrad *w = e->w;
    JitValue x = jit_vload(j, e->sums, jit_add(j, at, c)), col = jit_add(j, e->dy0, c);
    if (w->chunks == 1) {
        epilogue_store(j, &w->epilogue, w->out_buf, x, row, col, n);
        return;
    }
    JitValue to = jit_muladd_i64(j, e->chunk, WINOGRAD_TAPS * WINOGRAD_TAPS * w->q.c, row);
    to = jit_muladd_i64(j, to, w->q.k, col);
    JitValue partial = jit_buf(j, w->partial_buf, jit_types(j)->p_f32);
    if (n)
        jit_vstore_partial(j, partial, to, n, x);
    else
        jit_vstore(j, partial, to, x);
}

/* Columns of one tap and channel. */
static void store_row(const WgradEmit *e, JitValue at, JitValue row)
{
    Jit *j = e->j;
    JitValue rest = jit_tmp(j, jit_mod(j, e->columns, jit_i64(j, jit_lanes(j))));
    JitValue whole = jit_tmp(j, jit_sub(j, e->columns, rest));
    JitLoop c = jit_for(j, jit_i64(j, 0), whole, jit_lanes(j), "c");
    store_vector(e, at, row, jit_tmp(j, jit_index(&c)), NULL);
    jit_end_for(j, &c);
    if (e->w->q.k % jit_lanes(j) == 0)
        return;
    JitIf s = jit_if(j, jit_compare(j, JIT_GT, rest, jit_i64(j, 0)));
    store_vector(e, at, row, whole, rest);
    jit_end_if(j, &s);
}

/* The taps of channel i of the block take the place of its first sums. */
static void finish_channel(const WgradEmit *e, JitValue i)
{
    Jit *j = e->j;
    const WinogradWgrad *w = e->w;
    int64_t plane = sums_plane(w);
    JitValue line = jit_tmp(j, jit_mul(j, i, jit_i64(j, WINOGRAD_DY_BLOCK)));
    JitLoop c = jit_for(j, jit_i64(j, 0), e->columns, jit_lanes(j), "c");
    JitValue at = jit_add(j, line, jit_index(&c));
    WinogradSquare q = {jit_tmp(j, jit_offset(j, e->sums, at)), side(w) * plane, plane};
    winograd_transform(j, WINOGRAD_SUMS, w->m, &q, &q, NULL);
    jit_end_for(j, &c);
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_i64(j, WINOGRAD_TAPS), 1, "r");
    JitLoop s = jit_for(j, jit_i64(j, 0), jit_i64(j, WINOGRAD_TAPS), 1, "s");
    JitValue from = jit_muladd_i64(j, jit_index(&r), side(w), jit_index(&s));
    JitValue tap = jit_muladd_i64(j, jit_index(&r), WINOGRAD_TAPS, jit_index(&s));
    JitValue row = jit_muladd_i64(j, tap, w->q.c, jit_add(j, e->x0, i));
    store_row(e, jit_tmp(j, jit_muladd_i64(j, from, plane, line)), jit_tmp(j, row));
    jit_end_for(j, &s);
    jit_end_for(j, &r);
}

void winograd_wgrad_emit(Jit *j, const void *desc)
{
    WgradEmit e = {.j = j, .w = desc};
    plan_scratch(&e);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    begin_task(&e, jit_tmp(j, jit_index(&task)));
    emit_bands(&e);
    JitLoop i = jit_for(j, jit_i64(j, 0), e.channels, 1, "channel");
    finish_channel(&e, jit_tmp(j, jit_index(&i)));
    jit_end_for(j, &i);
    jit_end_for(j, &task);
}

void winograd_wgrad_join(ConvJoin *join, const WinogradWgrad *w)
{
    *join = (ConvJoin){.chunks = w->chunks,
                       .rows = WINOGRAD_TAPS * WINOGRAD_TAPS * w->q.c,
                       .columns = w->q.k,
                       .row_floats = w->q.k,
                       .partial_buf = w->partial_buf,
                       .out_buf = w->out_buf,
                       .epilogue = w->epilogue};
}
