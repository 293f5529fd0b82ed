/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 8 over every kind of data source: small files of each, a model for each, and runs with
 * evaluations of which the longer one makes not one allocation more. */
#ifndef SCRIMP_TESTS_SOURCES_ALLOCATE_H
#define SCRIMP_TESTS_SOURCES_ALLOCATE_H

#include "e2e.h"
#include "steps_allocate.h"

#include <stdio.h>
#include <string.h>

static inline FILE *source_file(const char *name)
{
    char path[500];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    FILE *f = fopen(path, "wb");
    EXPECT(f, path);
    return f;
}

static inline void expect_source(const char *name, const char *batch, const char *model,
                                 const char *loss)
{
    char file[100];
    snprintf(file, sizeof file, "%s.scrimp", name);
    FILE *f = source_file(file);
    fprintf(f,
            "%s\ntrain {\n  batch = %s\n  loss = %s\n  optim = sgd(lr = 1e-3)\n"
            "  steps = 100000\n  eval_every = 7\n  held_out = 20%%\n}\n",
            model, batch, loss);
    fclose(f);
    expect_no_more(file, 10, 60);
}

static inline void write_zeros(const char *name, const char *head, int head_bytes, int n)
{
    FILE *f = source_file(name);
    fwrite(head, 1, (size_t)head_bytes, f);
    for (int i = 0; i < n; i++)
        fputc(0, f);
    fclose(f);
}

static inline void write_array(const char *name, const char *descr, const char *shape, int bytes)
{
    char head[200];
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s}\n", descr, shape);
    memcpy(head, "\x93NUMPY\1\0", 8);
    head[8] = (char)n;
    head[9] = 0;
    write_zeros(name, head, 10 + n, bytes);
}

/* Every kind of picture that the fuzzer starts from, and one that is damaged. */
static inline void write_pictures(void)
{
    Result r =
        run("from=$EXAMPLES/../tests/fuzz/corpus/image; for c in a b; do mkdir -p $TMP/pic/$c; "
            "for i in 1 2 3; do for p in alpha.png bit.png cmyk.jpg grey.jpg palette.png "
            "progressive.jpg rgb.jpg rgb.png; do cp $from/$p $TMP/pic/$c/$i$p; done; done; "
            "done; cp $from/cut.png $TMP/pic/a/");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static inline void expect_made_arrays(const char *kind, const char *file)
{
    static const char model[] = "model m(x: f32[4, 6]) { return x |> l: linear(2) }";
    char batch[200];
    snprintf(batch, sizeof batch, "%s(\"%s\", batch = 4, x = f32[4, 6], y = i32[4])", kind, file);
    Result r = run("cd $TMP && { echo '%s'; echo 'train { batch = %s'; echo 'loss = "
                   "cross_entropy(m(batch.x), batch.y)'; echo 'optim = sgd(lr = 0.1)'; echo "
                   "'steps = 1 }'; } > made.scrimp && $SCRIMP data made.scrimp",
                   model, batch);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    expect_source(kind, batch, model, "cross_entropy(m(batch.x), batch.y)");
}

static inline void test_images_and_arrays(void)
{
    make_digits(60);
    static const char digits[] = "model m(x: f32[4, 784]) { return x |> l: linear(10) }";
    static const char loss[] = "cross_entropy(m(batch.image |> to_f32(scale = 1/255) |> "
                               "reshape([4, 784])), batch.label)";
    expect_source("mnist", "mnist(\"idx\", batch = 4)", digits, loss);
    Result r = run("gzip -r $TMP/idx");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    expect_source("mnist_gz", "mnist(\"idx\", batch = 4)", digits, loss);
    r = run("mkdir $TMP/cifar");
    result_free(&r);
    write_zeros("cifar/data_batch_1.bin", "", 0, 50 * 3073);
    expect_source("cifar10", "cifar10(\"cifar\", batch = 4)",
                  "model m(x: f32[4, 3072]) { return x |> l: linear(10) }",
                  "cross_entropy(m(batch.image |> to_f32(scale = 1/255) |> reshape([4, 3072])), "
                  "batch.label)");
    write_array("x.npy", "<f8", "(40, 6)", 40 * 6 * 8);
    write_array("y.npy", "<i8", "(40,)", 40 * 8);
    expect_source("npy", "npy([\"x.npy\", \"y.npy\"], batch = 4, x = f32[4, 6], y = i32[4])",
                  "model m(x: f32[4, 6]) { return x |> l: linear(2) }",
                  "cross_entropy(m(batch.x), batch.y)");
    expect_made_arrays("npz", "a.npz");
    expect_made_arrays("safetensors", "a.safetensors");
    expect_source("zip",
                  "zip(npz(\"a.npz\", batch = 4, x = f32[4, 6]), safetensors(\"a.safetensors\", "
                  "batch = 4, y = i32[4]))",
                  "model m(x: f32[4, 6]) { return x |> l: linear(2) }",
                  "cross_entropy(m(batch.x), batch.y)");
    write_pictures();
    expect_source("imagefolder", "imagefolder(\"pic\", batch = 4, size = 16)",
                  "model m(x: f32[4, 3, 16, 16]) { return x |> flatten() |> l: linear(2) }",
                  "cross_entropy(m(batch.image), batch.label)");
}

static inline void test_sounds(void)
{
    Result r = run("from=$EXAMPLES/../tests/fuzz/corpus/sound; for c in a b; do mkdir -p "
                   "$TMP/snd/$c; for i in 1 2 3 4 5 6; do for p in bytes float mono16 pcm24 "
                   "stereo16 ulaw; do cp $from/$p.wav $TMP/snd/$c/$i$p.wav; done; done; done; cp "
                   "$from/nan.wav $TMP/snd/a/");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    expect_source("audiofolder", "audiofolder(\"snd\", batch = 4, length = 64)",
                  "model m(x: f32[4, 1, 64]) { return x |> flatten() |> l: linear(2) }",
                  "cross_entropy(m(batch.audio), batch.label)");
}

static inline void test_sequences(void)
{
    char path[500];
    static const char loss[] = "cross_entropy(m(batch.x), batch.y)";
    static const char model[] =
        "model m(t: i32[4, 8]) { return t |> e: embedding(256, 8) |> l: linear(256) }";
    snprintf(path, sizeof path, "%s/text.txt", e2e_tmp());
    make_text(path, 4000);
    expect_source("text_bytes", "text(\"text.txt\", batch = 4, length = 8, tokens = bytes)", model,
                  loss);
    expect_source("text_chars", "text(\"text.txt\", batch = 4, length = 8, tokens = chars)", model,
                  loss);
    write_zeros("ids.bin", "\1\0\2\0\3\0", 6, 4000);
    expect_source("tokens", "tokens(\"ids.bin\", batch = 4, length = 8)", model, loss);
}

#endif
