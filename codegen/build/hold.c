/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/hold.h"

#include <stddef.h>

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_ENDING = sizeof ending / sizeof *ending };

Hold hold_begin(void)
{
    Hold h;
    struct sigaction now;
    sigemptyset(&h.held);
    for (int i = 0; i < N_ENDING; i++)
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&h.held, ending[i]);
    sigprocmask(SIG_BLOCK, &h.held, &h.before);
    return h;
}

bool hold_pending(const Hold *h)
{
    sigset_t waiting;
    sigpending(&waiting);
    for (int i = 0; i < N_ENDING; i++)
        if (sigismember(&h->held, ending[i]) && sigismember(&waiting, ending[i]))
            return true;
    return false;
}

void hold_end(const Hold *h)
{
    sigprocmask(SIG_SETMASK, &h->before, NULL);
}

void hold_child(const Hold *h)
{
    for (int i = 0; i < N_ENDING; i++)
        if (sigismember(&h->held, ending[i]))
            signal(ending[i], SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &h->held, NULL);
}
