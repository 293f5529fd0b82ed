/* What a matrix kernel does with a finished accumulator vector before it is stored: adds a bias,
 * and runs the POINT operations of a fused node.  Called by the register-tile generator
 * (gemm_tile.c) and by the slow convolution loops; lower_fused of codegen/pointwise.c hands fused
 * nodes whose body has a MATRIX operation to lower_fused_matrix.
 *
 * Every result is seen as a matrix [rows, columns], columns contiguous: matmul [.., M, N] has
 * batch*M rows, an NHWC image has N*H*W rows of C columns. */
#ifndef SCRIMP_CODEGEN_EPILOGUE_H
#define SCRIMP_CODEGEN_EPILOGUE_H

#include "codegen/jit.h"
#include "codegen/kernel.h"
#include "ir/support/strbuf.h"

enum { EPILOGUE_MAX_INPUTS = 32 };

/* Where an operand of the body lies for element (row, column): at element column * col_stride +
 * sum of digit_i * stride[i] of its buffer, the digits being row written in the mixed base dim[]
 * (last digit fastest). */
typedef struct EpilogueInput {
    int buf;       /* of the kernel */
    ValueId value; /* the body's `input` value */
    DType dtype;
    int64_t col_stride; /* 0 or 1 */
    int n_dims;
    int64_t dim[TYPE_MAX_RANK], stride[TYPE_MAX_RANK];
} EpilogueInput;

typedef struct Epilogue {
    int bias_buf;      /* f32[columns]; -1: none */
    const Graph *body; /* of the fused node; NULL: none */
    ValueId acc;       /* the body's value that the accumulator (with bias) is */
    int n_inputs;      /* operands of the body besides the matrix operation's own */
    EpilogueInput input[EPILOGUE_MAX_INPUTS];
} Epilogue;

/* Nothing to do. */
Epilogue epilogue_none(void);
bool epilogue_is_empty(const Epilogue *e);
/* The epilogue of the fused node being lowered.  Inputs of the body that it needs are appended to
 * call->buf; out: the type of the result. */
Epilogue epilogue_of_fused(const Node *fused, const Type *out, Call *call);
/* Everything the emitted code depends on. */
void epilogue_key(StrBuf *key, const Epilogue *e);
/* acc: f32 vector of columns col.. of row.  n_valid: how many lanes exist (1..lanes), NULL = all.
 * Evaluated to the vector to be stored (f32). */
JitValue epilogue_apply(Jit *j, const Epilogue *e, JitValue acc, JitValue row, JitValue col,
                        JitValue n_valid);

/* Lowers a fused node whose body holds a MATRIX operation. */
LowerRule lower_fused_matrix;

#endif
