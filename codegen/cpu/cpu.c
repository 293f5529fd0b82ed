/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The backend for the cores of this machine: the lowering rule of every operation. */
#include "codegen/build/host.h"
#include "codegen/cpu/conv/conv.h"
#include "codegen/cpu/gemm/gemm.h"
#include "codegen/cpu/gemm/matrix_lower.h"
#include "codegen/cpu/point/point_jit.h"
#include "codegen/cpu/point/prologue.h"
#include "codegen/cpu/rules.h"

static LowerRule *const rules[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, cpu, ...)                                                                       \
    [OP_##name] = cpu,
#include "ir/ops.def"
#undef OP
};

static const KernelFamily *const families[] = {&gemm_family, &conv_window_family,
                                               &conv_wgrad_family, NULL};

const Backend cpu_backend = {.name = "cpu",
                             .rules = rules,
                             .point = point_emit_call,
                             .compiler = host_compiler,
                             .compile = host_compile,
                             .families = families,
                             .object = "o",
                             .linked = true};

static MatrixLower *const matrix_rules[OP_COUNT] = {
#define EACH_MATRIX(name) [OP_##name] = matrix_lower_##name,
#include "ir/ops_by_class.h"
};

void cpu_matrix(Lowering *l, const Node *node)
{
    lower_matrix(l, node, matrix_rules);
}

void cpu_fused(Lowering *l, const Node *node)
{
    size_t first = l->calls.len;
    lower_group(l, node, matrix_rules);
    prologue_lower(l, node, first);
}
