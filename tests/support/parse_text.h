/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing of a text, for the tests of the parser. */
#ifndef SCRIMP_TESTS_PARSE_TEXT_H
#define SCRIMP_TESTS_PARSE_TEXT_H

#include "frontend/language/syntax/ast.h"

typedef struct Parsed {
    Pool *pool;
    Diag *diag;
    Ast *ast;
} Parsed;

Parsed parse_named(const char *name, const char *text, size_t length);
Parsed parse(const char *text);
char *printed(const Ast *ast);
void show_errors(const Parsed *p, const char *text);
/* "E010@2:5 E011@3:1": code, line and column of every error, in order. */
char *errors_of(const Parsed *p);
bool messages_contain(const Parsed *p, const char *part);

#endif
