/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constant arrays, copied out of the code. */
#include "codegen/forms/literal.h"
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"

static void copy_constants(Jit *j, Lanes v, void *user)
{
    JitValue zero = jit_i64(j, 0), v_f32 = load_lanes(j, *(JitValue *)user, zero, v, 0);
    store_lanes(j, jit_buf(j, 0, jit_types(j)->p_f32), zero, v, v_f32);
}

static void emit_literal(Jit *j, const void *desc)
{
    const LiteralDesc *d = desc;
    JitValue from = jit_tmp(j, jit_constants(j, d->values, d->n));
    each_vector(j, d->n, 1, copy_constants, &from);
}

void cpu_literal(Lowering *l, const Node *node)
{
    size_t bytes;
    const LiteralDesc *d = literal_describe(l, node, &bytes);
    const CallBuf buf = {node->out[0], 0};
    lower_pod_call(l, "literal", emit_literal, d, bytes, 1, &buf, 1);
}
