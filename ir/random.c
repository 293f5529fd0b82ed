/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/random.h"

#include <string.h>

const char *const random_kind_name[RANDOM_KINDS] = {"uniform", "normal", "integers"};

bool random_kind(const Node *n, RandomKind *kind)
{
    const char *name = node_string(n, ATTR_kind, "");
    for (int k = 0; k < RANDOM_KINDS; k++)
        if (strcmp(name, random_kind_name[k]) == 0) {
            *kind = (RandomKind)k;
            return true;
        }
    return false;
}
