/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tables: cells as RFC 4180 has them, columns to fields, what is learned and given back, refusals
 * that name file, line and column. */
#include "runtime/csv.h"
#include "runtime/data.h"

#include "check.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/temp.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_text(const char *name, const char *text)
{
    temp_write(name, text, strlen(text));
}

/* ---- cells ---- */

/* All cells of a text, "|" behind each and "/" behind each record; or the message. */
static const char *cells(const char *text, size_t n, char separator)
{
    static char out[400];
    CsvReader r;
    RtError err = {{0}};
    size_t at = 0;
    if (csv_open(&r, (const unsigned char *)text, (int64_t)n, separator, &err))
        while (csv_next(&r, &err)) {
            for (int i = 0; i < r.n_cells; i++) {
                at += csv_text(r.cell[i], out + at);
                out[at++] = '|';
            }
            out[at++] = '/';
        }
    out[at] = 0;
    csv_close(&r);
    return err.message[0] ? strcpy(out, err.message) : out;
}

static void expect_cells(const char *text, char separator, const char *expect)
{
    const char *got = cells(text, strlen(text), separator);
    CHECK_MSG(strcmp(got, expect) == 0, "'%s' gives '%s', not '%s'", text, got, expect);
}

static void test_cells(void)
{
    expect_cells("a,b\n1,2\n", ',', "a|b|/1|2|/");
    expect_cells("a,b\r\n1,2", ',', "a|b|/1|2|/");
    expect_cells("a,b\r1,2\r", ',', "a|b|/1|2|/");
    expect_cells("\xef\xbb\xbf"
                 "a,b\n",
                 ',', "a|b|/");
    expect_cells("\"a,\"\"b\"\"\",\"x\ny\"\n", ',', "a,\"b\"|x\ny|/");
    expect_cells("\"\",,\"\"\"\"\n", ',', "||\"|/");
    expect_cells("a, b c ,\"d \" , \"e\"\n", ',', "a|b c|d |e|/");
    expect_cells("a\t b\t\t\"c\"\n", '\t', "a|b||c|/");
    expect_cells("a;b,c\n\n\n1;2\n", ';', "a|b,c|/1|2|/");
    expect_cells("5\" disk,b\n", ',', "5\" disk|b|/");
    expect_cells("a,\n", ',', "a||/");
    expect_cells("", ',', "");
    CHECK(strstr(cells("a\n\"b\n", 5, ','), "line 2, cell 1: its quote is never closed"));
    CHECK(strstr(cells("a\n\"b\"c\n", 7, ','), "line 2, cell 1: text behind a closing quote"));
    CHECK(strstr(cells("a,\0\n", 4, ','), "line 1: a NUL byte"));
    CHECK(strstr(cells("\xff\xfe"
                       "a",
                       3, ','),
                 "UTF-16"));
}

static void test_values(void)
{
    static const struct {
        const char *text;
        bool number;
        double value;
    } cases[] = {{"1", true, 1},          {"-2.5e3", true, -2500}, {"+.5", true, 0.5},
                 {"true", true, 1},       {"False", true, 0},      {"1,5", false, 0},
                 {"0x10", false, 0},      {"inf", false, 0},       {"1e999", false, 0},
                 {"1 2", false, 0},       {"-", false, 0},         {"", false, 0},
                 {"2020-01-01", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double v = 0;
        CsvCell cell = {cases[i].text, strlen(cases[i].text), false};
        bool ok = csv_number(cell, &v);
        CHECK_MSG(ok == cases[i].number && (!ok || !(fabs(v - cases[i].value) > 0)), "%s",
                  cases[i].text);
    }
    CHECK(csv_is_missing((CsvCell){"", 0, false}) && csv_is_missing((CsvCell){"n/a", 3, false}) &&
          csv_is_missing((CsvCell){"?", 1, false}) && !csv_is_missing((CsvCell){"nano", 4, false}));
}

/* ---- fields ---- */

enum { ROWS = 12 };

static DataSpec table(const char *name, const char *columns)
{
    return (DataSpec){.kind = "csv",
                      .path = temp_path(name),
                      .batch = 1,
                      .columns = columns,
                      .in_order = true,
                      .seed = 3};
}

/* Field f of held-out example i. */
static void held_out(const Dataset *ds, int64_t i, int f, void *out)
{
    void *dst[DATA_MAX_FIELDS] = {0};
    int64_t counted;
    RtError err;
    dst[f] = out;
    CHECK_MSG(dataset_eval_batch(ds, i, dst, &counted, &err), "%s", err.message);
}

static bool near(float a, double b)
{
    return fabs((double)a - b) < 1e-6 * (1 + fabs(b));
}

/* Mean and deviation are those of the first rows, as NumPy computes them: of 1, 2, 3, 4 they are
 * 2.5 and sqrt(1.25). */
static void test_standardized(void)
{
    write_text("n.csv", "a,b,y\n1,5,0\n2,5,1\n3,5,2\n4,5,0\n100,7,1\n,5,2\n");
    DataSpec spec = table("n.csv", "x\tnumber\tmean\t1\t2\t\ta\tb\ny\tinteger\terror\t0\t0\t\ty");
    spec.held_out = 2;
    Dataset *ds = open_or_fail(&spec);
    float x[2];
    int32_t y;
    CHECK(dataset_train_size(ds) == 4 && dataset_n_fields(ds) == 2);
    CHECK(dataset_field(ds, 0)->rank == 1 && dataset_field(ds, 0)->dim[0] == 2);
    CHECK(dataset_field(ds, 1)->label && dataset_field(ds, 1)->max_id == 2);
    held_out(ds, 0, 0, x);
    held_out(ds, 0, 1, &y);
    CHECK(near(x[0], (100 - 2.5) / sqrt(1.25)) && near(x[1], 2) && y == 1);
    held_out(ds, 1, 0, x); /* the missing one is the mean */
    CHECK(near(x[0], 0) && near(x[1], 0));
    dataset_close(ds);
    spec.columns = "x\tnumber\tdrop\t0\t0\t\ta";
    ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 3 && dataset_field(ds, 0)->rank == 0);
    held_out(ds, 1, 0, x);
    CHECK(near(x[0], 100));
    dataset_close(ds);
}

static void test_categories(void)
{
    write_text("c.csv", "job,n,z\nsmith,10,1\ncook,9,2\nnurse,100,3\n,9,4\ncook,10,5\n");
    DataSpec spec = table("c.csv", "c\tcategory\town\t0\t2\t\tjob\tn\n"
                                   "o\tone_hot\town\t0\t2\t5,4\tjob\tn\n"
                                   "d\tcategory\tdrop\t0\t0\t\tn");
    spec.held_out = 5;
    Dataset *ds = open_or_fail(&spec);
    static const int32_t expect[5][2] = {{2, 1}, {0, 0}, {1, 2}, {3, 0}, {0, 1}};
    CHECK(dataset_field(ds, 0)->max_id == 3 && dataset_field(ds, 0)->min_id == 0);
    CHECK(dataset_field(ds, 1)->dim[0] == 9 && dataset_field(ds, 1)->dtype == RT_F32);
    for (int i = 0; i < 5; i++) {
        int32_t c[2];
        float o[9];
        held_out(ds, i, 0, c);
        held_out(ds, i, 1, o);
        CHECK_MSG(c[0] == expect[i][0] && c[1] == expect[i][1], "row %d: %d %d", i, c[0], c[1]);
        for (int k = 0; k < 9; k++)
            CHECK(near(o[k], k == expect[i][0] || k == 5 + expect[i][1]));
    }
    dataset_close(ds);
}

/* What a run has learned holds for other rows: their own mean and values do not count. */
static void test_learned(void)
{
    write_text("l.csv", "a,job\n1,x\n3,y\n");
    write_text("m.csv", "a,job\n5,y\n7,q\n");
    DataSpec spec = table("l.csv", "x\tnumber\terror\t1\t0\t\ta\nj\tcategory\town\t0\t0\t\tjob");
    Dataset *ds = open_or_fail(&spec);
    char *text = json_dumps(dataset_learned(ds), 0);
    json_t *learned = json_loads(text, 0, NULL);
    dataset_close(ds);
    free(text);
    spec.path = temp_path("m.csv");
    spec.learned = learned;
    spec.held_out = 2;
    ds = open_or_fail(&spec);
    float x;
    int32_t j;
    held_out(ds, 0, 0, &x);
    held_out(ds, 0, 1, &j);
    CHECK(near(x, 3) && j == 1);
    held_out(ds, 1, 1, &j);
    CHECK(j == 2); /* q is none that was there */
    dataset_close(ds);
    spec.columns = "x\tnumber\terror\t1\t0\t\ta\nj\tcategory\terror\t0\t0\t\tjob";
    refuse(&spec, "m.csv: line 3, column job: 'q' is no value that the model was trained on");
    spec.columns = "x\tnumber\terror\t1\t0\t\ta\nj\tcategory\terror\t0\t0\t\ta";
    refuse(&spec, "field j was trained with column job where the model now has a");
    spec.columns = "z\tnumber\terror\t1\t0\t\ta";
    refuse(&spec, "the checkpoint knows 0 columns of field z");
    json_decref(learned);
}

/* Rows that are left out in training have no place where each row has to have one. */
static void test_every_row(void)
{
    static const char *const bad[] = {
        "a,job\n1,x\n,y\n",
        "line 3, column a: the value is missing; rows like this were left out",
        "a,job\n1,x\n2,NA\n",
        "line 3, column job: the value is missing; rows like this were",
        "a,job\n1,x\n2,q\n",
        "line 3, column job: 'q' is no value that the model was trained on; rows like this were"};
    write_text("l.csv", "a,job\n1,x\n3,y\n,x\n");
    DataSpec spec = table("l.csv", "x\tnumber\tdrop\t1\t0\t\ta\nj\tcategory\tdrop\t0\t0\t\tjob");
    Dataset *ds = open_or_fail(&spec);
    json_t *learned = json_deep_copy(dataset_learned(ds));
    CHECK(dataset_train_size(ds) + dataset_held_out_size(ds) == 2);
    dataset_close(ds);
    spec.learned = learned;
    spec.held_out = 0;
    for (int i = 0; i < 6; i += 2) {
        write_text("e.csv", bad[i]);
        spec.path = temp_path("e.csv");
        spec.every_row = false;
        ds = open_or_fail(&spec);
        CHECK(dataset_train_size(ds) == 1);
        dataset_close(ds);
        spec.every_row = true;
        refuse(&spec, bad[i + 1]);
    }
    json_decref(learned);
}

/* Rows are mixed in the same way for every seed, and none is lost. */
static void test_mixed(void)
{
    char text[200] = "a\n";
    for (int i = 0; i < ROWS; i++)
        sprintf(text + strlen(text), "%d\n", i);
    write_text("s.csv", text);
    DataSpec spec = table("s.csv", "x\tinteger\terror\t0\t0\t\ta");
    int32_t order[2][ROWS];
    spec.held_out = ROWS;
    spec.in_order = false;
    for (int k = 0; k < 2; k++) {
        Dataset *ds = open_or_fail(&spec);
        int seen = 0, moved = 0;
        for (int i = 0; i < ROWS; i++) {
            held_out(ds, i, 0, &order[k][i]);
            seen |= 1 << order[k][i];
            moved += order[k][i] != i;
        }
        CHECK(seen == (1 << ROWS) - 1 && moved > ROWS / 2);
        dataset_close(ds);
        spec.seed++;
    }
    CHECK(memcmp(order[0], order[1], sizeof order[0]) == 0);
}

static void test_files(void)
{
    write_text("1.tsv", "p1\tp2\tl\n1\t2\t0\n");
    write_text("2.tsv", "p1\tp2\tl\n3\t4\t1\n");
    write_text("3.csv", "1;2;0\n3;4;1\n");
    DataSpec spec = table("*.tsv", "x\tnumber\terror\t0\t2\t\tp*\ny\tinteger\terror\t0\t0\t\tl");
    float x[2];
    spec.held_out = 2;
    Dataset *ds = open_or_fail(&spec);
    held_out(ds, 1, 0, x);
    CHECK(near(x[0], 3) && near(x[1], 4));
    dataset_close(ds);
    spec.path = temp_path("3.csv");
    spec.separator = ";";
    spec.no_header = true;
    spec.columns = "x\tnumber\terror\t0\t2\t\t1\t2";
    ds = open_or_fail(&spec);
    CHECK(dataset_held_out_size(ds) == 2);
    held_out(ds, 1, 0, x);
    CHECK(near(x[0], 3) && near(x[1], 4));
    dataset_close(ds);
}

static void test_refusals(void)
{
    static const char x[] = "x\tnumber\terror\t1\t0\t\ta", j[] = "j\tcategory\terror\t0\t0\t\ta",
                      i[] = "y\tinteger\terror\t0\t0\t\ta", o[] = "o\tone_hot\terror\t0\t0\t1\ta",
                      two[] = "x\tnumber\terror\t1\t3\t\ta*", m[] = "x\tnumber\tmean\t1\t0\t\ta",
                      l[] = "label\tcategory\terror\t0\t0\t\ta";
    static const struct {
        const char *text, *columns, *expect;
    } cases[] = {
        {"", x, "it is empty"},
        {"a,b\n", x, "there are no examples"},
        {"b,c\n1,2\n", x, "there is no column 'a'; there are 2: b, c"},
        {"a;b\n1;2\n", x, "separator = \";\""},
        {"a,a\n1,2\n", x, "two columns are called 'a'"},
        {"a,b\n1,2\n3\n", x, "bad.csv: line 3: 1 cell, but there are 2 columns"},
        {"a\n1\nx\n", x, "line 3, column a: 'x' is no number"},
        {"a\n1\ninf\n", x, "line 3, column a: 'inf' is no number"},
        {"a\n1e39\n", x, "line 2, column a: '1e39' is too large for f32"},
        {"a,b\n1,1\nNaN,1\n", x,
         "line 3, column a: the value is missing; say columns(..., missing = mean) for the mean "
         "or "},
        {"a\n1\nNA\n", j, "missing = own), which makes it a category, or missing = drop, which"},
        {"a\n1\nNA\n", l, "the value is missing; say columns(..., missing = drop), which leaves"},
        {"a,b\n,1\n,2\n", m, "column a has no value in the training part"},
        {"a\n1.5\n", i, "line 2, column a: '1.5' is no whole number of 32 bits"},
        {"a\n3000000000\n", i, "'3000000000' is no whole number of 32 bits"},
        {"a\n-1\n", i, "label -1"},
        {"a\n\xff\n", j, "is not UTF-8"},
        {"\xff\n1\n", j, "the header is not UTF-8"},
        {"a\np\nq\n", o, "column a has 2 values, the model declares classes = 1"},
        {"a1,a2\n1,2\n", two, "3 columns are declared, and the table has 2 of them"},
        {"a1,a2,a3,a4\n1,2,3,4\n", two, "more than the 3 columns"},
        {"a\n1\n", "x\tnumber", "damaged"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        write_text("bad.csv", cases[k].text);
        DataSpec spec = table("bad.csv", cases[k].columns);
        refuse(&spec, cases[k].expect);
    }
    write_text("bad.csv", "a\n1\n");
    write_text("worse.csv", "b\n1\n");
    char both[600];
    snprintf(both, sizeof both, "%s\n%s", temp_path("bad.csv"), temp_path("worse.csv"));
    DataSpec spec = table("bad.csv", x);
    spec.path = both;
    refuse(&spec, "worse.csv: its columns are not those of the first file");
}

/* Every allocation that fails is a message, and nothing is lost. */
static void test_no_memory(void)
{
    write_text("m.csv", "a,j\n1,x\n2,y\n3,\"x\"\"\"\n");
    DataSpec spec = table("m.csv", "x\tnumber\terror\t1\t0\t\ta\nj\tcategory\terror\t0\t0\t\tj");
    for (uint64_t k = 1; k < 100; k++) {
        RtError err = {{0}};
        rt_alloc_fail_at(k);
        Dataset *ds = dataset_open(&spec, &err);
        rt_alloc_fail_at(0);
        CHECK(ds || err.message[0]);
        dataset_close(ds);
        if (ds)
            return;
    }
    CHECK(false);
}

int main(void)
{
    temp_open();
    test_cells();
    test_values();
    test_standardized();
    test_categories();
    test_learned();
    test_every_row();
    test_mixed();
    test_files();
    test_refusals();
    test_no_memory();
    return test_result();
}
