/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Local response normalisation over a window of channels (Krizhevsky, Sutskever and Hinton 2012,
 * section 3.3) and its gradient:
 *
 *     s[c] = k + alpha * sum of x[c - before .. c + after]^2,   y[c] = x[c] * s[c]^-beta
 *     dx[c] = dy[c] s[c]^-beta - 2 alpha beta x[c] * sum over c' in c - after .. c + before of
 *             dy[c'] x[c'] s[c']^(-beta-1)
 *
 * A window's sum goes from its first channel to its last, zeros beyond the ends; it begins with the
 * first term where the window has at most LRN_UNROLLED channels, else with zero. */
#ifndef SCRIMP_CODEGEN_FORMS_LRN_H
#define SCRIMP_CODEGEN_FORMS_LRN_H

#include "codegen/build/kernel.h"

enum { LRN_UNROLLED = 16 };

KERNEL_DESC_BEGIN
typedef struct LrnDesc {
    int64_t outer, channels, inner;
    int64_t before, after; /* channels of the window on both sides, clamped to those there are */
    double alpha, beta, k;
} LrnDesc;
KERNEL_DESC(LrnDesc)

LrnDesc lrn_describe(const Lowering *l, const Node *n);

#endif
