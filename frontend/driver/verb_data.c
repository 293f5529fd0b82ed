/* SPDX-License-Identifier: GPL-3.0-or-later */
/* data: made-up data where a model looks for its own. */
#include "frontend/driver/cli_program.h"
#include "frontend/driver/cli_session.h"

#include "runtime/standin.h"

#include <stdio.h>
#include <string.h>

/* What is there and can be read is as good as what would be written, such as the stand-in of
 * another model. */
static bool is_kept(const Cli *cli, const DataSpec *spec)
{
    DataSpec alone = *spec;
    bool there = spec->path && *spec->path && data_paths_exist(spec->path);
    RtError err;
    alone.held_path = NULL;
    Dataset *ds = there && !data_traits(spec->kind)->several ? dataset_open(&alone, &err) : NULL;
    if (!ds)
        return false;
    if (!cli->output.quiet)
        fprintf(stderr, "note: %.*s%s there already, so nothing is written: %s\n",
                (int)strcspn(spec->path, "\n"), spec->path,
                strchr(spec->path, '\n') ? ", ... are" : " is", dataset_description(ds));
    dataset_close(ds);
    return true;
}

static ExitCode write_one(Cli *cli, const DataSpec *spec)
{
    StandIn made;
    RtError err;
    if (is_kept(cli, spec))
        return EXIT_OK;
    if (!standin_write(spec, &made, &err))
        return cli_error(cli, EXIT_USER, "E523", NULL, "%s", err.message);
    if (!cli->output.quiet)
        fprintf(stderr, "wrote %.*s%s: %s\n", (int)strcspn(spec->path, "\n"), spec->path,
                strchr(spec->path, '\n') ? ", ..." : "", made.said);
    return EXIT_OK;
}

ExitCode verb_data(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_TRAIN);
    const Graph *g = cli_lower(cli, ast, &o);
    if (!g)
        return EXIT_USER;
    DataSpec spec = session_data_spec(cli, g);
    if (!spec.kind)
        return cli_error(cli, EXIT_USER, "E507", NULL, "the train section names no data source");
    ExitCode code = write_one(cli, &spec);
    if (code != EXIT_OK || !spec.held_path || !*spec.held_path)
        return code;
    spec.path = spec.held_path;
    spec.held_path = NULL;
    return write_one(cli, &spec);
}
