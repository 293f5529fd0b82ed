/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 13 at its full size: 1,000 kills. */
#include "e2e.h"
#include "kill_and_resume.h"

int main(void)
{
    e2e_begin();
    kill_and_resume(1000, 60);
    return e2e_end();
}
