/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The order of the elements of each line: lines of `length` elements side by side.  What is sorted
 * are 64-bit words of an element, as an integer that compares as it does, and its number: no two
 * are equal, so every way of sorting gives the same. */
#ifndef SCRIMP_CODEGEN_FORMS_SORT_H
#define SCRIMP_CODEGEN_FORMS_SORT_H

#include "codegen/forms/pod.h"

KERNEL_DESC_BEGIN
typedef struct SortDesc {
    int64_t lines, length, count;
    int64_t descending, integer; /* flags */
    int64_t slots;               /* lines with room in the workspace; 0: it has none */
} SortDesc;
KERNEL_DESC(SortDesc)

SortDesc sort_describe(const Lowering *l, const Node *n);

#endif
