/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a training run carries from step to step, on the simulated device: micro-batches, dropout,
 * a schedule, step counts and statistics reach a step that is replayed from a graph; whichever
 * stream runs first; and a run that Ctrl-C ends, or that is resumed, has the host's bits. */
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

#define TRAIN  "$SCRIMP train -q $TMP/tiny.scrimp "
#define DEVICE "--device cuda --exact "

/* Streams are numbered as they are made: 1 is the step's, 2 that of its inputs. */
static void test_streams(void)
{
    static const char *const how[] = {"", "SCRIMP_SIM_STREAM=1 ", "SCRIMP_SIM_STREAM=2 ",
                                      "SCRIMP_SIM_ORDER=reverse "};
    expect_ok(TRAIN "--steps 7 --out $TMP/host --log $TMP/host.log");
    for (int i = 0; i < 4; i++) {
        Result r =
            run("%s" SIMULATED TRAIN DEVICE "--steps 7 --out $TMP/device%d --log $TMP/device%d.log",
                how[i], i, i);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
        char name[16];
        snprintf(name, sizeof name, "device%d", i);
        expect_equal_steps("host", name);
    }
}

/* On the device to the middle of the run, on the host for two steps, on the device to the end. */
static void test_resume(void)
{
    expect_ok(SIMULATED TRAIN DEVICE "--steps 3 --out $TMP/parts --log $TMP/parts.log");
    expect_ok(TRAIN "--steps 5 --resume --out $TMP/parts --log $TMP/parts.log");
    expect_ok(SIMULATED TRAIN DEVICE "--steps 7 --resume --out $TMP/parts --log $TMP/parts.log");
    expect_equal_steps("host", "parts");
}

static void pause_shortly(void)
{
    nanosleep(&(struct timespec){0, 10000000}, NULL);
}

static int rows_of(const char *path)
{
    int n = 0;
    char *text = read_text(path, NULL);
    for (const char *p = text; p && (p = strchr(p, '\n')); p++)
        n++;
    free(text);
    return n;
}

/* The signal comes when a few steps have been made; the inputs of the next are on their way. */
static void test_interrupt(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_DFL);
        execl("/bin/sh", "sh", "-c",
              SIMULATED "exec " TRAIN DEVICE
                        "--steps 100000 --out $TMP/cut --log $TMP/cut.log 2> $TMP/cut.err",
              (char *)NULL);
        _exit(126);
    }
    int status = 0;
    bool ended = false;
    for (int i = 0; rows_of(in_tmp("cut.log")) < 3 && !ended && i < 20000; i++) {
        pause_shortly();
        ended = waitpid(child, &status, WNOHANG) == child;
    }
    kill(child, SIGINT);
    EXPECT(!ended && waitpid(child, &status, 0) == child, "it ended too early");
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "not ended by the signal");
    expect_ok("grep -q 'saved, --resume continues' $TMP/cut.err");
    int64_t step = (int64_t)last_in_log(in_tmp("cut.log"), "step");
    Result r = run(TRAIN "--steps %lld --out $TMP/uncut --log $TMP/uncut.log", (long long)step);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    expect_equal_steps("uncut", "cut");
}

int main(void)
{
    e2e_begin();
    write_tiny_model(100000, 1000);
    test_streams();
    test_resume();
    test_interrupt();
    return e2e_end();
}
