/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Patterns of rearrange and einsum, in einops' notation: names separated by spaces, groups in
 * parentheses. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_EINOPS_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_EINOPS_H

#include "frontend/language/elaborate/builtins_table.h"

enum { MAX_AXES = 2 * TYPE_MAX_RANK, MAX_TERMS = 8 };

/* One dimension of a side: some axis names, joined; none is a dimension of size 1. */
typedef struct Group {
    int axis[MAX_AXES]; /* index into Pattern.name */
    int n;
} Group;

typedef struct Side {
    Group group[MAX_AXES];
    int n;
} Side;

typedef struct Pattern {
    BuiltinCall *call;
    Span span;
    const char *name[MAX_AXES * MAX_TERMS];
    int64_t size[MAX_AXES * MAX_TERMS]; /* 0 = not known yet */
    int n_names;
} Pattern;

/* Reports the error at the pattern; false. */
bool pattern_fail(const Pattern *p, const char *code, const char *what, const char *detail);
/* One side of a pattern; letters: a word stands for its letters. */
bool pattern_side(Pattern *p, const char *text, size_t len, bool letters, Side *side);
bool side_has(const Side *side, int axis);
/* No name stands twice on a side; false after a message. */
bool axes_once(const Pattern *p, const Side *side);

#endif
