/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packing the weights of a window pass: [group][panel][taps][taps][red][columns of the panel].
 * Convolutions that differ in their images, taps or channels summed over alone share a kernel:
 * these sizes are numbers of the call. */
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/gemm/gemm_pack.h"
#include "codegen/jit/jit_short.h"
#include "ir/support/divide.h"

/* The numbers of a call, behind its two buffers: bounds of loops, and floats from one to the next.
 */
typedef enum PackNumber {
    PACK_TAPS_0,
    PACK_TAPS_1,
    PACK_STEP_0, /* of a tap, in the weights */
    PACK_STEP_1,
    PACK_RED,
    PACK_PANELS,
    PACK_WHOLE_PANELS,
    PACK_GROUP_FROM, /* of a group, in the weights */
    PACK_GROUP_TO,   /* and packed */
    PACK_PANEL_TO,
    PACK_NUMBERS
} PackNumber;
enum { WEIGHTS, PACKED, FIRST_NUMBER };

KERNEL_DESC_BEGIN
typedef struct ConvPack {
    int64_t transposed, k; /* flag, and a row of the weights: where a step leads */
    int64_t vectors;       /* of a whole panel */
    int64_t whole;         /* flag: there are whole panels */
    int64_t rest;          /* columns of one that is not; 0: there is none */
} ConvPack;
KERNEL_DESC(ConvPack)

static JitValue number(Jit *j, PackNumber n)
{
    return jit_number(j, FIRST_NUMBER + (int)n);
}

static JitValue times(Jit *j, JitValue i, PackNumber n)
{
    return jit_tmp(j, jit_mul(j, i, number(j, n)));
}

/* The panel of `columns` columns: `to` and `from` are those of its first tap. */
static void pack_taps(const ConvPack *d, Jit *j, JitValue to, JitValue from, int64_t columns)
{
    int64_t lanes = jit_lanes(j), vectors = divide_up(columns, lanes);
    PackPanel p = {(int)vectors, columns, d->transposed ? 1 : d->k, d->transposed ? d->k : 1};
    int64_t over = vectors * lanes - columns;
    JitValue red = jit_tmp(j, number(j, PACK_RED));
    JitValue safe = jit_tmp(j, jit_sub(j, red, jit_i64(j, (over + d->k - 1) / d->k)));
    JitValue size = jit_tmp(j, jit_mul(j, red, jit_i64(j, vectors * lanes)));
    JitLoop t0 = jit_for(j, jit_i64(j, 0), jit_tmp(j, number(j, PACK_TAPS_0)), 1, "tap");
    JitLoop t1 = jit_for(j, jit_i64(j, 0), jit_tmp(j, number(j, PACK_TAPS_1)), 1, "tap");
    JitValue tap = add(j, times(j, jit_index(&t0), PACK_TAPS_1), jit_index(&t1));
    JitValue at =
        add(j, times(j, jit_index(&t0), PACK_STEP_0), times(j, jit_index(&t1), PACK_STEP_1));
    pack_panel(j, &p, jit_offset(j, to, mul(j, tap, size)), jit_offset(j, from, at), red, safe);
    jit_end_for(j, &t1);
    jit_end_for(j, &t0);
}

static void emit_pack(Jit *j, const void *desc)
{
    const ConvPack *d = desc;
    const JitTypes *t = jit_types(j);
    int64_t columns = d->vectors * jit_lanes(j);
    JitLoop l = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue panels = jit_tmp(j, number(j, PACK_PANELS));
    JitValue group = jit_tmp(j, jit_div(j, jit_index(&l), panels));
    JitValue panel = jit_tmp(j, jit_mod(j, jit_index(&l), panels));
    JitValue column = jit_mul(j, panel, jit_i64(j, columns * (d->transposed ? d->k : 1)));
    JitValue to = add(j, times(j, group, PACK_GROUP_TO), times(j, panel, PACK_PANEL_TO));
    to = jit_tmp(j, jit_offset(j, jit_buf(j, PACKED, t->p_f32), to));
    JitValue from = add(j, times(j, group, PACK_GROUP_FROM), column);
    from = jit_tmp(j, jit_offset(j, jit_buf(j, WEIGHTS, t->p_f32), from));
    JitIf s = jit_if(j, jit_compare(j, JIT_LT, panel, number(j, PACK_WHOLE_PANELS)));
    if (d->whole)
        pack_taps(d, j, to, from, columns);
    jit_else(j, &s);
    if (d->rest)
        pack_taps(d, j, to, from, d->rest);
    jit_end_if(j, &s);
    jit_end_for(j, &l);
}

int64_t conv_window_weight_floats(const ConvWindow *w)
{
    return w->axis[0].taps * w->axis[1].taps * w->red;
}

int64_t conv_window_group_floats(const ConvWindow *w, int lanes)
{
    return conv_window_weight_floats(w) * divide_up(w->cols, lanes) * lanes;
}

int64_t conv_window_packed_floats(const ConvWindow *w, int lanes)
{
    return w->q.groups * conv_window_group_floats(w, lanes);
}

void conv_pack_call(Pool *pool, CallDraft *call, const ConvWindow *w, DType dtype, int lanes)
{
    const ConvGeometry *q = &w->q;
    int64_t columns = (int64_t)w->shape.vectors * lanes, tap = conv_group_in(q) * q->k;
    int64_t first = (w->axis[0].weight_first * q->s + w->axis[1].weight_first) * tap;
    ConvPack *d = POOL_NEW(pool, ConvPack);
    *d = (ConvPack){w->transposed, q->k, w->shape.vectors, w->cols >= columns, w->cols % columns};
    const int64_t numbers[PACK_NUMBERS] = {
        [PACK_TAPS_0] = w->axis[0].taps,
        [PACK_TAPS_1] = w->axis[1].taps,
        [PACK_STEP_0] = w->axis[0].weight_step * q->s * tap,
        [PACK_STEP_1] = w->axis[1].weight_step * tap,
        [PACK_RED] = w->red,
        [PACK_PANELS] = w->panels,
        [PACK_WHOLE_PANELS] = w->cols / columns,
        [PACK_GROUP_FROM] = conv_group_out(q),
        [PACK_GROUP_TO] = conv_window_group_floats(w, lanes),
        [PACK_PANEL_TO] = conv_window_weight_floats(w) * columns,
    };
    CallBuf weights = call->buf[w->weight_buf], packed = call->buf[w->packed_buf];
    weights.offset += dtype_bytes(dtype) * first;
    packed.offset += 4 * w->packed_offset;
    call->n_bufs = FIRST_NUMBER;
    call->buf[WEIGHTS] = weights;
    call->buf[PACKED] = packed;
    for (int i = 0; i < PACK_NUMBERS; i++)
        call->buf[call->n_bufs++] = (CallBuf){CALL_NUMBER, numbers[i]};
    StrBuf key = strbuf_new(pool);
    desc_key(&key, "conv_pack", d, DESC_BYTES(ConvPack));
    call->key = key.text;
    call->desc = d;
    call->emit = emit_pack;
    call->n_tasks = conv_window_weight_floats(w) ? q->groups * w->panels : 0;
    call->bytes = (4.0 + (double)dtype_bytes(dtype)) * (double)(q->r * q->s * tap);
}
