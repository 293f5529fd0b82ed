/* The table of operations, with the rules that ops.def names. */
#include "ir/op_rules.h"

const OpInfo op_table[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, ...)                               \
    {#name, min_in, max_in, n_out, OP_CLASS_##op_class, shape_##shape, flops_##flops},
#include "ir/ops.def"
#undef OP
};
