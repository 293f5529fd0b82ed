/* SPDX-License-Identifier: GPL-3.0-or-later */
/* matrix_lower_NAME for every MATRIX operation: adds its calls. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_MATRIX_LOWER_H
#define SCRIMP_CODEGEN_CPU_GEMM_MATRIX_LOWER_H

#include "codegen/forms/matrix.h"

#define EACH_MATRIX(name) MatrixLower matrix_lower_##name;
#include "ir/ops_by_class.h"

#endif
