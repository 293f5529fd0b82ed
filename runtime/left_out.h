/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Examples that cannot be read: which ones, why, and how many are too many.  Each is reported once.
 * Called by data sources that decode. */
#ifndef SCRIMP_RUNTIME_LEFT_OUT_H
#define SCRIMP_RUNTIME_LEFT_OUT_H

#include "runtime/status.h"

/* At least so many may be left out, else 1 of LEFT_OUT_PART examples, at most LEFT_OUT_MOST. */
enum { LEFT_OUT_LEAST = 3, LEFT_OUT_PART = 100, LEFT_OUT_MOST = 1000 };

typedef struct LeftOut {
    int64_t example;
    char why[160]; /* "" when it was known before */
} LeftOut;

typedef struct LeftOutList {
    bool *is; /* by example */
    LeftOut *item;
    int64_t n, room;
    int64_t known; /* the first of them, which do not count towards the limit */
    int64_t limit, told;
} LeftOutList;

/* Room for `known` examples and those that may be found among n: nothing is allocated later. */
bool left_out_open(LeftOutList *list, int64_t n, int64_t known, RtError *err);
void left_out_close(LeftOutList *list);
/* Before any is found. */
void left_out_know(LeftOutList *list, int64_t example);
/* Once for each example; false when it is one more than the limit. */
bool left_out_find(LeftOutList *list, int64_t example, const char *why);

#endif
