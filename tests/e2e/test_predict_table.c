/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `predict` on tables: a line for each row, prepared as in training, against what `eval` says of
 * the same rows; what a row cannot be is refused with its line and column. */
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 400, HELD = 80 };

static const char source[] =
    "csv(\"people.csv\", batch = N, shuffle = false, x = columns([\"age\", \"height\"], missing = "
    "mean),\n    job = columns(\"job\", as = category, missing = error),\n"
    "    town = columns(\"town\", as = one_hot, classes = 2),\n"
    "    label = columns(\"wants it\", as = category))";

/* The last HELD rows are held out, in order. */
static void write_model(const char *name, const char *batch)
{
    FILE *f = fopen(in_tmp(name), "wb");
    EXPECT(f, name);
    fprintf(f,
            "option N = 8\n"
            "model m(x: f32[N, 2], job: i32[N], town: f32[N, 2]) {\n"
            "  return concat([x, (job |> e: embedding(4, 4)), town], axis = 1)\n"
            "    |> f: linear(16) |> relu() |> g: linear(2)\n}\n"
            "train {\n  batch = %s\n"
            "  loss = cross_entropy(m(batch.x, batch.job, batch.town), batch.label)\n"
            "  optim = adam(lr = 0.01)\n  held_out = %d\n  epochs = 2\n}\n",
            batch, HELD);
    fclose(f);
}

/* The label follows from age and job, but for the few that are turned around, so that no model is
 * right about all. */
static void write_table(const char *name)
{
    static const char *const jobs[] = {"nurse", "\"cook, head\"", "smith"};
    static const char *const answers[] = {"\"no, thanks\"", "yes"};
    FILE *f = fopen(in_tmp(name), "wb");
    EXPECT(f, name);
    fprintf(f, "age,height,job,town,wants it\r\n");
    for (int i = 0; i < ROWS; i++) {
        int age = 20 + i * 37 % 50, job = i * 7 % 3;
        fprintf(f, "%d,%s,%s,%s,%s\r\n", age, i % 11 ? "171.5" : "", jobs[job],
                i * 5 % 4 < 2 ? "X" : "Y", answers[(age + 20 * job > 60) ^ (i % 13 == 0)]);
    }
    fclose(f);
}

#define PREDICT "$SCRIMP predict m.scrimp --checkpoint run "

/* Which answers are predicted, of which eval knows only how many are right. */
static void test_as_eval(void)
{
    expect_there(0, "",
                 "{ head -1 people.csv; tail -80 people.csv; } > held.csv && "
                 "sed 's/,[^,]*$//; s/,\"no$//' held.csv > features.csv && "
                 "! grep -q 'thanks\\|yes\\|wants' features.csv && wc -l < features.csv | grep 81");
    expect_there(0, "",
                 PREDICT "-i features.csv > lines && head -1 lines > heading && "
                         "echo 'predicted,\"y[no, thanks]\",y[yes]' | cmp - heading");
    expect_there(0, "", PREDICT "-i held.csv -D N=3 --threads 1 > all && cmp all lines");
    json_t *eval = run_json(0, "cd $TMP && $SCRIMP eval m.scrimp --checkpoint run --json");
    double accuracy = json_get_number(eval, "accuracy");
    json_decref(eval);
    Result r = run("cd $TMP && paste lines held.csv | tail -n +2 | "
                   "grep -c '^yes,.*,yes.$\\|^\"no, thanks\",.*,\"no, thanks\".$'");
    double difference = atoi(r.out) / (double)HELD - accuracy;
    EXPECT(accuracy > 0.8 && accuracy < 1 && difference < 1e-6 && difference > -1e-6, r.out);
    result_free(&r);
}

/* Means and values are those of training, not of what is read now; columns have names, not places.
 */
static void test_prepared_as_trained(void)
{
    expect_there(0, "",
                 "{ head -1 features.csv; tail -1 features.csv; } > one.csv && " PREDICT
                 "-i one.csv | tail -1 > a && tail -1 lines | cmp - a");
    expect_there(0, "",
                 "printf 'town;job;id;height;age\\n%s;\"cook, head\";7;;33\\n' X > p.csv && "
                 "printf 'age,height,job,town\\n33,,\"cook, head\",X\\n' > q.csv && "
                 "sed 's/shuffle/separator = \";\", shuffle/' m.scrimp > semi.scrimp && "
                 "$SCRIMP predict semi.scrimp --checkpoint run -i p.csv > a && " PREDICT
                 "-i q.csv | cmp - a");
    expect_there(0, "",
                 PREDICT "-i x=one.csv -i job=one.csv -i town=one.csv > a && "
                         "{ head -1 lines; tail -1 lines; } | cmp - a");
}

static void test_forms(void)
{
    expect_there(0, "wrote t.csv: a line for each of 80 examples",
                 PREDICT "-i features.csv -o t.csv && cmp t.csv lines");
    expect_there(0, "wrote y.npy: f32[80,2]", PREDICT "-i features.csv -o y.npy");
    expect_there(0, "",
                 "tail -c 640 y.npy | od -An -v -t f4 -w8 | while read a b; do printf "
                 "'%.5f %.5f\\n' $a $b; done > numbers && tail -n +2 lines | "
                 "sed 's/.*,\\(.*\\),\\(.*\\)/\\1 \\2/' | while read a b; do printf "
                 "'%.5f %.5f\\n' $a $b; done | cmp - numbers");
    json_t *o = run_json(0, "cd $TMP && " PREDICT "-i features.csv --json");
    const json_t *list = json_object_get(o, "predictions");
    EXPECT(json_get_number(o, "examples") >= HELD && json_array_size(list) == HELD, "--json");
    const json_t *last = json_array_get(list, HELD - 1);
    const char *said = json_string_value(json_object_get(last, "predicted"));
    const json_t *y = json_object_get(last, "y");
    double no = json_number_value(json_array_get(y, 0)),
           yes = json_number_value(json_array_get(y, 1));
    EXPECT(said && json_array_size(y) == 2 && !strcmp(said, no > yes ? "no, thanks" : "yes"), said);
    json_decref(o);
    expect_there(0, "",
                 PREDICT "-i features.csv --json -o j.csv > j && cmp j.csv lines && "
                         "grep -q '\"file\": \"j.csv\"' j");
    expect_there(0, "",
                 "printf 'predicted,' > a; " PREDICT "-i features.csv | head -c 10 | cmp - a");
}

/* One row that is wrong among some that are not. */
static void refuse_row(const char *row, const char *what)
{
    char command[400];
    snprintf(
        command, sizeof command,
        "{ head -3 features.csv; printf '%s\\n'; } > bad.csv && rm -f bad.out.csv && ! " PREDICT
        "-i bad.csv -o bad.out.csv && test ! -e bad.out.csv && " PREDICT "-i bad.csv",
        row);
    expect_there(1, what, command);
}

static void test_refusals(void)
{
    refuse_row("30,tall,smith,X", "bad.csv: line 4, column height: 'tall' is no number");
    refuse_row("30,1,pilot,X",
               "bad.csv: line 4, column job: 'pilot' is no value that the model was trained on");
    refuse_row("30,1,smith,",
               "bad.csv: line 4, column town: the value is missing; the model was trained on rows "
               "without missing ones, so fill it in, or leave the row out here");
    refuse_row("30,1,smith", "bad.csv: line 4: 3 cells, but there are 4 columns");
    expect_there(1, "bad.csv: there is no column 'height'; there are 3: age, job, town",
                 "cut -d, -f1,3,4 one.csv > bad.csv; printf 'age,job,town\\n1,smith,X\\n' > "
                 "bad.csv; " PREDICT "-i bad.csv");
    expect_there(1, "there are no examples",
                 "head -1 features.csv > bad.csv; " PREDICT "-i bad.csv");
    expect_there(1, "error[E524]: --input: gone.csv: no such file", PREDICT "-i gone.csv");
    expect_there(1, "help: give --input TABLE.csv\n", PREDICT);
    expect_there(1, "does not say what was learned of the columns",
                 "$SCRIMP predict m.scrimp --checkpoint run/model.safetensors -i one.csv");
    expect_there(1,
                 "line 4, column town: the value is missing; rows like this were left out in "
                 "training (missing = drop), so leave it out here",
                 "sed 's/classes = 2/classes = 2, missing = drop/' m.scrimp > drop.scrimp && "
                 "$SCRIMP train drop.scrimp --out drop -q && { head -3 features.csv; echo "
                 "30,1,smith,; } > bad.csv && $SCRIMP predict drop.scrimp --checkpoint drop "
                 "-i bad.csv");
}

/* A table beside another source: its columns are prepared as that source's were, also after the
 * training data have changed. */
static void test_zip(void)
{
    static const char zip[] =
        "zip(csv(\"people.csv\", batch = N, shuffle = false, x = columns([\"age\","
        " \"height\"], missing = mean), job = columns(\"job\", as = category)),\n"
        "  csv(\"people.csv\", batch = N, shuffle = false, town = columns(\"town\", "
        "as = one_hot, classes = 2),\n    label = columns(\"wants it\", as = "
        "category)))";
    write_model("zip.scrimp", zip);
    expect_there(0, "",
                 "$SCRIMP train zip.scrimp --out zip -q && cmp zip/model.safetensors "
                 "run/model.safetensors");
    expect_there(0, "",
                 "$SCRIMP predict zip.scrimp --checkpoint zip -i features.csv | cmp - lines");
    expect_there(
        0, "", /* more rows to train on do not change what those held out are */
        "$SCRIMP eval zip.scrimp --checkpoint zip > before && cp people.csv kept.csv && "
        "{ head -1 kept.csv; for i in 1 2 3 4 5 6 7 8; do echo 99,300,smith,X,yes; done; "
        "tail -n +2 kept.csv; } > people.csv && $SCRIMP eval zip.scrimp --checkpoint zip | "
        "cmp - before; s=$?; mv kept.csv people.csv; exit $s");
}

int main(void)
{
    e2e_begin();
    write_table("people.csv");
    write_model("m.scrimp", source);
    expect_there(0, "", "$SCRIMP train m.scrimp --out run -q");
    test_as_eval();
    test_prepared_as_trained();
    test_forms();
    test_refusals();
    test_zip();
    return e2e_end();
}
