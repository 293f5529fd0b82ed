/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

ExitCode cli_error(Cli *cli, ExitCode code, const char *error_code, const char *help,
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *message = pool_vprintf(cli->pool, format, args);
    va_end(args);
    Span nowhere = {0, 0, 0};
    diag_error(cli->diag, nowhere, error_code, "%s", message);
    if (help)
        diag_help(cli->diag, "%s", help);
    cli_diagnostics(cli);
    return code;
}

ExitCode cli_diagnostics(Cli *cli)
{
    if (cli->output.json_errors)
        diag_print_json(cli->diag, stderr);
    else
        diag_print(cli->diag, stderr, cli->output.colour);
    diag_clear(cli->diag);
    return EXIT_USER;
}

void cli_warnings(Cli *cli)
{
    if (!diag_is_empty(cli->diag))
        cli_diagnostics(cli);
}

static void print_json(json_t *object, size_t precision)
{
    json_dumpf(object, stdout, JSON_REAL_PRECISION(precision));
    fputc('\n', stdout);
    json_decref(object);
}

void cli_print_json(json_t *object)
{
    print_json(object, 9);
}

void cli_print_exact_json(json_t *object)
{
    print_json(object, 15);
}

json_t *cli_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}
