/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A model that trains in milliseconds and has everything a resumed run must carry on: dropout,
 * batch statistics, AdamW's moments and step count, a schedule, micro-batches, shuffled data. */
#ifndef SCRIMP_TESTS_TINY_MODEL_H
#define SCRIMP_TESTS_TINY_MODEL_H

/* Writes $TMP/tiny.scrimp. */
void write_tiny_model(int steps, int eval_every);
/* Writes $TMP/loop.scrimp: a loop of so many steps. */
void write_loop_model(int steps);

#endif
