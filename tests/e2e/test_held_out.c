/* SPDX-License-Identifier: GPL-3.0-or-later */
/* held_out = PATH: a run with other files held out is the run in which they are the end of one
 * file; what does not fit is refused. */
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_tmp(name), "w");
    fputs(text, f);
    fclose(f);
}

/* The same lines but for the seconds: training and evaluation. */
static void expect_same_runs(const char *a, const char *b)
{
    Result r = run("cd $TMP && for f in %s %s; do sed 's/, \"seconds.*//' $f > $f.s; done; "
                   "cmp %s.s %s.s && grep -c val_loss %s.s",
                   a, b, a, b, a);
    EXPECT(r.code == 0 && atoi(r.out) == 3, r.out);
    result_free(&r);
}

/* ---- tables: what is learned of columns is learned of the rows to train on ---- */

enum { ROWS = 90, TRAINED = 70 };

static void write_rows(const char *name, int from, int to)
{
    static const char *const kinds[] = {"red", "green", "blue"};
    FILE *f = fopen(in_tmp(name), "w");
    fputs("size,kind,label\n", f);
    for (int i = from; i < to; i++)
        fprintf(f, "%.3f,%s,%s\n", 3 * sin(1.7 * i) + 0.1 * i, kinds[i % 3], i % 2 ? "yes" : "no");
    fclose(f);
}

#define TABLE(NAME, HELD)                                                                          \
    "model net(x: f32[10, 1], kind: f32[10, 3]) { return concat([x, kind], axis = 1) |> fc: "      \
    "linear(2) }\n"                                                                                \
    "train {\n  batch = csv(\"" NAME "\", batch = 10, shuffle = false, x = columns([\"size\"]),\n" \
    "    kind = columns([\"kind\"], as = one_hot, classes = [3]), label = columns(\"label\", as "  \
    "= "                                                                                           \
    "category))\n  loss = cross_entropy(net(batch.x, batch.kind), batch.label)\n"                  \
    "  optim = sgd(lr = 0.1)\n  steps = 12\n  eval_every = 4\n  held_out = " HELD "\n}\n"

static void test_tables(void)
{
    write_rows("all.csv", 0, ROWS);
    write_rows("some.csv", 0, TRAINED);
    write_rows("rest.csv", TRAINED, ROWS);
    write_text("all.scrimp", TABLE("all.csv", "20"));
    write_text("two.scrimp", TABLE("some.csv", "\"rest.csv\""));
    expect_there(0, "", "$SCRIMP train all.scrimp -q --log all.log --out a");
    expect_there(0, "70 examples to train on, 20 held out (other files)",
                 "$SCRIMP train two.scrimp --log two.log --out b");
    expect_same_runs("all.log", "two.log");
    expect_there(0, "",
                 "$SCRIMP eval all.scrimp --checkpoint a --json > a.json && "
                 "$SCRIMP eval two.scrimp --checkpoint b --json > b.json && cmp a.json b.json");
    expect_there(0, "",
                 "$SCRIMP dump two.scrimp --stage=ir > ir.txt && grep -q 'held_path' ir.txt && "
                 "$SCRIMP opt ir.txt -p dce > again.txt && grep -q 'held_path' again.txt");
    expect_there(1, "column label: the value is missing; say columns(..., missing = drop), which",
                 "echo 1,red, >> rest.csv; $SCRIMP train two.scrimp");
    expect_there(1, "held_out: ", "rm rest.csv; $SCRIMP train two.scrimp");
}

/* ---- arrays: whole labels, other shapes ---- */

static void write_array(const char *name, const char *descr, const char *shape, int from, int to,
                        int width)
{
    char head[128];
    FILE *f = fopen(in_tmp(name), "wb");
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\0\x76\0", 10);
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': (%d%s), }", descr, to - from,
                     shape);
    head[10 + n] = ' ';
    head[127] = '\n';
    fwrite(head, 1, sizeof head, f);
    for (int i = from; i < to; i++)
        for (int k = 0; k < width; k++) {
            float x = (float)sin(i + 0.7 * k);
            int32_t y = i % 4;
            fwrite(descr[1] == 'f' ? (const void *)&x : (const void *)&y, 4, 1, f);
        }
    fclose(f);
}

#define ARRAYS(FOLDER, HELD)                                                                       \
    "model net(x: f32[10, 6]) { return x |> fc: linear(4) }\n"                                     \
    "train {\n  batch = npy([\"" FOLDER "/x.npy\", \"" FOLDER                                      \
    "/y.npy\"], batch = 10, x = f32[10, "                                                          \
    "6], y = i32[10])\n  loss = cross_entropy(net(batch.x), batch.y)\n"                            \
    "  optim = sgd(lr = 0.1)\n  steps = 12\n  eval_every = 4\n  held_out = " HELD "\n}\n"

static void test_arrays(void)
{
    expect_there(0, "", "mkdir all some rest wide");
    write_array("all/x.npy", "<f4", ", 6", 0, ROWS, 6);
    write_array("all/y.npy", "<i4", ",", 0, ROWS, 1);
    write_array("some/x.npy", "<f4", ", 6", 0, TRAINED, 6);
    write_array("some/y.npy", "<i4", ",", 0, TRAINED, 1);
    write_array("rest/x.npy", "<f4", ", 6", TRAINED, ROWS, 6);
    write_array("rest/y.npy", "<i4", ",", TRAINED, ROWS, 1);
    write_array("wide/x.npy", "<f4", ", 5", TRAINED, ROWS, 5);
    write_array("wide/y.npy", "<i4", ",", TRAINED, ROWS, 1);
    write_text("all.scrimp", ARRAYS("all", "20"));
    write_text("two.scrimp", ARRAYS("some", "[\"rest/x.npy\", \"rest/y.npy\"]"));
    write_text("wide.scrimp", ARRAYS("some", "[\"wide/x.npy\", \"wide/y.npy\"]"));
    write_text("none.scrimp", ARRAYS("some", "[\"wide/y.npy\"]"));
    write_text("number.scrimp", ARRAYS("some", "[3]"));
    expect_there(0, "", "$SCRIMP train all.scrimp -q --log all.log");
    expect_there(0, "", "$SCRIMP train two.scrimp -q --log two.log");
    expect_same_runs("all.log", "two.log");
    expect_there(1, "held_out: an example has the field x, f32[5], those to train on x, f32[6]",
                 "$SCRIMP train wide.scrimp");
    expect_there(1, "held_out: 1 fields, those to train on have 2", "$SCRIMP train none.scrimp");
    expect_there(1, "or the path of others", "$SCRIMP check number.scrimp");
}

/* ---- texts: tokens are those of the text to train on ---- */

#define TEXT(TOKENS, HELD)                                                                         \
    "model lm(ids: i32[4, 8]) { return ids |> wte: embedding(256, 8) |> head: linear(256) }\n"     \
    "train {\n  batch = text([\"t.txt\"], batch = 4, length = 8, tokens = " TOKENS ")\n"           \
    "  loss = cross_entropy(lm(batch.x), batch.y)\n  optim = sgd(lr = 0.1)\n  steps = 4\n"         \
    "  held_out = " HELD "\n}\n"

static void test_texts(void)
{
    make_text(in_tmp("t.txt"), 2000);
    expect_there(0, "", "tail -c 300 t.txt > v.txt; { cat v.txt; echo @; } > at.txt");
    write_text("chars.scrimp", TEXT("chars", "\"v.txt\""));
    write_text("at.scrimp", TEXT("chars", "\"at.txt\""));
    write_text("bytes.scrimp", TEXT("bytes", "\"at.txt\""));
    expect_there(0, "tokens to train on, 300 held out (other files)", "$SCRIMP train chars.scrimp");
    expect_there(0, "302 held out", "$SCRIMP train bytes.scrimp");
    expect_there(1, "'@' at byte 300 is not in the vocabulary", "$SCRIMP train at.scrimp");
}

/* ---- without labels: whole batches alone are evaluated, and that is said ---- */

#define NUMBERS                                                                                    \
    "option N = 10\noption held = 25\n"                                                            \
    "model net(x: f32[N, 1]) { return x |> fc: linear(1) }\n"                                      \
    "train {\n  batch = csv(\"all.csv\", batch = N, x = columns([\"size\"]), t = "                 \
    "columns([\"size\"]))\n  loss = mse(net(batch.x), batch.t)\n  optim = sgd(lr = 0.01)\n"        \
    "  steps = 2\n  held_out = held\n}\n"

static void test_whole_batches(void)
{
    write_text("numbers.scrimp", NUMBERS);
    expect_there(0,
                 "note: evaluations leave out the last 5 of 25 held-out examples: without integer "
                 "labels (a field `label` or `y`) evaluations read whole batches only, here of 10",
                 "$SCRIMP train numbers.scrimp --out numbers");
    expect_there(0, "", "! $SCRIMP train numbers.scrimp -D held=20 2>&1 | grep 'leave out'");
    expect_there(0, "leave out the last 5 of 25",
                 "$SCRIMP eval numbers.scrimp --checkpoint numbers");
    expect_there(0,
                 "warning: nothing is evaluated: 7 examples are held out, fewer than a batch of 10",
                 "$SCRIMP train numbers.scrimp -D held=7");
    expect_there(1, "error[E513]: --keep-best: 7 examples are held out, fewer than a batch of 10",
                 "$SCRIMP train numbers.scrimp -D held=7 --out best --keep-best");
    expect_there(1, "error[E513]: 7 examples are held out, fewer than a batch of 10",
                 "$SCRIMP eval numbers.scrimp -D held=7 --checkpoint numbers");
    expect_there(1, "help: hold out 10 examples or more, or make the batch smaller",
                 "$SCRIMP eval numbers.scrimp -D held=7 --checkpoint numbers");
    expect_there(1, "error[E513]: nothing is held out",
                 "$SCRIMP eval numbers.scrimp -D held=0 --checkpoint numbers");
}

/* ---- the others ---- */

static void test_others(void)
{
    expect_there(0, "",
                 "cp $EXAMPLES/mlp.scrimp . && sed -i 's/epochs *= .*/epochs = 1\\n  held_out = "
                 "\"other\"/' mlp.scrimp");
    expect_there(0, "wrote other: ", "$SCRIMP data mlp.scrimp");
    expect_there(0, "4000 examples to train on, 1000 held out (other files)",
                 "$SCRIMP train mlp.scrimp --steps 2");
    expect_there(
        1, "put them into its folder `val`",
        "sed 's/held_out.*/held_out = \"there\"/; s/augment = false/augment = true/' "
        "$EXAMPLES/dcgan.scrimp | sed 's/epochs = 25/epochs = 1\\n  held_out = \"there\"/' > "
        "dcgan.scrimp; mkdir -p there; $SCRIMP data dcgan.scrimp --data pictures -q; "
        "$SCRIMP train dcgan.scrimp --data pictures -D N=2 -D ngf=4 -D ndf=4");
    expect_there(
        1, "synthetic reads no files",
        "printf 'model m(x: f32[4, 3]) { return x |> f: linear(2) }\\ntrain {\\n batch = "
        "synthetic(x = f32[4, 3], y = i32[4])\\n loss = cross_entropy(m(batch.x), batch.y)\\n "
        "optim = sgd(lr = 0.1)\\n steps = 2\\n held_out = \"x\"\\n}\\n' > s.scrimp; "
        "$SCRIMP train s.scrimp");
}

int main(void)
{
    e2e_begin();
    test_tables();
    test_arrays();
    test_texts();
    test_whole_batches();
    test_others();
    return e2e_end();
}
