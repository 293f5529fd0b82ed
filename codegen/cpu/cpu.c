/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The backend for the cores of this machine: the lowering rule of every operation. */
#include "codegen/cpu/gemm/matrix.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/rules.h"

static LowerRule *const rules[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, cpu, ...)                                                                       \
    [OP_##name] = cpu,
#include "ir/ops.def"
#undef OP
};

const Backend cpu_backend = {.name = "cpu", .rules = rules, .point = point_emit_call};

/* By what the body holds, a matrix kernel with an epilogue or one pass over elements. */
void cpu_fused(Lowering *l, const Node *node)
{
    if (graph_has_matrix(node->body))
        lower_fused_matrix(l, node);
    else
        lower_point_group(l, node);
}
