/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a picture: refused with a message, or pixels that can all be read. */
#include "fuzz_target.h"

#include "runtime/image.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const double mean[3] = {0, 0, 0}, std[3] = {1, 1, 1};
    Image image = {0};
    ImageScratch scratch = {0};
    RtError err = {{0}};
    float planes[3 * 7 * 7];
    if (!image_decode(data, (int64_t)size, &image, &err)) {
        if (!err.message[0])
            abort();
    } else {
        ImageWindow window = image_center(&image, 7, 8);
        if (!image_sample(&image, &window, 7, mean, std, &scratch, planes, &err))
            abort();
        for (int i = 0; i < 3 * 7 * 7; i++)
            if (!(planes[i] >= 0 && planes[i] <= 1.0001f))
                abort();
    }
    image_free(&image);
    image_scratch_free(&scratch);
    return 0;
}
