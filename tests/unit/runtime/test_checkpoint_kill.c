/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Killed at any moment: a child saves step after step and is killed; what it left loads, is one
 * whole step, and is not older than the last step the child had reported as saved.  SCRIMP_KILLS
 * sets how many (100). */
#include "tests/support/data/checkpoint_sets.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 400000000 }; /* nanoseconds until a kill */

static void save_forever(const char *dir, int64_t step, _Atomic int64_t *saved)
{
    static Set set;
    set_init(&set);
    for (;; step++) {
        set_fill(&set, step);
        if (!checkpoint_save(dir, &set.state, set.tensor, SET_TENSORS, NULL, NULL))
            _exit(1);
        *saved = step;
    }
}

/* Nanoseconds that one save takes here: kills fall into the first two saves of a child. */
static long save_nanoseconds(const char *dir)
{
    static Set set;
    struct timespec a, b;
    set_init(&set);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 3; i++) {
        set_fill(&set, i);
        CHECK(checkpoint_save(dir, &set.state, set.tensor, SET_TENSORS, NULL, NULL));
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    return ((b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec) / 3;
}

/* Where nothing came through, as on a machine that is busier than when a save was timed, the next
 * child has more time. */
static long next_window(long window, long least, bool came_through)
{
    long next = came_through ? window / 2 : window + window / 2;
    return next < least ? least : next > LONGEST ? LONGEST : next;
}

int main(void)
{
    char dir[512];
    const char *wanted = getenv("SCRIMP_KILLS");
    int kills = wanted ? atoi(wanted) : 100;
    temp_open();
    snprintf(dir, sizeof dir, "%s", temp_path("run"));
    _Atomic int64_t *saved =
        mmap(NULL, sizeof *saved, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *saved = -1;
    int64_t step = -1;
    uint32_t random = 12345;
    long two_saves = 2 * save_nanoseconds(temp_path("timing"));
    long window = two_saves = two_saves < LONGEST ? two_saves : LONGEST;
    for (int i = 0; i < kills; i++) {
        pid_t child = fork();
        if (child == 0)
            save_forever(dir, step + 1, saved);
        random = random * 1664525u + 1013904223u;
        nanosleep(&(struct timespec){0, (long)((double)random / 0x1p32 * (double)window)}, NULL);
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        CHECK(WIFSIGNALED(status));
        RtError err = {{0}};
        int64_t loaded = set_loaded_step(dir, &err);
        CHECK_MSG(loaded >= *saved || *saved < 0, "kill %d: %s, saved %d", i, err.message,
                  (int)*saved);
        CHECK_MSG(loaded >= 0 || *saved < 0, "kill %d: %s", i, err.message);
        window = next_window(window, two_saves, loaded > step);
        step = loaded;
        if (check_failures)
            break;
    }
    printf("%d kills, %d steps saved\n", kills, (int)step + 1);
    CHECK(kills < 20 || step >= 3); /* some came through */
    return test_result();
}
