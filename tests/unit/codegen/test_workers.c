/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Child processes for code generation: every job runs once in a process of its own, the first
 * failure is reported by name, deaths are told from refusals, and no child is left behind. */
#include "codegen/build/workers.h"

#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 40 };

typedef struct Record {
    _Atomic int runs[JOBS];
    pid_t process[JOBS];
    int bad; /* this job goes wrong: */
    enum { REFUSES, DIES, EXITS } how;
} Record;

static bool job(void *user, int index, char *message, size_t size)
{
    Record *r = user;
    r->runs[index]++;
    r->process[index] = getpid();
    if (index != r->bad)
        return true;
    if (r->how == DIES)
        raise(SIGKILL);
    if (r->how == EXITS)
        _exit(7);
    snprintf(message, size, "job %d says no", index);
    return false;
}

static const char *name(void *user, int index)
{
    (void)user;
    static char text[20];
    snprintf(text, sizeof text, "piece %d", index);
    return text;
}

static void count_progress(void *user, int done, int total)
{
    int *last = user;
    CHECK(done >= *last && total == JOBS);
    *last = done;
}

static Record *record(int bad, int how)
{
    Record *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        abort();
    r->bad = bad;
    r->how = how;
    return r;
}

static void expect_no_children(void)
{
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void test_all_run(int children)
{
    Pool *pool = pool_new();
    Record *r = record(-1, REFUSES);
    const char *error;
    int last = 0;
    Workers w = {.n_jobs = JOBS,
                 .n_children = children,
                 .job = job,
                 .name = name,
                 .progress = count_progress,
                 .user = r,
                 .progress_user = &last};
    CHECK(workers_run(pool, &w, &error) && !error && last == JOBS);
    for (int i = 0; i < JOBS; i++) {
        CHECK(r->runs[i] == 1 && r->process[i] != getpid());
        CHECK(i == 0 || r->process[i] != r->process[i - 1]);
    }
    expect_no_children();
    munmap(r, sizeof *r);
    pool_free(pool);
}

static void test_failure(int how, const char *expect)
{
    Pool *pool = pool_new();
    Record *r = record(5, how);
    const char *error;
    Workers w = {.n_jobs = JOBS, .n_children = 2, .job = job, .name = name, .user = r};
    CHECK(!workers_run(pool, &w, &error));
    CHECK_MSG(error && strstr(error, "piece 5") && strstr(error, expect), "%s", error);
    CHECK(r->runs[JOBS - 1] == 0); /* the rest is not begun */
    expect_no_children();
    munmap(r, sizeof *r);
    pool_free(pool);
}

/* Children of a parent that ignores their end cannot be waited for. */
static void test_ignored_children(void)
{
    signal(SIGCHLD, SIG_IGN);
    test_all_run(3);
    test_failure(REFUSES, "job 5 says no");
    struct sigaction now;
    CHECK(sigaction(SIGCHLD, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static volatile sig_atomic_t told;

static void on_signal(int number)
{
    told = number;
}

/* Tells the parent to end, and starts a process that would outlive it. */
static bool endless_job(void *user, int index, char *message, size_t size)
{
    pid_t *grandchild = user;
    (void)message, (void)size;
    if (index == 0) {
        *grandchild = fork();
        if (*grandchild == 0)
            for (;;)
                pause();
        kill(getppid(), SIGTERM);
    }
    while (!told)
        pause();
    return false;
}

/* The signal arrives at its handler once nobody is left who could write files. */
static void test_interrupted(void)
{
    Pool *pool = pool_new();
    const char *error = NULL;
    pid_t *grandchild =
        mmap(NULL, sizeof *grandchild, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGTERM, &action, &before);
    Workers w = {
        .n_jobs = 9, .n_children = 3, .job = endless_job, .name = name, .user = grandchild};
    CHECK(!workers_run(pool, &w, &error));
    CHECK_MSG(error && strstr(error, "interrupted"), "%s", error);
    CHECK(told == SIGTERM);
    expect_no_children();
    for (int i = 0; i < 200 && kill(*grandchild, 0) == 0; i++) /* until somebody waits for it */
        usleep(10000);
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)*grandchild);
    FILE *f = fopen(path, "r");
    CHECK(!f || (fscanf(f, "%*d %*s %c", &state) == 1 && state == 'Z'));
    if (f)
        fclose(f);
    sigaction(SIGTERM, &before, NULL);
    munmap(grandchild, sizeof *grandchild);
    pool_free(pool);
}

int main(void)
{
    test_ignored_children();
    test_interrupted();
    test_all_run(1);
    test_all_run(3);
    test_all_run(0);
    test_failure(REFUSES, "job 5 says no");
    test_failure(DIES, "killed by signal 9");
    test_failure(EXITS, "exit code 7");
    Pool *pool = pool_new();
    const char *error;
    CHECK(workers_run(pool, &(Workers){.n_jobs = 0}, &error));
    pool_free(pool);
    return test_result();
}
