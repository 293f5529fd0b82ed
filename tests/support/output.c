/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/output.h"

#include <stdio.h>

char *output_of(Pool *pool, const char *command)
{
    FILE *f = popen(command, "r");
    size_t n = 0, size = 1 << 16;
    char *text = pool_alloc(pool, size);
    for (size_t got; f && (got = fread(text + n, 1, size - n - 1, f)) > 0;) {
        n += got;
        if (size - n < 1024) {
            text = pool_grow(pool, text, size, 2 * size);
            size *= 2;
        }
    }
    text[n] = '\0';
    return f && pclose(f) == 0 ? text : NULL;
}
