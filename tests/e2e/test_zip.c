/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zip(...) of data sources: the run of one file with all arrays, from made-up data to predictions;
 * sources that do not go together are refused where they stand. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

static void write_model(const char *name, const char *sources)
{
    FILE *f = fopen(in_tmp(name), "w");
    fprintf(f,
            "option N = 8\nmodel net(x: f32[N, 6], z: f32[N, 4]) {\n"
            "  return concat([x, z], axis = 1) |> fc: linear(3)\n}\ntrain {\n%s\n"
            "  loss = cross_entropy(net(batch.x, batch.z), batch.y)\n"
            "  optim = sgd(lr = 0.1)\n  epochs = 2\n  held_out = 25%%\n}\n",
            sources);
    fclose(f);
}

static void test_same_runs(void)
{
    write_model("one.scrimp", "  batch = npz(\"d.npz\", batch = N, x = f32[N, 6], z = f32[N, 4], y "
                              "= i32[N])");
    write_model("zip.scrimp",
                "  a = npy([\"part/x.npy\"], batch = N, x = f32[N, 6])\n"
                "  b = safetensors(\"part/z.safetensors\", batch = N, z = [\"zz\", f32[N, 4]])\n"
                "  batch = zip(a, b, npz(\"part/y.npz\", batch = N, y = i32[N]))");
    expect_there(0, "wrote d.npz: 512 made-up examples", "$SCRIMP data one.scrimp");
    expect_there(0, "wrote part/x.npy, ...: 512 made-up examples", "$SCRIMP data zip.scrimp");
    expect_there(0, "data: zip: 384 examples to train on, 128 held out",
                 "$SCRIMP train zip.scrimp --out zip --log zip.log");
    expect_there(0, "",
                 "$SCRIMP train one.scrimp --out one --log one.log -q && "
                 "for k in one zip; do sed -i 's/, \"seconds.*//' $k.log; $SCRIMP eval $k.scrimp "
                 "--checkpoint $k > $k.eval; done; cmp one.log zip.log && cmp one.eval zip.eval && "
                 "cmp one/model.safetensors zip/model.safetensors && grep -q val_loss zip.log");
    expect_there(
        0, "", /* the name of the array is that of the field's source */
        "$SCRIMP predict zip.scrimp --checkpoint zip -i x=part/x.npy -i z=part/z.safetensors -o "
        "zip.npy -q && $SCRIMP predict one.scrimp --checkpoint one -i x=d.npz -i z=d.npz -o "
        "one.npy -q && cmp one.npy zip.npy");
    expect_there(
        0, "", /* through the text of the IR */
        "$SCRIMP dump zip.scrimp --stage=ir > a.ir && grep -q 'parts=\\[{data=\"npy\"' a.ir && "
        "$SCRIMP opt a.ir --passes= > b.ir && grep -o 'parts=.*]' a.ir > a && grep -o "
        "'parts=.*]' b.ir > b && cmp a b");
}

/* The parts may lie elsewhere; they may not be others. */
static void test_resume(void)
{
    expect_there(0, "note: the run in zip had path",
                 "mv part moved && sed 's/part/moved/' zip.scrimp > moved.scrimp && "
                 "$SCRIMP train moved.scrimp --out zip --resume -q");
    expect_there(
        1, "error[E518]",
        "sed 's/\"zz\"/\"other\"/' moved.scrimp > other.scrimp && $SCRIMP data other.scrimp -q "
        "2>/dev/null; sed -i 's/moved.z.safe/o.safe/' other.scrimp && sed "
        "'s/moved/again/' other.scrimp > o.scrimp && $SCRIMP data o.scrimp -q && $SCRIMP train "
        "o.scrimp --out zip --resume -q");
    expect_there(1, "--data d.npz: the model's batch is zip(...)",
                 "$SCRIMP train moved.scrimp --data d.npz -q");
    expect_there(1, "part/x.npy: no such file", "$SCRIMP train zip.scrimp -q");
}

static void refused(const char *sources, const char *what)
{
    write_model("bad.scrimp", sources);
    expect_there(1, what, "$SCRIMP check bad.scrimp");
}

#define XZ "npz(\"d.npz\", batch = N, x = f32[N, 6], z = f32[N, 4])"
#define Y  "npz(\"d.npz\", batch = N, y = i32[N])"

static void test_refusals(void)
{
    refused("a = " XZ "\nbatch = " Y, "error[E211]: a train section has one data source");
    refused("batch = zip(" XZ ", npz(\"d.npz\", batch = N, y = i32[N], x = f32[N, 6]))",
            "two sources have a field `x`");
    refused("batch = zip(" XZ ", npz(\"d.npz\", batch = 4, y = i32[4]))",
            "zip wants sources of equal batches, got 8 and 4");
    refused("batch = zip(" XZ ", text(\"d.npz\", batch = N, length = 4))",
            "text cannot be zipped: it has windows");
    refused("batch = zip(" XZ ", imagefolder(\"d\", batch = N))", "imagefolder cannot be zipped");
    refused("batch = zip(" XZ ", audiofolder(\"d\", batch = N, length = 9))",
            "audiofolder cannot be zipped: the order");
    refused("batch = zip(" XZ ", synthetic(y = i32[N]))", "synthetic cannot be zipped");
    refused("batch = zip(" XZ ", csv(\"d\", batch = N, y = columns(\"a\", as = integer)))",
            "csv cannot be zipped: its rows are mixed: add shuffle = false");
    refused("batch = zip(" XZ ", csv(\"d\", batch = N, shuffle = false, y = columns(\"a\", as = "
            "integer, missing = drop)))",
            "csv cannot be zipped: rows with missing values");
    refused("batch = zip(" XZ ", zip(" Y "))", "zip cannot be zipped");
    refused("batch = zip(" XZ ", [1, 2])", "zip wants data sources only, got a list");
    refused("batch = zip(" XZ ", " Y ", npz(\"d.npz\", batch = N, a = i32[N], b = i32[N], c = "
            "i32[N], d = i32[N], e = i32[N], f = i32[N]))",
            "a batch has at most 8 fields");
    refused("batch = zip(" XZ ", " Y ")\nw = batch.yy", "did you mean `.y`?");
    expect_there(1, "`held_out` is a path, and zip reads several sources",
                 "sed 's/25%/\"d.npz\"/' zip.scrimp > bad.scrimp && $SCRIMP check bad.scrimp");
    write_model("two.scrimp", "batch = zip(" XZ ", npz(\"few.npz\", batch = N, y = i32[N]))");
    expect_there(
        1, "npz (the first) has 384 examples to train on and 128 held out, npz (number 2) 600",
        "sed 's/d.npz/few.npz/' one.scrimp > few.scrimp && $SCRIMP data few.scrimp -q -D N=100 && "
        "$SCRIMP train two.scrimp -q");
    expect_there(1, "zip with mnist: write a model that reads it alone",
                 "sed 's/npz(.part.y.npz\", batch = N, y = i32.N./mnist(\"idx\", batch = N/; "
                 "s/batch.y/batch.label/' zip.scrimp > m.scrimp && $SCRIMP data m.scrimp");
}

int main(void)
{
    e2e_begin();
    test_same_runs();
    test_resume();
    test_refusals();
    return e2e_end();
}
