/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Measured steps in the trace event format of Chrome, which Perfetto and chrome://tracing open
 * (docs/cpu.md#traces). */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_TRACE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_TRACE_H

#include "frontend/driver/cli_measure.h"

/* False after a message: so many calls of kernels on so many threads are too many for a viewer. */
bool trace_fits(Cli *cli, const Measurement *m, int64_t steps);
/* Writes the spans of all steps to a file; "-" is standard output.  EXIT_USER after a message. */
ExitCode trace_write(const Measurement *m, const char *path);

#endif
