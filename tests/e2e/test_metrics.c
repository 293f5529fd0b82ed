/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Metrics of totals: what an evaluation says is computed here again of the same examples.  The
 * model returns its input, so that logits are the data. */
#include "e2e.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { EXAMPLES = 150, HELD_OUT = 47, CLASSES = 5, IGNORED = -100 };

static float logit[EXAMPLES][CLASSES];
static int32_t label[EXAMPLES];

static void write_npy(const char *name, const char *descr, const char *shape, const void *data,
                      size_t bytes)
{
    char path[400], header[128];
    snprintf(path, sizeof path, "%s/%s", e2e_tmp(), name);
    int n = snprintf(header, sizeof header,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    memset(header + n, ' ', sizeof header - (size_t)n);
    header[117] = '\n';
    FILE *f = fopen(path, "wb");
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fwrite(header, 1, 118, f);
    fwrite(data, 1, bytes, f);
    EXPECT(fclose(f) == 0, "an array is written");
}

/* One class is never there and never taken for one; some labels are ignored. */
static void make_examples(void)
{
    uint32_t bits = 12345;
    for (int i = 0; i < EXAMPLES; i++) {
        for (int c = 0; c < CLASSES; c++) {
            bits = bits * 1664525u + 1013904223u;
            logit[i][c] = (float)(bits >> 16) / 65536.0f - (c == 3 ? 9.0f : 0.0f);
        }
        bits = bits * 1664525u + 1013904223u;
        label[i] = (int32_t)((bits >> 16) % 3);
        label[i] = i % 11 == 0 ? IGNORED : i % 4 == 0 ? 4 : label[i];
    }
    write_npy("x.npy", "<f4", "(150, 5)", logit, sizeof logit);
    write_npy("label.npy", "<i4", "(150,)", label, sizeof label);
    char path[400];
    snprintf(path, sizeof path, "%s/m.scrimp", e2e_tmp());
    FILE *f = fopen(path, "w");
    fputs("import \"std/metrics\"\n"
          "option N = 10\n"
          "block Same(x: [_, C]) {\n  param scale: f32[C] = ones\n  return x * scale\n}\n"
          "model m(x: f32[N, 5]) { return x |> same: Same() }\n"
          "train {\n"
          "  batch = npy([\"x.npy\", \"label.npy\"], batch = N, x = f32[N, 5], label = i32[N])\n"
          "  logits = m(batch.x)\n"
          "  loss = cross_entropy(logits, batch.label)\n"
          "  table = confusion(logits, batch.label)\n"
          "  each = recall(table, average = none)\n"
          "  macro = f1(table)\n"
          "  weighted = precision(table, average = weighted)\n"
          "  overlap = iou(table)\n"
          "  second = f1(table, average = binary)\n"
          "  top2 = top_k_accuracy(logits, batch.label, k = 2)\n"
          "  signs = binary_confusion(logits[.., 0], batch.label == 1, threshold = 0.5)\n"
          "  error = rmse(logits[.., 0], logits[.., 1])\n"
          "  fit = r2(logits[.., 0], logits[.., 1])\n"
          "  mean = total(sum(logits)) / total(sum(ones(logits.shape)))\n"
          "  metrics = [table, each, macro, weighted, overlap, second, top2, signs, error, fit,\n"
          "             mean, perplexity(loss)]\n"
          "  optim = sgd(lr = 0)\n"
          "  steps = 2\n"
          "  held_out = 47\n"
          "}\n",
          f);
    fclose(f);
}

/* --- the same, counted here --- */

typedef struct Counts {
    double of[CLASSES][CLASSES], row[CLASSES], column[CLASSES];
    double labels, top2;
} Counts;

static Counts count(void)
{
    Counts n = {0};
    for (int i = EXAMPLES - HELD_OUT; i < EXAMPLES; i++) {
        int best = 0, larger = 0;
        if (label[i] == IGNORED)
            continue;
        for (int c = 0; c < CLASSES; c++) {
            best = logit[i][c] > logit[i][best] ? c : best;
            larger += logit[i][c] > logit[i][label[i]];
        }
        n.of[label[i]][best]++;
        n.row[label[i]]++;
        n.column[best]++;
        n.labels++;
        n.top2 += larger < 2;
    }
    return n;
}

static void expect_near(const char *name, double x, double expected)
{
    char said[200];
    snprintf(said, sizeof said, "%s: %.9g, not %.9g", name, x, expected);
    EXPECT(fabs(x - expected) <= 1e-6 * fmax(1, fabs(expected)), said);
}

static void expect_number(const json_t *o, const char *name, double expected)
{
    expect_near(name, json_number_value(json_object_get(o, name)), expected);
}

static void expect_classes(const json_t *o, const Counts *n)
{
    double f1 = 0, precision = 0, iou = 0, there = 0;
    for (int c = 0; c < CLASSES; c++) {
        double right = n->of[c][c], both = n->row[c] + n->column[c];
        double recall = n->row[c] > 0 ? right / n->row[c] : 0;
        f1 += both > 0 ? 2 * right / both : 0;
        iou += both > 0 ? right / (both - right) : 0;
        precision += n->column[c] > 0 ? right / n->column[c] * n->row[c] : 0;
        there += both > 0;
        double said = json_number_value(json_array_get(json_object_get(o, "each"), (size_t)c));
        expect_near("recall", said, recall);
    }
    EXPECT(there == CLASSES - 1, "one class is left out of the means");
    expect_number(o, "macro", f1 / there);
    expect_number(o, "overlap", iou / there);
    expect_number(o, "weighted", precision / n->labels);
    expect_number(o, "second", 2 * n->of[1][1] / (n->row[1] + n->column[1]));
}

static void expect_table(const json_t *o, const char *name, int classes, const double *expected)
{
    const json_t *table = json_object_get(o, name);
    for (int r = 0; r < classes; r++)
        for (int c = 0; c < classes; c++) {
            double x =
                json_number_value(json_array_get(json_array_get(table, (size_t)r), (size_t)c));
            expect_near(name, x, expected[r * classes + c]);
        }
}

/* Of whole batches only where there is no label: the last, incomplete one is filled up with zeros.
 */
static void expect_regression(const json_t *o)
{
    double squares = 0, of_b = 0, b = 0, all = 0, n = 50;
    for (int i = EXAMPLES - HELD_OUT; i < EXAMPLES; i++) {
        double d = (double)logit[i][0] - (double)logit[i][1];
        squares += d * d;
        b += (double)logit[i][1];
        of_b += (double)logit[i][1] * (double)logit[i][1];
        for (int c = 0; c < CLASSES; c++)
            all += (double)logit[i][c];
    }
    expect_number(o, "fit", 1 - squares / (of_b - b * b / n));
    expect_number(o, "mean", all / (n * CLASSES));
}

static void expect_signs(const json_t *o)
{
    double expected[2][2] = {{0}};
    for (int i = EXAMPLES - HELD_OUT; i < EXAMPLES; i++)
        expected[label[i] == 1][logit[i][0] > 0.5f]++;
    expected[0][0] += 3; /* what fills up the last batch */
    expect_table(o, "signs", 2, &expected[0][0]);
}

static void test_evaluation(void)
{
    json_t *o = run_json(0, "cd $TMP && $SCRIMP eval m.scrimp --checkpoint run --json");
    const Counts n = count();
    expect_table(o, "table", CLASSES, &n.of[0][0]);
    expect_classes(o, &n);
    expect_number(o, "top2", n.top2 / n.labels);
    expect_number(o, "perplexity", exp(json_number_value(json_object_get(o, "loss"))));
    expect_regression(o);
    expect_signs(o);
    json_decref(o);
    expect_said(0, NULL,
                "cd $TMP && $SCRIMP eval m.scrimp --checkpoint run > said && "
                "grep -q '^perplexity [0-9]' said && grep -A5 '^table$' said | "
                "awk 'NF != 5 && NR > 1 { bad = 1 } END { exit bad || NR != 6 }'");
}

/* Numbers stand in all rows of steps; tables, of evaluations and in JSON only. */
static void test_logs(void)
{
    expect_said(0, NULL,
                "cd $TMP && $SCRIMP train m.scrimp --out run --log log.json -q && "
                "grep -q '\"step\": 1, .*\"macro\": [0-9].*\"perplexity\": [0-9]' log.json && "
                "! grep -q '\"loss\".*table' log.json && "
                "grep -q '\"val_loss\": .*\"val_table\": \\[\\[[0-9]' log.json && "
                "tail -n 1 log.json | python3 -c 'import json, sys; json.load(sys.stdin)'");
    expect_said(0, NULL,
                "cd $TMP && $SCRIMP train m.scrimp --log log.csv -q && ! grep table log.csv && "
                "test \"$(awk -F, '{ print NF }' log.csv | sort -u | wc -l)\" = 1");
    expect_said(0, NULL, "cd $TMP && $SCRIMP verify m.scrimp --budget 100%");
}

int main(void)
{
    e2e_begin();
    make_examples();
    test_logs();
    test_evaluation();
    return e2e_end();
}
