/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/matrix.h"

#include "codegen/cuda/rules.h"
#include "codegen/forms/point.h"

static MatrixLower *const matrix_rules[OP_COUNT] = {
#define EACH_MATRIX(name) [OP_##name] = cuda_lower_##name,
#include "ir/ops_by_class.h"
};

void cuda_matrix(Lowering *l, const Node *node)
{
    lower_matrix(l, node, matrix_rules);
}

/* By what the body holds, a matrix kernel with an epilogue or one pass over elements. */
void cuda_fused(Lowering *l, const Node *node)
{
    if (graph_has_matrix(node->body))
        lower_matrix(l, node, matrix_rules);
    else
        lower_point_group(l, node);
}
