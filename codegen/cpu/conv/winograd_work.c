/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What convolutions in Winograd's form transform: their weights, and the patches of their source;
 * and the first call, which fills the workspace with all of one of them. */
#include "codegen/cpu/conv/winograd.h"

#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/jit/jit_short.h"

enum { TASK_TILES = 4 };

int64_t winograd_side(const Winograd *w)
{
    return w->m + WINOGRAD_TAPS - 1;
}

int64_t winograd_panel(const Winograd *w, int lanes)
{
    return (int64_t)w->shape.vectors * lanes;
}

/* --- weights: [panel][point][rows][columns of the panel] --- */

int64_t winograd_taps(const Winograd *w, int64_t width)
{
    return WINOGRAD_TAPS * WINOGRAD_TAPS * w->chain * width;
}

int64_t winograd_weights_plane(const Winograd *w, int64_t width)
{
    return (w->rows + WINOGRAD_SPARE_ROWS) * width;
}

JitValue winograd_weights_panel(const Winograd *w, Jit *j, JitValue panel)
{
    JitValue p = jit_buf(j, w->work_buf, jit_types(j)->p_f32);
    int64_t floats = w->points * winograd_weights_plane(w, winograd_panel(w, jit_lanes(j)));
    return jit_tmp(j, jit_offset(j, p, jit_mul(j, panel, jit_i64(j, floats))));
}

/* The taps one behind the other. */
static void pack_taps(const Winograd *w, Jit *j, const WinogradWeights *a)
{
    int lanes = jit_lanes(j), vectors = (int)divide_up(a->columns, lanes);
    int64_t line = w->transposed ? w->rows : w->columns, width = (int64_t)vectors * lanes;
    PackPanel p = {vectors, a->columns, w->transposed ? 1 : line, w->transposed ? line : 1};
    int64_t last = w->rows - divide_up(width - a->columns, line);
    JitValue safe = jit_tmp(j, jit_sub(j, jit_i64(j, last), a->row));
    JitValue col = jit_mul(j, a->panel, jit_i64(j, winograd_panel(w, lanes)));
    JitValue at = jit_muladd_i64(j, a->row, p.k_step, jit_mul(j, col, jit_i64(j, p.n_step)));
    JitValue from = jit_tmp(j, jit_offset(j, jit_buf(j, w->weight_buf, jit_types(j)->p_f32), at));
    const ConvAxis *y = &w->axis[0], *x = &w->axis[1];
    for (int64_t t = 0; t < WINOGRAD_TAPS * WINOGRAD_TAPS; t++) {
        int64_t r = y->weight_first + t / WINOGRAD_TAPS * y->weight_step;
        int64_t s = x->weight_first + t % WINOGRAD_TAPS * x->weight_step;
        int64_t from_tap = (r * WINOGRAD_TAPS + s) * w->rows * w->columns;
        JitValue to = jit_offset(j, a->taps, jit_i64(j, t * w->chain * width));
        pack_panel(j, &p, to, jit_offset(j, from, jit_i64(j, from_tap)), a->rows, safe);
    }
}

void winograd_transform_weights(const Winograd *w, Jit *j, const WinogradWeights *a)
{
    int lanes = jit_lanes(j);
    int64_t width = divide_up(a->columns, lanes) * lanes, tap = w->chain * width;
    pack_taps(w, j, a);
    JitLoop i = jit_for(j, jit_i64(j, 0), jit_mul(j, a->rows, jit_i64(j, width)), lanes, "i");
    WinogradSquare from = {.row = WINOGRAD_TAPS * tap, .column = tap};
    WinogradSquare to = {.row = winograd_side(w) * a->plane, .column = a->plane};
    from.p = jit_tmp(j, jit_offset(j, a->taps, jit_index(&i)));
    to.p = jit_tmp(j, jit_offset(j, a->to, jit_index(&i)));
    winograd_transform(j, WINOGRAD_WEIGHTS, w->m, &from, &to, NULL);
    jit_end_for(j, &i);
}

/* --- patches --- */

int64_t winograd_room(const Winograd *w)
{
    return winograd_plane(winograd_side(w) * winograd_side(w) * w->rows);
}

int64_t winograd_patches_plane(const Winograd *w)
{
    return winograd_plane((w->keeps_patches ? w->blocks : 1) * w->block * w->chain);
}

void winograd_transform_patches(const Winograd *w, Jit *j, JitValue first, JitValue n, JitValue to,
                                int64_t plane, JitValue room)
{
    WinogradPatch p = {.stage = WINOGRAD_PATCH,
                       .m = w->m,
                       .buf = w->source_buf,
                       .size = {w->axis[0].source, w->axis[1].source},
                       .channels = w->rows,
                       .origin = {w->axis[0].origin, w->axis[1].origin},
                       .tiles = {w->tiles[0], w->tiles[1]},
                       .most = w->rows,
                       .panel = w->chain,
                       .panel_step = w->points * plane,
                       .row = w->chain,
                       .plane = plane};
    WinogradPatchArgs a = {first, n, jit_i64(j, 0), jit_i64(j, w->rows), to, room};
    winograd_patches(j, &p, &a);
}

/* --- the first call --- */

int64_t winograd_work_floats(const Winograd *w, int lanes)
{
    if (w->keeps_patches)
        return w->chains * w->points * winograd_patches_plane(w);
    return w->points * winograd_weights_plane(w, divide_up(w->columns, lanes) * lanes);
}

int64_t winograd_work_tasks(const Winograd *w)
{
    return w->keeps_patches ? divide_up(w->count, TASK_TILES) : w->panels * w->chains;
}

static void patches_task(const Winograd *w, Jit *j, JitValue task)
{
    JitValue scratch = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32));
    JitValue first = jit_tmp(j, jit_mul(j, task, jit_i64(j, TASK_TILES)));
    JitValue n = jit_min_i64(j, jit_i64(j, TASK_TILES), jit_sub(j, jit_i64(j, w->count), first));
    JitValue to = jit_buf(j, w->work_buf, jit_types(j)->p_f32);
    to = jit_tmp(j, jit_offset(j, to, jit_mul(j, first, jit_i64(j, w->chain))));
    winograd_transform_patches(w, j, first, n, to, winograd_patches_plane(w), scratch);
}

static void weights_of(const Winograd *w, Jit *j, JitValue panel, JitValue row, int64_t columns)
{
    int64_t width = divide_up(columns, jit_lanes(j)) * jit_lanes(j);
    JitValue left = jit_sub(j, jit_i64(j, w->rows), row);
    JitValue to =
        jit_offset(j, winograd_weights_panel(w, j, panel), jit_mul(j, row, jit_i64(j, width)));
    WinogradWeights a = {.panel = panel,
                         .row = row,
                         .rows = jit_min_i64(j, jit_i64(j, w->chain), left),
                         .columns = columns,
                         .to = jit_tmp(j, to),
                         .plane = winograd_weights_plane(w, width),
                         .taps = jit_tmp(j, jit_scratch(j, jit_types(j)->p_f32))};
    winograd_transform_weights(w, j, &a);
}

static void weights_task(const Winograd *w, Jit *j, JitValue task)
{
    int64_t width = winograd_panel(w, jit_lanes(j)), whole = w->columns / width;
    JitValue panel = task, block = take_digit(j, &panel, w->chains);
    JitValue row = jit_tmp(j, jit_mul(j, block, jit_i64(j, w->chain)));
    JitIf s = jit_if(j, jit_compare(j, JIT_LT, panel, jit_i64(j, whole)));
    if (whole)
        weights_of(w, j, panel, row, width);
    jit_else(j, &s);
    if (w->columns % width)
        weights_of(w, j, panel, row, w->columns % width);
    jit_end_if(j, &s);
}

void winograd_work_emit(Jit *j, const void *desc)
{
    const Winograd *w = desc;
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue task = jit_tmp(j, jit_index(&l));
    if (w->keeps_patches)
        patches_task(w, j, task);
    else
        weights_task(w, j, task);
    jit_end_for(j, &l);
}
