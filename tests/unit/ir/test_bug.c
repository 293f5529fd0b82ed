/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How scrimp ends when it finds a mistake of its own. */
#include "check.h"
#include "ir/support/bug.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of_bug(bool by_signal)
{
    pid_t child = fork();
    if (child == 0) {
        if (by_signal)
            setenv("SCRIMP_ABORT", "1", 1);
        else
            unsetenv("SCRIMP_ABORT");
        if (!freopen("/dev/null", "w", stderr))
            _exit(99);
        BUG("for the test");
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

int main(void)
{
    int status = status_of_bug(false);
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 2, "status %d", status);
    CHECK(WIFSIGNALED(status_of_bug(true)));
    return test_result();
}
