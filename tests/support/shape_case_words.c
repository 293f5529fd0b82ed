/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the words of the table of shapes mean. */
#include "tests/support/shape_cases.h"

#include "check.h"
#include "ir/support/strbuf.h"

#include <stdlib.h>
#include <string.h>

const char *next_word(Pool *pool, const char **text)
{
    *text += strspn(*text, " ");
    size_t n = strcspn(*text, " ");
    const char *word = n ? pool_strndup(pool, *text, n) : NULL;
    *text += n;
    return word;
}

static int parse_ints(Pool *pool, const char *text, int64_t **out)
{
    int n = 0;
    *out = POOL_ARRAY(pool, 16, int64_t);
    while (*text && *text != ']') {
        char *end;
        (*out)[n++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void parse_floats(Pool *pool, AttrKey key, const char *text, AttrList *list)
{
    int n = 0;
    double *values = POOL_ARRAY(pool, 16, double);
    while (*text) {
        char *end;
        values[n++] = strtod(text, &end);
        text = *end == ',' ? end + 1 : end;
    }
    attrs_floats(list, key, values, n);
}

Type parse_type(Pool *pool, const char *text)
{
    size_t n = strcspn(text, "[");
    DType dtype = DTYPE_F32;
    int64_t *dims;
    CHECK_MSG(dtype_from_name(pool_strndup(pool, text, n), &dtype), "%s", text);
    int rank = parse_ints(pool, text + n + 1, &dims);
    return type_make(dtype, rank, dims);
}

void parse_attr(Pool *pool, const char *text, AttrList *list)
{
    size_t n = strcspn(text, "=");
    const char *value = text + n + 1;
    AttrKey key = ATTR_axis;
    int64_t *ints;
    CHECK_MSG(attr_from_name(pool_strndup(pool, text, n), &key), "%s", text);
    if (attr_kind(key) == ATTR_KIND_BOOL)
        attrs_int(list, key, 1);
    else if (attr_kind(key) == ATTR_KIND_INT)
        attrs_int(list, key, strtoll(value, NULL, 10));
    else if (attr_kind(key) == ATTR_KIND_FLOAT)
        attrs_float(list, key, strtod(value, NULL));
    else if (attr_kind(key) == ATTR_KIND_STRING)
        attrs_string(list, key, value);
    else if (attr_kind(key) == ATTR_KIND_FLOATS)
        parse_floats(pool, key, value, list);
    else {
        int count = parse_ints(pool, value, &ints);
        attrs_ints(list, key, ints, count);
    }
}
