/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a matrix kernel does with a finished sum before it is stored: adds a bias, and runs the
 * POINT operations of a fused node.
 *
 * Every result is seen as a matrix [rows, columns], columns contiguous: matmul [.., M, N] has
 * batch*M rows, an NHWC image has N*H*W rows of C columns. */
#ifndef SCRIMP_CODEGEN_FORMS_EPILOGUE_H
#define SCRIMP_CODEGEN_FORMS_EPILOGUE_H

#include "codegen/build/kernel.h"
#include "ir/support/strbuf.h"

enum { EPILOGUE_MAX_INPUTS = 80 };

/* An operand of the body: an `input` or a constant, and the kernel's buffer or number for it. */
typedef struct EpilogueInput {
    ValueId value;
    int buf;
    int64_t pitch; /* elements between its rows, where it lies inside of another value; else 0 */
} EpilogueInput;
/* Of a value of the step, which may lie inside of another (ir/strided_view.h). */
int64_t epilogue_pitch(const Graph *g, ValueId v);

typedef struct Epilogue {
    int bias_buf;      /* f32[columns]; -1: none */
    const Graph *body; /* of the fused node; NULL: none */
    ValueId acc;       /* the body's value that the sum (with bias) is */
    ValueId result;    /* the body's value to be stored */
    Type out;          /* its type: [.., columns] */
    int n_inputs;      /* operands besides the matrix operation's own */
    EpilogueInput input[EPILOGUE_MAX_INPUTS];
} Epilogue;

/* What element-wise operations of a body make for its matrix operation to read; VALUE_NONE:
 * nothing, or there is no matrix operation. */
ValueId group_prologue(const Graph *body);

/* No bias and no body: the sum is stored as `out`. */
Epilogue epilogue_none(const Type *out);
/* Adds the operations of the fused node of g being lowered; the inputs and constants of the body
 * that they need are appended to call->buf. */
void epilogue_add_body(Epilogue *e, const Graph *g, const Node *fused, CallDraft *call);
/* Some operand has the result's shape, so that the result may be written over it: it must not be
 * used for partial sums. */
bool epilogue_may_alias(const Epilogue *e);
/* Appends what a body's operations are. */
void body_key(StrBuf *key, const Graph *body);
/* Appends everything the emitted code depends on. */
void epilogue_key(StrBuf *key, const Epilogue *e);
/* The key of a matrix kernel whose description T ends in its epilogue. */
#define MATRIX_KEY(pool, what, T, desc)                                                            \
    matrix_key(pool, what, desc, DESC_BYTES_BEFORE(T, epilogue), &(desc)->epilogue)
const char *matrix_key(Pool *pool, const char *what, const void *desc, size_t bytes,
                       const Epilogue *e);
#endif
