/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Several losses with optimizers of their own in a step: the numbers of PyTorch's loops, the same
 * bits under a budget, after a run is continued and on the simulated device. */
#include "e2e.h"
#include "equal_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_PATH "$SCRIMP_SOURCE/tests/e2e/adversarial.scrimp"
#define TRAIN     "$SCRIMP train -q " FILE_PATH

/* tests/peers/adversarial.py --numbers: d_loss and g_loss of steps 1, 5 and 10, and of an
 * evaluation then, which has the running statistics of every use of a batch norm in its order. */
typedef struct Expected {
    const char *order;
    double loss[8];
} Expected;
static const Expected expected[] = {
    {"turn",
     {1.8210694, 0.5959239, 1.4684810, 0.5652967, 1.3739025, 0.6792002, 1.2164827, 0.7544997}},
    {"together",
     {1.8210694, 0.5968067, 1.4722683, 0.5281337, 1.3759393, 0.6804066, 1.2626273, 0.7964490}},
    {"critic",
     {-0.0526508, -0.9754954, -0.0935647, -1.1938925, -0.1250704, -1.3802010, 1.4928225,
      -1.6780254}},
    {"before",
     {1.8210694, 0.5968067, 1.4722683, 0.5281337, 1.3759393, 0.6804066, 1.2644940, 0.7986884}},
};
enum { N_ORDERS = sizeof expected / sizeof *expected };

static void expect_near(const Expected *e, int i, double loss)
{
    char text[80];
    snprintf(text, sizeof text, "%s, %d: %.7f instead of %.7f", e->order, i, loss, e->loss[i]);
    EXPECT(fabs(loss - e->loss[i]) < 5e-5, text);
}

static void test_numbers(const Expected *e)
{
    static const char *const name[] = {"d_loss", "g_loss"};
    static const int step[] = {1, 5, 10};
    for (int k = 0; k < 3; k++) {
        Result r = run(TRAIN " -D order=%s --steps %d --overwrite --out $TMP/o --log $TMP/o.log",
                       e->order, step[k]);
        EXPECT(r.code == 0, r.err);
        result_free(&r);
        for (int n = 0; n < 2; n++)
            expect_near(e, 2 * k + n, last_in_log(in_tmp("o.log"), name[n]));
        EXPECT(last_in_log(in_tmp("o.log"), "grad_norm.d_loss") > 0, "logged");
        EXPECT(last_in_log(in_tmp("o.log"), "grad_norm.g_loss") > 0, "logged");
    }
    json_t *o =
        run_json(0, "$SCRIMP eval " FILE_PATH " -D order=%s --checkpoint $TMP/o --json", e->order);
    for (int n = 0; o && n < 2; n++)
        expect_near(e, 6 + n, json_get_number(o, name[n]));
    json_decref(o);
}

static void test_same_bits(const char *order)
{
    setenv("ORDER", order, 1);
    expect_ok("$SCRIMP verify " FILE_PATH " -D order=$ORDER --budget min");
    expect_ok("$SCRIMP verify " FILE_PATH " -D order=$ORDER --budget 70%");
    expect_ok(TRAIN " -D order=$ORDER --overwrite --out $TMP/whole --log $TMP/whole.log");
    expect_ok(TRAIN " -D order=$ORDER --overwrite --steps 4 --out $TMP/parts --log $TMP/parts.log");
    expect_ok(TRAIN " -D order=$ORDER --resume --out $TMP/parts --log $TMP/parts.log");
    expect_equal_runs("whole", "parts");
    expect_ok(SIMULATED TRAIN
              " -D order=$ORDER --device cuda --exact --overwrite --out $TMP/d --log $TMP/d.log");
    expect_equal_steps("whole", "d");
}

static void write_file(const char *name, const char *train)
{
    FILE *f = fopen(in_tmp(name), "w");
    if (!f)
        abort();
    fprintf(f,
            "option N = 8, acc = 1\n"
            "model a(x: f32[N, 6]) { return x |> fc1: linear(8) |> tanh() |> fc2: linear(4) }\n"
            "model b(x: f32[N, 4]) { return x |> fc1: linear(8) |> tanh() |> fc2: linear(1) }\n"
            "train {\n  batch = synthetic(x = f32[N, 6])\n"
            "%s  steps = 3\n  held_out = 16\n}\n",
            train);
    fclose(f);
}

/* Micro-batches are those of every loss, the second one's on the weights that the first has moved
 * for all of them: the mean over two halves is the mean over the whole. */
static void test_accumulate(void)
{
    write_file("acc.scrimp",
               "  y = netA: a(batch.x)\n"
               "  first = mean((shared netB: b(y)) ** 2)\n"
               "  minimize(first, sgd(lr = 0.1, momentum = 0.9), params = \"netB.*\")\n"
               "  second = mean(shared netB: b(y))\n"
               "  minimize(second, adamw(lr = 0.01), params = \"netA.*\")\n"
               "  accumulate = acc\n  ema = 0.5\n");
    expect_ok("$SCRIMP train -q $TMP/acc.scrimp -D N=16 --out $TMP/one --log $TMP/one.log");
    expect_ok("$SCRIMP train -q $TMP/acc.scrimp -D acc=2 --out $TMP/two --log $TMP/two.log");
    expect_near_tensors("one", "two", WEIGHTS, 1e-5);
    expect_near_tensors("one", "two", OPTIMIZER, 1e-4);
    EXPECT(fabs(last_in_log(in_tmp("one.log"), "second") -
                last_in_log(in_tmp("two.log"), "second")) < 1e-5,
           "second");
    expect_ok("$SCRIMP verify $TMP/acc.scrimp -D acc=3 --budget min");
}

/* Added up, the gradients of two halves are twice those of the whole. */
static void test_accumulate_sum(void)
{
    write_file("sum.scrimp", "  rate = 0.2 / acc; by = \"sum\" if acc > 1 else \"mean\"\n"
                             "  loss = mean(netB: b(netA: a(batch.x)) ** 2)\n"
                             "  optim = sgd(lr = rate)\n"
                             "  accumulate = acc\n  accumulate_by = by\n");
    expect_ok("$SCRIMP train -q $TMP/sum.scrimp -D N=16 --out $TMP/s1 --log $TMP/s1.log");
    expect_ok("$SCRIMP train -q $TMP/sum.scrimp -D acc=2 --out $TMP/s2 --log $TMP/s2.log");
    expect_near_tensors("s1", "s2", WEIGHTS, 1e-5);
    double whole = last_in_log(in_tmp("s1.log"), "grad_norm");
    double sum = last_in_log(in_tmp("s2.log"), "grad_norm");
    EXPECT(whole > 0 && fabs(sum / whole - 2) < 1e-4, "the norm of the sum");
    EXPECT(fabs(last_in_log(in_tmp("s1.log"), "loss") - last_in_log(in_tmp("s2.log"), "loss")) <
               1e-5,
           "the mean of the losses");
}

/* Every optimizer several times in a step, whose state goes on from update to update: as often as
 * steps of one update each. */
static void test_repeated(void)
{
    static const char *const optimizer[] = {
        "sgd(lr = 0.05, momentum = 0.9, weight_decay = 0.1)",
        "adam(lr = 0.01, clip = 0.1)",
        "lamb(lr = 0.01)",
        "rmsprop(lr = 0.01, momentum = 0.5, centered = true)",
        "adagrad(lr = 0.05, lr_decay = 0.1)",
        "lion(lr = 0.003)",
        "adafactor(lr = 0.01)",
    };
    for (size_t i = 0; i < sizeof optimizer / sizeof *optimizer; i++) {
        char text[600];
        snprintf(text, sizeof text,
                 "  for k in 0..acc {\n"
                 "    y = shared netA: a(sin(reshape(cast(iota(N * 6), f32), [N, 6])))\n"
                 "    fit = mean(y ** 2) + 0 * mean(batch.x)\n"
                 "    minimize(fit, %s)\n  }\n  ema = 0\n",
                 optimizer[i]);
        write_file("r.scrimp", text);
        expect_ok("$SCRIMP train -q $TMP/r.scrimp -D acc=1 --steps 6 --overwrite --out $TMP/six");
        expect_ok("sed -i 's/steps = 3/steps = 2/' $TMP/r.scrimp");
        expect_ok("$SCRIMP train -q $TMP/r.scrimp -D acc=3 --overwrite --out $TMP/two");
        expect_near_tensors("six", "two", WEIGHTS, 1e-6);
    }
}

/* Each loss has its rate by its own schedule, in every form of the log, the first loss's first. */
static void test_rates(const char *order, const char *columns, const char *progress, double of_d,
                       double of_g)
{
    setenv("ORDER", order, 1);
    Result r = run("$SCRIMP train " FILE_PATH " -D order=$ORDER --overwrite --out $TMP/o "
                   "--log $TMP/rates.csv --tensorboard $TMP/rates && head -n 1 $TMP/rates.csv && "
                   "cat $TMP/rates/* | grep -ac lr.g_loss");
    EXPECT(r.code == 0 && strstr(r.out, columns), r.out);
    EXPECT(strstr(r.err, progress), r.err);
    result_free(&r);
    expect_ok(TRAIN " -D order=$ORDER --overwrite --out $TMP/o --log $TMP/rates.log");
    EXPECT(fabs(last_in_log(in_tmp("rates.log"), "lr.d_loss") - of_d) < 1e-12, "lr.d_loss");
    EXPECT(fabs(last_in_log(in_tmp("rates.log"), "lr.g_loss") - of_g) < 1e-12, "lr.g_loss");
    expect_ok("rm -r $TMP/rates");
}

int main(void)
{
    e2e_begin();
    for (int i = 0; i < N_ORDERS; i++) {
        test_numbers(&expected[i]);
        test_same_bits(expected[i].order);
    }
    test_rates("turn", ",lr.d_loss,lr.g_loss,seconds", "  lr 0.02/0.01  ", 0.02, 0.01);
    test_rates("before", ",lr.g_loss,lr.d_loss,seconds", "  lr 0.01/0.02  ", 0.02, 0.01);
    test_rates("critic", ",lr.d_loss,lr.g_loss,seconds", "  lr 0.002/0.001  ", 0.002, 0.001);
    test_accumulate();
    test_accumulate_sum();
    test_repeated();
    return e2e_end();
}
