/* SPDX-License-Identifier: GPL-3.0-or-later */
/* --device cuda as it is by default, on the simulated device with simulated libraries: losses near
 * those of --exact, the same bits in every run and under every budget, in an arena of the planned
 * bytes; precision = tf32; what is said where a library is missing or fails; compiled steps. */
#include "e2e.h"
#include "equal_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAIN   "$SCRIMP train -q $EXAMPLES/mlp.scrimp -D N=20 --data $TMP/idx --seed 3 "
#define TOO_OLD "SCRIMP_SIM_CUBLASLT=110000 "

/* --- losses --- */

/* A model with its precision as an option, and small sizes. */
typedef struct Model {
    const char *name, *options, *precision;
    double tolerance; /* of every loss, as a part of it */
    double weights;   /* of every weight tensor's norm; 0: AdamW makes much of little gradients */
} Model;

static const Model models[] = {
    {"mlp", "-D N=20 --data $TMP/idx", "f32", 1e-4, 1e-4},
    {"mlp", "-D N=20 --data $TMP/idx", "tf32", 5e-3, 5e-3},
    {"chargpt", "-D N=2 -D T=8 -D L=1 -D C=16 --data $TMP/t.txt", "f32", 1e-4, 0},
    {"chargpt", "-D N=2 -D T=8 -D L=1 -D C=16 --data $TMP/t.txt --no-attention", "f32", 1e-4, 0},
    {"chargpt", "-D N=2 -D T=8 -D L=1 -D C=16 --data $TMP/t.txt", "bf16", 1e-2, 0},
    /* its rows of logits get five classes more */
    {"gpt2",
     "-D N=2 -D T=8 -D V=1027 -D C=16 -D heads=2 -D layers=1 --budget 100% "
     "--data $TMP/t.bin",
     "tf32", 5e-3, 0},
    {"gpt2",
     "-D N=2 -D T=8 -D V=1027 -D C=16 -D heads=2 -D layers=1 --budget 100% "
     "--data $TMP/t.bin",
     "bf16", 1e-2, 0},
};

static void make_model(const char *name)
{
    Result r = run("sed -e '1i option precision = \"f32\" in [\"f32\", \"tf32\", \"bf16\"]' "
                   "-e '/held_out/d' -e 's/^train {/train {\\n  precision = precision/' "
                   "$EXAMPLES/%s.scrimp > $TMP/%s.scrimp",
                   name, name);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void train(const Model *m, const char *how, const char *out)
{
    Result r = run(SIMULATED "$SCRIMP train -q $TMP/%s.scrimp %s -D precision=%s --seed 3 "
                             "--steps 4 --device cuda %s --out $TMP/%s --log $TMP/%s.log",
                   m->name, m->options, m->precision, how, out, out);
    EXPECT(r.code == 0 && !strstr(r.err, "note:"), r.err);
    result_free(&r);
}

static void test_losses(const Model *m)
{
    train(m, "--exact", "exact");
    train(m, "--fast", "fast");
    expect_near_losses("exact", "fast", 4, m->tolerance);
    if (m->weights > 0)
        expect_near_tensors("exact", "fast", WEIGHTS, m->weights);
    expect_ok("! cmp -s $TMP/exact/model.safetensors $TMP/fast/model.safetensors");
    train(m, "", "again");
    expect_equal_steps("fast", "again");
    expect_ok("cd $TMP && rm -r exact fast again exact.log fast.log again.log");
}

/* TF32 is for libraries: scrimp's own kernels compute in f32, on the host as on a device. */
static void test_tf32(void)
{
    static const char *const how[] = {"-D precision=f32", "-D precision=tf32",
                                      "-D precision=tf32 --device cuda --exact"};
    for (int i = 0; i < 3; i++) {
        Result r =
            run(SIMULATED "$SCRIMP train -q $TMP/mlp.scrimp -D N=20 --data $TMP/idx --seed 3 "
                          "--steps 2 %s --out $TMP/p%d --log $TMP/p%d.log",
                how[i], i, i);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
    }
    expect_equal_steps("p0", "p1");
    expect_equal_steps("p0", "p2");
    expect_run(
        1, "`precision` is f32, tf32 or bf16",
        "sed 's/precision = precision/precision = f16/' $TMP/mlp.scrimp > $TMP/f16.scrimp && "
        "$SCRIMP check $TMP/f16.scrimp");
}

/* --- plans --- */

static void test_verify(void)
{
    static const char *const budgets[] = {"50%", "min"};
    for (int i = 0; i < 2; i++) {
        Result r = run(SIMULATED "$SCRIMP verify $TMP/chargpt.scrimp -D N=2 -D T=32 -D L=4 -D C=16 "
                                 "--device cuda --budget %s --steps 3",
                       budgets[i]);
        EXPECT(r.code == 0 && strstr(r.out, "identical: 3 steps"), *r.out ? r.out : r.err);
        result_free(&r);
    }
}

/* Workspaces of libraries are in the plan, which is the same for every verb. */
static void test_arena(void)
{
    json_t *plan = run_json(0, SIMULATED "$SCRIMP plan $EXAMPLES/mlp.scrimp -D N=20 --device cuda "
                                         "--json");
    json_t *exact = run_json(0, SIMULATED "$SCRIMP plan $EXAMPLES/mlp.scrimp -D N=20 --device cuda "
                                          "--exact --json");
    json_t *bench =
        run_json(0, SIMULATED "$SCRIMP bench $EXAMPLES/mlp.scrimp -D N=20 --device cuda "
                              "--steps 1 --json");
    double planned = plan ? json_get_number(plan, "arena_bytes") : 0;
    EXPECT(planned > 0 && planned != json_get_number(exact, "arena_bytes"), "no workspace");
    EXPECT(json_get_number(json_object_get(bench, "device"), "arena_bytes") == planned,
           "the arena is not the plan's");
    expect_run(3, "or --exact, which needs no workspace of a library",
               SIMULATED TRAIN "--steps 1 --device cuda --budget 4000000");
    json_decref(plan);
    json_decref(exact);
    json_decref(bench);
}

static void test_dumps(void)
{
    expect_said(0, ", by cublaslt", SIMULATED "$SCRIMP dump --stage=cuda $EXAMPLES/mlp.scrimp");
    expect_said(0, "library=\"cublaslt\"",
                SIMULATED "$SCRIMP dump --stage=plan --device sm_80 $EXAMPLES/mlp.scrimp");
    expect_said(0, "f32[1032,16]",
                SIMULATED
                "$SCRIMP dump --stage=plan --device cuda $TMP/gpt2.scrimp -D N=2 -D T=8 "
                "-D V=1027 -D C=16 -D heads=2 -D layers=1 --budget 100% -D precision=tf32");
    expect_ok("! " SIMULATED "$SCRIMP dump --stage=cuda --exact $EXAMPLES/mlp.scrimp | "
              "grep cublaslt");
}

/* --- what goes wrong --- */

static void test_missing(void)
{
    expect_run(0, "note: the cuBLASLt library is too old",
               SIMULATED TOO_OLD TRAIN "--steps 2 --device cuda --out $TMP/without");
    expect_ok(SIMULATED TRAIN "--steps 2 --device cuda --exact --out $TMP/exact");
    expect_equal_runs("without", "exact");
    expect_run(1, "without --fast, scrimp's own kernels are used",
               SIMULATED TOO_OLD TRAIN "--steps 2 --device cuda --fast --out $TMP/none");
    Result r = run(SIMULATED TOO_OLD TRAIN "--steps 1 --device cuda --exact");
    EXPECT(r.code == 0 && !strstr(r.err, "cuBLASLt"), r.err);
    result_free(&r);
}

static void test_errors(void)
{
    expect_run(1, "with --exact: cuBLASLt: looking for an algorithm",
               SIMULATED "SCRIMP_SIM_CUBLASLT=none " TRAIN "--steps 1 --device cuda");
    /* Full devices are told by the driver: libraries say all kinds of things. */
    expect_run(3, "starting it: the driver may be too old for it (status 1): out of memory: beside",
               SIMULATED "SCRIMP_SIM_FULL=cublasLtCreate " TRAIN "--steps 1 --device cuda");
    expect_run(3, "out of memory: beside an arena of",
               SIMULATED "SCRIMP_SIM_FULL=cublasLtMatmul " TRAIN "--steps 1 --device cuda");
    expect_run(3, "out of memory: beside an arena of",
               SIMULATED "SCRIMP_SIM_FULL=cudnnCreate $SCRIMP bench $EXAMPLES/convnet.scrimp "
                         "-D N=2 -D width=4 --steps 1 --device cuda");
    expect_run(1, "those of CUDA devices", TRAIN "--steps 1 --fast");
    expect_run(1, "--exact and --fast exclude each other",
               TRAIN "--steps 1 --device cuda --fast --exact");
    expect_ok(TRAIN "--steps 1 --exact");
}

/* --- compiled steps --- */

#define HERE    "cd $TMP && " SIMULATED
#define COMPILE "$SCRIMP compile $EXAMPLES/mlp.scrimp -D N=20 --device cuda -o step "
#define BUILD                                                                                      \
    "gcc -O2 -std=c11 -Wall -Wextra -Werror -DSTEPS=4 -Istep $EXAMPLES/aot/train_mlp.c "           \
    "step/step.so -lm -o program"

static double last_printed_loss(const char *file)
{
    char *text = read_text(in_tmp(file), NULL);
    const char *last = NULL;
    for (const char *p = text; p && (p = strstr(p, "loss ")); p++)
        last = p + strlen("loss ");
    double loss = last ? strtod(last, NULL) : (double)NAN;
    free(text);
    return loss;
}

static void test_compiled(void)
{
    expect_ok(HERE "sh -c '" COMPILE "--exact && " BUILD " && ./program exact.w > exact.txt'");
    expect_ok(HERE "sh -c '" COMPILE "&& " BUILD " && ./program fast.w > fast.txt'");
    expect_ok("cd $TMP && grep -q cublaslt step/manifest.json && ls step/sm_*/*.plan > o && "
              "test $(ls step/sm_*/ | wc -l) = $(grep -c '\"file\"' step/manifest.json)");
    double exact = last_printed_loss("exact.txt"), fast = last_printed_loss("fast.txt");
    EXPECT(fabs(exact - fast) <= 1e-4 * exact, "the loss of a compiled step is another");
    expect_ok("cd $TMP && ! cmp -s exact.w fast.w");
    if (!getenv("SCRIMP_CUDA_REAL"))
        expect_run(1, "the cuBLASLt library is damaged: it has no cublasLtGetVersion",
                   "cd $TMP && mkdir -p only && cp $SCRIMP_BUILD/cuda-sim/libcuda.so.1 only && "
                   "echo | gcc -shared -x c - -o only/libcublasLt.so && "
                   "SCRIMP_CUDA_PATH=only ./program w");
    expect_run(1, ".plan is not the file that was compiled",
               HERE "sh -c 'for f in step/sm_*/*.plan; do sed -i s/m/M/ $f; done; ./program w'");
}

int main(void)
{
    e2e_begin();
    make_digits(200);
    make_text(in_tmp("t.txt"), 4000);
    make_model("mlp");
    make_model("chargpt");
    make_tokens(in_tmp("t.bin"), 2000);
    make_model("gpt2");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        test_losses(&models[i]);
    test_tf32();
    test_verify();
    test_arena();
    test_dumps();
    if (!getenv("SCRIMP_CUDA_REAL")) { /* what only simulated libraries do on demand */
        test_missing();
        test_errors();
    }
    if (run("command -v gcc").code == 0)
        test_compiled();
    return e2e_end();
}
