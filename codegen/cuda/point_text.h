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
    bool wide; /* element i of neighbours that are read and written together */
} PointText;

int64_t point_text_elements(const PointProgram *p);
bool point_text_has_bf16(const PointProgram *p);
/* What a kernel begins with. */
void point_text_begin(StrBuf *out, const PointProgram *p);
/* The program for the element of this number, an expression. */
void point_text_program(PointText *w, const char *number);

/* Elements of a thread: more than 1 where the program has a kernel that reads and writes neighbours
 * together. */
int64_t point_wide(const CallDraft *call, const PointProgram *p);
/* desc: a PointProgram. */
KernelText point_write_wide;

#endif
