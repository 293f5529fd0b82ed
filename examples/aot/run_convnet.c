/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a trained examples/convnet.scrimp from C, with nothing of scrimp present:
 *
 *     scrimp train examples/convnet.scrimp --out run
 *     scrimp compile examples/convnet.scrimp --inference --checkpoint run -D N=1 -o net.so --header
 * net.h gcc -O2 -I. examples/aot/run_convnet.c ./net.so -lm -o run_convnet
 *     ./run_convnet net.weights t10k-images-idx3-ubyte 5
 *
 * prints the digit of each of the first five pictures of a file of MNIST.  With --device sm_90 -o
 * net in the place of -o net.so --header net.h it runs on a CUDA device: gcc -Inet ... net/net.so,
 * and net/net.weights.
 */
#include "net.h"

#include <stdio.h>

enum { HEADER = 16, PIXELS = 28 * 28, CLASSES = 10 };

static int largest(const float *logits)
{
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* One line for each picture; 0 when the model did not run. */
static int classify(net_Context *ctx, FILE *pictures, int count)
{
    const net_Tensor *x = net_tensor("input", "input.x"), *y = net_tensor("output", "logits");
    float *pixel = (float *)(ctx->arena + x->offset), *logits = (float *)(ctx->arena + y->offset);
    unsigned char bytes[PIXELS];
    for (int i = 0; i < count && fread(bytes, sizeof bytes, 1, pictures) == 1; i++) {
        for (int p = 0; p < PIXELS; p++)
            pixel[p] = (float)bytes[p] / 255;
        if (!net_infer(ctx, 0))
            return 0;
        printf("%d  %.9g\n", largest(logits), (double)logits[largest(logits)]);
    }
    return 1;
}

int main(int argc, char **argv)
{
    net_Context ctx;
    FILE *pictures = argc > 3 ? fopen(argv[2], "rb") : NULL;
    if (!pictures || fseek(pictures, HEADER, SEEK_SET) != 0) {
        fprintf(stderr, "usage: run_convnet WEIGHTS IMAGES COUNT\n");
        return 2;
    }
    int ok = net_open(&ctx);
    if (ok && !(ok = net_load(&ctx, argv[1])))
        fprintf(stderr, "%s: not the weights of this model\n", argv[1]);
    else if (!ok || !(ok = classify(&ctx, pictures, atoi(argv[3]))))
        fprintf(stderr, "%s\n", net_error());
    net_close(&ctx);
    fclose(pictures);
    return !ok;
}
