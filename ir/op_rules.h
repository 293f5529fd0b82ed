/* The shape and cost rules that ops.def names, declared from it; included by the files that define
 * them. */
#ifndef SCRIMP_IR_OP_RULES_H
#define SCRIMP_IR_OP_RULES_H

#include "ir/graph.h"

#define OP(name, min_in, max_in, n_out, op_class, shape, flops, ...)                               \
    ShapeRule shape_##shape;                                                                       \
    FlopsRule flops_##flops;
#include "ir/ops.def"
#undef OP

#endif
