/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/forms/literal.h"

#include <string.h>

const LiteralDesc *literal_describe(const Lowering *l, const Node *n, size_t *bytes)
{
    int count;
    const double *values = node_floats(n, ATTR_values, &count);
    *bytes = DESC_BYTES(LiteralDesc) + (size_t)count * sizeof(float);
    LiteralDesc *d = pool_alloc(l->pool, *bytes);
    memset(d, 0, *bytes);
    d->n = count;
    for (int i = 0; i < count; i++)
        d->values[i] = (float)values[i];
    return d;
}
