/* SPDX-License-Identifier: GPL-3.0-or-later */
/* npz and safetensors from the command line: made-up data, training, evaluation and predictions are
 * those of .npy files with the same numbers; what does not fit is refused. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_model(const char *name, const char *batch)
{
    FILE *f = fopen(in_tmp(name), "w");
    fprintf(f,
            "option N = 8\nmodel net(x: f32[N, 3, 4, 4]) { return x |> flatten() |> fc: linear(3) "
            "}\ntrain {\n  batch = %s)\n  loss = cross_entropy(net(batch.image * 2), batch.y)\n"
            "  optim = sgd(lr = 0.1)\n  epochs = 2\n  held_out = 25%%\n}\n",
            batch);
    fclose(f);
}

static void write_models(void)
{
    write_model("npy.scrimp", "npy([\"image.npy\", \"y.npy\"], batch = N, image = f32[N, 3, 4, 4], "
                              "y = i32[N]");
    write_model("npz.scrimp", "npz(\"d.npz\", batch = N, image = [\"x_train\", f32[N, 3, 4, 4]], y "
                              "= [\"y_train\", i32[N]]");
    write_model("st.scrimp", "safetensors(\"d.safetensors\", batch = N, image = [\"x.train\", "
                             "f32[N, 3, 4, 4]], y = i32[N]");
}

/* The same numbers in all three: the log is the same, and so are weights and predictions. */
static void test_same_runs(void)
{
    write_models();
    expect_there(0, "wrote d.npz: 512 made-up examples", "$SCRIMP data npz.scrimp");
    expect_there(0, "wrote d.safetensors: 512 made-up examples", "$SCRIMP data st.scrimp");
    expect_there(0, "", "$SCRIMP data npy.scrimp -q");
    expect_there(0, "note: d.npz is there already, so nothing is written",
                 "$SCRIMP data npz.scrimp");
    expect_there(0, "note: d.safetensors is there already, so nothing is written",
                 "$SCRIMP data st.scrimp");
    expect_there(
        0, "",
        "for k in npy npz st; do $SCRIMP train $k.scrimp --out $k -q --log $k.log || exit 1; sed "
        "-i 's/, \"seconds.*//' $k.log; $SCRIMP eval $k.scrimp --checkpoint $k > $k.eval || exit "
        "1; done; for k in npz st; do cmp npy.log $k.log && cmp npy.eval $k.eval && cmp "
        "npy/model.safetensors $k/model.safetensors || exit 1; done; grep -q val_loss npz.log");
    expect_there(0, "wrote npz.npy: f32[512,3]",
                 "$SCRIMP predict npz.scrimp --checkpoint npz -i image=d.npz -o npz.npy");
    expect_there(0, "wrote st.npy: f32[512,3]",
                 "$SCRIMP predict st.scrimp --checkpoint st -i image=d.safetensors -o st.npy");
    expect_there(
        0, "",
        "$SCRIMP predict npy.scrimp --checkpoint npy -i image.npy -o npy.npy -q && cmp npy.npy "
        "npz.npy && cmp npy.npy st.npy");
    expect_there(
        0, "wrote x.npy: f32[512,3]", /* an input of the model alone is called as it is there */
        "sed 's/x.train/x/' st.scrimp > x.scrimp && $SCRIMP data x.scrimp --data x.safetensors && "
        "$SCRIMP predict x.scrimp --checkpoint st -i x=x.safetensors -o x.npy");
}

/* A run goes on with another place of the data, and not with another array. */
static void test_resume(void)
{
    expect_there(0, "",
                 "mkdir there && cp d.npz there/other.npz && "
                 "$SCRIMP train npz.scrimp --out npz --resume --data there/other.npz -q");
    expect_there(1, "error[E518]",
                 "sed 's/\"x_train\"/\"x_test\"/' npz.scrimp > t.scrimp && "
                 "$SCRIMP data t.scrimp --data t.npz -q && "
                 "$SCRIMP train t.scrimp --out npz --resume --data t.npz -q");
}

static void test_held_path(void)
{
    expect_there(0, "",
                 "sed 's/25%/\"there\\/other.npz\"/' npz.scrimp > held.scrimp && "
                 "$SCRIMP train held.scrimp -q --steps 2");
}

static void test_refusals(void)
{
    expect_there(
        1, "error[E508]: d.npz: there is no array x_test, but ",
        "sed 's/\"x_train\"/\"x_test\"/' npz.scrimp > t.scrimp && $SCRIMP train t.scrimp -q");
    expect_there(
        1, "the data's image is f32[512,3,4,4] (512 examples), the model's batch declares",
        "sed 's/\"x_train\", f32.N, 3, 4, 4./\"x_train\", f32[N, 4, 4, 3]/; s/batch.image/"
        "reshape(batch.image, [N, 3, 4, 4])/' npz.scrimp > t.scrimp && $SCRIMP train t.scrimp -q");
    expect_there(1, "image = f32[N, 784], or image = [\"x_train\", f32[N, 784]]",
                 "sed 's/\"x_train\", f32.N, 3, 4, 4./\"x_train\", 7/' npz.scrimp > t.scrimp && "
                 "$SCRIMP check t.scrimp");
    expect_there(1, "error[E524]: --input: d.npz: there is no array x,",
                 "$SCRIMP predict npz.scrimp --checkpoint npz -i x=d.npz -o x.npy");
    expect_there(1, "not a .npz file",
                 "head -c 3000 d.npz > cut.npz && $SCRIMP train npz.scrimp -q --data cut.npz");
    expect_there(1, "cut.safetensors: ",
                 "head -c 3000 d.safetensors > cut.safetensors && "
                 "$SCRIMP train st.scrimp -q --data cut.safetensors");
    expect_there(1, "--input: cut.npz: not a .npz file",
                 "$SCRIMP predict npz.scrimp --checkpoint npz -i image=cut.npz -o x.npy");
}

int main(void)
{
    e2e_begin();
    test_same_runs();
    test_resume();
    test_held_path();
    test_refusals();
    return e2e_end();
}
