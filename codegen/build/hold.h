/* SPDX-License-Identifier: GPL-3.0-or-later */
/* INT, TERM and HUP held back while there are child processes and temporary files: they are
 * delivered when those are gone, to whatever handler is installed.  A signal that is ignored
 * (nohup) stays ignored. */
#ifndef SCRIMP_CODEGEN_BUILD_HOLD_H
#define SCRIMP_CODEGEN_BUILD_HOLD_H

#include <signal.h>
#include <stdbool.h>

typedef struct Hold {
    sigset_t held, before;
} Hold;

/* May be nested. */
Hold hold_begin(void);
/* One of them waits: time to come to an end. */
bool hold_pending(const Hold *h);
/* Here they arrive: the program may end. */
void hold_end(const Hold *h);
/* In a child process of the holder: they end it at once. */
void hold_child(const Hold *h);

#endif
