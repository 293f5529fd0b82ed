/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What dump and opt share: the plan as text, the `opt` line that makes a dump, --dump-after. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_DUMP_H
#define SCRIMP_FRONTEND_DRIVER_CLI_DUMP_H

#include "frontend/driver/cli.h"
#include "ir/support/strbuf.h"
#include "passes/pass.h"

/* The plan section of an IR dump. */
void cli_print_plan(const Graph *g, const MemPlan *plan, StrBuf *out);
/* The passes of the training pipeline before `end` ("": all), without those that the settings
 * switch off.  g: what they have made, for remat's arguments; NULL: none are needed. */
const char *cli_dump_pipeline(const Cli *cli, const char *end, const Graph *g);
/* How many passes a pipeline has, and its first n. */
int cli_pipeline_count(const char *pipeline);
const char *cli_pipeline_first(Pool *pool, const char *pipeline, int n);
/* The comment at the top of a dump: the line that makes it of the model's IR.  Nothing for no
 * passes. */
void cli_put_opt_line(const Cli *cli, const char *pipeline, StrBuf *out);
/* False after a message: --dump-after names no pass, or none of this pipeline, which runs `where`
 * ("at --stage=ir"); help: where it would. */
bool cli_dump_after_runs(Cli *cli, const char *pipeline, const char *where, const char *help);
/* For --dump-after; NULL without it. */
PassObserver *cli_dump_after(Cli *cli, void **user);

#endif
