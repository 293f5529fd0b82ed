/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Inputs and outputs on their way (runtime/cuda/feed.h), on the simulated device: each step gets
 * what was sent for it, whichever stream runs first. */
#include "check.h"
#include "runtime/cuda/feed.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 7, BYTES = 4096, SECOND = 1024, WORDS = 3 };

/* The tensors in this program: two inputs, of which one is the output, too. */
typedef struct Image {
    float first[WORDS], second[WORDS], out[WORDS];
} Image;

static CudaFeed *open_feed(CudaDevice *d, Image *image, RtError *err)
{
    const CudaPiece in[] = {{0, sizeof image->first, (char *)image->first},
                            {SECOND, sizeof image->second, (char *)image->second}};
    const CudaPiece out[] = {{SECOND, sizeof image->out, (char *)image->out}};
    return cuda_feed_open(d, in, 2, out, 1, err);
}

static void set(Image *image, int step)
{
    for (int i = 0; i < WORDS; i++) {
        image->first[i] = (float)(10 * step + i);
        image->second[i] = (float)(1000 * step + i);
    }
}

/* seen: what the arena holds at each step, read in line behind it.  wait: whether this program
 * waits for each step, or lets all of them stand in line. */
static bool run_steps(CudaDevice *d, CudaFeed *f, Image *image, bool wait, float seen[][WORDS],
                      RtError *err)
{
    bool ok = true;
    set(image, 0);
    ok = cuda_feed_send(f, err);
    for (int step = 0; step < STEPS && ok; step++) {
        ok = cuda_feed_place(f, err) && cuda_read(d, 0, seen[step], sizeof seen[step], err) &&
             cuda_feed_return(f, err);
        set(image, step + 1);
        ok = ok && cuda_feed_send(f, err) && (!wait || cuda_feed_wait(f, err));
        for (int i = 0; i < WORDS && wait && ok; i++)
            CHECK_MSG((int)image->out[i] == 1000 * step + i, "step %d returns %g", step,
                      (double)image->out[i]);
    }
    return ok && cuda_wait(d, err);
}

static void check(const char *at_once, bool wait)
{
    RtError err = {"no message"};
    Image image;
    float seen[STEPS][WORDS] = {{0}};
    int64_t left;
    if (at_once)
        setenv("SCRIMP_SIM_STREAM", at_once, 1);
    CudaDevice *d = cuda_device_open(&err);
    CudaFeed *f = d && cuda_arena_map(d, BYTES, &left, &err) ? open_feed(d, &image, &err) : NULL;
    bool ok = f && run_steps(d, f, &image, wait, seen, &err);
    CHECK_MSG(ok, "%s", err.message);
    for (int step = 0; step < STEPS && ok; step++)
        for (int i = 0; i < WORDS; i++)
            CHECK_MSG((int)seen[step][i] == 10 * step + i, "step %d sees %g", step,
                      (double)seen[step][i]);
    if (ok)
        CHECK(cuda_device_memory(d).arena == BYTES && cuda_device_memory(d).staging > 0);
    cuda_feed_close(f);
    if (d)
        CHECK(cuda_device_memory(d).staging == 0);
    cuda_device_close(d);
    unsetenv("SCRIMP_SIM_STREAM");
}

int main(int argc, char **argv)
{
    /* Streams are numbered as they are made, in the whole process: a process for each case. */
    static const char *const cases[] = {"", "1", "2"};
    char path[4096];
    snprintf(path, sizeof path, "%s/cuda-sim", getenv("SCRIMP_BUILD"));
    setenv("SCRIMP_CUDA_PATH", path, 1);
    if (argc > 2) {
        check(*argv[1] ? argv[1] : NULL, *argv[2] == 'w');
        return test_result();
    }
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s '%s' %s", argv[0], cases[i / 2], i % 2 ? "wait" : "go");
        CHECK_MSG(system(path) == 0, "%s", path);
    }
    return test_result();
}
