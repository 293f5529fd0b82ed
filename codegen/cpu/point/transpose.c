/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transposition that moves the last dim: one square after the other. */
#include "codegen/forms/transpose.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/jit/jit_short.h"

enum { SQUARE = 16, SQUARES_PER_TASK = 16 };

/* First element of square number i, and its size along the two contiguous dims. */
static void locate(Jit *j, const TransposeDesc *d, JitValue i, JitValue *in, JitValue *out,
                   JitValue *lead, JitValue *last)
{
    *in = *out = jit_i64(j, 0);
    for (int64_t k = d->rank - 1; k >= 0; k--) {
        JitValue at = take_digit(j, &i, transpose_squares(d, k, SQUARE));
        if (k == d->lead || k == d->rank - 1) {
            at = jit_tmp(j, jit_mul(j, at, jit_i64(j, SQUARE)));
            JitValue rest = jit_tmp(j, jit_sub(j, jit_i64(j, d->dim[k]), at));
            *(k == d->lead ? lead : last) = jit_tmp(j, jit_min_i64(j, rest, jit_i64(j, SQUARE)));
        }
        *in = jit_tmp(j, jit_muladd_i64(j, at, d->in[k], *in));
        *out = jit_tmp(j, jit_muladd_i64(j, at, d->out[k], *out));
    }
}

static void emit_transpose(Jit *j, const void *desc)
{
    const TransposeDesc *d = desc;
    JitType p = bits_pointer(j, d->bytes);
    JitValue first, end, in, out, lead = NULL, last = NULL;
    task_items(j, SQUARES_PER_TASK, transpose_all_squares(d, SQUARE), &first, &end);
    JitLoop square = jit_for(j, first, end, 1, "square");
    locate(j, d, jit_index(&square), &in, &out, &lead, &last);
    JitLoop y = jit_for(j, jit_i64(j, 0), lead, 1, "y");
    JitValue from = jit_tmp(j, jit_add(j, in, jit_index(&y)));
    JitValue to = jit_tmp(j, jit_muladd_i64(j, jit_index(&y), d->out[d->lead], out));
    JitLoop x = jit_for(j, jit_i64(j, 0), last, 1, "x");
    JitValue at = jit_tmp(j, jit_muladd_i64(j, jit_index(&x), d->in[d->rank - 1], from));
    JitValue v = jit_load(j, jit_buf(j, 0, p), at);
    jit_store(j, jit_buf(j, 1, p), jit_tmp(j, jit_add(j, to, jit_index(&x))), v);
    jit_end_for(j, &x);
    jit_end_for(j, &y);
    jit_end_for(j, &square);
}

void cpu_transpose(Lowering *l, const Node *n)
{
    TransposeDesc d = transpose_describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    if (transpose_keeps_rows(&d))
        transpose_copy(l, n, &d);
    else
        lower_pod_call(l, "transpose", emit_transpose, &d, DESC_BYTES(TransposeDesc),
                       divide_up(transpose_all_squares(&d, SQUARE), SQUARES_PER_TASK), bufs, 2);
}
