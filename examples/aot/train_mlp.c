/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Trains examples/mlp.scrimp from C, with nothing of scrimp present:
 *
 *     scrimp compile examples/mlp.scrimp -D N=64 -o step.so
 *     gcc -O2 -I. examples/aot/train_mlp.c ./step.so -lm -o train_mlp && ./train_mlp weights
 *
 * (add -fopenmp for threads: the same bits), or on a CUDA device:
 *
 *     scrimp compile examples/mlp.scrimp -D N=64 --device sm_90 -o step
 *     gcc -O2 -Istep examples/aot/train_mlp.c step/step.so -lm -o train_mlp && ./train_mlp weights
 *
 * Names in the header begin with that of the object or folder, step, or with what --name says: a
 * program can include the headers of several steps.  The data are made up here: ten prototypes with
 * noise.  The weights are written to the file that is named, one tensor behind the other.
 */
#include "step.h"

#include <stdio.h>

#ifndef STEPS
#define STEPS 200
#endif
enum { PIXELS = 784, CLASSES = 10 };

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

/* Trains; the losses of the first and the last step, or 0 when the device failed. */
static int train(step_Context *ctx, float *first, float *last)
{
    const step_Tensor *image = step_tensor("input", "batch.image");
    const step_Tensor *label = step_tensor("input", "batch.label");
    const step_Tensor *loss = step_tensor("output", "loss");
    if (!step_initialize(ctx, 1))
        return 0;
    for (int32_t step = 0; step < STEPS; step++) {
        fill_batch((unsigned char *)ctx->arena + image->offset,
                   (int32_t *)(ctx->arena + label->offset), image->dims[0]);
        if (!step_train_step(ctx, 0.05f, step, 1))
            return 0;
        memcpy(last, ctx->arena + loss->offset, sizeof *last);
        if (step == 0)
            *first = *last;
        if (step % 50 == 0 || step == STEPS - 1)
            printf("step %3d  loss %.9g\n", step, (double)*last);
    }
    return 1;
}

static int save(step_Context *ctx, const char *path)
{
    FILE *f = step_fetch(ctx) ? fopen(path, "wb") : NULL;
    int ok = f != NULL;
    for (int i = 0; i < step_TENSORS && ok; i++) {
        const step_Tensor *t = &step_tensors[i];
        if (strcmp(t->kind, "param") == 0)
            ok = fwrite(ctx->arena + t->offset, 1, (size_t)t->bytes, f) == (size_t)t->bytes;
    }
    return f && fclose(f) == 0 && ok;
}

int main(int argc, char **argv)
{
    step_Context ctx;
    float first = 0, last = 0;
    int ok = step_open(&ctx) && train(&ctx, &first, &last);
    if (!ok)
        fprintf(stderr, "%s\n", step_error());
    if (ok && argc > 1 && !save(&ctx, argv[1])) {
        fprintf(stderr, "cannot write the weights to %s\n", argv[1]);
        ok = 0;
    }
    step_close(&ctx);
    return ok && last < first ? 0 : 1;
}
