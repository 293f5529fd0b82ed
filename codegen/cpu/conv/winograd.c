/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results and data gradients in Winograd's form: the points' products, a register tile of tiles x
 * channels, and their transform back while they are near the core.  A task has a block of tiles and
 * some panels of channels.  Of what it multiplies the workspace holds, transformed by a first call,
 * - the weights, and a task transforms its tiles' patches into scratch memory, for all its panels;
 * - or the patches, where there are few tiles, and a task transforms its one panel of weights, some
 *   rows at a time. */
#include "codegen/cpu/conv/winograd.h"

#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "runtime/abi.h"

enum {
    BLOCK_MOST = 28,          /* tiles of a task that transforms patches: some rows of any tile */
    BLOCK_BYTES = 600 * 1024, /* of these patches */
    FAR_VECTORS = 2, /* of a panel of weights that a task transforms: what fits into scratch */
    TASKS_WANTED = 24
};

/* --- plan --- */

static int64_t sums_plane(const Winograd *w, int64_t width)
{
    return w->block * width + WINOGRAD_GAP;
}

/* Of the weights that a product reads. */
static int64_t weights_plane(const Winograd *w, int64_t width)
{
    return w->keeps_patches ? w->chain * width + WINOGRAD_GAP : winograd_weights_plane(w, width);
}

/* Of what a task transforms. */
static int64_t near_floats(const Winograd *w, int64_t width)
{
    return w->keeps_patches ? winograd_taps(w, width) + w->points * weights_plane(w, width)
                            : winograd_room(w) + w->chains * w->points * winograd_patches_plane(w);
}

static void set_blocks(Winograd *w, int64_t blocks)
{
    w->block = divide_up(w->count, blocks);
    w->blocks = divide_up(w->count, w->block);
}

int64_t winograd_tasks(const Winograd *w)
{
    return w->blocks * w->panel_groups;
}

static void plan_near(Winograd *w)
{
    int64_t most = BLOCK_BYTES / (4 * w->points * w->chains * w->chain);
    most = most > BLOCK_MOST ? BLOCK_MOST : most < 1 ? 1 : most;
    w->panel_groups = 1;
    set_blocks(w, divide_up(w->count, most));
    while (winograd_tasks(w) < TASKS_WANTED && w->block >= 2 * w->shape.rows)
        set_blocks(w, 2 * w->blocks);
    while (winograd_tasks(w) < TASKS_WANTED && w->panels >= 2 * w->panel_groups)
        w->panel_groups *= 2;
}

void winograd_plan(Winograd *w, const Target *t)
{
    int64_t vectors = divide_up(w->columns, t->vector_floats);
    if (w->keeps_patches && vectors > FAR_VECTORS)
        vectors = FAR_VECTORS;
    w->shape = tile_shape(t, vectors, BLOCK_MOST);
    int64_t width = winograd_panel(w, t->vector_floats);
    w->panels = divide_up(w->columns, width);
    w->panel_groups = w->panels;
    w->blocks = divide_up(w->count, w->block);
    if (!w->keeps_patches)
        plan_near(w);
    int64_t floats = near_floats(w, width) + w->points * sums_plane(w, width);
    if (4 * floats > SCRIMP_WORK_BYTES)
        BUG("Winograd's form needs %lld bytes of scratch memory", (long long)(4 * floats));
}

/* --- a task --- */

typedef struct TaskEmit {
    Jit *j;
    const Winograd *w;
    JitValue first, count; /* tiles */
    JitValue panel0, panel1;
    JitValue patches;    /* of the first tile */
    JitValue near, sums; /* in scratch */
} TaskEmit;

static void begin_task(TaskEmit *e, JitValue task)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    JitValue rest = task, one = jit_i64(j, 1), block;
    /* Threads that share a panel run its blocks one after the other. */
    block = w->keeps_patches ? take_digit(j, &rest, w->blocks) : NULL;
    JitValue part = take_digit(j, &rest, w->panel_groups);
    block = w->keeps_patches ? block : rest;
    e->panel0 = part_start(j, part, w->panels, w->panel_groups);
    e->panel1 = part_start(j, jit_add(j, part, one), w->panels, w->panel_groups);
    e->first = jit_tmp(j, jit_mul(j, block, jit_i64(j, w->block)));
    JitValue left = jit_sub(j, jit_i64(j, w->count), e->first);
    e->count = jit_min_i64(j, jit_i64(j, w->block), left);
}

static void find_patches(TaskEmit *e)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    if (w->keeps_patches) {
        JitValue all = jit_buf(j, w->work_buf, jit_types(j)->p_f32);
        JitValue at = jit_mul(j, e->first, jit_i64(j, w->chain));
        e->patches = jit_tmp(j, jit_offset(j, all, at));
        return;
    }
    e->patches = jit_tmp(j, jit_offset(j, e->near, jit_i64(j, winograd_room(w))));
    winograd_transform_patches(w, j, e->first, e->count, e->patches, winograd_patches_plane(w),
                               e->near);
}

/* --- products --- */

/* One chain of a point: sources, weights and sums of its first tile. */
typedef struct Chain {
    JitValue a, b, sums, steps, first;
} Chain;

static Tile make_tile(const TaskEmit *e, int rows, int vectors)
{
    int64_t width = (int64_t)vectors * jit_lanes(e->j);
    Tile t = {.rows = rows,
              .vectors = vectors,
              .end = TILE_PARTIAL,
              .last_lanes = jit_lanes(e->j),
              .b_packed = true,
              .partial_padded = true,
              .partial_stride = width,
              .n_loops = 1,
              .loop = {{TILE_STEPS, 1, width}},
              .out_buf = e->w->out_buf};
    for (int i = 0; i < rows; i++)
        t.a_row[i] = i * e->w->chain;
    return t;
}

/* `tiles` register tiles of `rows` rows from row `from` on, as far as there are tiles of images. */
static void sweep(const TaskEmit *e, const Chain *c, int vectors, int64_t from, int rows,
                  int64_t tiles)
{
    Jit *j = e->j;
    if (!tiles)
        return;
    Tile tile = make_tile(e, rows, vectors);
    JitLoop l = jit_for(j, jit_i64(j, from),
                        jit_min_i64(j, e->count, jit_i64(j, from + tiles * rows)), rows, "row");
    JitValue row = jit_tmp(j, jit_index(&l)), width = jit_i64(j, tile.partial_stride);
    TileArgs args = {.a = jit_offset(j, c->a, jit_mul(j, row, jit_i64(j, e->w->chain))),
                     .b = c->b,
                     .partial = jit_offset(j, c->sums, jit_mul(j, row, width)),
                     .row = row,
                     .col = row,
                     .steps = c->steps,
                     .first = c->first,
                     .last = c->first};
    tile_call(j, &tile, &args);
    jit_end_for(j, &l);
}

/* Rows [row, row + steps) of a point. */
static void emit_chain(const TaskEmit *e, JitValue point, JitValue row, JitValue steps, JitValue b,
                       int vectors)
{
    Jit *j = e->j;
    int64_t plane = sums_plane(e->w, (int64_t)vectors * jit_lanes(j));
    JitValue chain = jit_div(j, row, jit_i64(j, e->w->chain));
    JitValue a = jit_muladd_i64(j, chain, e->w->points, point);
    a = jit_mul(j, a, jit_i64(j, winograd_patches_plane(e->w)));
    Chain c = {.a = jit_tmp(j, jit_offset(j, e->patches, a)),
               .b = jit_tmp(j, b),
               .sums = jit_tmp(j, jit_offset(j, e->sums, jit_mul(j, point, jit_i64(j, plane)))),
               .steps = steps,
               .first = jit_tmp(j, jit_compare(j, JIT_EQ, row, jit_i64(j, 0)))};
    TileSplit s = tile_split(e->w->block, e->w->shape.rows);
    sweep(e, &c, vectors, 0, (int)s.base + 1, s.extra);
    sweep(e, &c, vectors, s.extra * (s.base + 1), (int)s.base, s.tiles - s.extra);
}

static JitValue chain_steps(const TaskEmit *e, JitValue row)
{
    Jit *j = e->j;
    JitValue left = jit_sub(j, jit_i64(j, e->w->rows), row);
    return jit_min_i64(j, jit_i64(j, e->w->chain), left);
}

/* Point by point, of weights in the workspace. */
static void products_of_points(const TaskEmit *e, JitValue panel, int vectors)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    int64_t width = (int64_t)vectors * jit_lanes(j), plane = weights_plane(w, width);
    JitValue weights = winograd_weights_panel(w, j, panel);
    JitLoop p = jit_for(j, jit_i64(j, 0), jit_i64(j, w->points), 1, "point");
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, w->rows), w->chain, "k");
    JitValue row = jit_tmp(j, jit_index(&k));
    JitValue at = jit_muladd_i64(j, row, width, jit_mul(j, jit_index(&p), jit_i64(j, plane)));
    emit_chain(e, jit_index(&p), row, chain_steps(e, row), jit_offset(j, weights, at), vectors);
    jit_end_for(j, &k);
    jit_end_for(j, &p);
}

/* Chain by chain, whose weights are transformed for all points. */
static void products_of_chains(const TaskEmit *e, JitValue panel, int64_t columns)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    int vectors = (int)divide_up(columns, jit_lanes(j));
    int64_t width = (int64_t)vectors * jit_lanes(j), plane = weights_plane(w, width);
    JitValue weights = jit_tmp(j, jit_offset(j, e->near, jit_i64(j, winograd_taps(w, width))));
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, w->rows), w->chain, "k");
    JitValue row = jit_tmp(j, jit_index(&k)), steps = chain_steps(e, row);
    WinogradWeights a = {panel, row, steps, columns, weights, plane, e->near};
    winograd_transform_weights(w, j, &a);
    JitLoop p = jit_for(j, jit_i64(j, 0), jit_i64(j, w->points), 1, "point");
    JitValue at = jit_mul(j, jit_index(&p), jit_i64(j, plane));
    emit_chain(e, jit_index(&p), row, steps, jit_offset(j, weights, at), vectors);
    jit_end_for(j, &p);
    jit_end_for(j, &k);
}

/* --- results --- */

/* Results of a tile whose sums begin at `sums`; they take the place of the first sums. */
static void transform_sums(const TaskEmit *e, JitValue sums, int vectors)
{
    Jit *j = e->j;
    int64_t plane = sums_plane(e->w, (int64_t)vectors * jit_lanes(j));
    JitLoop v = jit_for(j, jit_i64(j, 0), jit_i64(j, vectors * jit_lanes(j)), jit_lanes(j), "v");
    WinogradSquare s = {jit_tmp(j, jit_offset(j, sums, jit_index(&v))), winograd_side(e->w) * plane,
                        plane};
    winograd_transform(j, WINOGRAD_RESULT, e->w->m, &s, &s, NULL);
    jit_end_for(j, &v);
}

static void store_pixel(const TaskEmit *e, JitValue from, JitValue row, JitValue col,
                        int64_t columns)
{
    Jit *j = e->j;
    int lanes = jit_lanes(j);
    for (int64_t c = 0; c < columns; c += lanes) {
        JitValue n = c + lanes > columns ? jit_i64(j, columns - c) : NULL;
        epilogue_store(j, &e->w->epilogue, e->w->out_buf, jit_vload(j, from, jit_i64(j, c)), row,
                       jit_add(j, col, jit_i64(j, c)), n);
    }
}

/* How many of a tile's rows or columns there are. */
static JitValue within(const TaskEmit *e, int axis, JitValue place)
{
    Jit *j = e->j;
    JitValue left = jit_sub(j, jit_i64(j, e->w->axis[axis].result), place);
    return jit_min_i64(j, jit_i64(j, e->w->m), left);
}

static void store_tile(const TaskEmit *e, JitValue i, JitValue sums, JitValue col, int64_t columns)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    int64_t plane = sums_plane(w, divide_up(columns, jit_lanes(j)) * jit_lanes(j));
    WinogradTile t = winograd_tile(j, w->m, w->tiles, jit_tmp(j, jit_add(j, e->first, i)));
    JitLoop y = jit_for(j, jit_i64(j, 0), within(e, 0, t.place[0]), 1, "y");
    JitLoop x = jit_for(j, jit_i64(j, 0), within(e, 1, t.place[1]), 1, "x");
    JitValue from = jit_muladd_i64(j, jit_index(&y), winograd_side(w), jit_index(&x));
    from = jit_tmp(j, jit_offset(j, sums, jit_mul(j, from, jit_i64(j, plane))));
    JitValue row = jit_add(j, t.place[0], jit_index(&y));
    row = jit_muladd_i64(j, t.image, w->axis[0].result, row);
    row = jit_muladd_i64(j, row, w->axis[1].result, jit_add(j, t.place[1], jit_index(&x)));
    store_pixel(e, from, jit_tmp(j, row), col, columns);
    jit_end_for(j, &x);
    jit_end_for(j, &y);
}

static void emit_panel(const TaskEmit *e, JitValue panel, int64_t columns)
{
    Jit *j = e->j;
    int lanes = jit_lanes(j), vectors = (int)divide_up(columns, lanes);
    if (e->w->keeps_patches)
        products_of_chains(e, panel, columns);
    else
        products_of_points(e, panel, vectors);
    JitValue col = jit_tmp(j, jit_mul(j, panel, jit_i64(j, winograd_panel(e->w, lanes))));
    JitLoop l = jit_for(j, jit_i64(j, 0), e->count, 1, "tile");
    JitValue i = jit_tmp(j, jit_index(&l));
    JitValue sums = jit_tmp(j, jit_offset(j, e->sums, jit_mul(j, i, jit_i64(j, vectors * lanes))));
    transform_sums(e, sums, vectors);
    store_tile(e, i, sums, col, columns);
    jit_end_for(j, &l);
}

static void emit_panels(const TaskEmit *e)
{
    Jit *j = e->j;
    int64_t width = winograd_panel(e->w, jit_lanes(j)), whole = e->w->columns / width;
    if (whole) {
        JitValue end = jit_min_i64(j, e->panel1, jit_i64(j, whole));
        JitLoop p = jit_for(j, e->panel0, end, 1, "panel");
        emit_panel(e, jit_tmp(j, jit_index(&p)), width);
        jit_end_for(j, &p);
    }
    if (e->w->columns % width) {
        JitIf s = jit_if(j, jit_compare(j, JIT_GT, e->panel1, jit_i64(j, whole)));
        emit_panel(e, jit_i64(j, whole), e->w->columns % width);
        jit_end_if(j, &s);
    }
}

void winograd_emit(Jit *j, const void *desc)
{
    TaskEmit e = {.j = j, .w = desc};
    int64_t floats = near_floats(e.w, winograd_panel(e.w, jit_lanes(j)));
    e.near = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    e.sums = jit_tmp(j, jit_offset(j, e.near, jit_i64(j, floats)));
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    begin_task(&e, jit_tmp(j, jit_index(&task)));
    find_patches(&e);
    emit_panels(&e);
    jit_end_for(j, &task);
}
