/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 8: a longer training run makes exactly as many allocations as a shorter one. */
#ifndef SCRIMP_TESTS_STEPS_ALLOCATE_H
#define SCRIMP_TESTS_STEPS_ALLOCATE_H

/* `many` steps with these options (the model and whatever else) allocate no more than `few`. */
void expect_no_more(const char *options, int few, int many);
/* The same of the tiny model with made-up data. */
void expect_no_allocation(int few, int many);

#endif
