/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Signals, readers of our output that go away, and descriptors that are closed from the start.
 * Called by main and by verbs that have something to save. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_SIGNALS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_SIGNALS_H

#include <stdbool.h>

/* Before anything is opened.  Closed descriptors among 0, 1 and 2 are taken by /dev/null, so that
 * no file gets the number of a standard stream; using them fails as before.  A write that nobody
 * reads (SIGPIPE) or that exceeds the limit of a file's size (SIGXFSZ) becomes an error of that
 * write, here and in child processes. */
void signals_begin(void);

/* From here on INT, TERM and HUP only leave a mark, except those that were ignored when the program
 * started: they stay ignored.  A second INT half a second or more after the first signal ends the
 * program at once.  TERM and HUP may come more often: a terminal that is closed, and `timeout`,
 * send them twice. */
void signals_catch(void);
/* The first signal that left its mark, or 0. */
int signals_caught(void);

/* Ends the program by this signal, so that a shell sees it, and ends its loop. */
_Noreturn void signals_end_by(int number);
/* Whether SIGPIPE is what ends a program here: not where it was ignored when this one started. */
bool signals_pipe_ends(void);

/* Whether nobody can read any more what is written there: the other end of a pipe or socket is
 * closed, or the terminal is gone. */
bool signals_reader_left(int descriptor);

#endif
