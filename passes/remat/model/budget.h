/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A budget as users write it: bytes, a percentage or `min` (docs/remat.md). */
#ifndef SCRIMP_PASSES_REMAT_MODEL_BUDGET_H
#define SCRIMP_PASSES_REMAT_MODEL_BUDGET_H

#include "ir/support/byte_size.h"

typedef enum BudgetKind { BUDGET_NONE, BUDGET_BYTES, BUDGET_PERCENT, BUDGET_MIN } BudgetKind;

typedef struct Budget {
    BudgetKind kind;
    double amount; /* bytes, or percent */
    int64_t
        of_bytes; /* percent: of a peak of so many bytes; 0 = of the step's without recomputation */
    bool bare;    /* bytes without a unit: easily a slip */
} Budget;

/* "" or NULL: none; a size (byte_size.h), "40%" or "min".  False when the text is none of these, or
 * a size of more than 9e18 bytes, which is then in out->amount. */
bool budget_parse(const char *text, Budget *out);

/* Bytes of the arena, see docs/remat.md; INT64_MAX for BUDGET_NONE, 0 for BUDGET_MIN. */
int64_t budget_bytes(Budget b, int64_t persistent_bytes, int64_t keep_all_peak_bytes);

#endif
