/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_codegen.h"

#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_tuning.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void compile_progress(void *user, int done, int total)
{
    const Cli *cli = user;
    if (cli->output.quiet || !isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\rcompiling kernels %d/%d%s", done, total, done == total ? "\n" : "");
}

static void compile_note(void *user, const char *text)
{
    Cli *cli = user;
    if (!cli->state->last_note ||
        strcmp(cli->state->last_note, text) != 0) /* training and evaluation compile */
        fprintf(stderr, "note: %s\n", text);
    cli->state->last_note = pool_strdup(cli->pool, text);
}

CodegenOptions cli_codegen_options(Cli *cli, const char *arch)
{
    return (CodegenOptions){.march = cli->build.march,
                            .backend = cli_backend(cli),
                            .arch = arch,
                            .tuning = cli_tuning(cli),
                            .cache_dir = cli->build.cache,
                            .jobs = (int)cli->build.jobs,
                            .no_cache = cli->build.no_cache,
                            .strip_cache = cli->build.no_strips ? STRIPS_NONE : 0,
                            .progress = compile_progress,
                            .note = compile_note,
                            .user = cli};
}
