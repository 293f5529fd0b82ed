/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element-wise programs as CUDA C, a thread an element: f32 in float, i32 and u8 in int, bool in
 * int as 0 / 1. */
#ifndef SCRIMP_CODEGEN_CUDA_POINT_H
#define SCRIMP_CODEGEN_CUDA_POINT_H

#include "codegen/forms/epilogue.h"
#include "codegen/forms/point.h"

/* The text of one POINT operation: cuda_point_NAME for every row of that class in ops.def, so that
 * one without is an error of the linker.  $0, $1, ... are the operands, $a and $b the
 * instruction's constants; an operand may stand there several times. */
typedef struct CudaPoint {
    const char *real;    /* where the first operand is f32 */
    const char *flagged; /* and the instruction's flag is set; NULL: as without */
    /* where it is i32, u8 or bool; NULL: codegen/build/supports.c refuses them */
    const char *integer;
    /* Instead, where attributes change the text more. */
    void (*write)(StrBuf *out, const PointInstr *i, const char *const *in);
} CudaPoint;
extern const CudaPoint *const cuda_points[OP_COUNT]; /* NULL: of another class */
#define EACH_POINT(name) extern const CudaPoint cuda_point_##name;
#include "ir/ops_by_class.h"

/* An expression for one instruction that is no access. */
void cuda_point_expression(StrBuf *out, const PointInstr *i, const char *const *in);

/* Backend.point */
void cuda_point_call(const Lowering *l, CallDraft *call, const PointProgram *p);
/* The function `epilogue(a, row, column, sum)`, which finishes one element of a matrix kernel and
 * stores it in buffer out_buf. */
void cuda_epilogue(StrBuf *out, const Epilogue *e, int out_buf);

#endif
