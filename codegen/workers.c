#include "codegen/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CHILDREN = 64, MESSAGE_BYTES = 512 };

/* Shared with the children. */
typedef struct Board {
    _Atomic int next, done, failed;
    _Atomic int current[MAX_CHILDREN]; /* job of each child, -1 when it has ended well */
    char message[MAX_CHILDREN][MESSAGE_BYTES];
} Board;

static int child_count(const Workers *w)
{
    int n = w->n_children;
    if (n <= 0) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        n = cores > 0 && cores < MAX_CHILDREN ? (int)cores : 1;
    }
    n = n < MAX_CHILDREN ? n : MAX_CHILDREN;
    return n < w->n_jobs ? n : w->n_jobs;
}

_Noreturn static void child_main(const Workers *w, Board *board, int child, pid_t parent)
{
    /* Children of a killed compiler end with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (;;) {
        int job = atomic_fetch_add(&board->next, 1);
        if (job >= w->n_jobs || atomic_load(&board->failed))
            break;
        atomic_store(&board->current[child], job);
        if (!w->job(w->user, job, board->message[child], MESSAGE_BYTES)) {
            atomic_store(&board->failed, 1);
            _exit(1);
        }
        atomic_fetch_add(&board->done, 1);
    }
    atomic_store(&board->current[child], -1);
    _exit(0);
}

static const char *death_text(Pool *pool, int status)
{
    if (WIFSIGNALED(status))
        return pool_printf(pool, "was killed by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    return pool_printf(pool, "ended with exit code %d", WEXITSTATUS(status));
}

/* One child has ended: keep the first failure's message. */
static void reap(Pool *pool, const Workers *w, Board *board, int child, int status,
                 const char **error)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    atomic_store(&board->failed, 1);
    if (*error)
        return;
    int job = atomic_load(&board->current[child]);
    const char *what = board->message[child][0] ? board->message[child] : death_text(pool, status);
    *error = pool_printf(pool, "code generation of %s failed: %s%s",
                         job >= 0 ? w->name(w->user, job) : "a kernel",
                         board->message[child][0] ? "" : "its process ", what);
}

static bool wait_for_children(Pool *pool, const Workers *w, Board *board, const pid_t *pid, int n,
                              const char **error)
{
    bool ended[MAX_CHILDREN] = {false};
    int left = n, reported = -1;
    while (left) {
        for (int i = 0; i < n; i++) {
            int status;
            if (ended[i] || waitpid(pid[i], &status, WNOHANG) != pid[i])
                continue;
            ended[i] = true;
            left--;
            reap(pool, w, board, i, status, error);
        }
        int done = atomic_load(&board->done);
        if (w->progress && done != reported)
            w->progress(w->progress_user, reported = done, w->n_jobs);
        if (left)
            nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    return !*error;
}

bool workers_run(Pool *pool, const Workers *w, const char **error)
{
    *error = NULL;
    if (w->n_jobs == 0)
        return true;
    Board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED) {
        *error = pool_printf(pool, "cannot share memory with children: %s", strerror(errno));
        return false;
    }
    pid_t pid[MAX_CHILDREN], parent = getpid();
    int n = child_count(w), started = 0;
    fflush(NULL);
    for (; started < n; started++) {
        atomic_store(&board->current[started], -1);
        pid[started] = fork();
        if (pid[started] == 0)
            child_main(w, board, started, parent);
        if (pid[started] < 0)
            break;
    }
    if (started == 0)
        *error = pool_printf(pool, "cannot start a child process: %s", strerror(errno));
    bool ok = wait_for_children(pool, w, board, pid, started, error);
    munmap(board, sizeof *board);
    return ok;
}
