/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What dump and opt share: the plan as text, and --dump-after. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_DUMP_H
#define SCRIMP_FRONTEND_DRIVER_CLI_DUMP_H

#include "frontend/driver/cli.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"

/* The plan section of an IR dump. */
void cli_print_plan(const Graph *g, const MemPlan *plan, StrBuf *out);
/* *observer for --dump-after, NULL without it.  False after a message: no such pass. */
bool cli_dump_after(Cli *cli, PassObserver **observer, void **user);

#endif
