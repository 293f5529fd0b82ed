/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_progress.h"

#include "ir/support/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const double SECONDS_BETWEEN_LINES = 10;

Progress progress_begin(double seconds)
{
    return (Progress){.next_line = clock_seconds() + seconds};
}

void progress_show(const Cli *cli, Progress *p, const char *format, ...)
{
    double now = clock_seconds();
    bool terminal = isatty(STDERR_FILENO);
    if (cli->output.quiet || (!terminal && now < p->next_line))
        return;
    va_list args;
    va_start(args, format);
    fputs(terminal ? "\r\033[K" : "", stderr);
    vfprintf(stderr, format, args);
    fputs(terminal ? "" : "\n", stderr);
    va_end(args);
    p->drawn = terminal;
    p->next_line = now + SECONDS_BETWEEN_LINES;
}

void progress_clear(Progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}
