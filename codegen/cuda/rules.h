/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every function in the column `cuda` of ops.def: looks at a node and adds its calls. */
#ifndef SCRIMP_CODEGEN_CUDA_RULES_H
#define SCRIMP_CODEGEN_CUDA_RULES_H

#include "codegen/build/kernel.h"

#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, cpu, cuda, ...)                                                                 \
    LowerRule cuda;
#include "ir/ops.def"
#undef OP

/* The rule of operations without code. */
LowerRule cuda_missing;

#endif
