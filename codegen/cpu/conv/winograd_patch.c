/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The transforms of many patches.  A patch within its image is read in place; one at a border is
 * copied, with zeros outside of the image. */
#include "codegen/cpu/conv/winograd.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/jit/jit_short.h"

#include <stdio.h>

typedef struct PatchEmit {
    Jit *j;
    const WinogradPatch *p;
    const WinogradPatchArgs *a;
    int side;
} PatchEmit;

WinogradTile winograd_tile(Jit *j, int m, const int64_t tiles[2], JitValue tile)
{
    WinogradTile t;
    JitValue rest = tile;
    t.place[1] = jit_tmp(j, jit_mul(j, take_digit(j, &rest, tiles[1]), jit_i64(j, m)));
    t.place[0] = jit_tmp(j, jit_mul(j, take_digit(j, &rest, tiles[0]), jit_i64(j, m)));
    t.image = rest;
    return t;
}

/* --- one patch --- */

/* Parameters of its function, in order. */
enum { P_FROM, P_TO, P_CHANNELS, P_COUNT };

/* Channels c.. of the function's patch. */
static void transform(const PatchEmit *e, const WinogradSquare *from, JitValue c, JitValue lanes)
{
    Jit *j = e->j;
    const WinogradPatch *p = e->p;
    JitValue to = c;
    if (p->panel)
        to = jit_muladd_i64(j, jit_div(j, c, jit_i64(j, p->panel)), p->panel_step,
                            jit_mod(j, c, jit_i64(j, p->panel)));
    WinogradSquare source = *from, result = {.column = p->plane};
    result.row = winograd_stage_to(p->stage, p->m) * p->plane;
    source.p = jit_tmp(j, jit_offset(j, from->p, c));
    result.p = jit_tmp(j, jit_offset(j, jit_param(j, P_TO), to));
    winograd_transform(j, p->stage, p->m, &source, &result, lanes);
}

/* The last vector begins early and does some channels twice. */
static void transform_rows(const PatchEmit *e, const WinogradSquare *from)
{
    Jit *j = e->j;
    JitValue n = jit_param(j, P_CHANNELS);
    JitValue last = jit_tmp(j, jit_sub(j, n, jit_i64(j, jit_lanes(j))));
    JitLoop c = jit_for(j, jit_i64(j, 0), n, jit_lanes(j), "c");
    transform(e, from, jit_min_i64(j, jit_index(&c), last), NULL);
    jit_end_for(j, &c);
}

/* What lies behind the last channel is zero. */
static void transform_panels(const PatchEmit *e, const WinogradSquare *from)
{
    Jit *j = e->j;
    JitValue n = jit_param(j, P_CHANNELS), lanes = jit_i64(j, jit_lanes(j));
    JitValue rest = jit_tmp(j, jit_mod(j, n, lanes)), whole = jit_tmp(j, jit_sub(j, n, rest));
    JitLoop c = jit_for(j, jit_i64(j, 0), whole, jit_lanes(j), "c");
    transform(e, from, jit_tmp(j, jit_index(&c)), NULL);
    jit_end_for(j, &c);
    if (e->p->channels % jit_lanes(j) == 0)
        return;
    JitIf s = jit_if(j, jit_compare(j, JIT_GT, rest, jit_i64(j, 0)));
    transform(e, from, whole, rest);
    jit_end_if(j, &s);
}

/* The function of a patch in the image, or of a copy. */
static JitFunction patch_function(const PatchEmit *e, JitType source, bool copied)
{
    Jit *j = e->j;
    const WinogradPatch *p = e->p;
    const JitTypes *t = jit_types(j);
    char name[64];
    snprintf(name, sizeof name, "winograd_%s_%d", copied ? "copy" : "image", (int)p->stage);
    JitFunction f = jit_function_lookup(j, name);
    if (f)
        return f;
    const JitType types[P_COUNT] = {[P_FROM] = source, [P_TO] = t->p_f32, [P_CHANNELS] = t->i64};
    f = jit_function_begin(j, name, t->none, P_COUNT, types);
    int64_t pixel = copied ? p->most : p->channels;
    WinogradSquare from = {jit_param(j, P_FROM), (copied ? e->side : p->size[1]) * pixel, pixel};
    if (p->panel)
        transform_panels(e, &from);
    else
        transform_rows(e, &from);
    jit_function_end(j);
    return f;
}

/* --- borders --- */

/* The part [low, high) of a patch from `from` on that lies within the image. */
static void part_inside(const PatchEmit *e, int axis, JitValue from, JitValue *low, JitValue *high)
{
    Jit *j = e->j;
    JitValue zero = jit_i64(j, 0), side = jit_i64(j, e->side);
    *low = jit_max_i64(j, jit_sub(j, zero, from), zero);
    *high = jit_min_i64(j, jit_sub(j, jit_i64(j, e->p->size[axis]), from), side);
}

static JitValue pixel_at(const PatchEmit *e, JitValue image, JitValue y, JitValue x)
{
    Jit *j = e->j;
    const WinogradPatch *p = e->p;
    JitValue at = jit_muladd_i64(j, jit_muladd_i64(j, image, p->size[0], y), p->size[1], x);
    at = jit_muladd_i64(j, at, p->channels, e->a->channel);
    return jit_offset(j, jit_buf(j, p->buf, jit_types(j)->p_f32), at);
}

static void copy_patch(const PatchEmit *e, JitValue image, JitValue y, JitValue x)
{
    Jit *j = e->j;
    const WinogradPatch *p = e->p;
    JitValue top, bottom, left, right, most = jit_i64(j, p->most);
    part_inside(e, 0, y, &top, &bottom);
    part_inside(e, 1, x, &left, &right);
    JitValue n = jit_tmp(j, jit_sub(j, right, left));
    pack_zero(j, e->a->room, jit_i64(j, e->side * e->side * p->most));
    JitLoop r = jit_for(j, top, bottom, 1, "r");
    JitValue to = jit_muladd_i64(j, jit_index(&r), e->side, left);
    JitValue from = pixel_at(e, image, jit_add(j, y, jit_index(&r)), jit_add(j, x, left));
    pack_rows(j, jit_offset(j, e->a->room, jit_mul(j, to, most)), most, from,
              jit_i64(j, p->channels), n, e->a->channels);
    jit_end_for(j, &r);
}

/* --- all --- */

static JitValue is_inside(const PatchEmit *e, int axis, JitValue from)
{
    Jit *j = e->j;
    int64_t last = e->p->size[axis] - e->side;
    if (last < 0)
        return jit_i32(j, 0);
    JitValue near = jit_min_i64(j, jit_max_i64(j, from, jit_i64(j, 0)), jit_i64(j, last));
    return jit_cast(j, jit_compare(j, JIT_EQ, from, near), jit_types(j)->i32);
}

/* What the next tile across reads and this one does not: parts of pixels are a pattern that the
 * hardware does not follow. */
static void prefetch_next(const PatchEmit *e, JitValue from)
{
    Jit *j = e->j;
    const WinogradPatch *p = e->p;
    if (p->most == p->channels)
        return;
    JitLoop r = jit_for(j, jit_i64(j, 0), jit_i64(j, e->side), 1, "r");
    JitLoop c = jit_for(j, jit_i64(j, e->side), jit_i64(j, e->side + p->m), 1, "c");
    JitValue at = jit_muladd_i64(j, jit_index(&r), p->size[1], jit_index(&c));
    at = jit_offset(j, from, jit_mul(j, at, jit_i64(j, p->channels)));
    jit_prefetch(j, jit_tmp(j, at), e->a->channels);
    jit_end_for(j, &c);
    jit_end_for(j, &r);
}

static void emit_tile(const PatchEmit *e, JitValue i)
{
    Jit *j = e->j;
    const WinogradPatch *p = e->p;
    WinogradTile t = winograd_tile(j, p->m, p->tiles, jit_tmp(j, jit_add(j, e->a->first, i)));
    JitValue y = jit_tmp(j, jit_add(j, t.place[0], jit_i64(j, p->origin[0])));
    JitValue x = jit_tmp(j, jit_add(j, t.place[1], jit_i64(j, p->origin[1])));
    JitValue to = jit_tmp(j, jit_offset(j, e->a->to, jit_mul(j, i, jit_i64(j, p->row))));
    JitValue inside = jit_and(j, is_inside(e, 0, y), is_inside(e, 1, x));
    JitIf s = jit_if(j, jit_compare(j, JIT_NE, inside, jit_i32(j, 0)));
    JitValue from = jit_tmp(j, pixel_at(e, t.image, y, x));
    prefetch_next(e, from);
    const JitValue args[P_COUNT] = {from, to, e->a->channels};
    jit_call_void(j, patch_function(e, jit_type_of(from), false), P_COUNT, args);
    jit_else(j, &s);
    copy_patch(e, t.image, y, x);
    const JitValue copied[P_COUNT] = {e->a->room, to, e->a->channels};
    jit_call_void(j, patch_function(e, jit_types(j)->p_f32, true), P_COUNT, copied);
    jit_end_if(j, &s);
}

void winograd_patches(Jit *j, const WinogradPatch *p, const WinogradPatchArgs *a)
{
    PatchEmit e = {j, p, a, winograd_stage_from(p->stage, p->m)};
    JitLoop i = jit_for(j, jit_i64(j, 0), a->n, 1, "tile");
    emit_tile(&e, jit_tmp(j, jit_index(&i)));
    jit_end_for(j, &i);
}
