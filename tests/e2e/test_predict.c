/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `predict`: arrays, pictures and texts through a trained model, against sums by hand and against
 * what `eval` says of the same examples. */
#include "e2e.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_bytes(const char *name, const char *head, size_t head_bytes, const void *data,
                        size_t bytes)
{
    FILE *f = fopen(in_tmp(name), "wb");
    fwrite(head, 1, head_bytes, f);
    fwrite(data, 1, bytes, f);
    fclose(f);
}

/* An array as NumPy writes it; shape: "7, 3". */
static void write_npy(const char *name, const char *descr, const char *shape, const void *data,
                      size_t bytes)
{
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\0\x76\0", 10);
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    head[10 + n] = ' ';
    head[127] = '\n';
    write_bytes(name, head, sizeof head, data, bytes);
}

/* The floats of an array of this header text, to be freed; NULL after a failed check. */
static float *read_npy(const char *name, const char *header, size_t n)
{
    long length = 0;
    char *text = read_text(in_tmp(name), &length);
    EXPECT(text != NULL, name);
    if (!text)
        return NULL;
    size_t start = 10 + (unsigned char)text[8] + ((size_t)(unsigned char)text[9] << 8);
    bool whole = !memcmp(text, "\x93NUMPY\x01\0", 8) && start % 64 == 0 &&
                 text[start - 1] == '\n' && (size_t)length == start + n * sizeof(float);
    EXPECT(whole, name);
    if (whole)
        text[start - 1] = '\0';
    EXPECT(whole && strstr(text + 10, header), text + 10);
    float *values = whole ? malloc(n * sizeof *values) : NULL;
    if (values)
        memcpy(values, text + start, n * sizeof *values);
    free(text);
    return values;
}

/* ---- sums by hand ---- */

static const char net[] =
    "option N = 4\n"
    "block Scale(x) { param weight: f32[3] = ones\n  return x * weight }\n"
    "model net(x: f32[N, 3], ids: i32[N, 2]) {\n"
    "  y = x |> scale: Scale() |> fc: linear(2)\n"
    "  return y + sum(ids |> table: embedding(5, 2), axis = 1), dropout(y, 0.5)\n"
    "}\n"
    "train {\n"
    "  batch = npy([\"pixels.npy\", \"ids.npy\", \"label.npy\"], batch = N, pixels = u8[N, 3],\n"
    "              ids = i32[N, 2], label = i32[N])\n"
    "  y, again = net(batch.pixels |> to_f32(scale = 1/2), batch.ids)\n"
    "  loss = cross_entropy(y, batch.label)\n"
    "  optim = sgd(lr = 0.1)\n"
    "  steps = 1\n"
    "}\n";

/* fc.weight [[1,2,3],[0,1,0]], fc.bias [10, 20], scale.weight [1,1,2], table row r [100 r, 0]. */
static void write_weights(void)
{
    static const float data[] = {10, 20, 1,   2, 3,   0, 1,   0, 1,   1, 2,
                                 0,  0,  100, 0, 200, 0, 300, 0, 400, 0};
    static const char json[] =
        "{\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
        "\"scale.weight\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[32,44]},"
        "\"table.weight\":{\"dtype\":\"F32\",\"shape\":[5,2],\"data_offsets\":[44,84]}}";
    char head[1024];
    uint64_t n = sizeof json - 1;
    memcpy(head, &n, 8);
    memcpy(head + 8, json, n);
    write_bytes("w.safetensors", head, 8 + n, data, sizeof data);
}

enum { ROWS = 7 };

/* Of both results: the second, dropout, is off. */
static void expect_sums(const char *first, const char *second)
{
    float *y = read_npy(first, "'<f4', 'fortran_order': False, 'shape': (7, 2,)", ROWS * 2);
    float *again = read_npy(second, "(7, 2,)", ROWS * 2);
    for (int i = 0; y && again && i < ROWS; i++) {
        float a = (float)i / 2, b = (float)(2 * i) / 2, c = 1.5F; /* half of pixels i, 2 i, 3 */
        float left = a + 2 * b + 3 * 2 * c + 10, right = b + 20;
        float ids = 100 * (float)(i % 5 + 1 % 5);
        bool same = y[2 * i] <= left + ids && y[2 * i] >= left + ids && y[2 * i + 1] <= right &&
                    y[2 * i + 1] >= right && again[2 * i] <= left && again[2 * i] >= left;
        char detail[120];
        snprintf(detail, sizeof detail, "row %d: %g %g", i, (double)y[2 * i], (double)y[2 * i + 1]);
        EXPECT(same, detail);
    }
    free(y);
    free(again);
}

static void test_sums(void)
{
    unsigned char pixels[ROWS * 3];
    float x[ROWS * 3];
    int64_t wide[ROWS * 2];
    int32_t ids[ROWS * 2], far[ROWS * 2];
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < 3; k++) {
            pixels[3 * i + k] = (unsigned char)(k == 2 ? 3 : (k + 1) * i);
            x[3 * i + k] = (float)pixels[3 * i + k] / 2;
        }
        for (int k = 0; k < 2; k++) {
            wide[2 * i + k] = ids[2 * i + k] = k ? 1 : i % 5;
            far[2 * i + k] = 5;
        }
    }
    write_bytes("net.scrimp", net, sizeof net - 1, "", 0);
    write_weights();
    write_npy("pixels.npy", "|u1", "7, 3", pixels, sizeof pixels);
    write_npy("x.npy", "<f4", "7, 3", x, sizeof x);
    write_npy("wide.npy", "<i8", "7, 2", wide, sizeof wide);
    write_npy("ids.npy", "<i4", "7, 2", ids, sizeof ids);
    write_npy("far.npy", "<i4", "7, 2", far, sizeof far);
    write_npy("short.npy", "<i4", "6, 2", ids, sizeof ids / 7 * 6);
    write_npy("none.npy", "<i4", "0, 2", ids, 0);
    write_npy("nox.npy", "<f4", "0, 3", ids, 0);
#define PREDICT "$SCRIMP predict net.scrimp --checkpoint w.safetensors "
    expect_there(0, "wrote y.npy: f32[7,2]\nwrote y.1.npy: f32[7,2]",
                 PREDICT "-i pixels.npy -i ids=ids.npy -o y.npy");
    expect_sums("y.npy", "y.1.npy");
    expect_there(0, "wrote z.1.npy",
                 PREDICT "-i x.npy -i ids=wide.npy -o z.npy -D N=3 --threads 1");
    expect_sums("z.npy", "z.1.npy");
    expect_there(0, "wrote e.npy: f32[0,2]", PREDICT "-i x=nox.npy -i ids=none.npy -o e.npy");

    expect_there(1, "error[E505]: far.npy has numbers from 5 to 5, the model's are below 5",
                 PREDICT "-i x.npy -i ids=far.npy -o y.npy");
    expect_there(1, "short.npy has 6 examples, others have 7",
                 PREDICT "-i x.npy -i ids=short.npy -o y.npy");
    expect_there(1, "a.astype(\"uint8\")", PREDICT "-i pixels=x.npy -i ids.npy -o y.npy");
    expect_there(1, "give --input pixels=FILE (u8[4,3]) --input ids=FILE (i32[4,2]) for what",
                 PREDICT "-i ids.npy -o y.npy");
    expect_there(1, "error[E524]: predict needs examples, as --input", PREDICT "-o y.npy");
    expect_there(1, "error[E524]", PREDICT "-i pixels.npy -i pixels.npy -o y.npy");
    expect_there(1, "error[E524]: --input: cannot open gone.npy",
                 PREDICT "-i x=gone.npy -i ids.npy -o y.npy");
    expect_there(
        1, "error[E524]: --input: net.scrimp: ", PREDICT "-i x=net.scrimp -i ids.npy -o y.npy");
    expect_there(1, "error[E512]", "$SCRIMP predict net.scrimp -i x.npy -i ids.npy -o y.npy");
    expect_there(0, "",
                 PREDICT "-i x.npy -i ids.npy > lines && head -1 lines > heading && "
                         "echo 'y[0],y[1],y.1[0],y.1[1]' | cmp - heading && "
                         "tail -1 lines | grep -q '^234,26,34,26$'");
    expect_there(0, "",
                 PREDICT "-i pixels.npy -i ids.npy > t && head -1 t | grep -q '^predicted,y.0.,' "
                         "&& cut -d, -f2- t | cmp - lines && tail -1 t | grep -q ^0,234,");
    expect_there(1, "error[E407]", PREDICT "-i x.npy -i ids.npy -o -");
    expect_there(1, "error[E411]", PREDICT "-i x.npy -i ids.npy -o no/such/y.npy");
    expect_sums("y.npy", "y.1.npy"); /* failures leave what was there, */
    Result r = run("ls -A $TMP | grep -c tmp");
    EXPECT(atoi(r.out) == 0, "and nothing beside it");
    result_free(&r);
    json_t *o = run_json(0, "cd $TMP && " PREDICT "-i x.npy -i ids.npy -o j.npy --json");
    json_t *result = json_array_get(json_object_get(o, "results"), 1);
    EXPECT(json_get_number(o, "examples") >= 7 && result &&
               !strcmp(json_string_value(json_object_get(result, "file")), "j.1.npy") &&
               json_integer_value(json_array_get(json_object_get(result, "shape"), 1)) == 2,
           "--json");
    json_decref(o);
}

/* A result that does not count examples. */
static void test_no_batch(void)
{
    expect_there(
        0, "",
        "sed 's/steps = 1/steps = 1\\n  epoch = 2/' net.scrimp > warned.scrimp && test $($SCRIMP "
        "predict "
        "warned.scrimp --checkpoint w.safetensors -i pixels.npy -i ids.npy -o w.npy 2>&1 | grep -c "
        "W201) = 1");
    expect_there(
        0, "",
        "sed 's/return y + .*/return sum(y, axis = 0), y/; s/loss = .*/loss = mean(again)/' "
        "net.scrimp > sum.scrimp");
    expect_there(
        0,
        "note: the result logits is left out: it is f32[2], whose first dimension does not "
        "count the 4 examples of the input",
        "$SCRIMP predict sum.scrimp --checkpoint w.safetensors -i pixels.npy -o n.npy");
    expect_there(0, "", "test -e n.npy && test ! -e n.1.npy");
    expect_there(1, "help: let the model return a result for each example, too",
                 "sed 's/return sum(y, axis = 0), y/return sum(y, axis = 0), mean(y)/' sum.scrimp "
                 "> none.scrimp && $SCRIMP predict none.scrimp --checkpoint w.safetensors -i "
                 "pixels.npy -o o.npy");
    expect_there(1, "help: let the model return the result transpose(y, 0, 1), too",
                 "sed 's/return sum(y, axis = 0), y/return transpose(y, 0, 1), mean(y)/' "
                 "sum.scrimp > turned.scrimp && $SCRIMP predict turned.scrimp --checkpoint "
                 "w.safetensors -i pixels.npy -o o.npy");
}

/* ---- as eval ---- */

static int largest(const float *p, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (p[i] > p[best])
            best = i;
    return best;
}

static double evaluated(const char *command)
{
    json_t *o = run_json(0, "cd $TMP && %s", command);
    double accuracy = json_get_number(o, "accuracy");
    json_decref(o);
    return accuracy;
}

static void expect_accuracy(const char *what, int64_t right, int64_t n, double eval)
{
    char detail[200];
    double difference = (double)right / (double)n - eval;
    snprintf(detail, sizeof detail, "%s: %lld of %lld, eval says %g", what, (long long)right,
             (long long)n, eval);
    EXPECT(n > 0 && difference < 1e-6 && difference > -1e-6, detail);
}

/* The digit in the middle of a taller picture. */
static void write_digit(int i, const char *pixels)
{
    static char grey[40][28];
    char name[40];
    png_image png = {
        .version = PNG_IMAGE_VERSION, .width = 28, .height = 40, .format = PNG_FORMAT_GRAY};
    memcpy(grey[6], pixels, (size_t)28 * 28);
    mkdir(in_tmp("digits"), 0777);
    snprintf(name, sizeof name, "digits/%d.png", i);
    EXPECT(png_image_write_to_file(&png, in_tmp(name), 0, grey, 0, NULL), name);
}

/* MNIST's test files are a header and what an array is. */
static void test_digits(void)
{
    expect_there(0, "", "cp $EXAMPLES/mlp.scrimp . && $SCRIMP data mlp.scrimp -q");
    expect_there(0, "", "$SCRIMP train mlp.scrimp -q --steps 20 --out run");
    double eval = evaluated("$SCRIMP eval mlp.scrimp --checkpoint run --json");
    long length = 0;
    char *images = read_text(in_tmp("data/mnist/t10k-images-idx3-ubyte"), &length);
    char *labels = read_text(in_tmp("data/mnist/t10k-labels-idx1-ubyte"), &length);
    int64_t n = length - 8, right = 0;
    EXPECT(n == 1000, "digits");
    write_npy("digits.npy", "|u1", "1000, 28, 28", images + 16, (size_t)n * 28 * 28);
    expect_there(0, "wrote d.npy: f32[1000,10]",
                 "$SCRIMP predict mlp.scrimp --checkpoint run -i digits.npy -o d.npy");
    float *y = read_npy("d.npy", "(1000, 10,)", (size_t)n * 10);
    for (int64_t i = 0; y && i < n; i++)
        right += largest(y + 10 * i, 10) == labels[8 + i];
    expect_accuracy("digits", right, n, eval);
    for (int i = 0; i < 10; i++)
        write_digit(i, images + 16 + 28 * 28 * (int64_t)i);
    expect_there(0, "wrote p.npy: f32[10,10]",
                 "$SCRIMP predict mlp.scrimp --checkpoint run -i digits -o p.npy");
    float *p = read_npy("p.npy", "(10, 10,)", 100);
    EXPECT(p && y && memcmp(p, y, 100 * sizeof *p) == 0, "pictures are other digits");
    free(p);
    expect_there(1, "error[E524]: --input: ",
                 "$SCRIMP predict mlp.scrimp --checkpoint run -i x=digits/0.png -o p.npy");
    expect_there(
        1, "digits/0.png: ",
        "echo '<html>' > digits/0.png; $SCRIMP predict mlp.scrimp --checkpoint run -i digits -o "
        "p.npy");
    free(y);
    free(images);
    free(labels);
}

static void test_pictures(void)
{
    static const char pictures[] =
        "option N = 6\n"
        "model net(x: f32[N, 3, 16, 16]) { return x |> c: conv(8, 3) |> b: bn() |> relu()\n"
        "  |> flatten() |> fc: linear(4) }\n"
        "train {\n"
        "  batch = imagefolder(\"pictures\", batch = N, size = 16)\n"
        "  loss = cross_entropy(net(batch.image), batch.label)\n"
        "  optim = sgd(lr = 0.01)\n"
        "  steps = 30\n"
        "}\n";
    write_bytes("pictures.scrimp", pictures, sizeof pictures - 1, "", 0);
    expect_there(0, "", "$SCRIMP data pictures.scrimp -q");
    expect_there(0, "", "$SCRIMP train pictures.scrimp -q --out seen");
    double eval = evaluated("$SCRIMP eval pictures.scrimp --checkpoint seen --json");
    Result r = run("cd $TMP && for c in pictures/val/*; do ls $c | wc -l; done");
    int64_t right = 0, n = 0;
    int classes = 0;
    expect_there(0, "wrote p.npy",
                 "$SCRIMP predict pictures.scrimp --checkpoint seen -i pictures/val -o p.npy");
    float *y = read_npy("p.npy", "(32, 4,)", 32 * 4);
    char *at = r.out;
    for (int64_t count; y && (count = strtol(at, &at, 10)) > 0; classes++)
        for (int64_t i = 0; i < count; i++, n++)
            right += largest(y + 4 * n, 4) == classes;
    expect_accuracy("pictures", right, n, eval);
    free(y);
    result_free(&r);
    expect_there(0, "wrote one.npy: f32[1,4]",
                 "f=$(ls pictures/val/*/* | head -1); cp $f one.PNG; "
                 "$SCRIMP predict pictures.scrimp --checkpoint seen -i one.PNG -o one.npy");
    expect_there(0, "", "tail -c 16 one.npy > a; tail -c 512 p.npy | head -c 16 > b; cmp a b");
    /* As text: which picture, and what its class is called, in the folder the run has learned. */
    expect_there(
        0, "",
        "$SCRIMP predict pictures.scrimp --checkpoint seen -i pictures/val > lines && head "
        "-1 lines > heading && echo "
        "'file,predicted,y[class_0],y[class_1],y[class_2],y[class_3]' | cmp - heading");
    expect_there(
        0, "",
        "find pictures/val -type f | LC_ALL=C sort > files && sed 1d lines | cut -d, -f1 | "
        "cmp - files && test $(sed 1d lines | cut -d, -f2 | grep -c '^class_[0-3]$') = 32");
    expect_there(0, "",
                 "$SCRIMP predict pictures.scrimp --checkpoint seen -i one.PNG --json | grep "
                 "'^{\"file\": \"one.PNG\", \"predicted\": \"class_[0-3]\", '");
    expect_there(0, "",
                 "$SCRIMP predict pictures.scrimp --checkpoint seen/model.safetensors -i one.PNG | "
                 "grep '^one.PNG,[0-3],'");
    expect_there(1, "one.PNG: ",
                 "head -c 100 pictures/val/*/*0.??? > one.PNG; "
                 "$SCRIMP predict pictures.scrimp --checkpoint seen -i one.PNG -o one.npy");
}

/* A text is its bytes in windows. */
static void test_text(void)
{
    static const char letters[] = "Which is which, and who is who?";
    int32_t ids[32] = {0};
    for (size_t i = 0; i + 1 < sizeof letters; i++)
        ids[i] = letters[i];
    write_bytes("letters.txt", letters, sizeof letters - 1, "", 0);
    write_npy("letters.npy", "<i4", "4, 8", ids, sizeof ids);
    static const char lm[] =
        "option N = 3, T = 8\n"
        "model lm(ids: i32[N, T]) { return ids |> wte: embedding(256, 8) |> head: linear(256) }\n"
        "train {\n"
        "  batch = text([\"t.txt\"], batch = N, length = T)\n"
        "  loss = cross_entropy(lm(batch.x), batch.y)\n"
        "  optim = sgd(lr = 0.1)\n"
        "  steps = 3\n"
        "}\n";
    write_bytes("lm.scrimp", lm, sizeof lm - 1, "", 0);
    make_text(in_tmp("t.txt"), 3000);
    expect_there(0, "", "$SCRIMP train lm.scrimp -q --out talk");
    expect_there(
        0, "",
        "for i in x=letters.txt ids=letters.npy; do $SCRIMP predict lm.scrimp --checkpoint talk "
        "-i $i -o ${i#*=}.y -q || exit 1; done; cmp letters.txt.y letters.npy.y");
    expect_there(1, "add -o y.npy", "$SCRIMP predict lm.scrimp --checkpoint talk -i x=letters.txt");
    expect_there(1, "error[E524]: --input: talk/model.safetensors has no vocabulary",
                 "sed 's/length = T/length = T, tokens = chars/' lm.scrimp > c.scrimp; $SCRIMP "
                 "predict c.scrimp --checkpoint talk/model.safetensors -i x=letters.txt -o c.npy");
    float *y = read_npy("letters.txt.y", "(4, 8, 256,)", (size_t)4 * 8 * 256);
    free(y);
}

int main(void)
{
    e2e_begin();
    test_sums();
    test_no_batch();
    test_digits();
    test_pictures();
    test_text();
    return e2e_end();
}
