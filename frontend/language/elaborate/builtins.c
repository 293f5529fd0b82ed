/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding builtins by name. */
#include "frontend/language/elaborate/builtins.h"

#include "ir/support/strbuf.h"

#include <string.h>

const char *builtin_part(Pool *pool, const char *member)
{
    const Builtin *fn = builtin_find(member);
    const BuiltinPart *part = builtin_parts;
    if (!fn)
        return NULL;
    while (part[1].title && part[1].first <= fn - builtin_table)
        part++;
    StrBuf text = strbuf_new(pool);
    strbuf_printf(&text, "%s: ", part->title);
    for (int i = part->first; i < part[1].first; i++)
        strbuf_printf(&text, "%s%s", i > part->first ? ", " : "", builtin_table[i].name);
    return text.text;
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
