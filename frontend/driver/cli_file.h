/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files and texts of the command line. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_FILE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_FILE_H

#include "frontend/driver/cli.h"
#include "ir/support/strbuf.h"

/* What is read at most: a model, and a graph, IR or a table of buffers. */
enum { CLI_MODEL_BYTES = 16 << 20, CLI_TEXT_BYTES = 64 << 20 };
/* The whole file ("-" = standard input) on the pool; NULL after a message, also when it has more
 * than `most` bytes.  A pipe or device is read up to there. */
const char *cli_read_file(Cli *cli, const char *path, size_t most, size_t *length);
/* Writes the text ("-" = standard output); EXIT_USER after a message.  A file is replaced at once:
 * after a failure it is what it was before. */
ExitCode cli_write_file(Cli *cli, const char *path, const char *text);
/* Looks before long work whether cli_write_file could put a file there: false after a message. */
bool cli_can_write(Cli *cli, const char *path);
/* That an option's path is "-". */
bool cli_is_standard_output(const char *path);
/* False after a message: both `option` with this path and --json write to standard output. */
bool cli_one_writes_output(Cli *cli, const char *option, const char *path);
/* False after a message: `option` needs a file or folder, which "-" is not. */
bool cli_needs_file(Cli *cli, const char *option, const char *path);

#endif
