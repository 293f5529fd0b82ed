#include "frontend/cli.h"
#include "ir/support/parallel.h"
#include "runtime/cores.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    Pool *pool = pool_new();
    jmp_buf oom;
    if (!pool || setjmp(oom)) {
        fputs("scrimp: error: out of memory\n", stderr);
        pool_free(pool);
        return EXIT_USER;
    }
    pool_on_oom(pool, &oom);
    parallel_set_cores(cores_allowed());
    Cli cli = {.pool = pool, .diag = diag_new(pool)};
    const Verb *verb;
    ExitCode code;
    if (cli_parse(&cli, argc, argv, &verb, &code))
        code = verb->run(&cli);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("scrimp: error: cannot write to standard output\n", stderr);
        code = code == EXIT_OK ? EXIT_USER : code;
    }
    pool_free(pool);
    if (code == EXIT_OK && cli.ended_by) { /* so that a shell sees it, and ends its loop */
        signal(cli.ended_by, SIG_DFL);
        raise(cli.ended_by);
    }
    return code;
}
