/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "check.h"

int check_failures;

int test_result(void)
{
    if (check_failures)
        fprintf(stderr, "%d check(s) failed\n", check_failures);
    return check_failures ? 1 : 0;
}
