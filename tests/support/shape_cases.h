/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every operation makes of given inputs: a table shared by the tests of shapes and of the text
 * form.  Expected sizes were worked out by hand from the definitions (PyTorch's for windows). */
#ifndef SCRIMP_TESTS_SHAPE_CASES_H
#define SCRIMP_TESTS_SHAPE_CASES_H

#include "ir/graph.h"

typedef struct OpCase {
    OpKind op;
    const char *inputs; /* types, separated by spaces */
    const char *attrs;  /* "key=1,2 flag= text=abc" */
    const char *expect; /* types of the results, or an error code */
} OpCase;

#define BIG "4611686018427387904"
extern const OpCase op_cases[];
extern const int n_op_cases;

/* The next word of a list, and what a type and an attribute of the table mean. */
const char *next_word(Pool *pool, const char **text);
Type parse_type(Pool *pool, const char *text);
void parse_attr(Pool *pool, const char *text, AttrList *list);

#endif
