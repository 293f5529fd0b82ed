/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/language/elaborate/value.h"

#include "ir/support/strbuf.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *val_kind_name(ValKind kind)
{
    switch (kind) {
    case VAL_POISON:
        return "an error";
    case VAL_NONE:
        return "nothing";
    case VAL_INT:
        return "an int";
    case VAL_FLOAT:
        return "a float";
    case VAL_BOOL:
        return "a bool";
    case VAL_STRING:
        return "a string";
    case VAL_PERCENT:
        return "a percentage";
    case VAL_LIST:
        return "a list";
    case VAL_TYPE:
        return "a type";
    case VAL_TENSOR:
        return "a tensor";
    case VAL_BLOCK:
        return "a block";
    case VAL_BUILTIN:
        return "a function";
    case VAL_SEQ:
        return "a seq";
    case VAL_SOURCE:
        return "a batch";
    case VAL_INIT:
        return "an initial value";
    case VAL_SETTING:
        return "a setting";
    case VAL_OPTIM:
        return "an optimizer";
    case VAL_SCHEDULE:
        return "a schedule";
    case VAL_GROUP:
        return "a group of parameters";
    case VAL_COLUMNS:
        return "columns of a table";
    }
    return "a value";
}

const char *number_text(Pool *pool, double f)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, f);
        bool exponent_needed = fabs(f) >= 1e15 || fabs(f) < 1e-4;
        if (strtod(text, NULL) == f && (exponent_needed || !strchr(text, 'e')))
            break;
    }
    return pool_strdup(pool, text);
}

static void put_value(StrBuf *b, Val v)
{
    switch (v.kind) {
    case VAL_INT:
        strbuf_printf(b, "%" PRId64, v.i);
        break;
    case VAL_FLOAT:
        strbuf_put(b, number_text(b->pool, v.f));
        break;
    case VAL_BOOL:
        strbuf_put(b, v.b ? "true" : "false");
        break;
    case VAL_STRING:
        strbuf_printf(b, "\"%s\"", v.s);
        break;
    case VAL_PERCENT:
        strbuf_printf(b, "%s%%", number_text(b->pool, v.f));
        break;
    case VAL_NONE:
        strbuf_put(b, "none");
        break;
    case VAL_LIST:
        strbuf_put(b, "[");
        for (int i = 0; i < v.list.len; i++) {
            strbuf_put(b, i ? ", " : "");
            put_value(b, v.list.data[i]);
        }
        strbuf_put(b, "]");
        break;
    case VAL_BLOCK:
        strbuf_put(b, v.block->name.text);
        break;
    case VAL_TYPE:
        strbuf_put(b, type_text(b->pool, v.type));
        break;
    case VAL_POISON:
    case VAL_TENSOR:
    case VAL_BUILTIN:
    case VAL_SEQ:
    case VAL_SOURCE:
    case VAL_INIT:
    case VAL_SETTING:
    case VAL_OPTIM:
    case VAL_SCHEDULE:
    case VAL_GROUP:
    case VAL_COLUMNS:
        strbuf_put(b, val_kind_name(v.kind));
        break;
    }
}

bool val_is_number_list(Val v, bool ints)
{
    if (v.kind != VAL_LIST)
        return false;
    for (int i = 0; i < v.list.len; i++)
        if (ints ? v.list.data[i].kind != VAL_INT : !val_is_number(v.list.data[i]))
            return false;
    return true;
}

bool val_is_word(Val v, const char *words)
{
    size_t n = v.kind == VAL_STRING ? strlen(v.s) : 0;
    for (const char *at = words; n && at; at = strchr(at, '|')) {
        at += *at == '|';
        if (strncmp(at, v.s, n) == 0 && (at[n] == '|' || !at[n]))
            return true;
    }
    return false;
}

const char *val_text(Pool *pool, Val v)
{
    StrBuf b = strbuf_new(pool);
    put_value(&b, v);
    return b.text;
}

static bool lists_equal(ValList a, ValList b)
{
    if (a.len != b.len)
        return false;
    for (int i = 0; i < a.len; i++)
        if (!val_equal(a.data[i], b.data[i]))
            return false;
    return true;
}

bool val_equal(Val a, Val b)
{
    if (a.kind == VAL_INT && b.kind == VAL_INT)
        return a.i == b.i;
    if (val_is_number(a) && val_is_number(b))
        return val_number(a) == val_number(b);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case VAL_BOOL:
        return a.b == b.b;
    case VAL_STRING:
        return strcmp(a.s, b.s) == 0;
    case VAL_PERCENT:
        return a.f == b.f;
    case VAL_LIST:
        return lists_equal(a.list, b.list);
    case VAL_BLOCK:
        return a.block == b.block;
    case VAL_BUILTIN:
        return a.builtin == b.builtin;
    case VAL_NONE:
        return true;
    case VAL_TYPE:
        return type_equal(a.type, b.type);
    case VAL_POISON:
    case VAL_INT:
    case VAL_FLOAT:
    case VAL_TENSOR:
    case VAL_SEQ:
    case VAL_SOURCE:
    case VAL_INIT:
    case VAL_SETTING:
    case VAL_OPTIM:
    case VAL_SCHEDULE:
    case VAL_GROUP:
    case VAL_COLUMNS:
        return false;
    }
    return false;
}

Scope *scope_new(Pool *pool, Scope *parent)
{
    Scope *s = POOL_NEW(pool, Scope);
    s->parent = parent;
    return s;
}

/* Most scopes hold a few names, which are found sooner without a map. */
enum { SCOPE_INDEXED = 16 };

static Binding *own(const Scope *scope, const char *name)
{
    if (scope->items.len >= SCOPE_INDEXED) {
        const uint64_t *at = map_find(&scope->index, name);
        return at ? &scope->items.data[*at] : NULL;
    }
    for (size_t i = 0; i < scope->items.len; i++)
        if (strcmp(scope->items.data[i].name, name) == 0)
            return &scope->items.data[i];
    return NULL;
}

const Binding *scope_own(const Scope *scope, const char *name)
{
    return own(scope, name);
}

static void add_binding(Pool *pool, Scope *scope, Binding b)
{
    vec_push(pool, &scope->items, b);
    size_t n = scope->items.len;
    if (n < SCOPE_INDEXED)
        return;
    if (n == SCOPE_INDEXED)
        scope->index = map_new(pool);
    for (size_t i = n == SCOPE_INDEXED ? 0 : n - 1; i < n; i++)
        map_set(&scope->index, scope->items.data[i].name, i);
}

void scope_set(Pool *pool, Scope *scope, const char *name, Val value, Span span)
{
    if (strcmp(name, "_") == 0)
        return;
    Binding *b = own(scope, name);
    if (b)
        *b = (Binding){name, value, span};
    else
        add_binding(pool, scope, (Binding){name, value, span});
}

const Binding *scope_find(const Scope *scope, const char *name)
{
    for (; scope; scope = scope->parent) {
        const Binding *b = own(scope, name);
        if (b)
            return b;
    }
    return NULL;
}

/* 600_000 -> 600000; NULL for text that is no number at all. */
static const char *without_underscores(Pool *pool, const char *text)
{
    char *copy = pool_strdup(pool, text), *to = copy;
    for (const char *c = text; *c; c++)
        if (*c != '_')
            *to++ = *c;
    *to = 0;
    return *copy && (copy[0] == '-' || copy[0] == '.' || (copy[0] >= '0' && copy[0] <= '9')) ? copy
                                                                                             : NULL;
}

static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    *out = v;
    return !*end && !errno;
}

static bool parse_float(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return !*end && isfinite(*out) && !strpbrk(text, "xX");
}

static bool parse_list(Pool *pool, const char *text, Val *out)
{
    VEC(Val) items = {0};
    size_t len = strlen(text);
    if (len < 2 || text[0] != '[' || text[len - 1] != ']')
        return false;
    char *copy = pool_strndup(pool, text + 1, len - 2), *save = NULL;
    for (char *word = strtok_r(copy, ", ", &save); word; word = strtok_r(NULL, ", ", &save)) {
        Val v;
        if (!option_parse(pool, word, VAL_INT, &v) && !option_parse(pool, word, VAL_FLOAT, &v))
            return false;
        vec_push(pool, &items, v);
    }
    *out = val_list(items.data, (int)items.len);
    return true;
}

bool option_parse(Pool *pool, const char *text, ValKind kind, Val *out)
{
    const char *digits = without_underscores(pool, text);
    *out = (Val){.kind = kind};
    switch (kind) {
    case VAL_INT:
        return digits && parse_int(digits, &out->i);
    case VAL_FLOAT:
        return digits && parse_float(digits, &out->f);
    case VAL_BOOL:
        out->b = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
        return out->b || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    case VAL_STRING:
        out->s = pool_strdup(pool, text);
        return true;
    case VAL_LIST:
        return parse_list(pool, text, out);
    case VAL_PERCENT:
        digits =
            text[0] ? without_underscores(pool, pool_strndup(pool, text, strlen(text) - 1)) : NULL;
        return digits && text[strlen(text) - 1] == '%' && parse_float(digits, &out->f);
    case VAL_POISON:
    case VAL_NONE:
    case VAL_TYPE:
    case VAL_TENSOR:
    case VAL_BLOCK:
    case VAL_BUILTIN:
    case VAL_SEQ:
    case VAL_SOURCE:
    case VAL_INIT:
    case VAL_SETTING:
    case VAL_OPTIM:
    case VAL_SCHEDULE:
    case VAL_GROUP:
    case VAL_COLUMNS:
        return false;
    }
    return false;
}

bool option_in_domain(Val value, Val domain)
{
    for (int i = 0; i < domain.list.len; i++)
        if (val_equal(value, domain.list.data[i]))
            return true;
    return false;
}

const char *option_allowed_text(Pool *pool, Val domain)
{
    enum { SHOWN = 12 };
    StrBuf b = strbuf_new(pool);
    for (int i = 0; i < domain.list.len && i < SHOWN; i++) {
        Val v = domain.list.data[i];
        strbuf_printf(&b, "%s%s", i ? ", " : "", v.kind == VAL_STRING ? v.s : val_text(pool, v));
    }
    if (domain.list.len > SHOWN)
        strbuf_printf(&b, ", ... %s", val_text(pool, domain.list.data[domain.list.len - 1]));
    return b.text;
}
