/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs that end early, start wrong or are given odd input. */
#include "e2e.h"

#include <stdio.h>
#include <string.h>

static void write_model(const char *length)
{
    char path[400];
    snprintf(path, sizeof path, "%s/m.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fprintf(f,
            "option N = 8 \"batch size\"\n"
            "option width = 16 in [16, 32] \"hidden units\"\n"
            "model m(x: f32[N, 12]) {\n"
            "  return x |> a: linear(width) |> relu() |> b: linear(4)\n"
            "}\n"
            "train {\n"
            "  batch = synthetic(x = f32[N, 12], label = i32[N])\n"
            "  logits = m(batch.x)\n"
            "  loss  = cross_entropy(logits, batch.label)\n"
            "  optim = adamw(lr = cosine(1e-2, warmup = 3))\n"
            "  %s\n"
            "}\n",
            length);
    fclose(f);
}

/* A run that --steps ends and --resume continues is the uninterrupted one: the cosine spans the
 * model's steps either way. */
static void test_steps_and_schedule(void)
{
    write_model("steps = 20");
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --steps 7 --out $TMP/parts -q");
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --out $TMP/parts --resume -q");
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --out $TMP/whole -q");
    expect_said(0, NULL, "cmp $TMP/whole/model.safetensors $TMP/parts/model.safetensors");
}

/* What older builds wrote as 1e+03 and 1e+02 is what it was: the run goes on, and nothing is said
 * to have changed. */
static void test_numbers_in_other_form(void)
{
    write_model("steps = 20\n  held_out = 1000");
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --steps 2 --out $TMP/old -q");
    expect_said(0, NULL,
                "sed -i 's|\"held_out\": \"1000\"|\"held_out\": \"1e+03\"|; "
                "s|\"steps\": \"20\"|\"steps\": \"2e+01\"|' $TMP/old/trainer.json && "
                "grep -q 1e+03 $TMP/old/trainer.json && grep -q 2e+01 $TMP/old/trainer.json");
    expect_said(0, NULL,
                "cp -r $TMP/old $TMP/other && "
                "$SCRIMP train $TMP/m.scrimp --out $TMP/old --resume --steps 4 -q 2> $TMP/said && "
                "! grep had $TMP/said");
    expect_said(1, "held_out = 1.001e+03 (now 1000)",
                "sed -i 's|\"1e+03\"|\"1.001e+03\"|' $TMP/other/trainer.json && "
                "$SCRIMP train $TMP/m.scrimp --out $TMP/other --resume");
}

/* `metrics` are in the log's lines, and with val_ in those of evaluations. */
static void test_metrics(void)
{
    write_model("metrics = [accuracy(logits, batch.label)]\n  steps = 4\n  eval_every = 4\n  "
                "held_out = 16");
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --log $TMP/log -q --out $TMP/metrics");
    expect_said(0, NULL, "grep -q '\"step\": 3, .*\"accuracy\": [0-9]' $TMP/log");
    expect_said(0, NULL, "grep -q '\"val_loss\": .*\"val_accuracy\": [0-9]' $TMP/log");
    json_t *o = run_json(0, "$SCRIMP eval $TMP/m.scrimp --checkpoint $TMP/metrics --json");
    EXPECT(json_is_number(json_object_get(o, "accuracy")), "eval has the metric");
    json_decref(o);
}

/* What would only fail after the first checkpoint is refused before training. */
static void test_bad_starts(void)
{
    write_model("steps = 20");
    expect_said(1, "holds no run", "$SCRIMP train $TMP/m.scrimp --out $TMP/none --resume");
    expect_said(1, "--out", "$SCRIMP train $TMP/m.scrimp --resume");
    expect_said(1, "a file has that name", "$SCRIMP train $TMP/m.scrimp --out $TMP/m.scrimp");
    expect_said(0, NULL, "test ! -e $TMP/none");
    write_model("epochs = 1e30");
    expect_said(1, "E516", "$SCRIMP train $TMP/m.scrimp");
    write_model("steps = 3_000_000_000");
    expect_said(1, "E516", "$SCRIMP train $TMP/m.scrimp");
}

/* A budget that cannot be met: exit code 3, the operation that forces it, and JSON. */
static void test_infeasible(void)
{
    write_model("steps = 20");
    expect_said(3, "forced by", "$SCRIMP verify $TMP/m.scrimp --budget 1KB");
    json_t *o = run_json(3, "$SCRIMP verify $TMP/m.scrimp --budget 1KB --json");
    EXPECT(json_is_null(json_object_get(o, "identical")), "nothing was compared");
    EXPECT(json_get_number(o, "min_feasible_bytes") > 1000, "the smallest budget");
    json_decref(o);
    /* A comparison fails when no solver meets the budget, not when one does not. */
    expect_said(0, "infeasible", "$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 60% --compare");
    expect_said(3, "forced by", "$SCRIMP plan $EXAMPLES/convnet.scrimp --budget 1% --compare");
}

static void test_arguments(void)
{
    write_model("steps = 20");
    expect_said(0, "-D width=16", "$SCRIMP train $TMP/m.scrimp --help");
    expect_said(0, "hidden units: int in [16, 32]", "$SCRIMP check --help $TMP/m.scrimp");
    expect_said(1, "not a number", "$SCRIMP train $TMP/m.scrimp --threads 4294967297");
    expect_said(1, "no pass is called", "$SCRIMP dump $TMP/m.scrimp --dump-after=fuze");
    expect_said(0, "# after fuse", "$SCRIMP dump $TMP/m.scrimp --stage=grad --dump-after=fuse");
    expect_said(0, "multiply-adds", "$SCRIMP summary - < $TMP/m.scrimp");
    expect_said(1, "-:1:8: error[E011]", "echo 'model m(' | $SCRIMP check -");
    expect_said(1, "E512", "$SCRIMP eval $TMP/m.scrimp");
    expect_said(1, "standard output", "$SCRIMP summary $TMP/m.scrimp > /dev/full");
    expect_said(1, "E510", "$SCRIMP train $TMP/m.scrimp --steps 1 -q --log /dev/full");
}

/* Files of the cache that lost their contents are made anew. */
static void test_damaged_cache(void)
{
    write_model("steps = 1");
    static const char *const damage[] = {"*.so", "*.o", "*"};
    expect_said(0, NULL, "$SCRIMP train $TMP/m.scrimp --cache $TMP/cache -q");
    for (int i = 0; i < 3; i++) {
        Result r = run("for f in $TMP/cache/%s; do : > $f; done; %s$SCRIMP train $TMP/m.scrimp "
                       "--cache $TMP/cache -q",
                       damage[i], i == 1 ? "rm $TMP/cache/*.so; " : "");
        EXPECT(r.code == 0, r.err);
        result_free(&r);
    }
    expect_said(0, NULL,
                "env -u HOME -u SCRIMP_CACHE -u XDG_CACHE_HOME $SCRIMP train $TMP/m.scrimp -q");
}

/* A run that is to go on although it diverges says so once, and a run that keeps nothing says so
 * before it starts. */
static void test_notes_of_training(void)
{
    write_model("steps = 5");
    Result r = run("sed 's/adamw(.*/sgd(lr = 1e38)/' $TMP/m.scrimp > $TMP/wild.scrimp && "
                   "$SCRIMP train $TMP/wild.scrimp -q --on-nan warn");
    const char *first = strstr(r.err, "the loss is ");
    EXPECT(r.code == 0 && first && !strstr(first + 1, "the loss is "), r.err);
    EXPECT(strstr(r.err, "weights are not kept") != NULL, r.err);
    result_free(&r);
    r = run("$SCRIMP train $TMP/m.scrimp -q --out $TMP/kept");
    EXPECT(!strstr(r.err, "the loss is ") && !strstr(r.err, "not kept"), r.err);
    result_free(&r);
}

/* What can be said of a model alone, and of a parameter that is not used. */
static void test_unused_parts(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/alone.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs("model m(x: f32[4, 6]) {\n  y = x |> b: linear(8)\n  return x |> a: linear(5)\n}\n", f);
    fclose(f);
    expect_said(0, "output logits", "$SCRIMP dump $TMP/alone.scrimp");
    expect_said(1, "E211", "$SCRIMP dump $TMP/alone.scrimp --stage=grad");
    expect_said(0, NULL,
                "(cat $TMP/alone.scrimp; echo 'train { batch = synthetic(x = f32[4, 6], "
                "label = i32[4]); loss = cross_entropy(m(batch.x), batch.label); "
                "optim = sgd(lr = 0.1); steps = 1 }') > $TMP/unused.scrimp");
    expect_said(0, "1", "$SCRIMP plan $TMP/unused.scrimp --sweep 3 2>&1 | grep -c 'not trained'");
}

/* A model of token numbers: its prompt and text are numbers, too. */
static void test_token_numbers(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/lm.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs("option N = 4, T = 8, V = 300\n"
          "model lm(ids: i32[N, T]) { return ids |> wte: embedding(V, 8) |> head: linear(V) }\n"
          "train {\n"
          "  batch = synthetic(x = i32[N, T], y = i32[N, T])\n"
          "  loss  = cross_entropy(lm(batch.x), batch.y)\n"
          "  optim = adamw(lr = 1e-2)\n"
          "  steps = 2\n"
          "}\n",
          f);
    fclose(f);
    expect_said(0, NULL, "$SCRIMP train $TMP/lm.scrimp --out $TMP/lm -q");
    expect_said(0, "7 290 ",
                "$SCRIMP generate $TMP/lm.scrimp --checkpoint $TMP/lm --prompt '7 290' "
                "--tokens 3");
    expect_said(1, "below 300",
                "$SCRIMP generate $TMP/lm.scrimp --checkpoint $TMP/lm --prompt '7 300'");
    expect_said(1, "token numbers",
                "$SCRIMP generate $TMP/lm.scrimp --checkpoint $TMP/lm --prompt 'the cat'");
}

/* What is given to --data has a place in the model, and what does not fit is told as one example.
 */
static void test_data_given(void)
{
    write_model("steps = 2");
    expect_said(1, "--data pictures: the model's batch is synthetic",
                "$SCRIMP train $TMP/m.scrimp --data pictures");
    expect_said(1, "imagefolder(", "$SCRIMP verify $TMP/m.scrimp --data pictures");
    /* u1[2,3] and i4[2] of NumPy, as x.npy and y.npy */
    expect_said(0, NULL,
                "{ printf '\\223NUMPY\\1\\0\\166\\0'; printf '%-117s\n' \"{'descr': '|u1', "
                "'fortran_order': False, 'shape': (2, 3), }\"; printf 'abcdef'; } > $TMP/x.npy");
    expect_said(0, NULL,
                "sed 's/synthetic(/npy(\"x.npy\", batch = N, /' $TMP/m.scrimp > $TMP/npy.scrimp");
    expect_said(1, "the data's x is u8[2,3] (2 examples), the model's batch declares f32[1,12]",
                "$SCRIMP train $TMP/npy.scrimp -D N=1 --data $TMP/x.npy");
    expect_said(
        1, "give the model 5 classes",
        "printf 'abcde' > $TMP/few.txt && for i in 1 2 3 4 5 6; do cat $TMP/few.txt $TMP/few.txt "
        "> $TMP/more.txt; mv $TMP/more.txt $TMP/few.txt; done; "
        "$SCRIMP train $EXAMPLES/chargpt.scrimp -D N=1 -D T=4 -D L=1 -D V=4 --data "
        "$TMP/few.txt");
    expect_said(1, "has no field 'x', but z",
                "mv $TMP/x.npy $TMP/z.npy && "
                "$SCRIMP train $TMP/npy.scrimp -D N=1 --data $TMP/z.npy");
}

/* Characters keep their tokens: another text's are not taken for those the run was trained on. */
static void test_other_characters(void)
{
    expect_said(
        0, NULL,
        "for i in 1 2 3 4 5 6 7 8; do echo 'the quick brown fox jumps over it'; done > $TMP/a.txt");
    expect_said(0, NULL, "tr -d q < $TMP/a.txt > $TMP/b.txt");
    static const char model[] =
        "option N = 2\nmodel m(x: i32[N, 8]) { return x |> e: embedding(40, 4) |> o: linear(40) }\n"
        "train {\n batch = text(\"a.txt\", batch = N, length = 8, tokens = chars)\n"
        " loss = cross_entropy(m(batch.x), batch.y)\n optim = sgd(lr = 0.1)\n"
        " held_out = 10%\n steps = 2\n}\n";
    char path[400];
    snprintf(path, sizeof path, "%s/chars.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs(model, f);
    fclose(f);
    expect_said(0, NULL, "$SCRIMP train $TMP/chars.scrimp --data $TMP/a.txt --out $TMP/c -q");
    expect_said(0, NULL, "$SCRIMP eval $TMP/chars.scrimp --data $TMP/a.txt --checkpoint $TMP/c");
    expect_said(1, "E517", "$SCRIMP eval $TMP/chars.scrimp --data $TMP/b.txt --checkpoint $TMP/c");
    expect_said(
        1, "E517",
        "$SCRIMP train $TMP/chars.scrimp --data $TMP/b.txt --out $TMP/c --resume --steps 4");
}

/* A metric of numbers below 2^-126, made large again. */
static void test_denormals(void)
{
    FILE *f = fopen(in_tmp("small.scrimp"), "w");
    if (!f)
        abort();
    fputs("model m(x: f32[8, 4]) { return x |> fc: linear(4) }\n"
          "train {\n"
          "  batch = synthetic(x = f32[8, 4])\n"
          "  y = m(batch.x)\n"
          "  loss = mean(y * y)\n"
          "  loud = stop_gradient(mean(y * y * 1e-30 * 1e-10)) * 1e30 * 1e10\n"
          "  metrics = loud\n"
          "  optim = sgd(lr = 0)\n"
          "  steps = 2\n"
          "}\n",
          f);
    fclose(f);
    expect_ok("$SCRIMP train $TMP/small.scrimp -q --steps 1 --out $TMP/zeros --log $TMP/zeros.log");
    expect_ok("$SCRIMP train $TMP/small.scrimp -q --keep-denormals --log $TMP/kept.log");
    EXPECT(last_in_log(in_tmp("zeros.log"), "loud") == 0, "denormal numbers are zeros");
    EXPECT(last_in_log(in_tmp("kept.log"), "loud") > 1e-3, "denormal numbers are kept");
    expect_run(1, "keep_denormals",
               "$SCRIMP train $TMP/small.scrimp --keep-denormals --resume --out $TMP/zeros");
    expect_run(1, "--keep-denormals is for the processor",
               "$SCRIMP train $TMP/small.scrimp --keep-denormals --device cuda");
}

int main(void)
{
    e2e_begin();
    test_steps_and_schedule();
    test_data_given();
    test_numbers_in_other_form();
    test_metrics();
    test_denormals();
    test_bad_starts();
    test_infeasible();
    test_damaged_cache();
    test_notes_of_training();
    test_unused_parts();
    test_token_numbers();
    test_arguments();
    test_other_characters();
    return e2e_end();
}
