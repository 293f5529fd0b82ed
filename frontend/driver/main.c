/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli.h"
#include "frontend/driver/cli_machine.h"
#include "frontend/driver/cli_signals.h"
#include "ir/support/parallel.h"
#include "runtime/cores.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A reader that left, as `head` does, wants no more: no message, and the end that other programs
 * have. */
static ExitCode finish_output(Cli *cli, ExitCode code)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    int why = errno;
    if (code == EXIT_OK && signals_pipe_ends() && signals_reader_left(STDOUT_FILENO)) {
        cli->state->ended_by = SIGPIPE;
        return code;
    }
    fprintf(stderr, "scrimp: error: cannot write to standard output%s%s\n", why ? ": " : "",
            why ? strerror(why) : "");
    return code == EXIT_OK ? EXIT_USER : code;
}

int main(int argc, char **argv)
{
    signals_begin();
    Pool *pool = pool_new();
    jmp_buf oom;
    if (!pool || setjmp(oom)) {
        fputs("scrimp: error: out of memory\n", stderr);
        pool_free(pool);
        return EXIT_USER;
    }
    pool_on_oom(pool, &oom);
    parallel_set_cores(cores_allowed());
    DriverState state = {0};
    Cli cli = {.pool = pool, .diag = diag_new(pool), .state = &state};
    ExitCode code;
    if (cli_parse(&cli, argc, argv, &code))
        code = cli_device_known(&cli) ? cli.verb->run(&cli) : EXIT_USER;
    code = finish_output(&cli, code);
    pool_free(pool);
    if (code == EXIT_OK && cli.state->ended_by)
        signals_end_by(cli.state->ended_by);
    return code;
}
