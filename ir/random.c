/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/random.h"

#include <string.h>

const char *const random_kind_name[RANDOM_KINDS] = {"uniform", "normal", "integers"};

RandomKind random_kind(const Node *n)
{
    const char *name = node_string(n, ATTR_kind, "");
    int k = 0;
    while (k < RANDOM_KINDS && strcmp(name, random_kind_name[k]) != 0)
        k++;
    return (RandomKind)k;
}
