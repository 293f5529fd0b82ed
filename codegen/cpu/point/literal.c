/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constant arrays, copied out of the code. */
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"

#include <string.h>

KERNEL_DESC_BEGIN
typedef struct LiteralDesc {
    int64_t n;
    float values[];
} LiteralDesc;
KERNEL_DESC(LiteralDesc)

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

/* The numbers are part of the kernel's key. */
void cpu_literal(Lowering *l, const Node *node)
{
    int n;
    const double *values = node_floats(node, ATTR_values, &n);
    size_t bytes = DESC_BYTES(LiteralDesc) + (size_t)n * sizeof(float);
    LiteralDesc *d = pool_alloc(l->pool, bytes);
    memset(d, 0, bytes);
    d->n = n;
    for (int i = 0; i < n; i++)
        d->values[i] = (float)values[i];
    const CallBuf buf = {node->out[0], 0};
    lower_pod_call(l, "literal", emit_literal, d, bytes, 1, &buf, 1);
}
