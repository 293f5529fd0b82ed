/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work in a process of its own.  A CUDA driver that has started makes it unsafe to fork, and
 * kernels are compiled in forked processes: whoever runs kernels first and compiles afterwards runs
 * them in a child. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_CHILD_H
#define SCRIMP_FRONTEND_DRIVER_CLI_CHILD_H

#include "frontend/driver/cli.h"

/* Runs in the child: what the parent is to know, on the pool; or NULL and an exit code behind a
 * message. */
typedef const char *ChildJob(void *user, ExitCode *code);

/* The child's answer in *text, on cli->pool.  A child that dies is an error with a message; one
 * whose parent dies ends with it. */
ExitCode cli_run_in_child(Cli *cli, ChildJob *job, void *user, const char **text);

#endif
