/* SPDX-License-Identifier: GPL-3.0-or-later */
/* cuda_lower_NAME for every MATRIX operation: adds its calls. */
#ifndef SCRIMP_CODEGEN_CUDA_MATRIX_H
#define SCRIMP_CODEGEN_CUDA_MATRIX_H

#include "codegen/forms/product.h"

#define EACH_MATRIX(name) MatrixLower cuda_lower_##name;
#include "ir/ops_by_class.h"

/* A node that is the product p of its first two operands.  what: for the label. */
void cuda_product(const MatrixNode *m, const Product *p, const char *what);

#endif
