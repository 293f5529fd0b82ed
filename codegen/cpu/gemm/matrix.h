/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A MATRIX operation being lowered, alone or inside a fused node: where its operands and its result
 * are. */
#ifndef SCRIMP_CODEGEN_CPU_GEMM_MATRIX_H
#define SCRIMP_CODEGEN_CPU_GEMM_MATRIX_H

#include "codegen/cpu/point/epilogue.h"

typedef struct MatrixNode {
    Lowering *l;
    const Graph *graph; /* of node: the step, or the body of fused */
    const Node *node;
    const Node *fused; /* NULL: node stands alone */
} MatrixNode;

const Type *matrix_operand_type(const MatrixNode *m, int i);
/* Of the operation, before the epilogue. */
const Type *matrix_result_type(const MatrixNode *m);
/* A call with buffer 0 = the result. */
CallDraft matrix_call(const MatrixNode *m);
/* Appends operand i to the call's buffers; its index. */
int matrix_add_operand(const MatrixNode *m, CallDraft *call, int i);
/* Bias (operand `bias`, -1 or past the operands: none) and the operations of the fused node. */
Epilogue matrix_epilogue(const MatrixNode *m, CallDraft *call, int bias);

/* Adds the calls of the operation: a rule for every MATRIX operation, in its file. */
typedef void MatrixLower(const MatrixNode *m);
#define EACH_MATRIX(name) MatrixLower matrix_lower_##name;
#include "ir/ops_by_class.h"

/* A group whose body has a MATRIX operation: its kernel, with the rest as its epilogue. */
void lower_fused_matrix(Lowering *l, const Node *fused);

#endif
