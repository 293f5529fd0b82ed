/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Child processes that do independent jobs: libgccjit ends the process when memory runs out and
 * holds a global lock, so code is generated in children, several at once. */
#ifndef SCRIMP_CODEGEN_BUILD_WORKERS_H
#define SCRIMP_CODEGEN_BUILD_WORKERS_H

#include "ir/support/pool.h"

typedef struct Workers {
    int n_jobs;
    int n_children; /* 0 = number of cores */
    /* Runs in a child; false and a message (at most size bytes) on failure. */
    bool (*job)(void *user, int index, char *message, size_t size);
    const char *(*name)(void *user, int index); /* for error messages */
    void (*progress)(void *progress_user, int done, int total);
    void *user, *progress_user;
    const char *tmpdir; /* where the compiler's temporaries go; NULL = as the environment says */
} Workers;

/* Returns when all jobs are done or one failed (or its child died): then false and *error.  On INT,
 * TERM or HUP all children are killed, with those that they have started, before it returns false;
 * the signal arrives then. */
bool workers_run(Pool *pool, const Workers *w, const char **error);

#endif
