/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/language/syntax/library.h"

#include "frontend/language/syntax/library_text.h"
#include "ir/support/map.h"
#include "ir/support/strbuf.h"

#include <string.h>

enum { COUNT = sizeof library_names / sizeof library_names[0] };

static const char prefix[] = "std/", ending[] = ".scrimp";

bool library_is_name(const char *import)
{
    size_t n = strlen(import), e = strlen(ending);
    return strncmp(import, prefix, strlen(prefix)) == 0 &&
           !(n > e && strcmp(import + n - e, ending) == 0);
}

static int stem_length(int i)
{
    return (int)(strlen(library_names[i]) - strlen(ending));
}

const char *library_text(const char *import)
{
    const char *stem = import + strlen(prefix);
    for (int i = 0; i < COUNT; i++)
        if ((int)strlen(stem) == stem_length(i) &&
            strncmp(stem, library_names[i], (size_t)stem_length(i)) == 0)
            return library_texts[i];
    return NULL;
}

const char *library_suggestion(Pool *pool, const char *import)
{
    const char *names[COUNT];
    StrBuf all = strbuf_new(pool);
    strbuf_put(&all, "there are");
    for (int i = 0; i < COUNT; i++) {
        names[i] = pool_printf(pool, "%s%.*s", prefix, stem_length(i), library_names[i]);
        strbuf_printf(&all, "%s %s", i ? "," : "", names[i]);
    }
    const char *near = nearest_word(import, names, COUNT);
    return near ? pool_printf(pool, "did you mean \"%s\"?", near) : all.text;
}

const char *library_with_block(Pool *pool, const char *block)
{
    if (*block == '_')
        return NULL;
    const char *declaration = pool_printf(pool, "\nblock %s(", block);
    for (int i = 0; i < COUNT; i++)
        if (strstr(library_texts[i], declaration))
            return pool_printf(pool, "%s%.*s", prefix, stem_length(i), library_names[i]);
    return NULL;
}
