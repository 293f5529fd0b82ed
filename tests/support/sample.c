/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/sample.h"

#include <stdlib.h>

int sample_number(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

double sample_effort(void)
{
    const char *text = getenv("SCRIMP_EFFORT");
    return text ? atof(text) : 0.1;
}

bool sample_all(void)
{
    return getenv("SCRIMP_ALL");
}
