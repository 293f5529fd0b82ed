/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/graph_internal.h"
#include "ir/support/bug.h"

#include <string.h>

static Attr *slot(AttrList *a, AttrKey key)
{
    int at = 0;
    while (at < a->n && a->items[at].key < key)
        at++;
    if (at < a->n && a->items[at].key == key)
        return &a->items[at];
    if (a->n == (int)(sizeof a->items / sizeof a->items[0]))
        BUG("too many attributes");
    memmove(&a->items[at + 1], &a->items[at], (size_t)(a->n - at) * sizeof a->items[0]);
    a->n++;
    a->items[at] = (Attr){.key = key};
    return &a->items[at];
}

static void want(AttrKey key, bool fits)
{
    if (!fits)
        BUG("attribute %s is of another kind", attr_name(key));
}

/* A false flag is the same as an absent one, so that equal nodes have equal attributes. */
void attrs_int(AttrList *a, AttrKey key, int64_t value)
{
    bool flag = attr_kind(key) == ATTR_KIND_BOOL;
    want(key, flag || attr_kind(key) == ATTR_KIND_INT);
    if (flag && !value)
        return;
    slot(a, key)->u.i = flag ? 1 : value;
}

void attrs_float(AttrList *a, AttrKey key, double value)
{
    want(key, attr_kind(key) == ATTR_KIND_FLOAT);
    slot(a, key)->u.f = value;
}

void attrs_string(AttrList *a, AttrKey key, const char *value)
{
    want(key, attr_kind(key) == ATTR_KIND_STRING);
    slot(a, key)->u.s = value;
}

void attrs_ints(AttrList *a, AttrKey key, const int64_t *values, int n)
{
    want(key, attr_kind(key) == ATTR_KIND_INTS);
    Attr *s = slot(a, key);
    s->n = n;
    s->u.ints = values;
}

void attrs_floats(AttrList *a, AttrKey key, const double *values, int n)
{
    want(key, attr_kind(key) == ATTR_KIND_FLOATS);
    Attr *s = slot(a, key);
    s->n = n;
    s->u.floats = values;
}

Attr *attrs_copy(Pool *pool, const Attr *items, int n)
{
    Attr *copy = POOL_ARRAY(pool, (size_t)n, Attr);
    for (int i = 0; i < n; i++) {
        copy[i] = items[i];
        size_t bytes = (size_t)items[i].n * sizeof(int64_t); /* or doubles */
        if (attr_kind(items[i].key) == ATTR_KIND_STRING)
            copy[i].u.s = pool_strdup(pool, items[i].u.s);
        else if (attr_kind(items[i].key) == ATTR_KIND_INTS)
            copy[i].u.ints = pool_grow(pool, items[i].u.ints, bytes, bytes);
        else if (attr_kind(items[i].key) == ATTR_KIND_FLOATS)
            copy[i].u.floats = pool_grow(pool, items[i].u.floats, bytes, bytes);
    }
    return copy;
}

const Attr *node_attr(const Node *n, AttrKey key)
{
    for (int i = 0; i < n->n_attr && n->attr[i].key <= key; i++)
        if (n->attr[i].key == key)
            return &n->attr[i];
    return NULL;
}

int64_t node_int(const Node *n, AttrKey key, int64_t otherwise)
{
    const Attr *a = node_attr(n, key);
    return a ? a->u.i : otherwise;
}

bool node_flag(const Node *n, AttrKey key)
{
    return node_int(n, key, 0) != 0;
}

double node_float(const Node *n, AttrKey key, double otherwise)
{
    const Attr *a = node_attr(n, key);
    return a ? a->u.f : otherwise;
}

const char *node_string(const Node *n, AttrKey key, const char *otherwise)
{
    const Attr *a = node_attr(n, key);
    return a ? a->u.s : otherwise;
}

const int64_t *node_ints(const Node *n, AttrKey key, int *count)
{
    const Attr *a = node_attr(n, key);
    *count = a ? a->n : 0;
    return a ? a->u.ints : NULL;
}

const double *node_floats(const Node *n, AttrKey key, int *count)
{
    const Attr *a = node_attr(n, key);
    *count = a ? a->n : 0;
    return a ? a->u.floats : NULL;
}

int64_t node_ints_at(const Node *n, AttrKey key, int i, int64_t otherwise)
{
    const Attr *a = node_attr(n, key);
    return a && i < a->n ? a->u.ints[i] : otherwise;
}
