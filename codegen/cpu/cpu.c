/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The backend for the cores of this machine: the lowering rule of every operation. */
#include "codegen/cpu/gemm/matrix.h"
#include "codegen/cpu/point/pointwise.h"
#include "codegen/cpu/rules.h"

LowerRule *const cpu_rules[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, cpu, ...)                                                                       \
    [OP_##name] = cpu_##cpu,
#include "ir/ops.def"
#undef OP
};

/* Sources and views cost nothing. */
void cpu_none(Lowering *l, const Node *node)
{
    (void)l;
    (void)node;
}

/* By what the body holds, a matrix kernel with an epilogue or one pass over elements. */
void cpu_fused(Lowering *l, const Node *node)
{
    if (graph_has_matrix(node->body))
        lower_fused_matrix(l, node);
    else
        lower_point_group(l, node);
}
