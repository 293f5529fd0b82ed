/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Data that do not fit the model: refused with what was declared, what is there, and what to do. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_in_folder(int code, const char *said, const char *command)
{
    Result r = run("cd $TMP && %s", command);
    char detail[2048];
    snprintf(detail, sizeof detail, "%s\nexit code %d, expected %d: '%s'\n%.1200s", command, r.code,
             code, said ? said : "", r.err);
    EXPECT(r.code == code && (!said || strstr(r.err, said)), detail);
    result_free(&r);
}

static FILE *create(const char *name)
{
    char path[500];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    FILE *f = fopen(path, "wb");
    EXPECT(f, path);
    return f;
}

/* n bytes 0, 1, 0, 1 ... follow the header: as f32 they are tiny numbers. */
static void write_npy(const char *name, const char *descr, bool fortran, const char *shape, int n)
{
    char header[200];
    int len =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n",
                 descr, fortran ? "True" : "False", shape);
    FILE *f = create(name);
    fwrite("\x93NUMPY\1\0", 1, 8, f);
    fputc(len & 255, f);
    fputc(len >> 8, f);
    fputs(header, f);
    for (int i = 0; i < n; i++)
        fputc(i % 8 == 0, f);
    fclose(f);
}

static void write_model(const char *name, const char *batch, const char *field)
{
    FILE *f = create(name);
    fprintf(f,
            "model m(x: f32[4, 3, 8, 8]) { return x |> flatten() |> l: linear(2) }\n"
            "train {\n  batch = %s\n  loss = cross_entropy(m(batch.%s), batch.y)\n"
            "  optim = sgd(lr = 0.1)\n  steps = 2\n}\n",
            batch, field);
    fclose(f);
}

static const char fields[] =
    "npy([\"x.npy\", \"y.npy\"], batch = 4, x = f32[4, 3, 8, 8], y = i32[4])";

/* As many bytes are not the same layout. */
static void test_layout(void)
{
    write_model("m.scrimp", fields, "x");
    write_npy("y.npy", "<i4", false, "(16,)", 64);
    write_npy("x.npy", "<f4", false, "(16, 3, 8, 8)", 16 * 192 * 4);
    expect_in_folder(0, NULL, "$SCRIMP train m.scrimp -q");
    write_npy("x.npy", "<f4", false, "(16, 8, 8, 3)", 16 * 192 * 4);
    expect_in_folder(1,
                     "the data's x is f32[16,8,8,3] (16 examples), the model's batch declares "
                     "f32[4,3,8,8]",
                     "$SCRIMP train m.scrimp -q");
    expect_in_folder(1, "ascontiguousarray(a.transpose(0, 3, 1, 2))", "$SCRIMP train m.scrimp -q");
    expect_in_folder(1, "declare x = f32[4,8,8,3]", "$SCRIMP train m.scrimp -q");
    write_npy("x.npy", "<f4", false, "(16, 192)", 16 * 192 * 4);
    expect_in_folder(1, "ascontiguousarray(a.reshape(len(a), 3, 8, 8))",
                     "$SCRIMP train m.scrimp -q");
    write_npy("x.npy", "|u1", false, "(16, 3, 8, 8)", 16 * 192);
    expect_in_folder(1, "ascontiguousarray(a.astype(\"float32\"))", "$SCRIMP train m.scrimp -q");
    write_npy("x.npy", "<f4", false, "(16, 3, 8, 9)", 16 * 216 * 4);
    expect_in_folder(1, "declare x = f32[4,3,8,9]", "$SCRIMP train m.scrimp -q");
    /* The micro-batches of a step are no dimension of the data. */
    write_npy("x.npy", "<f4", false, "(16, 3, 8, 8)", 16 * 192 * 4);
    expect_in_folder(0, NULL,
                     "sed 's/steps = 2/accumulate = 2\\nsteps = 2/' m.scrimp > a.scrimp && "
                     "$SCRIMP train a.scrimp -q");
}

/* The same of other sources: 14 x 56 pixels are not 28 x 28. */
static void test_images(void)
{
    make_digits(64);
    FILE *f = create("d.scrimp");
    fputs("model m(x: f32[4, 784]) { return x |> l: linear(10) }\n"
          "train {\n  batch = mnist(\"idx\", batch = 4)\n"
          "  loss = cross_entropy(m(batch.image |> to_f32(scale = 1/255) |> reshape([4, 784])), "
          "batch.label)\n  optim = sgd(lr = 0.1)\n  steps = 2\n}\n",
          f);
    fclose(f);
    expect_in_folder(0, NULL, "$SCRIMP train d.scrimp -q");
    expect_in_folder(
        1,
        "the data's image is u8[64,14,56] (64 examples), the model's batch declares "
        "u8[4,28,28]",
        "f=idx/train-images-idx3-ubyte; { head -c 8 $f; "
        "printf '\\000\\000\\000\\016\\000\\000\\000\\070'; tail -c +17 $f; } > new && "
        "mv new $f && $SCRIMP train d.scrimp -q");
}

/* What numpy can write and is not read: what to type there. */
static void test_numpy_help(void)
{
    static const struct {
        const char *descr;
        bool fortran;
        const char *said;
    } cases[] = {
        {"<f4", true, "Fortran order; in Python: numpy.ascontiguousarray(a)"},
        {">f2", false,
         "element type '>f2': <f2, <f4, <f8, <i4, <i8, |u1 and |b1 are read; in Python: "
         "a.astype(\"float32\")"},
        {">i4", false, "a.astype(\"int32\")"},
        {"<u2", false, "a.astype(\"int32\")"},
        {"|i1", false, "a.astype(\"int32\")"},
        {"<c8", false, "a.astype(\"float32\")"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_npy("x.npy", cases[i].descr, cases[i].fortran, "(16, 3, 8, 8)", 16 * 192 * 4);
        expect_in_folder(1, cases[i].said, "$SCRIMP train m.scrimp -q");
    }
    write_npy("x.npy", "<f4", false, "(16, 3, 8, 8)", 16 * 192 * 4);
    write_npy("y.npy", "<i4", false, "(15,)", 60);
    expect_in_folder(1, "y.npy: 15 examples, but x.npy has 16", "$SCRIMP train m.scrimp -q");
    expect_in_folder(1, "a[:15]", "$SCRIMP train m.scrimp -q");
}

/* --data DIR is where the named files lie: others there are none of the model's. */
static void test_named_files(void)
{
    expect_in_folder(0, NULL, "mkdir -p there && mv x.npy y.npy there/");
    write_npy("there/y.npy", "<i4", false, "(16,)", 64);
    write_npy("there/other.npy", "<f2", true, "(3,)", 6);
    expect_in_folder(0, NULL, "$SCRIMP train m.scrimp -q --data there");
    expect_in_folder(0, NULL,
                     "sed 's#x.npy#some/x.npy#' m.scrimp > s.scrimp && "
                     "$SCRIMP train s.scrimp -q --data there");
    expect_in_folder(1, "there/y.npy: no such file",
                     "mv there/y.npy . && "
                     "$SCRIMP train m.scrimp -q --data there");
    expect_in_folder(0, NULL,
                     "$SCRIMP train m.scrimp -q --data \"$(printf 'there/x.npy\\ny.npy')\"");
}

/* Paths of data are relative to where scrimp is started, wherever the model lies. */
static void test_relative(void)
{
    expect_in_folder(1, "paths of data are looked up from the current folder, ",
                     "mkdir -p models && cp m.scrimp models/ && mv there/x.npy . && cd models && "
                     "$SCRIMP train m.scrimp -q");
    expect_in_folder(0, NULL, "$SCRIMP train models/m.scrimp -q");
    /* Where a file was found, the folder is not what is wrong. */
    expect_in_folder(
        0, NULL,
        "cp x.npy good.npy && head -c 100 good.npy > x.npy && ! $SCRIMP train m.scrimp "
        "-q 2> said && grep E508 said && ! grep 'looked up' said");
    expect_in_folder(0, NULL, "mv good.npy x.npy");
}

int main(void)
{
    e2e_begin();
    test_layout();
    test_images();
    test_numpy_help();
    test_named_files();
    test_relative();
    return e2e_end();
}
