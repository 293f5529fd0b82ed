/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lowering of a text or an example, for the tests of the elaborator. */
#ifndef SCRIMP_TESTS_LOWER_TEXT_H
#define SCRIMP_TESTS_LOWER_TEXT_H

#include "frontend/language/frontend.h"

typedef struct Lowered {
    Pool *pool;
    Diag *diag;
    Graph *graph; /* NULL after errors */
    char *errors; /* what diag_print says */
} Lowered;

void lowered_finish(Lowered *r, const Ast *ast, const FrontendOptions *options);
Lowered lower_text(const char *text, FrontendMode mode);
/* defs: "name=value" pairs, NULL at the end.  count: see FrontendOptions. */
Lowered lower_example_for(const char *name, FrontendMode mode, bool count, const char *const *defs);
Lowered lower_example(const char *name, FrontendMode mode, const char *const *defs);
void lowered_free(Lowered *r);
const Node *find_node(const Lowered *r, const char *name);
int count_ops(const Lowered *r, OpKind op);

#endif
