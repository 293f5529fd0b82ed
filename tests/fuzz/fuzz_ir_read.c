/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Fuzz target of the IR reader: what it accepts must verify, and print to a text that reads back
 * byte for byte. */
#include "fuzz_target.h"
#include "ir/print.h"
#include "ir/support/bug.h"

#include <string.h>

static const char *print_of(Pool *pool, const Graph *g)
{
    StrBuf b = strbuf_new(pool);
    graph_print(g, (PrintOptions){0}, &b);
    return b.text;
}

/* The cost rules must bear any shape that the reader accepts. */
static void ask_costs(const Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (node_workspace_bytes(g, n) < 0 || node_bytes_moved(g, n) < 0 ||
            !(node_flops(g, n) >= 0))
            BUG("negative costs");
        for (int i = 0; i < n->n_in * n->n_out; i++)
            node_may_overwrite(g, n, i / n->n_in, i % n->n_in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Pool *pool = pool_new();
    if (!pool)
        return 0;
    Diag *diag = diag_new(pool);
    Graph *g = graph_read(pool, "fuzz", (const char *)data, size, diag);
    if ((g == NULL) != (diag_error_count(diag) > 0))
        BUG("a graph and an error, or neither");
    if (g) {
        const char *once = print_of(pool, g);
        Graph *again = graph_read(pool, "again", once, strlen(once), diag);
        if (!again || strcmp(print_of(pool, again), once) != 0)
            BUG("does not read back:\n%s", once);
        ask_costs(g);
        StrBuf dot = strbuf_new(pool);
        graph_print_dot(g, &dot);
    }
    pool_free(pool);
    return 0;
}
