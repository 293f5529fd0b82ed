/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/budget.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool budget_parse(const char *text, Budget *out)
{
    *out = (Budget){.kind = BUDGET_NONE};
    if (!text || !*text)
        return true;
    if (strcmp(text, "min") == 0) {
        out->kind = BUDGET_MIN;
        return true;
    }
    const char *rest = byte_size_skip_number(text);
    if (rest && *rest == '%') {
        *out = (Budget){.kind = BUDGET_PERCENT, .amount = strtod(text, NULL)};
        return rest[1] == '\0';
    }
    out->kind = BUDGET_BYTES;
    return byte_size_parse(text, &out->amount, &out->bare);
}

int64_t budget_bytes(Budget b, int64_t persistent_bytes, int64_t keep_all_peak_bytes)
{
    switch (b.kind) {
    case BUDGET_NONE:
        return INT64_MAX;
    case BUDGET_BYTES:
        return (int64_t)floor(b.amount);
    case BUDGET_PERCENT: {
        int64_t whole = b.of_bytes ? b.of_bytes : keep_all_peak_bytes;
        double bytes =
            (double)persistent_bytes + b.amount / 100 * (double)(whole - persistent_bytes);
        return bytes < 9e18 ? (int64_t)floor(bytes) : INT64_MAX;
    }
    case BUDGET_MIN:
        break;
    }
    return 0;
}
