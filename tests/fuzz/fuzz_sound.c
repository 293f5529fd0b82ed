/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a sound: refused with a message, or finite samples, also at another rate. */
#include "fuzz_target.h"

#include "runtime/sound.h"
#include "tests/support/data/fuzz_dataset.h"

#include <math.h>
#include <stdlib.h>

enum { LENGTH = 500 };

static void read_part(const char *path, int64_t rate, double where)
{
    const SoundForm form = {.rate = rate, .length = LENGTH};
    SoundRoom room = {0};
    RtError err = {{0}};
    float x[LENGTH];
    bool damaged;
    if (!sound_read(&room, path, &form, where, x, &damaged, &err)) {
        if (!err.message[0] || !damaged)
            abort();
    } else {
        for (int i = 0; i < LENGTH; i++)
            if (!isfinite(x[i]))
                abort();
    }
    sound_room_free(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = memory_file(data, size);
    read_part(path, 8000, 0.5);
    read_part(path, 44100, 1);
    return 0;
}
