/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `compile --inference` as a C programmer meets it: the example program says what `predict` says,
 * without scrimp; weights of another compilation are refused. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES = 20, PIXELS = 28 * 28 };

/* The first pictures of MNIST's file as an array of floats. */
static void write_pictures(void)
{
    char *bytes = read_text(in_tmp("data/mnist/t10k-images-idx3-ubyte"), NULL);
    FILE *f = fopen(in_tmp("x.npy"), "wb");
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\0\x76\0", 10);
    int n =
        snprintf(head + 10, sizeof head - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1, 28, 28), }", PICTURES);
    head[10 + n] = ' ';
    head[127] = '\n';
    fwrite(head, 1, sizeof head, f);
    for (int i = 0; bytes && i < PICTURES * PIXELS; i++) {
        float x = (float)(unsigned char)bytes[16 + i] / 255;
        fwrite(&x, sizeof x, 1, f);
    }
    fclose(f);
    free(bytes);
}

/* Digit and logit of each line against the logits of predict. */
static void expect_same(const char *lines)
{
    long length = 0;
    char *npy = read_text(in_tmp("y.npy"), &length);
    EXPECT(npy != NULL && length > PICTURES * 40, "y.npy");
    if (!npy)
        return;
    const char *at = lines;
    for (int i = 0; i < PICTURES; i++) {
        float y[10];
        int digit = 0, used = 0, best = 0;
        double logit = 0;
        memcpy(y, npy + length - 40L * (PICTURES - i), sizeof y);
        for (int k = 1; k < 10; k++)
            best = y[k] > y[best] ? k : best;
        bool read = sscanf(at, "%d %lf\n%n", &digit, &logit, &used) == 2;
        double apart = logit - (double)y[best];
        char detail[120];
        snprintf(detail, sizeof detail, "picture %d: %d %g, %d %g", i, digit, logit, best,
                 (double)y[best]);
        EXPECT(read && digit == best && apart < 1e-4 && apart > -1e-4, detail);
        at += used;
    }
    free(npy);
}

static void test_program(void)
{
    expect_there(0, "",
                 "cp $EXAMPLES/convnet.scrimp $EXAMPLES/aot/run_convnet.c . && "
                 "$SCRIMP data convnet.scrimp -q");
    write_pictures();
    expect_there(0, "", "$SCRIMP train convnet.scrimp -q --steps 20 --out run");
    expect_there(0, "", "$SCRIMP predict convnet.scrimp --checkpoint run -i x=x.npy -o y.npy -q");
    expect_there(
        0, "of weights, batch normalization folded into 2 layers",
        "$SCRIMP compile convnet.scrimp --inference --checkpoint run -D N=1 -o net.so --header "
        "net.h");
    expect_there(0, "",
                 "gcc -O2 -std=c11 -Wall -Wextra -Werror -I. run_convnet.c ./net.so -lm -o one");
    Result r = run("cd $TMP && ./one net.weights data/mnist/t10k-images-idx3-ubyte %d", PICTURES);
    EXPECT(r.code == 0, r.err);
    expect_same(r.out);
    result_free(&r);
    expect_there(
        0, "",
        "! grep -e lr -e momentum -e running net.h && ! ldd net.so | grep -e gccjit -e scrimp");
}

/* Cut, damaged, of another model: told, not read. */
static void test_wrong_weights(void)
{
    static const char *const makes[] = {
        "head -c 1000 net.weights > w", "{ cat net.weights; echo; } > w", "true > w",
        "cp net.weights w && printf x | dd of=w bs=1 seek=5000 conv=notrunc 2> o"};
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        Result r = run("cd $TMP && %s; ./one w data/mnist/t10k-images-idx3-ubyte 1", makes[i]);
        EXPECT(r.code == 1 && strstr(r.err, "w: not the weights of this model"), makes[i]);
        result_free(&r);
    }
    expect_there(0, "", "$SCRIMP train convnet.scrimp -D width=16 -q --steps 1 --out other");
    expect_there(
        0, "wrote other.weights",
        "$SCRIMP compile convnet.scrimp -D width=16 --inference --checkpoint other -D N=1 -o "
        "other.so");
    expect_there(1, "not the weights", "./one other.weights data/mnist/t10k-images-idx3-ubyte 1");
    expect_there(1, "error[E501]",
                 "$SCRIMP compile convnet.scrimp --inference --checkpoint other -o e.so");
    expect_there(0, "", "test ! -e e.so && test ! -e e.h && test ! -e e.weights");
    expect_there(1, "error[E501]",
                 "cksum other.* > before; $SCRIMP compile convnet.scrimp --inference --checkpoint "
                 "other -o other.so");
    expect_there(0, "", "cksum other.* | cmp - before");
}

/* Running means take the place of the weights, which is said. */
static void test_ema(void)
{
    expect_there(0, "",
                 "sed 's/held_out *=.*/ema = 0.9/' convnet.scrimp > ema.scrimp && $SCRIMP train "
                 "ema.scrimp -q --steps 2 --out means");
    expect_there(0, "note: running means of ",
                 "$SCRIMP compile ema.scrimp --inference --checkpoint means -D N=1 -o means.so");
    expect_there(0, "",
                 "! $SCRIMP compile ema.scrimp --inference --checkpoint means --no-ema -D N=1 -o "
                 "weights.so 2>&1 | grep 'running means'");
}

static void test_options(void)
{
    expect_there(1, "error[E512]", "$SCRIMP compile convnet.scrimp --inference -o e.so");
    expect_there(1, "error[E407]", "$SCRIMP compile convnet.scrimp --checkpoint run -o e.so");
    expect_there(
        1, "error[E407]",
        "$SCRIMP compile convnet.scrimp --inference --checkpoint run --budget 50% -o e.so");
    expect_there(0, "", "test ! -e e.so && test ! -e e.weights");
}

int main(void)
{
    e2e_begin();
    if (run("command -v gcc").code != 0)
        return 77;
    test_program();
    test_wrong_weights();
    test_ema();
    test_options();
    return e2e_end();
}
