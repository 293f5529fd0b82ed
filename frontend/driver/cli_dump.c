/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_dump.h"

#include "ir/print.h"

#include <stdio.h>
#include <string.h>

void cli_print_plan(const Graph *g, const MemPlan *plan, StrBuf *out)
{
    const PlanText text = {.offset = plan->offset,
                           .persistent_bytes = plan->persistent_bytes,
                           .arena_bytes = plan->arena_bytes,
                           .peak_bytes = plan->peak_bytes,
                           .peak_node = plan->peak_node};
    graph_print_plan(g, &text, out);
}

typedef struct DumpAfter {
    Cli *cli;
    const char *pass; /* or "all" */
} DumpAfter;

static void dump_after(void *user, const Pass *pass, const Graph *g, double seconds)
{
    DumpAfter *d = user;
    (void)seconds;
    if (strcmp(pass->name, d->pass) != 0 && strcmp(d->pass, "all") != 0)
        return;
    StrBuf text = strbuf_new(d->cli->pool);
    graph_print(g, (PrintOptions){.no_loc = d->cli->output.no_loc}, &text);
    fprintf(stderr, "# after %s\n%s", pass->name, text.text);
}

bool cli_dump_after(Cli *cli, PassObserver **observer, void **user)
{
    *observer = NULL;
    if (!cli->dump.dump_after)
        return true;
    bool known = strcmp(cli->dump.dump_after, "all") == 0;
    for (const Pass *p = pass_table; p->name; p++)
        known = known || strcmp(p->name, cli->dump.dump_after) == 0;
    if (!known) {
        cli_error(cli, EXIT_USER, "E601", "`scrimp opt --help` lists the passes; `all` is each",
                  "no pass is called '%s'", cli->dump.dump_after);
        return false;
    }
    DumpAfter *d = POOL_NEW(cli->pool, DumpAfter);
    *d = (DumpAfter){cli, cli->dump.dump_after};
    *observer = dump_after;
    *user = d;
    return true;
}
