/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parsing of a text, for the tests of the parser. */
#ifndef SCRIMP_TESTS_PARSE_TEXT_H
#define SCRIMP_TESTS_PARSE_TEXT_H

#include "check.h"
#include "frontend/language/syntax/ast.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct Parsed {
    Pool *pool;
    Diag *diag;
    Ast *ast;
} Parsed;

static inline Parsed parse_named(const char *name, const char *text, size_t length)
{
    Parsed p = {.pool = pool_new()};
    p.diag = diag_new(p.pool);
    p.ast = frontend_parse_text(p.pool, p.diag, name, text, length);
    return p;
}

static inline Parsed parse(const char *text)
{
    return parse_named("t.scrimp", text, strlen(text));
}

static inline char *printed(const Ast *ast)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    frontend_print_ast(ast, out);
    fclose(out);
    return text;
}

static inline void show_errors(const Parsed *p, const char *text)
{
    fprintf(stderr, "in <<<%.200s>>>\n", text);
    diag_print(p->diag, stderr, false);
}

/* "E010@2:5 E011@3:1": code, line and column of every error, in order. */
static inline char *errors_of(const Parsed *p)
{
    char *json = NULL, *list = NULL;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    diag_print_json(p->diag, out);
    fclose(out);
    json_t *root = json_loads(json, 0, NULL), *error;
    size_t i;
    out = open_memstream(&list, &size);
    json_array_foreach(json_object_get(root, "errors"), i, error)
    {
        fprintf(out, "%s%s@%d:%d", i ? " " : "", json_string_value(json_object_get(error, "code")),
                (int)json_integer_value(json_object_get(error, "line")),
                (int)json_integer_value(json_object_get(error, "column")));
    }
    fclose(out);
    json_decref(root);
    free(json);
    return list;
}

static inline bool messages_contain(const Parsed *p, const char *part)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    diag_print(p->diag, out, false);
    fclose(out);
    bool found = strstr(text, part) != NULL;
    free(text);
    return found;
}

#endif
