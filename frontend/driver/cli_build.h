/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Building a program with every cost model, also the one that measures. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_BUILD_H
#define SCRIMP_FRONTEND_DRIVER_CLI_BUILD_H

#include "frontend/driver/cli_program.h"

ExitCode cli_build(Cli *cli, const Ast *ast, const ProgramOptions *o, Program *out);

#endif
