/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/graph_text.h"

#include "check.h"
#include "ir/print.h"

#include <string.h>

Graph *graph_of(Pool *pool, const char *kind, const char *body)
{
    const char *text = pool_printf(
        pool, "scrimp.ir 1  src=\"t\"  hash=0000000000000000  opts\n%s @t {\n%s}\n", kind, body);
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "t.ir", text, strlen(text), diag);
    if (!g)
        diag_print(diag, stderr, false);
    CHECK_MSG(g, "%s", text);
    return g;
}
