/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Errors in scrimp itself: print a message and end with exit status 2.  User mistakes go through
 * diag.h, environment errors through a status and a message. */
#ifndef SCRIMP_IR_SUPPORT_BUG_H
#define SCRIMP_IR_SUPPORT_BUG_H

#include <stdio.h>
#include <stdlib.h>

/* Without exit handlers, which could trip over what is broken.  By a signal for fuzzers
 * (SCRIMP_FUZZ), and for a core file or a debugger, with SCRIMP_ABORT in the environment. */
static inline _Noreturn void bug_end(void)
{
#ifdef SCRIMP_FUZZ
    abort();
#endif
    if (getenv("SCRIMP_ABORT"))
        abort();
    _Exit(2);
}

#define BUG(...)                                                                                   \
    do {                                                                                           \
        fprintf(stderr, "scrimp: internal error at %s:%d: ", __FILE__, __LINE__);                  \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputs("\nThis is a bug in scrimp; please report it with the model file.\n", stderr);       \
        bug_end();                                                                                 \
    } while (0)

#endif
