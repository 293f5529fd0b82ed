/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of operations, with the rules that ops.def names. */
#include "ir/op_rules.h"

#define NONE
#define MUST(name) {ATTR_##name, true},
#define MAY(name)  {ATTR_##name, false},
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, cpu, cuda, attributes)                                                          \
    static const OpAttr attrs_of_##name[] = {attributes{ATTR_COUNT, false}};
#include "ir/ops.def"
#undef OP

const OpInfo op_table[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           ...)                                                                                    \
    {#name,                                                                                        \
     min_in,                                                                                       \
     max_in,                                                                                       \
     n_out,                                                                                        \
     OP_CLASS_##op_class,                                                                          \
     shape_##shape,                                                                                \
     flops_##flops,                                                                                \
     &access_##access,                                                                             \
     &workspace_##workspace,                                                                       \
     attrs_of_##name},
#include "ir/ops.def"
#undef OP
};
