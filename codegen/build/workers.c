/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/workers.h"

#include "codegen/build/hold.h"
#include "ir/support/parallel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CHILDREN = 64, MESSAGE_BYTES = 512 };

/* Shared with the children: one message each. */
typedef struct Board {
    char message[MAX_CHILDREN][MESSAGE_BYTES];
} Board;

typedef struct Slot {
    pid_t pid; /* 0: free */
    int job;
} Slot;

typedef struct Crew {
    Pool *pool;
    const Workers *w;
    Board *board;
    Hold hold;
    Slot slot[MAX_CHILDREN];
    int n_slots, next, done, running;
    const char **error;
} Crew;

static int child_count(const Workers *w)
{
    int n = w->n_children;
    if (n <= 0)
        n = parallel_cores();
    n = n < MAX_CHILDREN ? n : MAX_CHILDREN;
    return n < w->n_jobs ? n : w->n_jobs;
}

/* A group of its own: the assembler and the linker that it starts end with it.  Their messages must
 * not stop them where the terminal takes none from groups in the background. */
_Noreturn static void child_main(const Crew *c, int slot, int job, pid_t parent)
{
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    /* Children of a killed compiler end with it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    hold_child(&c->hold);
    if (c->w->tmpdir)
        setenv("TMPDIR", c->w->tmpdir, 1);
    _exit(c->w->job(c->w->user, job, c->board->message[slot], MESSAGE_BYTES) ? 0 : 1);
}

/* A process for each job: the compiler keeps state between two jobs of one process, and its code
 * would depend on who compiled what before. */
static void start_job(Crew *c, int slot)
{
    pid_t parent = getpid();
    c->board->message[slot][0] = '\0';
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child_main(c, slot, c->next, parent);
    if (pid < 0) {
        /* Those that run may make room. */
        if (c->running == 0)
            *c->error = pool_printf(c->pool, "cannot start a child process: %s", strerror(errno));
        return;
    }
    setpgid(pid, pid); /* whoever comes first */
    c->slot[slot] = (Slot){pid, c->next++};
    c->running++;
}

static const char *death_text(Pool *pool, int status)
{
    if (WIFSIGNALED(status))
        return pool_printf(pool, "was killed by signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    return pool_printf(pool, "ended with exit code %d", WEXITSTATUS(status));
}

/* One child has ended: keep the first failure's message. */
static void reap(Crew *c, int slot, int status)
{
    int job = c->slot[slot].job;
    c->slot[slot].pid = 0;
    c->running--;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        c->done++;
        return;
    }
    if (*c->error)
        return;
    const char *message = c->board->message[slot];
    *c->error = pool_printf(c->pool, "code generation of %s failed: %s%s",
                            c->w->name(c->w->user, job), message[0] ? "" : "its process ",
                            message[0] ? message : death_text(c->pool, status));
}

static void kill_children(const Crew *c)
{
    for (int i = 0; i < c->n_slots; i++)
        if (c->slot[i].pid)
            kill(-c->slot[i].pid, SIGKILL);
}

/* True when the slot's child has ended.  One that somebody else has waited for counts as failed. */
static bool has_ended(const Crew *c, int slot, int *status)
{
    pid_t pid = waitpid(c->slot[slot].pid, status, WNOHANG);
    if (pid < 0 && errno == ECHILD)
        *status = 1 << 8;
    return pid == c->slot[slot].pid || (pid < 0 && errno == ECHILD);
}

/* Visits every slot: ended children are reaped, free slots get the next job. */
static void visit_slots(Crew *c)
{
    if (!*c->error && hold_pending(&c->hold)) {
        *c->error = "interrupted while generating code; what is done stays in the cache";
        kill_children(c);
    }
    for (int i = 0; i < c->n_slots; i++) {
        int status;
        if (c->slot[i].pid && has_ended(c, i, &status))
            reap(c, i, status);
        if (!c->slot[i].pid && !*c->error && c->next < c->w->n_jobs)
            start_job(c, i);
    }
}

static void run_jobs(Crew *c)
{
    int reported = -1;
    do {
        visit_slots(c);
        if (c->w->progress && c->done != reported)
            c->w->progress(c->w->progress_user, reported = c->done, c->w->n_jobs);
        if (c->running)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    } while (c->running || (!*c->error && c->next < c->w->n_jobs));
}

/* A parent may have left SIGCHLD ignored: nobody could be waited for then, here or in the compiler.
 */
static void run_with_children(Crew *c)
{
    struct sigaction before, plain = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &plain, &before);
    c->hold = hold_begin();
    run_jobs(c);
    hold_end(&c->hold);
    sigaction(SIGCHLD, &before, NULL);
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
    Crew crew = {.pool = pool, .w = w, .board = board, .n_slots = child_count(w), .error = error};
    run_with_children(&crew);
    munmap(board, sizeof *board);
    return !*error;
}
