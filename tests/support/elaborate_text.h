/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Elaboration of a text or an example, for the tests of the elaborator. */
#ifndef SCRIMP_TESTS_ELABORATE_TEXT_H
#define SCRIMP_TESTS_ELABORATE_TEXT_H

#include "frontend/language/frontend.h"

typedef struct Elaborated {
    Pool *pool;
    Diag *diag;
    Graph *graph; /* NULL after errors */
    char *errors; /* what diag_print says */
} Elaborated;

void elaborated_finish(Elaborated *r, const Ast *ast, const FrontendOptions *options);
Elaborated elaborate_text(const char *text, FrontendMode mode);
/* defs: "name=value" pairs, NULL at the end.  count: see FrontendOptions. */
Elaborated elaborate_example_for(const char *name, FrontendMode mode, bool count,
                                 const char *const *defs);
Elaborated elaborate_example(const char *name, FrontendMode mode, const char *const *defs);
void elaborated_free(Elaborated *r);
const Node *find_node(const Elaborated *r, const char *name);
int count_ops(const Elaborated *r, OpKind op);

#endif
