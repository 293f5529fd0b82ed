/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 8 at its full size: 10,000 steps. */
#include "e2e.h"
#include "steps_allocate.h"

int main(void)
{
    e2e_begin();
    expect_no_allocation(10, 10000);
    return e2e_end();
}
