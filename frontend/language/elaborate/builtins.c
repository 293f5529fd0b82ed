/* Finding builtins by name. */
#include "frontend/language/elaborate/builtins.h"

#include "ir/support/strbuf.h"

#include <string.h>

/* The parts of the table, each from a function on. */
static const struct Part {
    const char *first, *title;
} parts[] = {
    {"linear", "layers"},
    {"relu", "element-wise functions"},
    {"softmax", "reductions"},
    {"maxpool", "pooling"},
    {"reshape", "functions of shapes"},
    {"cross_entropy", "losses and metrics"},
    {"len", "functions of numbers and lists"},
    {"init", "initial values"},
    {"mnist", "data sources"},
    {"sgd", "optimizers"},
    {"constant", "learning rates"},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

const char *builtin_part(Pool *pool, const char *member)
{
    StrBuf names = strbuf_new(pool);
    int part = -1, found = -1;
    for (int i = 0; i < builtin_count; i++) {
        const char *name = builtin_table[i].name;
        if (part + 1 < N_PARTS && strcmp(name, parts[part + 1].first) == 0) {
            if (found >= 0)
                break;
            part++;
            names = strbuf_new(pool);
        }
        strbuf_printf(&names, "%s%s", names.len ? ", " : "", name);
        if (strcmp(name, member) == 0)
            found = part;
    }
    return found < 0 ? NULL : pool_printf(pool, "%s: %s", parts[found].title, names.text);
}

const Builtin *builtin_find(const char *name)
{
    for (int i = 0; i < builtin_count; i++)
        if (strcmp(builtin_table[i].name, name) == 0)
            return &builtin_table[i];
    return NULL;
}

int frontend_functions(Pool *pool, const FunctionInfo **out)
{
    FunctionInfo *list = POOL_ARRAY(pool, (size_t)builtin_count, FunctionInfo);
    for (int i = 0; i < builtin_count; i++) {
        const Builtin *b = &builtin_table[i];
        list[i] = (FunctionInfo){b->name, b->signature, b->doc, b->layer};
    }
    *out = list;
    return builtin_count;
}
