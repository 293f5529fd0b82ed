/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of ir that ops.def names, declared from it; included by the files that define them. */
#ifndef SCRIMP_IR_OP_RULES_H
#define SCRIMP_IR_OP_RULES_H

#include "ir/graph.h"

#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           ...)                                                                                    \
    ShapeRule shape_##shape;                                                                       \
    FlopsRule flops_##flops;                                                                       \
    extern const OpAccess access_##access;                                                         \
    extern const OpWorkspace workspace_##workspace;
#include "ir/ops.def"
#undef OP

#endif
