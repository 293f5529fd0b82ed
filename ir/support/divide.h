/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Division of whole numbers that rounds up. */
#ifndef SCRIMP_IR_SUPPORT_DIVIDE_H
#define SCRIMP_IR_SUPPORT_DIVIDE_H

#include <stdint.h>

/* a / b rounded up, for a >= 0, b > 0 and a + b <= INT64_MAX: how many pieces of b cover a. */
static inline int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
