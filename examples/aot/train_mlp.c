/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trains examples/mlp.scrimp from C, with nothing of scrimp present:
 *
 *     scrimp compile examples/mlp.scrimp -D N=64 -o step.so --header step.h
 *     gcc -O2 -I. examples/aot/train_mlp.c ./step.so -lm -o train_mlp && ./train_mlp
 *
 * (add -fopenmp for threads: the same bits).  Names in the header begin with that of the object,
 * step, or with what --name says: a program can include the headers of several steps.  The data are
 * made up here: ten prototypes with noise.
 */
#include "step.h"

#include <stdio.h>

enum { STEPS = 200, PIXELS = 784, CLASSES = 10 };

static uint64_t state = 1;

static void fill_batch(unsigned char *image, int32_t *label, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        label[i] = (int32_t)(step_uniform(&state) * CLASSES);
        uint64_t prototype = (uint64_t)label[i] + 17;
        for (int p = 0; p < PIXELS; p++)
            image[i * PIXELS + p] =
                (unsigned char)(160 * step_uniform(&prototype) + 95 * step_uniform(&state));
    }
}

int main(void)
{
    step_Context ctx;
    if (!step_open(&ctx)) {
        fprintf(stderr, "not enough memory for %lld bytes\n", (long long)step_ARENA_BYTES);
        return 1;
    }
    const step_Tensor *image = step_tensor("input", "batch.image");
    const step_Tensor *label = step_tensor("input", "batch.label");
    const step_Tensor *loss = step_tensor("output", "loss");
    step_initialize(&ctx, 1);
    float first = 0, now = 0;
    for (int32_t step = 0; step < STEPS; step++) {
        fill_batch((unsigned char *)ctx.arena + image->offset,
                   (int32_t *)(ctx.arena + label->offset), image->dims[0]);
        step_train_step(&ctx, 0.05f, step, 1);
        memcpy(&now, ctx.arena + loss->offset, sizeof now);
        if (step == 0)
            first = now;
        if (step % 50 == 0 || step == STEPS - 1)
            printf("step %3d  loss %.4f\n", step, (double)now);
    }
    free(ctx.arena);
    free(ctx.threads);
    return now < first / 2 ? 0 : 1;
}
