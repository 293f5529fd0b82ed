/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `scrimp verify` on an example: identical, or (where the solver cannot meet the budget) exit
 * code 3.
 */
#ifndef SCRIMP_TESTS_VERIFY_EXAMPLE_H
#define SCRIMP_TESTS_VERIFY_EXAMPLE_H

void verify_example(const char *example, const char *solver, const char *budget, int threads);

#endif
