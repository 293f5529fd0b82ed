/* SPDX-License-Identifier: GPL-3.0-or-later */
/* data: made-up data where a model looks for its own. */
#include "frontend/driver/cli_program.h"
#include "frontend/driver/cli_session.h"

#include "runtime/standin.h"

#include <stdio.h>
#include <string.h>

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
    StandIn made;
    RtError err;
    if (!spec.kind)
        return cli_error(cli, EXIT_USER, "E507", NULL, "the train section names no data source");
    bool again;
    do {
        if (!standin_write(&spec, &made, &err))
            return cli_error(cli, EXIT_USER, "E523", NULL, "%s", err.message);
        if (!cli->output.quiet)
            fprintf(stderr, "wrote %.*s%s: %s\n", (int)strcspn(spec.path, "\n"), spec.path,
                    strchr(spec.path, '\n') ? ", ..." : "", made.said);
        again = spec.held_path && *spec.held_path;
        spec.path = spec.held_path;
        spec.held_path = NULL;
    } while (again);
    return EXIT_OK;
}
