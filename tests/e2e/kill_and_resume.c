/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "kill_and_resume.h"

#include "e2e.h"
#include "equal_runs.h"
#include "tiny_model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t start_training(const char *out, bool resume)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        char command[600];
        snprintf(
            command, sizeof command,
            "exec $SCRIMP train $TMP/tiny.scrimp --threads 1 --out $TMP/%s %s -q 2>> $TMP/%s.err",
            out, resume ? "--resume" : "", out);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    return child;
}

static bool has_checkpoint(const char *out)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s/trainer.json", e2e_tmp(), out);
    return access(path, F_OK) == 0;
}

/* Kills at random moments of a run that takes `seconds` from start to its first few saves; true
 * when the run came to its end instead. */
static bool one_kill(const char *out, double seconds, uint32_t *random)
{
    pid_t child = start_training(out, has_checkpoint(out));
    *random = *random * 1664525u + 1013904223u;
    double delay = seconds * (double)*random / 0x1p32;
    struct timespec t = {(time_t)delay, (long)(1e9 * (delay - (double)(time_t)delay))};
    nanosleep(&t, NULL);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
           "a resumed run failed");
    return WIFEXITED(status);
}

void kill_and_resume(int kills, int steps)
{
    write_tiny_model(steps, 1);
    Result whole = run("$SCRIMP train $TMP/tiny.scrimp --threads 2 --out $TMP/whole -q");
    EXPECT(whole.code == 0, whole.err);
    Result again = run("$SCRIMP train $TMP/tiny.scrimp --steps 1 -q"); /* start-up, all compiled */
    EXPECT(again.code == 0, again.err);
    double seconds = 1.5 * again.seconds + 3 * whole.seconds / steps;
    uint32_t random = 20260101;
    int done = 0, runs = 0;
    while (done < kills && runs <= kills) {
        runs++;
        expect_equal_runs("whole", "whole");
        while (done < kills && !one_kill("killed", seconds, &random))
            done++;
        int status = 0;
        waitpid(start_training("killed", has_checkpoint("killed")), &status, 0);
        char *err = NULL, path[400];
        snprintf(path, sizeof path, "%s/killed.err", e2e_tmp());
        err = read_text(path, NULL);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0, err);
        free(err);
        expect_equal_runs("whole", "killed");
        Result clean = run("rm -rf $TMP/killed");
        result_free(&clean);
    }
    printf("%d kills in %d runs\n", done, runs);
    result_free(&whole);
    result_free(&again);
}
