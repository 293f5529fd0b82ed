/* Lowering of fused nodes: a matrix kernel with an epilogue when the body holds a MATRIX operation,
 * else one pass over the elements. */
#include "codegen/cpu/gemm/matrix.h"
#include "codegen/cpu/point/pointwise.h"

void lower_fused(Lowering *l, const Node *node)
{
    if (graph_has_matrix(node->body))
        lower_fused_matrix(l, node);
    else
        lower_point_group(l, node);
}
