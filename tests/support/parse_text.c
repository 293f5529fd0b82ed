/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/parse_text.h"

#include "check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

Parsed parse_named(const char *name, const char *text, size_t length)
{
    Parsed p = {.pool = pool_new()};
    p.diag = diag_new(p.pool);
    p.ast = frontend_parse_text(p.pool, p.diag, name, text, length);
    return p;
}

Parsed parse(const char *text)
{
    return parse_named("t.scrimp", text, strlen(text));
}

char *printed(const Ast *ast)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    frontend_print_ast(ast, out);
    fclose(out);
    return text;
}

void show_errors(const Parsed *p, const char *text)
{
    fprintf(stderr, "in <<<%.200s>>>\n", text);
    diag_print(p->diag, stderr, false);
}

char *errors_of(const Parsed *p)
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

bool messages_contain(const Parsed *p, const char *part)
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
