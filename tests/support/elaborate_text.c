/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/elaborate_text.h"

#include "check.h"
#include "ir/summary.h"
#include "ir/verify.h"

#include <stdlib.h>
#include <string.h>

void elaborated_finish(Elaborated *r, const Ast *ast, const FrontendOptions *options)
{
    size_t size;
    const char *fault;
    r->graph = ast ? frontend_lower(r->pool, r->diag, ast, options) : NULL;
    FILE *out = open_memstream(&r->errors, &size);
    diag_print(r->diag, out, false);
    fclose(out);
    if (r->graph)
        CHECK_MSG(graph_verify(r->graph, &fault), "%s: %s", r->graph->name, fault);
    CHECK_MSG((r->graph == NULL) == (diag_error_count(r->diag) > 0), "%s", r->errors);
}

Elaborated elaborate_text(const char *text, FrontendMode mode)
{
    Elaborated r = {.pool = pool_new()};
    FrontendOptions options = {.mode = mode};
    r.diag = diag_new(r.pool);
    elaborated_finish(&r, frontend_parse_text(r.pool, r.diag, "test.scrimp", text, strlen(text)),
                      &options);
    return r;
}

Elaborated elaborate_example_for(const char *name, FrontendMode mode, bool count,
                                 const char *const *defs)
{
    Elaborated r = {.pool = pool_new()};
    OptionDef list[8];
    FrontendOptions options = {.defs = list, .mode = mode, .count = count};
    r.diag = diag_new(r.pool);
    for (; defs && *defs; defs++) {
        const char *equals = strchr(*defs, '=');
        list[options.n_defs++] =
            (OptionDef){pool_strndup(r.pool, *defs, (size_t)(equals - *defs)), equals + 1};
    }
    const char *root = getenv("SCRIMP_SOURCE");
    const char *path = pool_printf(r.pool, "%s/examples/%s.scrimp", root ? root : ".", name);
    elaborated_finish(&r, frontend_parse(r.pool, r.diag, path), &options);
    CHECK_MSG(r.graph != NULL, "%s: %s", name, r.errors);
    return r;
}

Elaborated elaborate_example(const char *name, FrontendMode mode, const char *const *defs)
{
    return elaborate_example_for(name, mode, false, defs);
}

void elaborated_free(Elaborated *r)
{
    free(r->errors);
    pool_free(r->pool);
}

const Node *find_node(const Elaborated *r, const char *name)
{
    ValueId v = r->graph ? graph_find(r->graph, name) : VALUE_NONE;
    CHECK_MSG(v != VALUE_NONE, "no value %s; %s", name, r->errors);
    return v == VALUE_NONE ? NULL : value_node(r->graph, v);
}

int count_ops(const Elaborated *r, OpKind op)
{
    int n = 0;
    for (size_t i = 0; r->graph && i < r->graph->nodes.len; i++)
        n += r->graph->nodes.data[i].op == op;
    return n;
}
