/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A MATRIX operation being lowered, alone or inside a fused node: where its operands and its result
 * are. */
#ifndef SCRIMP_CODEGEN_FORMS_MATRIX_H
#define SCRIMP_CODEGEN_FORMS_MATRIX_H

#include "codegen/forms/epilogue.h"

typedef struct MatrixNode {
    Lowering *l;
    const Graph *graph; /* of node: the step, or the body of fused */
    const Node *node;
    const Node *fused; /* NULL: node stands alone */
} MatrixNode;

const Type *matrix_operand_type(const MatrixNode *m, int i);
/* Of the operation, before the epilogue. */
const Type *matrix_result_type(const MatrixNode *m);
/* Bytes of the first two operands, and of what is stored: Call.bytes. */
double matrix_bytes(const MatrixNode *m);
/* A call with buffer 0 = the result. */
CallDraft matrix_call(const MatrixNode *m);
/* Appends operand i to the call's buffers; its index.  One that the group makes for the operation
 * is a number, in whose place its kernel finds an address, and call->made. */
int matrix_add_operand(const MatrixNode *m, CallDraft *call, int i);
/* Bias (operand `bias`, -1 or past the operands: none) and the operations of the fused node. */
Epilogue matrix_epilogue(const MatrixNode *m, CallDraft *call, int bias);

/* Adds the calls of a MATRIX operation; a backend has one for each. */
typedef void MatrixLower(const MatrixNode *m);
/* A MATRIX node, or a group whose body has one: its kernel, with the rest as its epilogue. */
void lower_matrix(Lowering *l, const Node *node, MatrixLower *const rules[OP_COUNT]);
/* A fused group: by what its body holds, that, or one pass over elements. */
void lower_group(Lowering *l, const Node *node, MatrixLower *const rules[OP_COUNT]);

#endif
