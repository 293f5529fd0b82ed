/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Weights are read from a run that saves all the time: a reader gets one whole set, and is never
 * refused, whatever the timing. */
#include "tests/support/data/checkpoint_sets.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the place of the C library's: while a file of weights is read, the run saves once more. */
static bool saves_meanwhile;
static int64_t last_step;
static Set run_set;

static void save_next(void)
{
    RtError err;
    set_fill(&run_set, ++last_step);
    CHECK_MSG(
        checkpoint_save(temp_path("run"), &run_set.state, run_set.tensor, SET_TENSORS, NULL, &err),
        "%s", err.message);
}

ssize_t read(int fd, void *p, size_t n)
{
    ssize_t got = syscall(SYS_read, fd, p, n);
    bool weights = got > 8 && ((const char *)p)[8] == '{'; /* a safetensors header */
    if (saves_meanwhile && weights) {
        saves_meanwhile = false;
        save_next();
        saves_meanwhile = true;
    }
    return got;
}

static void test_worst_moment(void)
{
    float w[SET_ELEMENTS];
    RtError err;
    CheckpointTensor want = {"fc.weight", RT_F32, 2, {50, 100}, w, CHECKPOINT_MODEL};
    save_next();
    saves_meanwhile = true;
    for (int i = 0; i < 20; i++) {
        int64_t before = last_step;
        CHECK_MSG(checkpoint_load_weights(temp_path("run"), &want, 1, false, NULL, &err), "%s",
                  err.message);
        CHECK(last_step == before + 1);
        set_fill(&run_set, before); /* what was the newest when the reading began */
        CHECK(memcmp(w, run_set.w, sizeof w) == 0);
    }
    saves_meanwhile = false;
}

/* The first element tells the step; all others have to be of the same. */
static bool whole(const float *w)
{
    set_fill(&run_set, (int64_t)w[0] / 100);
    return memcmp(w, run_set.w, sizeof run_set.w) == 0;
}

static void test_real_writer(void)
{
    float w[SET_ELEMENTS];
    RtError err;
    CheckpointTensor want = {"fc.weight", RT_F32, 2, {50, 100}, w, CHECKPOINT_MODEL};
    pid_t writer = fork();
    if (writer == 0)
        for (;;)
            save_next();
    for (int i = 0; i < 300; i++) {
        const char *path = temp_path(i % 2 ? "run" : "run/model.safetensors");
        CHECK_MSG(checkpoint_load_weights(path, &want, 1, false, NULL, &err) && whole(w), "%d: %s",
                  i, err.message);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
}

int main(void)
{
    temp_open();
    set_init(&run_set);
    test_worst_moment();
    test_real_writer();
    return test_result();
}
