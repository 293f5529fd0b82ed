/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Constant arrays, which are part of the code. */
#ifndef SCRIMP_CODEGEN_FORMS_LITERAL_H
#define SCRIMP_CODEGEN_FORMS_LITERAL_H

#include "codegen/build/kernel.h"

KERNEL_DESC_BEGIN
typedef struct LiteralDesc {
    int64_t n;
    float values[];
} LiteralDesc;
KERNEL_DESC(LiteralDesc)

/* bytes: of the whole description, numbers and all. */
const LiteralDesc *literal_describe(const Lowering *l, const Node *n, size_t *bytes);

#endif
