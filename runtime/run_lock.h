/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A lock, so that one process at a time writes to the folder of a run.  Called by the trainer. */
#ifndef SCRIMP_RUNTIME_RUN_LOCK_H
#define SCRIMP_RUNTIME_RUN_LOCK_H

#include "runtime/status.h"

/* Held from run_lock to run_unlock, or to the end of the process, however that comes. */
typedef struct RunLock {
    int fd; /* -1: nothing is held */
    char *path;
} RunLock;

/* Locks the folder with flock on dir/trainer.lock, which says who holds it (for people: nothing
 * reads it back but the message).  False with a message when another process holds it, or when the
 * file cannot be made.  True with a note, and nothing held, where the file system has no locks. */
bool run_lock(RunLock *lock, const char *dir, RtError *note, RtError *err);
/* Removes the file and lets go; harmless when nothing is held. */
void run_unlock(RunLock *lock);

#endif
