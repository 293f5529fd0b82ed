/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the options of the command line to those of the code generator. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_CODEGEN_H
#define SCRIMP_FRONTEND_DRIVER_CLI_CODEGEN_H

#include "codegen/build/codegen.h"
#include "frontend/driver/cli.h"

/* arch: of the device (cli_machine.h).  With a progress line on a terminal, and notes on standard
 * error, each once. */
CodegenOptions cli_codegen_options(Cli *cli, const char *arch);

#endif
