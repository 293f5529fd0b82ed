/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/op.h"

#include <string.h>

static const struct {
    const char *name;
    AttrKind kind;
} attr_table[ATTR_COUNT] = {
#define ATTR(name, kind) {#name, ATTR_KIND_##kind},
#include "ir/attrs.def"
#undef ATTR
};

const char *op_name(OpKind op)
{
    return op_table[op].name;
}

bool op_from_name(const char *name, OpKind *out)
{
    for (int i = 0; i < OP_COUNT; i++) {
        if (strcmp(op_table[i].name, name) == 0) {
            *out = (OpKind)i;
            return true;
        }
    }
    return false;
}

const char *attr_name(AttrKey key)
{
    return attr_table[key].name;
}

AttrKind attr_kind(AttrKey key)
{
    return attr_table[key].kind;
}

bool attr_from_name(const char *name, AttrKey *out)
{
    for (int i = 0; i < ATTR_COUNT; i++) {
        if (strcmp(attr_table[i].name, name) == 0) {
            *out = (AttrKey)i;
            return true;
        }
    }
    return false;
}

bool op_chooses_result(OpKind op)
{
    const OpAttr *a = op_table[op].attrs;
    while (a->key != ATTR_COUNT && a->key != ATTR_dtype)
        a++;
    return op_table[op].max_in != 0 && a->key == ATTR_dtype && !a->required;
}
