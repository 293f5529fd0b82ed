/* SPDX-License-Identifier: GPL-3.0-or-later */
/* bench --against: two settings of a step, in turns. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_AGAINST_H
#define SCRIMP_FRONTEND_DRIVER_CLI_AGAINST_H

#include "frontend/driver/cli.h"

ExitCode bench_against(Cli *cli, const Ast *ast);

#endif
