/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 13: a training run that saves after every step is killed again and again, resumed each
 * time, and ends with the bits of a run that nobody disturbed. */
#ifndef SCRIMP_TESTS_KILL_AND_RESUME_H
#define SCRIMP_TESTS_KILL_AND_RESUME_H

/* Runs are `steps` long; new ones are started until there were enough kills. */
void kill_and_resume(int kills, int steps);

#endif
