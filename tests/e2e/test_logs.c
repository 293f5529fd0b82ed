/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The three forms of a training run's rows say the same: JSON, CSV, and TensorBoard's files; also
 * of a run that is continued from a checkpoint that they were ahead of. */
#include "e2e.h"
#include "event_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRAIN  "$SCRIMP train $TMP/mlp.scrimp -D N=50 --data $TMP/idx --threads 2 -q "
#define HEADER "step,loss,grad_norm,lr,seconds,val_loss,val_accuracy\n"

enum { STEPS = 40, EVERY = 10, COLUMNS = 7 };
static const char *const columns[COLUMNS] = {"step",    "loss",     "grad_norm",   "lr",
                                             "seconds", "val_loss", "val_accuracy"};

static Points *new_points(void)
{
    return calloc(1, sizeof(Points));
}

/* Splits a line; NULL past its last field. */
static char *next_field(char **at)
{
    char *field = *at, *comma = field ? strchr(field, ',') : NULL;
    if (comma)
        *comma++ = '\0';
    *at = comma;
    return field;
}

/* --- CSV and JSON --- */

/* A line of one file against the line of the other; both have numbers of nine digits. */
static void compare_line(char *csv, const json_t *row)
{
    for (int c = 0; c < COLUMNS; c++) {
        const char *field = next_field(&csv);
        const json_t *value = json_object_get(row, columns[c]);
        EXPECT(field && (*field != '\0') == (value != NULL), columns[c]);
        if (field && *field && strcmp(columns[c], "seconds") != 0)
            EXPECT(strtod(field, NULL) == json_number_value(value), columns[c]);
    }
    EXPECT(!csv, "more fields than columns");
}

static void compare_with_json(const char *csv_path, const char *json_path)
{
    char *csv = read_text(csv_path, NULL), *json = read_text(json_path, NULL);
    char *rest, *more, *a = strtok_r(csv, "\n", &rest);
    int lines = 0;
    EXPECT(a && strncmp(a, HEADER, strlen(a)) == 0, a);
    for (char *b = strtok_r(json, "\n", &more); b; b = strtok_r(NULL, "\n", &more)) {
        json_t *row = json_loads(b, 0, NULL);
        a = strtok_r(NULL, "\n", &rest);
        EXPECT(row && a, "fewer lines");
        if (a)
            compare_line(a, row);
        lines++;
        json_decref(row);
    }
    EXPECT(!strtok_r(NULL, "\n", &rest), "more lines");
    EXPECT(lines == STEPS + STEPS / EVERY, "a line a step, and one an evaluation");
    free(csv);
    free(json);
}

/* --- CSV and TensorBoard --- */

/* The points of a run in the order of its rows, and in a row in that of the columns. */
static void compare_with_events(const char *csv_path, const Points *points)
{
    char *csv = read_text(csv_path, NULL), *rest, *line = strtok_r(csv, "\n", &rest);
    int k = 0;
    while ((line = strtok_r(NULL, "\n", &rest))) {
        long long step = strtoll(next_field(&line), NULL, 10);
        for (int c = 1; c < COLUMNS; c++) {
            const char *field = next_field(&line);
            if (!*field)
                continue;
            const Point *p = &points->point[k++];
            EXPECT(p->step == step && strcmp(p->tag, columns[c]) == 0, p->tag);
            EXPECT(fabs(strtod(field, NULL) - (double)p->value) <= 1e-7 * fabs((double)p->value),
                   p->tag);
        }
    }
    EXPECT(k == points->n, "points more");
    free(csv);
}

static void test_forms(void)
{
    Points *points = new_points();
    expect_ok(TRAIN "--log $TMP/a.json");
    expect_ok(TRAIN "--log $TMP/a.CSV --tensorboard $TMP/deep/board --out $TMP/whole");
    compare_with_json(in_tmp("a.CSV"), in_tmp("a.json"));
    EXPECT(events_read_folder(in_tmp("deep/board"), points) == 1, "one file");
    EXPECT(points->n_starts == 1 && points->n_torn == 0, "one session");
    EXPECT(points->n_records == 2 + STEPS + STEPS / EVERY, "a record for each row");
    for (int i = 1; i < points->n; i++)
        EXPECT(points->point[i].wall_time >= points->point[i - 1].wall_time, "back in time");
    compare_with_events(in_tmp("a.CSV"), points);
    free(points);
}

/* --- runs that are continued --- */

/* Rows past the checkpoint, of the same kind as a run's, and what a kill leaves of the last. */
static void test_resume(void)
{
    Points *points = new_points();
    expect_ok(TRAIN "--steps 20 --log $TMP/b.csv --tensorboard $TMP/b --out $TMP/run");
    expect_ok("cp -r $TMP/run $TMP/early");
    expect_ok(TRAIN "--steps 30 --log $TMP/b.csv --tensorboard $TMP/b --out $TMP/run --resume");
    expect_ok("rm -r $TMP/run && mv $TMP/early $TMP/run && printf '31,0.25,1' >> $TMP/b.csv && "
              "f=$(ls $TMP/b/* | tail -1) && truncate -s -7 $f");
    expect_said(0, "b.csv went past step 20: cut by 12 lines",
                TRAIN "--log $TMP/b.csv --tensorboard $TMP/b --out $TMP/run --resume");
    compare_with_json(in_tmp("b.csv"), in_tmp("a.json"));
    EXPECT(events_read_folder(in_tmp("b"), points) == 3, "a file for each part");
    EXPECT(points->n_starts == 3 && points->n_torn == 1, "sessions");
    compare_with_events(in_tmp("b.csv"), points);
    expect_ok("cmp $TMP/run/model.safetensors $TMP/whole/model.safetensors");
    free(points);
}

/* Killed before its first line was whole. */
static void test_torn_header(void)
{
    expect_ok("printf 'step,loss,gr' > $TMP/c.csv && cp -r $TMP/run $TMP/run2");
    expect_ok(TRAIN "--steps 42 --log $TMP/c.csv --out $TMP/run2 --resume");
    expect_said(0, HEADER "41,", "cat $TMP/c.csv");
}

static void test_refused(void)
{
    expect_ok("printf 'step,loss\\n1,2\\n' > $TMP/d.csv && cp $TMP/d.csv $TMP/d.before");
    expect_run(1, "other columns", TRAIN "--steps 44 --log $TMP/d.csv --out $TMP/run2 --resume");
    expect_ok("printf 'dear diary\\n' > $TMP/e.csv");
    expect_run(1, "E510", TRAIN "--log $TMP/no/such/f.csv --out $TMP/none");
    expect_ok("test ! -e $TMP/none");
    expect_run(1, "line 1 of", TRAIN "--steps 44 --log $TMP/e.csv --out $TMP/run2 --resume");
    expect_ok("cmp $TMP/d.csv $TMP/d.before && grep -q diary $TMP/e.csv");
    expect_run(1, "E510", TRAIN "--steps 1 --tensorboard $TMP/idx/train-images-idx3-ubyte");
    expect_run(1, "not written to standard output", TRAIN "--steps 1 --tensorboard -");
}

static bool has_nan(const Points *points)
{
    bool found = false;
    for (int i = 0; i < points->n; i++)
        found |= isnan(points->point[i].value) && strcmp(points->point[i].tag, "loss") == 0;
    return found;
}

/* Only a run that may take steps back has a column for it. */
static void test_skipped(void)
{
    expect_ok(TRAIN "--steps 2 --on-nan skip --log $TMP/g.csv");
    expect_said(0, "step,loss,grad_norm,lr,seconds,skipped,val_loss,val_accuracy\n1,",
                "cat $TMP/g.csv");
    expect_ok("awk -F, 'NF != 8 {exit 1}' $TMP/g.csv");
}

static void test_not_finite(void)
{
    expect_ok("sed 's/sgd(lr = 0.1/sgd(lr = 1e30/' $TMP/mlp.scrimp > $TMP/wild.scrimp");
    Result r = run("$SCRIMP train $TMP/wild.scrimp -D N=50 --data $TMP/idx --steps 6 -q --on-nan "
                   "warn --log $TMP/f.csv --tensorboard $TMP/f");
    char *csv = read_text(in_tmp("f.csv"), NULL);
    Points *points = new_points();
    events_read_folder(in_tmp("f"), points);
    EXPECT(r.code == 0 && csv && strstr(csv, ",nan,") && !strstr(csv, "-nan"), csv);
    EXPECT(has_nan(points), "no loss that is no number");
    free(csv);
    free(points);
    result_free(&r);
}

/* --- progress --- */

/* What the line says of speed is what it says of time, but for rounding. */
static void check_line(const char *line, const char *unit, double examples, double peak)
{
    double ms = 0, rate, least;
    char *at = strstr(line, " ms  "), *end = NULL, said[100];
    snprintf(said, sizeof said, " %s/s  peak ", unit);
    EXPECT(at && strstr(at, said) && strstr(at, " left"), line);
    EXPECT(strstr(line, "  grad ") && strstr(line, "  lr ") && strstr(line, "  lr ") < at, line);
    for (char *p = at; at && p > line && p[-1] != ' '; p--)
        ms = strtod(p - 1, NULL);
    rate = at ? strtod(at + 5, &end) : 0;
    double unit_of_rate = at && *end == 'k' ? 1e3 : at && *end == 'M' ? 1e6 : 1;
    least = examples / 1e-3 / (ms + 0.05);
    EXPECT((rate + 0.5) * unit_of_rate >= least, line);
    EXPECT(ms <= 0.05 || (rate - 0.5) * unit_of_rate <= examples / 1e-3 / (ms - 0.05), line);
    at = at ? strstr(at, "peak ") : NULL;
    double bytes = at ? 0x1p20 * strtod(at + 5, &end) : 0; /* rounded up */
    EXPECT(*end == 'M' && bytes >= peak && bytes - peak <= 0x1p20 / 10, line);
}

static char *last_line(const char *text, const char *start)
{
    const char *found = NULL;
    for (const char *p = strstr(text, start); p; p = strstr(p + 1, start))
        found = p;
    return found ? strndup(found, strcspn(found, "\n")) : NULL;
}

static void test_progress(const char *model, const char *data, const char *unit, double examples)
{
    json_t *plan = run_json(0, "$SCRIMP plan %s --json", model);
    Result r = run("$SCRIMP train %s --data %s --steps 12", model, data);
    char *line = last_line(r.err, "step 12/12 ");
    EXPECT(r.code == 0 && line, r.err);
    if (line)
        check_line(line, unit, examples, json_get_number(plan, "peak_bytes"));
    free(line);
    result_free(&r);
    json_decref(plan);
}

int main(void)
{
    e2e_begin();
    make_digits(600);
    expect_ok("sed -e '/^ *steps *=/d' -e '/^ *epochs *=/d' -e '/^train {/a held_out = 10%\\n"
              "eval_every = 10\\nsteps = 40' $EXAMPLES/mlp.scrimp > $TMP/mlp.scrimp");
    test_forms();
    test_resume();
    test_torn_header();
    test_refused();
    test_skipped();
    test_not_finite();
    make_text(in_tmp("text"), 30000);
    test_progress("$TMP/mlp.scrimp -D N=50", "$TMP/idx", "images", 50);
    test_progress("$EXAMPLES/chargpt.scrimp -D N=4 -D L=1 -D T=32", "$TMP/text", "tokens", 4 * 32);
    return e2e_end();
}
