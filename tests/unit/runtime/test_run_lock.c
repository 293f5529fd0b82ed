/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One writer for a folder: the second is told who the first is; a killed one blocks nobody. */
#include "runtime/run_lock.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In the place of the C library's, for file systems that have no locks. */
static int flock_errno;

int flock(int fd, int operation)
{
    errno = flock_errno;
    return flock_errno ? -1 : (int)syscall(SYS_flock, fd, operation);
}

static void rest(long milliseconds)
{
    nanosleep(&(struct timespec){0, milliseconds * 1000000}, NULL);
}

static bool there(void)
{
    return access(temp_path("trainer.lock"), F_OK) == 0;
}

static void test_second(void)
{
    char mine[64], host[65] = "";
    RunLock first, second;
    RtError note, err = {{0}};
    snprintf(mine, sizeof mine, "process %ld on ", (long)getpid());
    gethostname(host, sizeof host - 1);
    CHECK_MSG(run_lock(&first, temp_dir, &note, &err) && !note.message[0], "%s", err.message);
    CHECK(!run_lock(&second, temp_dir, &note, &err) && second.fd == -1);
    CHECK_MSG(strstr(err.message, temp_dir) && strstr(err.message, mine) &&
                  strstr(err.message, host) && strstr(err.message, " since 20"),
              "%s", err.message);
    run_unlock(&second);
    CHECK(there());
    run_unlock(&first);
    CHECK(!there());
    run_unlock(&first); /* harmless */
    CHECK(run_lock(&second, temp_dir, &note, &err));
    run_unlock(&second);
    CHECK(!run_lock(&first, temp_path("none"), &note, &err) && strstr(err.message, "none"));
}

/* What is in a file that was left, or written by somebody else, is not trusted. */
static void test_odd_contents(void)
{
    RunLock lock;
    RtError note, err;
    static const char *const contents[] = {"", "\033[31mred\n", "two\nlines", "\xff\xfe"};
    static const char *const said[] = {"another process", "another process", "two",
                                       "another process"};
    for (int i = 0; i < 4; i++) {
        temp_write("trainer.lock", contents[i], strlen(contents[i]));
        int fd = open(temp_path("trainer.lock"), O_RDONLY);
        CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0);
        CHECK(!run_lock(&lock, temp_dir, &note, &err));
        size_t n = strlen(err.message), m = strlen(said[i]);
        CHECK_MSG(n > m && strcmp(err.message + n - m, said[i]) == 0, "%s", err.message);
        close(fd);
        CHECK_MSG(run_lock(&lock, temp_dir, &note, &err), "%s", err.message);
        run_unlock(&lock);
    }
}

/* Its children may outlive it for a moment, as compilers do. */
static void test_killed(bool with_child)
{
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t holder = fork();
    if (holder == 0) {
        RunLock lock;
        RtError note;
        bool ok = run_lock(&lock, temp_dir, &note, NULL);
        if (with_child && fork() == 0) {
            rest(150);
            _exit(0);
        }
        if (!ok || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    RunLock lock;
    RtError note, err;
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(!run_lock(&lock, temp_dir, &note, &err));
    kill(holder, SIGKILL);
    CHECK(waitpid(holder, NULL, 0) == holder && there());
    CHECK_MSG(run_lock(&lock, temp_dir, &note, &err), "%s", err.message);
    run_unlock(&lock);
    close(ready[0]);
    close(ready[1]);
}

static void test_unsupported(void)
{
    static const int cannot[] = {ENOTSUP, ENOSYS, ENOLCK, EINVAL};
    RunLock lock;
    RtError note, err;
    for (int i = 0; i < 4; i++) {
        flock_errno = cannot[i];
        CHECK(run_lock(&lock, temp_dir, &note, &err) && lock.fd == -1);
        CHECK_MSG(strstr(note.message, "no locks"), "%s", note.message);
        run_unlock(&lock);
        CHECK(!there());
    }
    flock_errno = EIO;
    CHECK(!run_lock(&lock, temp_dir, &note, &err) && strstr(err.message, strerror(EIO)));
    flock_errno = 0;
    remove(temp_path("trainer.lock"));
}

/* A file that another run's owner holds now is not removed. */
static void test_folder_replaced(void)
{
    RunLock first, second;
    RtError note, err;
    CHECK(run_lock(&first, temp_dir, &note, &err));
    CHECK(unlink(temp_path("trainer.lock")) == 0);
    CHECK(run_lock(&second, temp_dir, &note, &err));
    run_unlock(&first);
    CHECK(there() && !run_lock(&first, temp_dir, &note, &err));
    run_unlock(&second);
}

/* Locks and lets go again and again: false if another was inside at any time. */
static bool alone(int turns)
{
    RunLock lock;
    RtError note;
    for (int i = 0; i < turns;) {
        if (!run_lock(&lock, temp_dir, &note, NULL))
            continue; /* half a second of the others' turns */
        int fd = open(temp_path("inside"), O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (fd < 0 || close(fd) != 0 || unlink(temp_path("inside")) != 0)
            return false;
        run_unlock(&lock);
        i++;
    }
    return true;
}

static void test_crowd(void)
{
    enum { CROWD = 6, TURNS = 60 };
    pid_t child[CROWD];
    for (int i = 0; i < CROWD; i++)
        if ((child[i] = fork()) == 0)
            _exit(alone(TURNS) ? 0 : 1);
    for (int i = 0; i < CROWD; i++) {
        int status;
        CHECK(waitpid(child[i], &status, 0) == child[i]);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    CHECK(!there());
}

int main(void)
{
    temp_open();
    test_second();
    test_odd_contents();
    test_killed(false);
    test_killed(true);
    test_unsupported();
    test_folder_replaced();
    test_crowd();
    return test_result();
}
