/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct Loader {
    pthread_mutex_t lock;
    pthread_cond_t work_there, all_done;
    int64_t next, n, left; /* the next item, how many, how many are not done */
    bool stop;
    bool failed;
    int64_t failed_item;
    RtError failure;
    LoaderWork *work;
    LoaderDone *done;
    void *owner;
    size_t scratch_bytes;
    char *scratch;
    int n_threads, n_started;
    pthread_t *thread;
};

static void note_failure(Loader *l, int64_t item, const RtError *err)
{
    if (l->failed && l->failed_item < item)
        return;
    l->failed = true;
    l->failed_item = item;
    l->failure = *err;
}

/* With the lock held; false when it is time to end. */
static bool next_item(Loader *l, int64_t *item)
{
    while (l->next == l->n && !l->stop)
        pthread_cond_wait(&l->work_there, &l->lock);
    if (l->stop)
        return false;
    *item = l->next++;
    return true;
}

typedef struct Start {
    Loader *loader;
    char *scratch;
} Start;

static void *loader_main(void *arg)
{
    const Start start = *(Start *)arg;
    free(arg);
    Loader *l = start.loader;
    int64_t item;
    pthread_mutex_lock(&l->lock);
    while (next_item(l, &item)) {
        RtError err = {{0}};
        pthread_mutex_unlock(&l->lock);
        bool ok = l->work(l->owner, item, start.scratch, &err);
        pthread_mutex_lock(&l->lock);
        if (!ok)
            note_failure(l, item, &err);
        if (--l->left == 0)
            pthread_cond_signal(&l->all_done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

Loader *loader_new(int n, size_t scratch_bytes, LoaderWork *work, LoaderDone *done, void *owner,
                   RtError *err)
{
    Loader *l = rt_alloc(1, sizeof *l, err);
    if (!l)
        return NULL;
    n = n < 1 ? 1 : n;
    scratch_bytes = (scratch_bytes + 63) / 64 * 64;
    l->work = work;
    l->done = done;
    l->owner = owner;
    l->scratch_bytes = scratch_bytes;
    l->n_threads = n;
    l->thread = rt_alloc(n, sizeof *l->thread, err);
    l->scratch = rt_alloc(n, scratch_bytes, err);
    if (!l->thread || !l->scratch) {
        free(l->thread);
        free(l->scratch);
        free(l);
        return NULL;
    }
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work_there, NULL);
    pthread_cond_init(&l->all_done, NULL);
    return l;
}

void *loader_scratch(const Loader *l, int i)
{
    return l->scratch + (size_t)i * l->scratch_bytes;
}

/* Signals are for the main thread (Ctrl-C ends training after the step). */
static bool start_thread(Loader *l, RtError *err)
{
    Start *start = rt_alloc(1, sizeof *start, err);
    if (!start)
        return false;
    *start = (Start){l, l->scratch + (size_t)l->n_started * l->scratch_bytes};
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int status = pthread_create(&l->thread[l->n_started], NULL, loader_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == 0) {
        l->n_started++;
        return true;
    }
    free(start);
    return rt_error(err, "cannot start a thread to load data: %s", strerror(status));
}

/* Fewer threads than wished are enough. */
static bool start_threads(Loader *l, RtError *err)
{
    while (l->n_started < l->n_threads)
        if (!start_thread(l, err))
            return l->n_started > 0;
    return true;
}

bool loader_start(Loader *l, int64_t n, RtError *err)
{
    if (!start_threads(l, err))
        return false;
    pthread_mutex_lock(&l->lock);
    l->next = 0;
    l->n = l->left = n;
    l->failed = false;
    pthread_cond_broadcast(&l->work_there);
    pthread_mutex_unlock(&l->lock);
    return true;
}

bool loader_wait(Loader *l, RtError *err)
{
    pthread_mutex_lock(&l->lock);
    while (l->left > 0)
        pthread_cond_wait(&l->all_done, &l->lock);
    bool ok = !l->failed;
    if (!ok && err)
        *err = l->failure;
    pthread_mutex_unlock(&l->lock);
    return ok;
}

void loader_free(Loader *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work_there);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_started; i++)
        pthread_join(l->thread[i], NULL);
    for (int i = 0; l->done && i < l->n_threads; i++)
        l->done(l->scratch + (size_t)i * l->scratch_bytes);
    pthread_cond_destroy(&l->work_there);
    pthread_cond_destroy(&l->all_done);
    pthread_mutex_destroy(&l->lock);
    free(l->thread);
    free(l->scratch);
    free(l);
}
