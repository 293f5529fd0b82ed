/* Fused nodes: by what their body holds, a matrix kernel with an epilogue or one pass over
 * elements. */
#include "codegen/cpu/gemm/matrix.h"
#include "codegen/cpu/point/pointwise.h"

void lower_fused(Lowering *l, const Node *node)
{
    if (graph_has_matrix(node->body))
        lower_fused_matrix(l, node);
    else
        lower_point_group(l, node);
}
