/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attention by cuDNN, simulated, in whole training steps: losses near those of --exact, every plan
 * has the same bits in an arena of the planned bytes, and where it cannot be, scrimp's own kernels
 * compute it. */
#include "e2e.h"
#include "equal_runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Causal attention of a sequence to itself, and of it to another one, of odd lengths. */
static const char model[] =
    "option layers = 1 \"of both kinds\"\n"
    "option precision = \"bf16\" in [\"f32\", \"bf16\"] \"see train\"\n"
    "block Attention(x, memory, causal) {\n"
    "  q = x |> q: linear(32)\n"
    "  k, v = memory |> kv: linear(64) |> split(2, axis = -1)\n"
    "  q, k, v = [rearrange(t, \"b t (h d) -> b h t d\", h = 2) for t in [q, k, v]]\n"
    "  a = einsum(\"b h t d, b h s d -> b h t s\", q, k) * 0.25\n"
    "  a = causal_mask(a) if causal else a\n"
    "  a = a |> softmax(axis = -1)\n"
    "  return einsum(\"b h t s, b h s d -> b h t d\", a, v)\n"
    "      |> rearrange(\"b h t d -> b t (h d)\") |> o: linear(32)\n"
    "}\n"
    "model net(x: f32[6, 21, 32], m: f32[6, 13, 32]) {\n"
    "  for i in 0..layers {\n"
    "    x = x + (x |> a[i]: layernorm() |> self[i]: Attention(x, causal = true))\n"
    "    x = x + (x |> b[i]: layernorm() |> other[i]: Attention(m, causal = false))\n"
    "  }\n"
    "  return x |> mean(axis = 1) |> fc: linear(4)\n"
    "}\n"
    "train {\n"
    "  batch = synthetic(x = f32[6, 21, 32], m = f32[6, 13, 32], label = i32[6])\n"
    "  loss = cross_entropy(net(batch.x, batch.m), batch.label)\n"
    "  optim = sgd(lr = 0.1, momentum = 0.9)\n"
    "  precision = precision\n  epochs = 5\n"
    "}\n";

static void write_model(void)
{
    FILE *f = fopen(in_tmp("net.scrimp"), "w");
    fputs(model, f);
    fclose(f);
}

#define TRAIN "$SCRIMP train -q $TMP/net.scrimp --seed 3 --steps 4 --device cuda "
#define DUMP  "$SCRIMP dump --stage=plan --no-loc $TMP/net.scrimp "

/* With a gradient of scrimp's own, too, and where a library that is too old for attention computes
 * the products. */
static void test_losses(void)
{
    double exact = trained_loss(TRAIN "--exact", "exact"),
           fast = trained_loss(TRAIN "--fast", "fast");
    double own = trained_loss("SCRIMP_SIM_CUDNN=91500 " TRAIN "--fast", "own");
    char text[128];
    snprintf(text, sizeof text, "%.9g exact, %.9g fast, %.9g with own kernels", exact, fast, own);
    EXPECT(fabs(fast - exact) <= 2e-2 * exact && fabs(own - exact) <= 2e-2 * exact, text);
    expect_run(1, NULL, "cmp $TMP/fast/model.safetensors $TMP/own/model.safetensors");
}

/* How often a command prints something. */
static void expect_count(int count, const char *what, const char *command)
{
    Result r = run("%s", command);
    int n = 0;
    for (const char *at = r.out; (at = strstr(at, what)); at++)
        n++;
    char text[128];
    snprintf(text, sizeof text, "%d instead of %d: %s", n, count, what);
    EXPECT(r.code == 0 && n == count, text);
    result_free(&r);
}

/* Everything lies by rows, as models have it; keys, values and their gradients lie in the tensors
 * that they are pieces of. */
static void test_plan(void)
{
    const char *fast = SIMULATED DUMP "--device cuda --budget 100% | grep ' = attention'";
    expect_count(4, "library=\"cudnn\"", fast);
    expect_count(2, "by_rows=\"qkvo\"", fast);
    expect_count(2, "by_rows=\"qkvogQKV\"", fast);
    const char *moves = SIMULATED DUMP "--device cuda --budget 100% | "
                                       "grep -E ' = (transpose|slice|subview|concat) '";
    expect_count(6, " = ", moves);
    expect_count(4, " = subview", moves);
    expect_count(2, "joined=[0,1]", moves);
    expect_count(0, "library", SIMULATED DUMP "--device cuda --exact | grep ' = attention'");
    expect_count(0, "library",
                 SIMULATED DUMP "--device cuda -D precision=f32 | grep ' = attention'");
    expect_count(0, "library",
                 SIMULATED "SCRIMP_SIM_CUDNN=91500 " DUMP "--device cuda | grep ' = attention'");
}

static void test_verify(void)
{
    expect_said(0, "identical: 2 steps",
                SIMULATED "$SCRIMP verify $TMP/net.scrimp --device cuda --fast --budget min "
                          "--steps 2");
    expect_said(0, "identical: 2 steps",
                SIMULATED "$SCRIMP verify $TMP/net.scrimp -D layers=4 --device cuda --fast "
                          "--budget 50% --steps 2");
}

static void test_arena(void)
{
    json_t *plan = run_json(0, SIMULATED "$SCRIMP plan $TMP/net.scrimp --device cuda --json");
    json_t *bench = run_json(0, SIMULATED "$SCRIMP bench $TMP/net.scrimp --device cuda --steps 1 "
                                          "--json");
    double planned = plan ? json_get_number(plan, "arena_bytes") : 0;
    EXPECT(planned > 0 &&
               json_get_number(json_object_get(bench, "device"), "arena_bytes") == planned,
           "the arena is not the plan's");
    json_decref(plan);
    json_decref(bench);
}

/* Two attentions of different lengths, forward and gradient, for two architectures. */
static void test_export(void)
{
    expect_ok(SIMULATED "$SCRIMP compile $TMP/net.scrimp --device sm_80,sm_90 --fast -o $TMP/two");
    expect_count(4, "engine 7", "cd $TMP/two/sm_80 && cat *.plan");
    expect_count(2, "engine 74\n", "cd $TMP/two/sm_90 && cat *.plan");
}

int main(void)
{
    e2e_begin();
    write_model();
    test_losses();
    test_plan();
    test_verify();
    test_arena();
    test_export();
    return e2e_end();
}
