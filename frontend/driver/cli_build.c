/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_program.h"

#include "frontend/driver/cli_costs.h"

ExitCode cli_build(Cli *cli, const Ast *ast, const ProgramOptions *o, Program *out)
{
    return program_build(cli, ast, o, cli_measure_costs, out);
}
