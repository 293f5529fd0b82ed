/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/data/sound_case.h"

#include "tests/support/data/temp.h"

#include <stdlib.h>
#include <string.h>

static unsigned char *put(unsigned char *p, int64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (unsigned char)(v >> (8 * i));
    return p;
}

void write_wav(const char *name, int rate, int channels, const int16_t *sample, int frames)
{
    int64_t n = (int64_t)frames * channels;
    unsigned char *file = malloc((size_t)(44 + 2 * n)), *p = file;
    memcpy(p, "RIFF", 4);
    p = put(p + 4, 36 + 2 * n, 4);
    memcpy(p, "WAVEfmt ", 8);
    p = put(p + 8, 16, 4);
    p = put(p, 1, 2); /* whole numbers */
    p = put(p, channels, 2);
    p = put(p, rate, 4);
    p = put(p, (int64_t)rate * channels * 2, 4);
    p = put(p, channels * 2, 2);
    p = put(p, 16, 2);
    memcpy(p, "data", 4);
    p = put(p + 4, 2 * n, 4);
    for (int64_t i = 0; i < n; i++)
        p = put(p, sample[i], 2);
    temp_write(name, file, (size_t)(44 + 2 * n));
    free(file);
}
