/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads that prepare data while the step runs: one set of items at a time, each done once by some
 * thread.  These are not the threads of runtime/threads.h, which spin while they wait because the
 * next region comes within microseconds; these sleep.  Called by data sources that decode. */
#ifndef SCRIMP_RUNTIME_LOADER_H
#define SCRIMP_RUNTIME_LOADER_H

#include "runtime/status.h"

typedef struct Loader Loader;

/* Prepares one item.  scratch: scratch_bytes of the calling thread's own, zeroed at first. */
typedef bool LoaderWork(void *owner, int64_t item, void *scratch, RtError *err);
typedef void LoaderDone(void *scratch);

/* n threads (at least 1), started at the first loader_start: a process that forks before has one
 * thread.  done (may be NULL) releases what a thread's scratch holds. */
Loader *loader_new(int n, size_t scratch_bytes, LoaderWork *work, LoaderDone *done, void *owner,
                   RtError *err);
/* The scratch memory of thread i, of those that loader_new was asked for; before the first
 * loader_start. */
void *loader_scratch(const Loader *loader, int i);
/* Ends the threads after the items they are at; NULL is allowed. */
void loader_free(Loader *loader);

/* Starts on items 0 .. n-1 and returns at once.  Nothing else may be under way. */
bool loader_start(Loader *loader, int64_t n, RtError *err);
/* Returns when all items are done; true at once when nothing was started.  The message is that of
 * the first item that failed. */
bool loader_wait(Loader *loader, RtError *err);

#endif
