/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cpu/gemm/gemm_image.h"

#include "codegen/jit/jit_short.h"

enum { STEPS_UNIT = 32 };

int64_t gemm_image_block(const GemmImage *x, int64_t most)
{
    if (x->channels <= most)
        return most / x->channels * x->channels;
    int64_t part = most / STEPS_UNIT * STEPS_UNIT;
    while (x->channels % part)
        part -= STEPS_UNIT;
    return part;
}

int64_t gemm_image_piece(const Gemm *g)
{
    return g->k_block < g->image.channels ? g->k_block : g->image.channels;
}

/* A row of A: where its window begins. */
typedef struct Window {
    JitValue image, y, x; /* may lie outside */
} Window;

static Window window_of(Jit *j, const GemmImage *i, JitValue row)
{
    JitValue rest = row;
    JitValue x = take_digit(j, &rest, i->x.count), y = take_digit(j, &rest, i->y.count);
    Window w = {.image = rest};
    w.y = jit_tmp(j, jit_muladd_i64(j, y, i->y.source_step, jit_i64(j, i->y.origin)));
    w.x = jit_tmp(j, jit_muladd_i64(j, x, i->x.source_step, jit_i64(j, i->x.origin)));
    return w;
}

static void put_piece(Jit *j, const Gemm *g, JitValue a, const Window *w, JitValue row, JitValue k,
                      JitValue step, GemmImagePut *put, const void *user)
{
    const GemmImage *i = &g->image;
    int64_t piece = gemm_image_piece(g);
    JitValue channels = jit_i64(j, i->channels), columns = jit_i64(j, i->x.taps);
    JitValue tap = jit_tmp(j, jit_div(j, k, channels));
    JitValue y = jit_muladd_i64(j, jit_div(j, tap, columns), i->y.tap_step, w->y);
    JitValue x = jit_muladd_i64(j, jit_mod(j, tap, columns), i->x.tap_step, w->x);
    y = jit_tmp(j, y);
    x = jit_tmp(j, x);
    JitValue valid = jit_and(j, inside(j, y, i->y.source), inside(j, x, i->x.source));
    JitIf within = jit_if(j, jit_compare(j, JIT_NE, valid, jit_i32(j, 0)));
    JitValue line = jit_muladd_i64(j, w->image, i->y.source, y);
    JitValue pixel = jit_muladd_i64(j, line, i->x.source, x);
    JitValue at = jit_muladd_i64(j, pixel, i->channels, jit_mod(j, k, channels));
    put(user, row, step, jit_tmp(j, jit_offset(j, a, at)), piece);
    jit_else(j, &within);
    put(user, row, step, NULL, piece);
    jit_end_if(j, &within);
}

void gemm_image_pack(Jit *j, const Gemm *g, JitValue a, JitValue row0, JitValue rows, JitValue k0,
                     JitValue steps, GemmImagePut *put, const void *user)
{
    JitLoop r = jit_for(j, jit_i64(j, 0), rows, 1, "row");
    JitValue row = jit_tmp(j, jit_index(&r));
    Window w = window_of(j, &g->image, jit_tmp(j, jit_add(j, row0, row)));
    JitLoop s = jit_for(j, jit_i64(j, 0), steps, gemm_image_piece(g), "step");
    JitValue step = jit_tmp(j, jit_index(&s));
    put_piece(j, g, a, &w, row, jit_tmp(j, jit_add(j, k0, step)), step, put, user);
    jit_end_for(j, &s);
    jit_end_for(j, &r);
}

JitValue gemm_image_b(Jit *j, const Gemm *g, JitValue k, JitValue column)
{
    JitValue channels = jit_i64(j, g->image.channels);
    JitValue tap = jit_div(j, k, channels), within = jit_mod(j, k, channels);
    JitValue at = jit_muladd_i64(j, tap, g->image.b_tap, jit_i64(j, g->image.b_origin));
    at = jit_muladd_i64(j, within, g->b_k, at);
    return jit_muladd_i64(j, column, g->b_n, at);
}
