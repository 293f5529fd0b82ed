/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Results and data gradients in Winograd's form.  A first call transforms the weights into the
 * workspace, in panels.  Then a task has a block of tiles: it transforms their patches into scratch
 * memory and, for each of its panels of channels, makes the points' products, a register tile of
 * tiles x channels, and transforms them back, all near the core. */
#include "codegen/cpu/conv/winograd.h"

#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/epilogue_jit.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/bug.h"
#include "runtime/abi.h"

enum {
    BLOCK_MOST = 28,          /* tiles of a task: some tiles of rows of every target */
    BLOCK_BYTES = 600 * 1024, /* of their transformed patches */
    TASKS_WANTED = 24,
};

/* --- plan --- */

static int64_t side(const Winograd *w)
{
    return w->m + WINOGRAD_TAPS - 1;
}

static int64_t panel_floats(const Winograd *w, int lanes)
{
    return (int64_t)w->shape.vectors * lanes;
}

static int64_t source_plane(const Winograd *w)
{
    return (divide_up(w->block * w->source_row, WINOGRAD_GAP) + 1) * WINOGRAD_GAP;
}

static int64_t room_floats(const Winograd *w)
{
    return divide_up(side(w) * side(w) * w->rows, WINOGRAD_GAP) * WINOGRAD_GAP;
}

static int64_t sums_plane(const Winograd *w, int64_t width)
{
    return w->block * width + WINOGRAD_GAP;
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

void winograd_plan(Winograd *w, const Target *t)
{
    w->shape = tile_shape(t, divide_up(w->columns, t->vector_floats), BLOCK_MOST);
    w->panels = divide_up(w->columns, panel_floats(w, t->vector_floats));
    w->panel_groups = 1;
    w->source_row = conv_pixel_floats(w->rows);
    int64_t most = BLOCK_BYTES / (4 * w->points * w->source_row);
    most = most > BLOCK_MOST ? BLOCK_MOST : most < 1 ? 1 : most;
    set_blocks(w, divide_up(w->count, most));
    while (winograd_tasks(w) < TASKS_WANTED && w->block >= 2 * w->shape.rows)
        set_blocks(w, 2 * w->blocks);
    while (winograd_tasks(w) < TASKS_WANTED && w->panels >= 2 * w->panel_groups)
        w->panel_groups *= 2;
    int64_t floats =
        room_floats(w) +
        w->points * (source_plane(w) + sums_plane(w, panel_floats(w, t->vector_floats)));
    if (4 * floats > SCRIMP_SCRATCH_BYTES)
        BUG("Winograd's form needs %lld bytes of scratch memory", (long long)(4 * floats));
}

/* --- transformed weights: [panel][point][row][columns of the panel] --- */

int64_t winograd_packed_floats(const Winograd *w, int lanes)
{
    return w->points * w->rows * divide_up(w->columns, lanes) * lanes;
}

static int64_t row_blocks(const Winograd *w)
{
    return divide_up(w->rows, WINOGRAD_CHAIN);
}

int64_t winograd_weight_tasks(const Winograd *w)
{
    return w->panels * row_blocks(w);
}

static JitValue packed_panel(const Winograd *w, Jit *j, JitValue panel)
{
    JitValue p = jit_buf(j, w->packed_buf, jit_types(j)->p_f32);
    int64_t floats = w->points * w->rows * panel_floats(w, jit_lanes(j));
    return jit_tmp(j, jit_offset(j, p, jit_mul(j, panel, jit_i64(j, floats))));
}

/* The taps of `rows` rows from `row` on, in panels one behind the other, to scratch. */
static void pack_taps(const Winograd *w, Jit *j, JitValue panel, JitValue row, JitValue rows,
                      int64_t columns)
{
    int lanes = jit_lanes(j), vectors = (int)divide_up(columns, lanes);
    int64_t line = w->transposed ? w->rows : w->columns, width = (int64_t)vectors * lanes;
    PackPanel p = {vectors, columns, w->transposed ? 1 : line, w->transposed ? line : 1};
    JitValue safe = jit_sub(j, jit_i64(j, w->rows - divide_up(width - columns, line)), row);
    JitValue col = jit_mul(j, panel, jit_i64(j, panel_floats(w, lanes)));
    JitValue at = jit_muladd_i64(j, row, p.k_step, jit_mul(j, col, jit_i64(j, p.n_step)));
    JitValue from = jit_tmp(j, jit_offset(j, jit_buf(j, w->weight_buf, jit_types(j)->p_f32), at));
    JitValue to = jit_scratch(j, jit_types(j)->p_f32);
    safe = jit_tmp(j, safe);
    for (int r = 0; r < WINOGRAD_TAPS; r++)
        for (int s = 0; s < WINOGRAD_TAPS; s++) {
            int64_t y = w->axis[0].weight_first + r * w->axis[0].weight_step;
            int64_t x = w->axis[1].weight_first + s * w->axis[1].weight_step;
            int64_t from_tap = (y * WINOGRAD_TAPS + x) * w->rows * w->columns;
            int64_t to_tap = (r * WINOGRAD_TAPS + s) * WINOGRAD_CHAIN * width;
            pack_panel(j, &p, jit_offset(j, to, jit_i64(j, to_tap)),
                       jit_offset(j, from, jit_i64(j, from_tap)), rows, safe);
        }
}

static void transform_weights(const Winograd *w, Jit *j, JitValue panel, JitValue block,
                              int64_t columns)
{
    int lanes = jit_lanes(j);
    int64_t width = divide_up(columns, lanes) * lanes, tap = WINOGRAD_CHAIN * width;
    JitValue row = jit_tmp(j, jit_mul(j, block, jit_i64(j, WINOGRAD_CHAIN)));
    JitValue rows =
        jit_min_i64(j, jit_i64(j, WINOGRAD_CHAIN), jit_sub(j, jit_i64(j, w->rows), row));
    rows = jit_tmp(j, rows);
    pack_taps(w, j, panel, row, rows, columns);
    JitValue to =
        jit_tmp(j, jit_offset(j, packed_panel(w, j, panel), jit_mul(j, row, jit_i64(j, width))));
    JitValue from = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_mul(j, rows, jit_i64(j, width)), lanes, "i");
    WinogradSquare source = {jit_tmp(j, jit_offset(j, from, jit_index(&i))), WINOGRAD_TAPS * tap,
                             tap};
    WinogradSquare result = {jit_tmp(j, jit_offset(j, to, jit_index(&i))),
                             side(w) * w->rows * width, w->rows * width};
    winograd_transform(j, WINOGRAD_WEIGHTS, w->m, &source, &result, NULL);
    jit_end_for(j, &i);
}

void winograd_weights_emit(Jit *j, const void *desc)
{
    const Winograd *w = desc;
    int64_t width = panel_floats(w, jit_lanes(j)), whole = w->columns / width;
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue panel = jit_tmp(j, jit_index(&l)), block = take_digit(j, &panel, row_blocks(w));
    JitIf s = jit_if(j, jit_compare(j, JIT_LT, panel, jit_i64(j, whole)));
    if (whole)
        transform_weights(w, j, panel, block, width);
    jit_else(j, &s);
    if (w->columns % width)
        transform_weights(w, j, panel, block, w->columns % width);
    jit_end_if(j, &s);
    jit_end_for(j, &l);
}

/* --- a task --- */

typedef struct TaskEmit {
    Jit *j;
    const Winograd *w;
    JitValue first, count; /* tiles */
    JitValue panel0, panel1;
    JitValue patches, sums; /* in scratch */
} TaskEmit;

static void begin_task(TaskEmit *e, JitValue task)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    JitValue rest = task, one = jit_i64(j, 1);
    JitValue part = take_digit(j, &rest, w->panel_groups);
    e->panel0 = part_start(j, part, w->panels, w->panel_groups);
    e->panel1 = part_start(j, jit_add(j, part, one), w->panels, w->panel_groups);
    e->first = jit_tmp(j, jit_mul(j, rest, jit_i64(j, w->block)));
    JitValue left = jit_sub(j, jit_i64(j, w->count), e->first);
    e->count = jit_min_i64(j, jit_i64(j, w->block), left);
}

static void transform_patches(const TaskEmit *e)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    WinogradPatch p = {.stage = WINOGRAD_PATCH,
                       .m = w->m,
                       .buf = w->source_buf,
                       .size = {w->axis[0].source, w->axis[1].source},
                       .channels = w->rows,
                       .origin = {w->axis[0].origin, w->axis[1].origin},
                       .tiles = {w->tiles[0], w->tiles[1]},
                       .most = w->rows,
                       .row = w->source_row,
                       .plane = source_plane(w)};
    WinogradPatchArgs a = {.first = e->first,
                           .n = e->count,
                           .channel = jit_i64(j, 0),
                           .channels = jit_i64(j, w->rows),
                           .to = e->patches,
                           .room = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32))};
    winograd_patches(j, &p, &a);
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
        t.a_row[i] = i * e->w->source_row;
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
    JitValue row = jit_tmp(j, jit_index(&l));
    TileArgs args = {.a = jit_offset(j, c->a, jit_mul(j, row, jit_i64(j, e->w->source_row))),
                     .b = c->b,
                     .partial =
                         jit_offset(j, c->sums, jit_mul(j, row, jit_i64(j, tile.partial_stride))),
                     .row = row,
                     .col = row,
                     .steps = c->steps,
                     .first = c->first,
                     .last = c->first};
    tile_call(j, &tile, &args);
    jit_end_for(j, &l);
}

static void emit_chain(const TaskEmit *e, const Chain *c, int vectors)
{
    TileSplit s = tile_split(e->w->block, e->w->shape.rows);
    sweep(e, c, vectors, 0, (int)s.base + 1, s.extra);
    sweep(e, c, vectors, s.extra * (s.base + 1), (int)s.base, s.tiles - s.extra);
}

static void emit_products(const TaskEmit *e, JitValue panel, int vectors)
{
    Jit *j = e->j;
    const Winograd *w = e->w;
    int64_t width = (int64_t)vectors * jit_lanes(j);
    JitValue weights = packed_panel(w, j, panel);
    JitLoop p = jit_for(j, jit_i64(j, 0), jit_i64(j, w->points), 1, "point");
    JitLoop k = jit_for(j, jit_i64(j, 0), jit_i64(j, w->rows), WINOGRAD_CHAIN, "k");
    JitValue point = jit_index(&p), row = jit_index(&k);
    JitValue left = jit_sub(j, jit_i64(j, w->rows), row);
    JitValue at = jit_muladd_i64(j, point, w->rows, row);
    Chain c = {
        .a = jit_tmp(j, jit_offset(j, e->patches, jit_muladd_i64(j, point, source_plane(w), row))),
        .b = jit_tmp(j, jit_offset(j, weights, jit_mul(j, at, jit_i64(j, width)))),
        .sums =
            jit_tmp(j, jit_offset(j, e->sums, jit_mul(j, point, jit_i64(j, sums_plane(w, width))))),
        .steps = jit_min_i64(j, jit_i64(j, WINOGRAD_CHAIN), left),
        .first = jit_tmp(j, jit_compare(j, JIT_EQ, row, jit_i64(j, 0)))};
    emit_chain(e, &c, vectors);
    jit_end_for(j, &k);
    jit_end_for(j, &p);
}

/* --- results --- */

/* Results of a tile whose sums begin at `sums`; they take the place of the first sums. */
static void transform_sums(const TaskEmit *e, JitValue sums, int vectors)
{
    Jit *j = e->j;
    int64_t plane = sums_plane(e->w, (int64_t)vectors * jit_lanes(j));
    JitLoop v = jit_for(j, jit_i64(j, 0), jit_i64(j, vectors * jit_lanes(j)), jit_lanes(j), "v");
    WinogradSquare s = {jit_tmp(j, jit_offset(j, sums, jit_index(&v))), side(e->w) * plane, plane};
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
    JitValue from = jit_muladd_i64(j, jit_index(&y), side(w), jit_index(&x));
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
    emit_products(e, panel, vectors);
    JitValue col = jit_tmp(j, jit_mul(j, panel, jit_i64(j, panel_floats(e->w, lanes))));
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
    int64_t width = panel_floats(e->w, jit_lanes(j)), whole = e->w->columns / width;
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
    JitValue scratch = jit_scratch(j, jit_types(j)->p_f32);
    e.patches = jit_tmp(j, jit_offset(j, scratch, jit_i64(j, room_floats(e.w))));
    e.sums = jit_tmp(j, jit_offset(j, e.patches, jit_i64(j, e.w->points * source_plane(e.w))));
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    begin_task(&e, jit_tmp(j, jit_index(&task)));
    transform_patches(&e);
    emit_panels(&e);
    jit_end_for(j, &task);
}
