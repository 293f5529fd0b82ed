/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/library/library.h"

#include "codegen/forms/convolution.h"
#include "ir/support/bug.h"

#include <string.h>

/* The product that a node is, if it is one. */
static bool is_product(const MatrixNode *m, Product *out)
{
    OpKind op = m->node->op;
    if (op == OP_matmul || op == OP_linear) {
        *out = product_of(m);
        return true;
    }
    ConvPart part = op == OP_conv2d         ? CONV_FORWARD
                    : op == OP_conv2d_wgrad ? CONV_WGRAD
                                            : CONV_DGRAD;
    ConvGeometry q = conv_geometry(m, part);
    *out = conv_product(&q, part);
    return conv_form(&q, part) == CONV_PRODUCT;
}

static bool is_convolution(const Node *n)
{
    return n->op != OP_matmul && n->op != OP_linear;
}

bool cuda_library(const Graph *g, const Node *n, const char *archs, LibraryUse *out)
{
    Product p;
    const MatrixNode m = {.graph = g, .node = n};
    return (is_product(&m, &p) && cublaslt_takes(g, n, &p, out)) ||
           (is_convolution(n) && cudnn_takes(g, n, archs, out));
}

const char *cuda_library_version(Pool *pool, const char *library)
{
    if (strcmp(library, cudnn_name) == 0)
        return cudnn_version_text(pool);
    if (strcmp(library, cublaslt_name) != 0)
        BUG("there is no library %s", library);
    return cublaslt_version(pool);
}

const char *cuda_library_plan(Pool *pool, const Call *call, const char *text, const char *arch,
                              const char **error)
{
    if (strcmp(call->library, cudnn_name) == 0)
        return cudnn_plan(pool, call->desc, arch, error);
    return text;
}
