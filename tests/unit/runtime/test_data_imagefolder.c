/* SPDX-License-Identifier: GPL-3.0-or-later */
/* imagefolder: what is listed, what is held out, what a batch holds however it is asked for, and
 * what is refused. */
#include "check.h"
#include "runtime/file.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/picture_case.h"
#include "tests/support/data/temp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 8, IMAGE = 3 * SIZE * SIZE };

/* A picture of one colour: red / 8 says which it is, whatever JPEG makes of it. */
static void write_picture(const char *dir, const char *class, int i, bool jpeg)
{
    unsigned char rgb[20 * 12 * 3];
    char name[200];
    for (int p = 0; p < 20 * 12; p++)
        memcpy(rgb + 3 * p, (unsigned char[]){(unsigned char)(8 * i), 100, 200}, 3);
    mkdir(temp_path(dir), 0777);
    snprintf(name, sizeof name, "%s/%s", dir, class);
    mkdir(temp_path(name), 0777);
    snprintf(name, sizeof name, "%s/%s/p%03d.%s", dir, class, i, jpeg ? "JPEG" : "png");
    if (jpeg)
        write_jpeg(name, 20, 12, TJPF_RGB, rgb);
    else
        write_png(name, 20, 12, PNG_FORMAT_RGB, rgb);
}

static DataSpec folder_spec(const char *name, int64_t batch)
{
    return (DataSpec){.kind = "imagefolder",
                      .path = temp_path(name),
                      .batch = batch,
                      .seed = 5,
                      .size = SIZE,
                      .resize = SIZE + 1,
                      .augment = true,
                      .std = {1, 1, 1}};
}

static int red(const float *image)
{
    return (int)lroundf(image[SIZE * SIZE / 2] * 255 / 8);
}

/* 30 pictures of three classes, numbered 0..29, class i % 3. */
static void test_parts(void)
{
    static const char *const classes[] = {"cat", "ant", "bee"}; /* sorted: ant bee cat */
    static const int label_of[] = {2, 0, 1};
    for (int i = 0; i < 30; i++)
        write_picture("flat", classes[i % 3], i, i % 2);
    DataSpec spec = folder_spec("flat", 6);
    spec.held_out = 6;
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 24 && dataset_batches_per_epoch(ds) == 4);
    CHECK(dataset_field(ds, 1)->max_id == 2);
    int seen[30] = {0}, held_classes[3] = {0};
    float x[6][IMAGE];
    int32_t y[6];
    int64_t counted;
    for (int64_t k = 0; k < 4; k++) {
        CHECK(dataset_train_batch(ds, k, (void *[]){x, y}, NULL));
        for (int b = 0; b < 6; b++) {
            int i = red(x[b]);
            i = i < 0 ? 0 : i > 29 ? 29 : i;
            CHECK(y[b] == label_of[i % 3]);
            seen[i]++;
        }
    }
    CHECK(dataset_eval_batches(ds) == 1 &&
          dataset_eval_batch(ds, 0, (void *[]){x, y}, &counted, NULL));
    for (int b = 0; b < 6; b++) {
        seen[red(x[b])]++;
        held_classes[y[b]]++;
    }
    for (int i = 0; i < 30; i++)
        CHECK_MSG(seen[i] == 1, "picture %d seen %d times", i, seen[i]);
    CHECK(held_classes[0] < 6 && held_classes[1] < 6 && held_classes[2] < 6); /* mixed */
    dataset_close(ds);
}

/* In order, in advance, repeated, out of order and after an evaluation: the same numbers. */
static void test_any_order(void)
{
    DataSpec spec = folder_spec("flat", 4);
    spec.held_out = 10;
    static const int64_t asked[] = {0, 1, 2, 2, 2, 0, 7, 8, 9, 3, 4, 5, 6};
    enum { N = sizeof asked / sizeof *asked };
    static float x[4][IMAGE], alone[4][IMAGE];
    int32_t y[4], label[4];
    int64_t counted;
    Dataset *ds = open_or_fail(&spec);
    for (int k = 0; k < N; k++) {
        spec.path = temp_path("flat");
        Dataset *fresh = open_or_fail(&spec);
        CHECK(dataset_train_batch(ds, asked[k], (void *[]){x, y}, NULL));
        CHECK(dataset_train_batch(fresh, asked[k], (void *[]){alone, label}, NULL));
        CHECK(memcmp(x, alone, sizeof x) == 0 && memcmp(y, label, sizeof y) == 0);
        dataset_close(fresh);
        if (k % 4 == 1) {
            for (int64_t i = 0; i < dataset_eval_batches(ds); i++)
                CHECK(dataset_eval_batch(ds, i, (void *[]){x, y}, &counted, NULL) &&
                      counted == (i < 2 ? 4 : 2));
            CHECK(y[2] == DATA_IGNORE && x[3][5] == 0);
        }
    }
    dataset_close(ds);
}

/* Another epoch shows another part of the same picture; without augmentation the same. */
static void test_augmentation(void)
{
    unsigned char rgb[40 * 40 * 3];
    for (int i = 0; i < 40 * 40; i++)
        memset(rgb + 3 * i, i % 40 * 6, 3);
    mkdir(temp_path("one"), 0777);
    mkdir(temp_path("one/only"), 0777);
    write_png("one/only/ramp.png", 40, 40, PNG_FORMAT_RGB, rgb);
    DataSpec spec = folder_spec("one", 1);
    float a[IMAGE], b[IMAGE];
    int rising = 0, different = 0;
    Dataset *ds = open_or_fail(&spec);
    for (int64_t k = 0; k < 64; k++) {
        CHECK(dataset_train_batch(ds, k, (void *[]){a, NULL}, NULL));
        rising += a[1] > a[0];
        different += k && memcmp(a, b, sizeof a) != 0;
        memcpy(b, a, sizeof a);
    }
    CHECK(rising > 16 && rising < 48 && different > 50);
    dataset_close(ds);
    spec.augment = false;
    spec.path = temp_path("one");
    ds = open_or_fail(&spec);
    CHECK(dataset_train_batch(ds, 0, (void *[]){a, NULL}, NULL) &&
          dataset_train_batch(ds, 9, (void *[]){b, NULL}, NULL) && memcmp(a, b, sizeof a) == 0);
    dataset_close(ds);
}

static void test_train_and_val(void)
{
    mkdir(temp_path("parts"), 0777);
    for (int i = 0; i < 8; i++)
        write_picture(i < 6 ? "parts/train" : "parts/val", i % 2 ? "x" : "y", i, false);
    DataSpec spec = folder_spec("parts", 2);
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 6 && dataset_held_out_size(ds) == 2);
    CHECK(strstr(dataset_description(ds), "test part") && !*dataset_warning(ds));
    dataset_close(ds);
    write_picture("parts/train", "w", 8, false); /* sorts first; held out are x and y */
    spec.path = temp_path("parts");
    ds = open_or_fail(&spec);
    CHECK(strstr(dataset_warning(ds), "no picture of 1 of the 3 classes, the first of them 'w'"));
    dataset_close(ds);
    write_picture("parts/val", "z", 9, false);
    spec.path = temp_path("parts");
    refuse(&spec, "'z' is not among");
}

/* A part alone is no class; a class that has the name of a part is one. */
static void test_part_alone(void)
{
    mkdir(temp_path("half"), 0777);
    for (int i = 0; i < 4; i++)
        write_picture("half/train", i % 2 ? "x" : "y", i, false);
    DataSpec spec = folder_spec("half", 2);
    refuse(&spec, "there is only train");
    write_picture("half", "bus", 4, false);
    spec.path = temp_path("half");
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 5 && dataset_field(ds, 1)->max_id == 1);
    dataset_close(ds);
}

static void test_refusals(void)
{
    mkdir(temp_path("empty"), 0777);
    DataSpec spec = folder_spec("empty", 1);
    refuse(&spec, "no folders");
    mkdir(temp_path("empty/class"), 0777);
    temp_write("empty/class/notes.txt", "x", 1);
    refuse(&spec, "no .jpg, .jpeg or .png");
    spec.path = "/nowhere/at/all";
    refuse(&spec, "cannot read the folder");
    spec = folder_spec("flat", 1);
    spec.resize = SIZE - 1;
    refuse(&spec, "from size = 8 to 65536");
    spec = folder_spec("flat", 1);
    spec.resize = 65537;
    refuse(&spec, "from size = 8 to 65536");
}

/* A folder whose names end early would be a smaller data set. */
static void test_unreadable(void)
{
    uint64_t k = 1;
    for (Dataset *ds = NULL; !ds; k++) {
        DataSpec spec = folder_spec("flat", 1);
        RtError err = {{0}};
        file_fail_at(k);
        ds = dataset_open(&spec, &err);
        file_fail_at(0);
        CHECK_MSG(ds ? dataset_train_size(ds) == 30
                     : strstr(err.message, "cannot read the folder") != NULL,
                  "operation %d: %s", (int)k, err.message);
        if (ds)
            dataset_close(ds);
    }
    CHECK(k > 30 + 3); /* pictures, classes */
}

/* What is no picture is found at once: a few are left out, more than that are refused. */
static void test_no_pictures(void)
{
    int64_t i;
    const char *why;
    for (int k = 0; k < 3; k++)
        write_picture("junk", "c", k, false);
    temp_write("junk/c/p007.png", "<html>", 6);
    temp_write("junk/c/p008.jpg", "", 0);
    static const unsigned char huge[] = {0xff, 0xd8, 0xff, 0xc0, 0, 17,   8, 0xff, 0xff, 0xff, 0xff,
                                         3,    1,    0x11, 0,    2, 0x11, 0, 3,    0x11, 0};
    temp_write("junk/c/p009.jpg", huge, sizeof huge);
    DataSpec spec = folder_spec("junk", 1);
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_left_out(ds) == 3 && dataset_left_out_limit(ds) == 3);
    CHECK(dataset_train_size(ds) == 6); /* they keep their numbers */
    int magic = 0, large = 0;
    while (dataset_tell_left_out(ds, &i, &why)) {
        magic += strstr(why, "neither a JPEG nor a PNG") != NULL;
        large += strstr(why, "65535 x 65535 pixels; at most 64 megapixels") != NULL;
        CHECK(strncmp(dataset_left_out_name(ds, i), "c/p00", 5) == 0);
    }
    CHECK(magic == 2 && large == 1);
    dataset_close(ds);
    temp_write("junk/c/p010.jpg", "text", 4);
    spec.path = temp_path("junk");
    refuse(&spec, "4 of 7 files");
}

/* The order, and with it what is held out, does not depend on how the folder is written. */
static void test_spelling_of_path(void)
{
    char dir[512], slashes[520];
    int32_t a, b;
    for (int i = 0; i < 9; i++)
        write_picture("spell", i % 2 ? "x" : "y", i, false);
    DataSpec spec = folder_spec("spell", 1);
    snprintf(dir, sizeof dir, "%s", temp_path("spell"));
    snprintf(slashes, sizeof slashes, "%s//", dir);
    spec.path = dir;
    Dataset *plain = open_or_fail(&spec);
    spec.path = slashes;
    Dataset *other = open_or_fail(&spec);
    for (int64_t k = 0; k < 9; k++)
        CHECK(dataset_train_batch(plain, k, (void *[]){NULL, &a}, NULL) &&
              dataset_train_batch(other, k, (void *[]){NULL, &b}, NULL) && a == b);
    dataset_close(plain);
    dataset_close(other);
}

/* ---- damaged pictures ---- */

enum { BAD = 12, BAD_BATCH = 4, BAD_BATCHES = 6 };

static bool is_bad(int i)
{
    return i == 2 || i == 7;
}

static void damage(int i)
{
    char name[64];
    snprintf(name, sizeof name, "bad/%s/p%03d.png", i % 2 ? "x" : "y", i);
    temp_write(name, "\x89PNG\r\n\x1a\nrubbish", 15);
}

typedef struct Batches {
    float x[BAD_BATCHES][BAD_BATCH][IMAGE];
    int32_t y[BAD_BATCHES][BAD_BATCH];
} Batches;

static void fill(Dataset *ds, Batches *out, const int *order)
{
    for (int k = 0; k < BAD_BATCHES; k++) {
        RtError err = {{0}};
        bool ok =
            dataset_train_batch(ds, order[k], (void *[]){out->x[order[k]], out->y[order[k]]}, &err);
        CHECK_MSG(ok, "batch %d: %s", order[k], err.message);
    }
}

/* Damaged pictures are left out, whatever was asked for before, and each is told once; the others
 * are where they would be without them. */
static void test_damaged(void)
{
    static const int forth[BAD_BATCHES] = {0, 1, 2, 3, 4, 5},
                     back[BAD_BATCHES] = {5, 0, 3, 4, 1, 2};
    static Batches whole, a, b;
    int told = 0, other = 0;
    int64_t i;
    const char *why;
    for (int k = 0; k < BAD; k++)
        write_picture("bad", k % 2 ? "x" : "y", k, false);
    DataSpec spec = folder_spec("bad", BAD_BATCH);
    Dataset *ds = open_or_fail(&spec);
    fill(ds, &whole, forth);
    dataset_close(ds);
    for (int k = 0; k < BAD; k++)
        if (is_bad(k))
            damage(k);
    spec.path = temp_path("bad");
    ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == BAD && dataset_left_out(ds) == 0);
    fill(ds, &a, forth);
    while (dataset_tell_left_out(ds, &i, &why)) {
        const char *name = dataset_left_out_name(ds, i);
        CHECK(strcmp(name, "y/p002.png") == 0 || strcmp(name, "x/p007.png") == 0);
        CHECK(*why && i == told);
        told++;
    }
    CHECK(told == 2 && dataset_left_out(ds) == 2);
    fill(ds, &b, back);
    CHECK(!dataset_tell_left_out(ds, &i, &why));
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    dataset_close(ds);
    for (int k = 0; k < BAD_BATCHES; k++)
        for (int p = 0; p < BAD_BATCH; p++) {
            int was = red(whole.x[k][p]), is = red(a.x[k][p]);
            CHECK_MSG(is >= 0 && is < BAD && !is_bad(is) && a.y[k][p] == (is % 2 ? 0 : 1),
                      "%d shown", is);
            CHECK(is_bad(was) ||
                  (is == was && memcmp(a.x[k][p], whole.x[k][p], sizeof a.x[k][p]) == 0));
            other += is != was;
        }
    CHECK_MSG(other == 4, "%d places", other); /* two pictures in two epochs */
    spec.path = temp_path("bad");
    ds = open_or_fail(&spec);
    fill(ds, &b, back);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    dataset_close(ds);
}

/* A run that is continued knows what was left out: the files, and even the folder of a class, may
 * be gone or mended meanwhile, and every batch is what it would have been. */
static void test_known(void)
{
    static const int forth[BAD_BATCHES] = {0, 1, 2, 3, 4, 5};
    static const char *const names[] = {"y/p002.png", "x/p007.png", "z/p100.png"};
    static Batches a, b;
    write_picture("bad", "z", 10, false);
    rename(temp_path("bad/z/p010.png"), temp_path("bad/z/p100.png"));
    temp_write("bad/z/p100.png", "\x89PNG\r\n\x1a\nrubbish", 15);
    DataSpec spec = folder_spec("bad", BAD_BATCH);
    Dataset *ds = open_or_fail(&spec);
    fill(ds, &a, forth);
    dataset_close(ds);
    write_picture("bad", "y", 2, false); /* mended */
    remove(temp_path("bad/x/p007.png")); /* deleted */
    remove(temp_path("bad/z/p100.png"));
    CHECK(rmdir(temp_path("bad/z")) == 0);
    spec = folder_spec("bad", BAD_BATCH);
    spec.left_out = names;
    spec.n_left_out = 3;
    ds = open_or_fail(&spec);
    int64_t i;
    const char *why;
    CHECK(dataset_left_out(ds) == 3 && !dataset_tell_left_out(ds, &i, &why));
    CHECK(dataset_train_size(ds) == BAD + 1 && dataset_field(ds, 1)->max_id == 2);
    fill(ds, &b, forth);
    CHECK(memcmp(&a, &b, sizeof a) == 0);
    dataset_close(ds);
}

/* One more than the limit ends it; those that were known do not count. */
static void test_limit(void)
{
    static const char *const names[] = {"y/p000.png", "y/p002.png"};
    float x[BAD_BATCH][IMAGE];
    for (int k = 0; k < BAD; k++) {
        write_picture("bad", k % 2 ? "x" : "y", k, false);
        if (k < 5)
            damage(k);
    }
    for (int known = 0; known < 3; known += 2) {
        DataSpec spec = folder_spec("bad", BAD_BATCH);
        spec.left_out = names;
        spec.n_left_out = known;
        Dataset *ds = open_or_fail(&spec);
        RtError err = {{0}};
        bool ok = true;
        for (int k = 0; ok && k < 3; k++)
            ok = dataset_train_batch(ds, k, (void *[]){x, NULL}, &err);
        CHECK_MSG(known ? ok : !ok && strstr(err.message, "more than 3 of 12 pictures"), "%s",
                  err.message);
        CHECK(dataset_left_out(ds) == (known ? 5 : 4));
        dataset_close(ds);
    }
}

/* In evaluation nothing takes the place of what cannot be read: it does not count. */
static void test_damaged_held_out(void)
{
    float x[BAD_BATCH][IMAGE];
    int32_t y[BAD_BATCH];
    int64_t counted;
    mkdir(temp_path("held"), 0777);
    for (int k = 0; k < 8; k++)
        write_picture(k < 4 ? "held/train" : "held/val", "c", k, false);
    temp_write("held/val/c/p005.png", "\x89PNG\r\n\x1a\nrubbish", 15);
    DataSpec spec = folder_spec("held", BAD_BATCH);
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_eval_batch(ds, 0, (void *[]){x, y}, &counted, NULL) && counted == 3);
    CHECK(y[1] == DATA_IGNORE && x[1][7] == 0 && y[0] == 0 && y[2] == 0 && red(x[3]) == 7);
    CHECK(dataset_left_out(ds) == 1 && strcmp(dataset_left_out_name(ds, 0), "val/c/p005.png") == 0);
    dataset_close(ds);
}

/* A name from a file that somebody else wrote lists nothing outside of the data's folder. */
static void test_names_that_lead_out(void)
{
    static const char *const names[] = {"../c/p000.png", "../../p.png"};
    DataSpec spec = folder_spec("held/train", BAD_BATCH);
    Dataset *ds = open_or_fail(&spec);
    int64_t size = dataset_train_size(ds);
    dataset_close(ds);
    spec.left_out = names;
    spec.n_left_out = 2;
    ds = open_or_fail(&spec);
    CHECK_MSG(dataset_train_size(ds) == size, "%d pictures", (int)dataset_train_size(ds));
    dataset_close(ds);
}

/* Every allocation of opening may fail: a message, and nothing is lost. */
static void test_allocation_failures(void)
{
    static const char *const names[] = {"y/p000.png", "z/p900.png"};
    Dataset *ds = NULL;
    for (uint64_t k = 1; !ds && k < 2000; k++) {
        DataSpec spec = folder_spec("bad", 2);
        RtError err = {{0}};
        spec.left_out = names;
        spec.n_left_out = 2;
        rt_alloc_fail_at(k);
        ds = dataset_open(&spec, &err);
        rt_alloc_fail_at(0);
        CHECK_MSG(ds || strstr(err.message, "memory"), "allocation %d: %s", (int)k, err.message);
    }
    CHECK(ds && dataset_left_out(ds) >= 2);
    dataset_close(ds);
}

int main(void)
{
    temp_open();
    test_parts();
    test_any_order();
    test_augmentation();
    test_train_and_val();
    test_part_alone();
    test_refusals();
    test_unreadable();
    test_no_pictures();
    test_spelling_of_path();
    test_damaged();
    test_known();
    test_limit();
    test_damaged_held_out();
    test_names_that_lead_out();
    test_allocation_failures();
    return test_result();
}
