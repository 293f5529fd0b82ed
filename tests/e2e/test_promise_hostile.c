/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promises 14 and 16 through the command line: hostile text, weights, data and IR end with a
 * message and exit code 1, in little time, never by a signal. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An address space of 1 GB; sanitizers want terabytes. */
#ifdef __SANITIZE_ADDRESS__
static const char SMALL[] = "";
#else
static const char SMALL[] = "ulimit -v 1000000;";
#endif

static void write_bytes(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_tmp(name), "wb");
    fwrite(data, 1, n, f);
    fclose(f);
}

static void write_string(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static void expect_refused(const char *what, const char *command)
{
    Result r = run("%s", command);
    char detail[1500];
    snprintf(detail, sizeof detail, "%s: exit code %d after %.1f s of processors\n%.1200s", what,
             r.code, r.processor_seconds, r.err);
    EXPECT(r.code == 1 && strstr(r.err, "error"), detail);
    EXPECT(r.processor_seconds < 60, detail);
    result_free(&r);
}

/* --- text --- */

static void repeat(FILE *f, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        fputs(text, f);
}

static void expect_model_refused(const char *what, const char *text)
{
    write_string("bad.scrimp", text);
    expect_refused(what, "$SCRIMP check $TMP/bad.scrimp");
    expect_refused(what, "$SCRIMP train $TMP/bad.scrimp --steps 1");
}

static void test_nesting(void)
{
    static const char *const open[] = {"(", "[", "-", "not ", "f(", "x[", "\"{"};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        FILE *f = fopen(in_tmp("bad.scrimp"), "w");
        fputs("model m(x: f32[4]) {\n  return x + ", f);
        repeat(f, open[i], 100000);
        fputs("\n}\n", f);
        fclose(f);
        expect_refused(open[i], "$SCRIMP check $TMP/bad.scrimp");
    }
    FILE *f = fopen(in_tmp("bad.scrimp"), "w");
    fputs("model m(x: f32[4]) {\n", f);
    repeat(f, "if true {\n", 50000);
    fclose(f);
    expect_refused("if", "$SCRIMP check $TMP/bad.scrimp");
}

static void test_sizes(void)
{
    static const char *const body[] = {
        "return x |> l: linear(9223372036854775807)",
        "return x |> l: linear(4000000000) |> k: linear(4000000000)",
        "return x |> l: linear(-3)",
        "return reshape(x, [-1, -1])",
        "return reshape(x, [0, 3])",
        "return broadcast(x, [4294967296, 4294967296, 4, 8])",
        "return pad(x, [9223372036854775807, 1])",
        "return zeros([3037000500, 3037000500]) |> sum() + x",
        "return x |> l: embedding(10, 10)",
        "for i in 0..9223372036854775807 { x = relu(x) }\n return x",
        "for i in 0..100000 { for j in 0..100000 { x = relu(x) } }\n return x",
        "y = [0..1000000 for i in 0..1000000]\n return x",
        "a = \"x\"\n for i in 0..60 { a = a ++ a }\n return x",
        "a = [1]\n for i in 0..60 { a = a ++ a }\n return x",
        "return x * (9223372036854775807 + 1)",
        "return x * (1 // 0)",
        "return x * (2 ** 100000000)",
        "return x[99999999999999999999]",
        "return rearrange(x, \"(((((((\")",
        "return einsum(\"a b c d e f g h i j -> z\", x)",
        "param p: f32[2147483648, 2147483648] = normal(1)\n return x"};
    char text[1000];
    for (size_t i = 0; i < sizeof body / sizeof *body; i++) {
        snprintf(text, sizeof text,
                 "model m(x: f32[4, 8]) {\n %s\n}\ntrain {\n"
                 "  batch = synthetic(x = f32[4, 8], label = i32[4])\n"
                 "  loss = cross_entropy(m(batch.x), batch.label)\n"
                 "  optim = sgd(lr = 0.1)\n  steps = 1\n}\n",
                 body[i]);
        expect_model_refused(body[i], text);
    }
}

static void test_recursion(void)
{
    expect_model_refused("a block that calls itself",
                         "block b(x) { return b(x) }\nmodel m(x: f32[4]) { return b(x) }\n");
    expect_model_refused("two that call each other",
                         "block a(x) { return b(x) + b(x) }\nblock b(x) { return a(x) + a(x) }\n"
                         "model m(x: f32[4]) { return a(x) }\n");
    write_string("a.scrimp", "import \"b.scrimp\"\nmodel m(x: f32[4]) { return x }\n");
    write_string("b.scrimp", "import \"a.scrimp\"\n");
    expect_refused("imports in a circle", "$SCRIMP check $TMP/a.scrimp");
}

static void test_bytes(void)
{
    static const char nul[] = "model m(x: f32[4]) {\n  return x\0 + x\n}\n";
    write_bytes("bad.scrimp", nul, sizeof nul - 1);
    expect_refused("a NUL", "$SCRIMP check $TMP/bad.scrimp");
    expect_model_refused("bytes that are no text", "\xff\xfe\x80\x81 model");
    expect_model_refused("nothing", "");
    expect_refused("a folder", "$SCRIMP check $TMP");
    expect_refused("noise", "head -c 300000 /dev/urandom > $TMP/noise; $SCRIMP check $TMP/noise");
    expect_refused("a device without end", "$SCRIMP check /dev/zero");
    expect_refused("17 MiB", "head -c 17825792 /dev/zero | tr '\\0' '#' > $TMP/long; "
                             "$SCRIMP check $TMP/long");
    expect_run(1, "larger than 16MiB", "$SCRIMP check $TMP/long");
    expect_run(1, "larger than 16MiB", "$SCRIMP check - < $TMP/long");
}

static void test_ir(void)
{
    static const char *const text[] = {"",
                                       "scrimp.ir 1\nforward @m {\n",
                                       "scrimp.ir 1\nforward @m {\n  %x = input : "
                                       "f32[9223372036854775807,9223372036854775807]\n}\n",
                                       "scrimp.ir 1\nforward @m {\n  %x = relu %x : f32[4]\n}\n",
                                       "scrimp.ir 1\nforward @m {\n  %x = relu %y : f32[4]\n}\n",
                                       "scrimp.ir 99\nforward @m {\n}\n",
                                       "not ir at all\n"};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        write_string("bad.ir", text[i]);
        expect_refused(text[i], "$SCRIMP opt -p fold,plan $TMP/bad.ir");
    }
    /* Damage at every place of a real dump: refused, or read as another program. */
    Result r = run("$SCRIMP dump $EXAMPLES/mlp.scrimp --stage=grad > $TMP/good.ir");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    long length;
    char *good = read_text(in_tmp("good.ir"), &length);
    for (int i = 0; i < 40; i++) {
        char *bad = strdup(good);
        bad[length * i / 40] ^= 0x15;
        write_bytes("bad.ir", bad, (size_t)length);
        free(bad);
        r = run("$SCRIMP opt -p fold,cse,dce,order,plan $TMP/bad.ir");
        EXPECT(r.code == 0 || r.code == 1 || r.code == 3, r.err);
        result_free(&r);
    }
    free(good);
}

/* What has no end, or is longer than any text that is meant, is read to a limit and no further: in
 * an address space that the whole of it would not fit. */
static void test_endless(void)
{
    static const char *const command[] = {
        "$SCRIMP plan --graph /dev/zero --budget 60%",
        "$SCRIMP arena /dev/zero",
        "$SCRIMP opt -p fold /dev/zero",
        "$SCRIMP check - < /dev/zero",
        "yes '# a line' | $SCRIMP check -",
        "yes '{\"nodes\": [' | $SCRIMP plan --graph - --budget 60%",
        "yes id,lower,upper,size | $SCRIMP arena -",
        "truncate -s 3G $TMP/long; $SCRIMP plan --graph $TMP/long --budget 60%",
        "truncate -s 3G $TMP/long; $SCRIMP arena $TMP/long",
        "truncate -s 3G $TMP/long; $SCRIMP check - < $TMP/long",
    };
    for (size_t i = 0; i < sizeof command / sizeof *command; i++) {
        Result r = run("%s %s", SMALL, command[i]);
        EXPECT(r.code == 1 && strstr(r.err, "larger than"), r.err);
        EXPECT(r.processor_seconds < 60, command[i]);
        result_free(&r);
    }
}

/* --- weights and data --- */

static void test_weights(void)
{
    static const char *const header[] = {
        "",
        "{}",
        "{",
        "[]",
        "null",
        "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[256,784],\"data_offsets\":[0,4]}}",
        "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807,4],"
        "\"data_offsets\":[0,16]}}",
        "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[8,0]}}",
        "{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}",
        "{\"fc1.weight\":{\"dtype\":\"XX\",\"shape\":[1],\"data_offsets\":[0,4]}}"};
    for (size_t i = 0; i < sizeof header / sizeof *header; i++)
        for (int wrong = 0; wrong < 2; wrong++) {
            FILE *f = fopen(in_tmp("bad.safetensors"), "wb");
            uint64_t n = wrong ? UINT64_MAX / 2 : strlen(header[i]);
            fwrite(&n, 1, 8, f);
            fputs(header[i], f);
            fputs("12345678", f);
            fclose(f);
            expect_refused(header[i], "$SCRIMP train $EXAMPLES/mlp.scrimp --data $TMP/idx --steps "
                                      "1 --checkpoint $TMP/bad.safetensors");
        }
}

static void test_images(void)
{
    static const unsigned char huge[] = {0,    0,    8,    3,    0xff, 0xff, 0xff, 0xff, 0xff,
                                         0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    static const unsigned char few[] = {0, 0, 8, 3, 0, 0, 0, 200, 0, 0, 0, 28, 0, 0, 0, 28, 1};
    static const unsigned char kind[] = {0, 0, 9, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 1};
    static const unsigned char gzip[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff};
    const struct {
        const unsigned char *data;
        size_t n;
    } bad[] = {{huge, sizeof huge},
               {few, sizeof few},
               {kind, sizeof kind},
               {gzip, sizeof gzip},
               {huge, 3}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_bytes("idx/train-images-idx3-ubyte", bad[i].data, bad[i].n);
        expect_refused("IDX", "$SCRIMP train $EXAMPLES/mlp.scrimp --data $TMP/idx --steps 1");
    }
}

/* 1 GB in 1 MB (a hundred times the same 10 MB): not unpacked, whatever its header says. */
static void test_packed(void)
{
    static const char *const head[] = {"\\0\\0\\10\\3\\0\\0\\0\\310\\0\\0\\0\\34\\0\\0\\0\\34",
                                       "\\0\\0\\10\\3\\377\\0\\0\\0\\0\\0\\0\\34\\0\\0\\0\\34"};
    for (int i = 0; i < 2; i++) {
        Result r =
            run("rm -f $TMP/idx/train-images*; head -c 10000000 /dev/zero | gzip -1 > $TMP/zeros; "
                "(printf '%s' | gzip -1; for i in $(seq 100); do cat $TMP/zeros; done) "
                "> $TMP/idx/train-images-idx3-ubyte.gz; %s exec $SCRIMP train "
                "$EXAMPLES/mlp.scrimp --data $TMP/idx --steps 1",
                head[i], SMALL);
        EXPECT(r.code == 1 && strstr(r.err, i ? "at most" : "goes on where"), r.err);
        result_free(&r);
    }
}

int main(void)
{
    e2e_begin();
    make_digits(200);
    test_nesting();
    test_sizes();
    test_recursion();
    test_bytes();
    test_ir();
    test_endless();
    test_weights();
    test_images();
    test_packed();
    return e2e_end();
}
