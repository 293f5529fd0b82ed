/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A network on raw sound, on made-up data: it learns, an evaluation during training is that of the
 * saved weights, a run that was interrupted has the bits of one that was not, and predict hears
 * what eval does. */
#include "e2e.h"
#include "equal_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char model[] =
    "import \"std/convolutions\"\n"
    "option N = 20\n"
    "model m(x: f32[N, 1, 2000]) {\n"
    "  return x |> c1: conv1d(16, 80, stride = 16) |> bn1: bn() |> relu() |> mean(axis = 2) |> fc: "
    "linear(10)\n"
    "}\n"
    "train {\n"
    "  batch   = audiofolder(\"sounds\", batch = N, length = 2000, rate = 8000)\n"
    "  logits  = m(batch.audio)\n"
    "  loss    = cross_entropy(logits, batch.label)\n"
    "  metrics = accuracy(logits, batch.label)\n"
    "  optim   = adam(lr = 0.02)\n"
    "  steps   = 300\n"
    "}\n";

static void expect_trained(const char *options)
{
    Result r = run("cd $TMP && $SCRIMP train m.scrimp -q %s", options);
    EXPECT(r.code == 0, r.err);
    result_free(&r);
}

static void test_same_bits(void)
{
    expect_trained("--threads 1 --out whole --log whole.csv");
    expect_trained("--threads 2 --steps 7 --out parts");
    expect_trained("--threads 2 --resume --out parts");
    expect_equal_runs("whole", "parts");
}

/* The weights of conv1d are reshaped, in place: training's evaluation reads them where they are. */
static double test_evaluation(void)
{
    json_t *o = run_json(0, "cd $TMP && $SCRIMP eval m.scrimp --checkpoint whole --json");
    double loss = json_get_number(o, "loss"), accuracy = json_get_number(o, "accuracy");
    Result r = run("cd $TMP && awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "
                   "\"val_loss\") k = i } END { printf \"%%.9g\", $k }' whole.csv");
    double seen = atof(r.out);
    char detail[200];
    snprintf(detail, sizeof detail, "held-out loss %g in training, %g of what was saved", seen,
             loss);
    EXPECT(fabs(seen - loss) <= 1e-6 * loss, detail);
    EXPECT(accuracy > 0.8 && loss < 1, "the made-up sounds are learned");
    result_free(&r);
    json_decref(o);
    return accuracy;
}

/* The class of each sound of val, sorted by path: eight of a class. */
static void test_predict(double accuracy)
{
    Result r = run("cd $TMP && $SCRIMP predict m.scrimp --checkpoint whole -i sounds/val -o y.npy "
                   "&& tail -c 3200 y.npy | od -An -v -t f4 -w40 | awk '{ b = 1; for (i = 2; i <= "
                   "10; i++) if ($i > $b) b = i; right += b - 1 == int((NR - 1) / 8) } END { "
                   "print right / NR, NR }'");
    char want[64];
    snprintf(want, sizeof want, "%g 80", accuracy);
    EXPECT(r.code == 0 && strncmp(r.out, want, strlen(want)) == 0, r.out);
    result_free(&r);
    r = run("cd $TMP && cp sounds/val/class_3/00001.wav one.wav && head -c 30 one.wav > cut.wav && "
            "$SCRIMP predict m.scrimp --checkpoint whole -i one.wav -o one.npy && "
            "$SCRIMP predict m.scrimp --checkpoint whole -i cut.wav -o cut.npy");
    EXPECT(r.code == 1 && strstr(r.err, "wrote one.npy: f32[1,10]") && strstr(r.err, "cut.wav: "),
           r.err);
    result_free(&r);
}

static void test_refusals(void)
{
    static const char *const wrong[][2] = {{"length = 0", "length"}, {"rate = 999", "rate"}};
    for (int i = 0; i < 2; i++) {
        Result r = run("cd $TMP && sed 's/%s = [0-9]*[,)]/%s,/; s/,$/)/' m.scrimp > w.scrimp; "
                       "$SCRIMP check w.scrimp",
                       wrong[i][1], wrong[i][0]);
        EXPECT(r.code == 1 && strstr(r.err, "E105") && strstr(r.err, wrong[i][1]), r.err);
        result_free(&r);
    }
}

int main(void)
{
    e2e_begin();
    FILE *f = fopen(in_tmp("m.scrimp"), "w");
    EXPECT(f && fputs(model, f) >= 0 && fclose(f) == 0, "m.scrimp");
    Result r = run("cd $TMP && $SCRIMP data m.scrimp -q");
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    test_same_bits();
    test_predict(test_evaluation());
    test_refusals();
    return e2e_end();
}
