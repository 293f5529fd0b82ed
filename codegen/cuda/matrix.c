/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/matrix.h"

#include "codegen/cuda/rules.h"

static MatrixLower *const matrix_rules[OP_COUNT] = {
#define EACH_MATRIX(name) [OP_##name] = cuda_lower_##name,
#include "ir/ops_by_class.h"
};

void cuda_matrix(Lowering *l, const Node *node)
{
    lower_matrix(l, node, matrix_rules);
}

void cuda_fused(Lowering *l, const Node *node)
{
    lower_group(l, node, matrix_rules);
}
