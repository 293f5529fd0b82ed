/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rematerialization problems as text, a statement a line:
 *
 *     x 64                                   a tensor that is given: its name and bytes
 *     w 256 persistent                       ... throughout
 *     a 128 <- x : time 3, forward           a node, in order: what it makes <- what it reads
 *     m 64, v 0 keep <- a w : workspace 192, once, loss, over a, overwrites w
 *
 * A node is called what its first output is; its time is 1 unless said.  `keep`: an output lives to
 * the end.  `over a`: the first output may be written over the input a.  `once`: it may not run
 * again.  `loss`: it makes the loss.  Whatever else stands there ends the test. */
#ifndef SCRIMP_TESTS_SUPPORT_PROBLEM_TEXT_H
#define SCRIMP_TESTS_SUPPORT_PROBLEM_TEXT_H

#include "passes/remat/model/problem.h"

RematProblem *problem_text(Pool *pool, const char *text);

#endif
