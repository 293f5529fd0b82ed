/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What kernels of an element a thread (point.c) and of several (point_wide.c) have in common. */
#ifndef SCRIMP_CODEGEN_CUDA_POINT_TEXT_H
#define SCRIMP_CODEGEN_CUDA_POINT_TEXT_H

#include "codegen/forms/point.h"

enum { POINT_THREADS = 256 };

typedef struct PointText {
    StrBuf *out;
    const PointProgram *p;
    const char *pad;
    bool wide;        /* element i of neighbours that are read and written together */
    const bool *once; /* instructions that are not in the loop over rows; NULL: all are */
} PointText;

/* The type of places and digits.  32-bit divisions are the cheaper ones. */
const char *point_text_index(const PointProgram *p);
/* Digits d0, d1, ... of a number, innermost last. */
void point_text_digits(PointText *w, const char *number, int rank);
/* base + d0 * stride0 + ..., of the digits of the element. */
void point_text_place(PointText *w, const PointAccess *a);
void point_text_instr(PointText *w, size_t k);
void point_text_store(PointText *w, const PointStore *s);
/* The same for all elements, without being read from memory. */
static inline bool point_text_is_constant(const PointInstr *i)
{
    return i->op == OP_const || i->op == POINT_NUMBER;
}
int64_t point_text_elements(const PointProgram *p);
bool point_text_has_bf16(const PointProgram *p);
/* What a kernel begins with. */
void point_text_begin(StrBuf *out, const PointProgram *p);
/* The program for the element of this number, an expression. */
void point_text_program(PointText *w, const char *number);

/* Elements of a thread: more than 1 where the program has a kernel that reads and writes neighbours
 * together. */
int64_t point_wide(const CallDraft *call, const PointProgram *p);
/* The same for programs of more than one dim, a row of neighbours after the other, where what is
 * the same for all rows is computed once. */
bool point_has_rows(const CallDraft *call, const PointProgram *p);
int64_t point_rows_threads(const PointProgram *p);
/* desc: a PointProgram. */
KernelText point_write_wide, point_write_rows;

/* --- of both --- */

/* Elements that are read and written together: 16 bytes of the smallest floats. */
int point_wide_elements(const PointProgram *p);
/* All loads and stores are of neighbours, or of one element, from where 16 bytes may begin. */
bool point_is_wide(const CallDraft *call, const PointProgram *p);
void point_put_wide_types(StrBuf *out, const PointProgram *p);
/* The variable `aligned`: addresses are those of 16 bytes; that of a value inside of another may
 * not be. */
void point_put_alignment(PointText *w);
/* Reads before, and writes behind, the loop over i. */
void point_put_wide_loads(PointText *w);
void point_put_wide_stores(PointText *w);

#endif
