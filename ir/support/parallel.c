/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/support/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 64, STACK_BYTES = 8 << 20 };

typedef struct Tasks {
    ParallelTask *run;
    void *user;
    Pool **pool; /* by task */
    int n;
    atomic_int next;
    atomic_bool no_memory;
} Tasks;

static int cores_set;

void parallel_set_cores(int n)
{
    cores_set = n;
}

int parallel_cores(void)
{
    cpu_set_t set;
    if (cores_set > 0)
        return cores_set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than cpu_set_t holds */
    return n > 0 && n <= CPU_SETSIZE ? (int)n : 1;
}

/* A jump may not leave its thread, so every task has a recovery point of its own. */
static void run_task(Tasks *t, int task)
{
    jmp_buf oom;
    if (setjmp(oom) == 0) {
        pool_on_oom(t->pool[task], &oom);
        t->run(t->user, task, t->pool[task]);
    } else {
        atomic_store(&t->no_memory, true);
    }
    pool_on_oom(t->pool[task], NULL);
}

static void *thread_main(void *tasks)
{
    Tasks *t = tasks;
    for (int k; (k = atomic_fetch_add(&t->next, 1)) < t->n && !atomic_load(&t->no_memory);)
        run_task(t, k);
    return NULL;
}

/* Up to n threads besides the caller, without signals, which are the caller's; how many started. */
static int start_threads(Tasks *t, int n, pthread_t *thread)
{
    sigset_t all, before;
    pthread_attr_t attr;
    int started = 0;
    if (n <= 0 || pthread_attr_init(&attr) != 0)
        return 0;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < n && pthread_create(&thread[started], &attr, thread_main, t) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return started;
}

void parallel_run(Pool *pool, int n_threads, int n_tasks, ParallelTask *task, void *user)
{
    Tasks t = {.run = task, .user = user, .n = n_tasks};
    t.pool = POOL_ARRAY(pool, (size_t)n_tasks + 1, Pool *);
    for (int k = 0; k < n_tasks; k++)
        t.pool[k] = pool_new_child(pool);
    int n = n_threads > 0 ? n_threads : parallel_cores();
    n = n < n_tasks ? n : n_tasks;
    n = n < MAX_THREADS ? n : MAX_THREADS;
    pthread_t thread[MAX_THREADS];
    int started = start_threads(&t, n - 1, thread);
    thread_main(&t);
    for (int k = 0; k < started; k++)
        pthread_join(thread[k], NULL);
    if (atomic_load(&t.no_memory))
        pool_out_of_memory(pool);
}
