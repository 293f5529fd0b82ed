/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zip: the batches of one source with all fields; what is learned of a part is that part's; sources
 * that do not go together are refused. */
#include "check.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/temp.h"
#include "tests/support/data/zip_case.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { EXAMPLES = 11, BATCH = 4 };

static float x[EXAMPLES][2];
static int32_t y[EXAMPLES];

static void write_arrays(const char *name, bool with_x, bool with_y, int n)
{
    ZipCase z = {0};
    char shape[2][32];
    snprintf(shape[0], sizeof shape[0], "(%d, 2)", n);
    snprintf(shape[1], sizeof shape[1], "(%d,)", n);
    if (with_x)
        zip_add_npy(&z, "x", "<f4", shape[0], x, (int64_t)n * 8, false);
    if (with_y)
        zip_add_npy(&z, "y", "<i4", shape[1], y, (int64_t)n * 4, true);
    zip_end(&z);
    temp_write(name, z.bytes, (size_t)z.n);
    zip_free(&z);
}

static void write_table(const char *name, int n)
{
    char text[1000] = "size,kind\n";
    for (int i = 0; i < n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d,%s\n", i * i,
                 i % 3 ? "red" : "blue");
    temp_write(name, text, strlen(text));
}

static DataSpec arrays(const char *path, const char *columns)
{
    return (DataSpec){.kind = "npz", .path = temp_path(path), .columns = columns};
}

static DataSpec table(const char *path)
{
    return (DataSpec){.kind = "csv",
                      .path = temp_path(path),
                      .in_order = true,
                      .columns = "size\tnumber\terror\t1\t0\t\tsize\n"
                                 "kind\tcategory\terror\t0\t0\t\tkind"};
}

static DataSpec zip_of(const DataSpec *part, int n)
{
    return (DataSpec){.kind = "zip",
                      .part = part,
                      .n_parts = n,
                      .batch = BATCH,
                      .seed = 3,
                      .held_out = 5,
                      .columns = "x\tx\ny\ty"};
}

typedef struct Batch {
    float x[BATCH][2];
    int32_t y[BATCH];
    int64_t counted;
} Batch;

static Batch read_batch(const Dataset *ds, bool training, int64_t i)
{
    Batch b;
    void *dst[DATA_MAX_FIELDS] = {0};
    memset(&b, 0, sizeof b);
    dst[dataset_find_field(ds, "x")] = b.x;
    dst[dataset_find_field(ds, "y")] = b.y;
    CHECK(training ? dataset_train_batch(ds, i, dst, NULL)
                   : dataset_eval_batch(ds, i, dst, &b.counted, NULL));
    return b;
}

static void test_as_one(void)
{
    const DataSpec part[] = {arrays("y.npz", "y\ty"), arrays("x.npz", "x\tx")};
    DataSpec spec = zip_of(part, 2), one = spec;
    one.kind = "npz";
    one.path = temp_path("both.npz");
    Dataset *ds = open_or_fail(&spec), *want = open_or_fail(&one);
    const DataField *label = dataset_field(ds, dataset_find_field(ds, "y"));
    CHECK(label->label && label->max_id == 4 && label->min_id == 0);
    CHECK(dataset_train_size(ds) == 6 && dataset_held_out_size(ds) == 5);
    CHECK(dataset_eval_batches(ds) == 2);
    for (int64_t i = 0; i < 8; i++) {
        Batch a = read_batch(ds, i < 6, i < 6 ? i : i - 6),
              b = read_batch(want, i < 6, i < 6 ? i : i - 6);
        CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "batch %d", (int)i);
        CHECK(dataset_example(ds, i < 6, 0, 1) == dataset_example(want, i < 6, 0, 1));
    }
    dataset_close(ds);
    dataset_close(want);
}

/* What a table learns is learned of the rows that the zip trains on, and read again in its place.
 */
static void test_learned(void)
{
    const DataSpec part[] = {arrays("both.npz", "x\tx\ny\ty"), table("t.csv")};
    DataSpec spec = zip_of(part, 2), alone = table("t.csv");
    alone.batch = BATCH;
    alone.held_out = 5;
    Dataset *ds = open_or_fail(&spec), *want = open_or_fail(&alone);
    json_t *learned = json_deep_copy(dataset_learned(ds));
    CHECK(json_array_size(learned) == 2 && json_is_null(json_array_get(learned, 0)));
    CHECK(json_equal(json_array_get(learned, 1), dataset_learned(want)));
    dataset_close(ds);
    dataset_close(want);
    write_table("t.csv", 8); /* other rows, by what was learned before */
    write_arrays("both.npz", true, true, 8);
    spec.learned = learned;
    ds = open_or_fail(&spec);
    CHECK(json_equal(learned, dataset_learned(ds)));
    dataset_close(ds);
    json_decref(learned);
    write_arrays("both.npz", true, true, EXAMPLES);
    write_table("t.csv", EXAMPLES);
}

static void test_refusals(void)
{
    const DataSpec whole = arrays("both.npz", "x\tx\ny\ty");
    const struct {
        DataSpec part[2];
        const char *expect;
    } wrong[] = {
        {{whole, arrays("x.npz", "x\tx")}, "two sources have a field x"},
        {{arrays("x.npz", "x\tx"), arrays("short.npz", "y\ty")},
         "npz (the first) has 6 examples to train on and 5 held out, npz (number 2) 5 and 5"},
        {{whole, {.kind = "text", .path = temp_path("t.csv"), .length = 2}}, "text cannot be"},
        {{whole, {.kind = "synthetic"}}, "synthetic cannot be zipped"},
        {{whole, {.kind = "nothing"}}, "there is no reader for 'nothing'"},
        {{whole, arrays("gone.npz", "z\tz")}, "gone.npz"},
        {{whole, zip_of(&whole, 1)}, "zip cannot be zipped"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DataSpec spec = zip_of(wrong[i].part, 2);
        refuse(&spec, wrong[i].expect);
    }
    DataSpec spec = zip_of(&whole, 1);
    spec.held_path = temp_path("both.npz");
    refuse(&spec, "zip reads several sources");
    spec = zip_of(&whole, 0);
    refuse(&spec, "zip wants 1 to 8 sources");
    spec = zip_of(&whole, 1);
    spec.held_out = 12;
    refuse(&spec, "there are only 11");
    spec.held_out = 0;
    spec.batch = 12;
    refuse(&spec, "a batch needs 12");
}

/* Also what was opened before something failed goes away again: the sanitizers look. */
static void test_out_of_memory(void)
{
    const DataSpec part[] = {arrays("both.npz", "x\tx\ny\ty"), table("t.csv")};
    DataSpec spec = zip_of(part, 2);
    int failed = 0;
    for (uint64_t k = 1; k < 60; k++) {
        RtError err = {{0}};
        rt_alloc_fail_at(k);
        Dataset *ds = dataset_open(&spec, &err);
        rt_alloc_fail_at(0);
        CHECK(ds || err.message[0]);
        failed += !ds;
        dataset_close(ds);
    }
    CHECK(failed > 5 && failed < 59);
}

int main(void)
{
    temp_open();
    for (int i = 0; i < EXAMPLES; i++) {
        x[i][0] = (float)i;
        x[i][1] = (float)(i * i);
        y[i] = i % 5;
    }
    write_arrays("both.npz", true, true, EXAMPLES);
    write_arrays("x.npz", true, false, EXAMPLES);
    write_arrays("y.npz", false, true, EXAMPLES);
    write_arrays("short.npz", false, true, EXAMPLES - 1);
    write_table("t.csv", EXAMPLES);
    test_as_one();
    test_learned();
    test_refusals();
    test_out_of_memory();
    return test_result();
}
