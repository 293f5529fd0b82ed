/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_child.h"

#include "codegen/build/fd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ANSWER_BYTES = 64 << 20 };

_Noreturn static void child_main(ChildJob *job, void *user, int answer, pid_t parent)
{
    ExitCode code = EXIT_OK;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_USER);
    const char *text = job(user, &code);
    if (text && !fd_write(answer, text, strlen(text)))
        code = EXIT_USER;
    fflush(NULL);
    _exit(code);
}

static int end_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_USER << 8;
    return status;
}

static ExitCode no_child(Cli *cli, const char *why)
{
    return cli_error(cli, EXIT_USER, "E801", NULL, "work in a process of its own: %s", why);
}

/* answer: a file without a name, which both processes have open. */
static ExitCode run(Cli *cli, ChildJob *job, void *user, int answer, const char **text)
{
    size_t n;
    pid_t parent = getpid();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        child_main(job, user, answer, parent);
    if (child < 0)
        return no_child(cli, strerror(errno));
    int status = end_of(child);
    if (WIFSIGNALED(status))
        return no_child(cli, strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != EXIT_OK)
        return (ExitCode)WEXITSTATUS(status);
    lseek(answer, 0, SEEK_SET);
    *text = fd_read(cli->pool, answer, MOST_ANSWER_BYTES, &n);
    return *text ? EXIT_OK : no_child(cli, strerror(errno));
}

ExitCode cli_run_in_child(Cli *cli, ChildJob *job, void *user, const char **text)
{
    int answer = memfd_create("answer", MFD_CLOEXEC);
    if (answer < 0)
        return no_child(cli, strerror(errno));
    ExitCode code = run(cli, job, user, answer, text);
    close(answer);
    return code;
}
