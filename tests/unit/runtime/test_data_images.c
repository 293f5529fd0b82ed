/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MNIST, CIFAR-10 and .npy from generated files: contents, splits, shuffling that resumes, padding,
 * refusals. */
#include "runtime/data_internal.h"
#include "runtime/npy.h"

#include "check.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/temp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { H = 2, W = 3, PIXELS = H * W };

/* Image i of a part has pixels base + i, base + i + 1, ...; label i % 10. */
static void write_mnist(const char *dir, const char *part, int n, int base, bool gz)
{
    unsigned char image[16 + 256 * PIXELS] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, H, 0, 0, 0, W};
    unsigned char label[8 + 256] = {0, 0, 8, 1};
    char name[200];
    image[7] = label[7] = (unsigned char)n;
    image[6] = label[6] = (unsigned char)(n >> 8);
    for (int i = 0; i < n; i++) {
        for (int p = 0; p < PIXELS; p++)
            image[16 + i * PIXELS + p] = (unsigned char)(base + i + p);
        label[8 + i] = (unsigned char)(i % 10);
    }
    mkdir(temp_path(dir), 0777);
    size_t image_bytes = 16 + (size_t)n * PIXELS, label_bytes = 8 + (size_t)n;
    snprintf(name, sizeof name, "%s/%s-images-idx3-ubyte%s", dir, part, gz ? ".gz" : "");
    gz ? temp_write_gz(name, image, (unsigned)image_bytes) : temp_write(name, image, image_bytes);
    snprintf(name, sizeof name, "%s/%s-labels-idx1-ubyte%s", dir, part, gz ? ".gz" : "");
    gz ? temp_write_gz(name, label, (unsigned)label_bytes) : temp_write(name, label, label_bytes);
}

/* One epoch shows no example twice and leaves out only the incomplete batch; the same step gives
 * the same batch when it is asked for alone. */
static void test_epochs(void)
{
    write_mnist("one", "t10k", 50, 0, true);
    DataSpec spec = {.kind = "mnist", .batch = 8, .held_out = 7, .seed = 3};
    spec.path = temp_path("one");
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 43 && dataset_held_out_size(ds) == 7);
    CHECK(dataset_batches_per_epoch(ds) == 5 && dataset_n_fields(ds) == 2);
    const DataField *image = dataset_field(ds, 0), *label = dataset_field(ds, 1);
    CHECK(strcmp(image->name, "image") == 0 && image->dtype == RT_U8 && image->rank == 2 &&
          image->dim[0] == H && image->dim[1] == W);
    CHECK(label->label && label->max_id == 9 && label->min_id == 0 && label->rank == 0);
    int first[3][40];
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        int seen[50] = {0};
        for (int64_t k = 0; k < 5; k++) {
            unsigned char x[8][PIXELS], again[8][PIXELS];
            int32_t y[8];
            CHECK(dataset_train_batch(ds, epoch * 5 + k, (void *[]){x, y}, NULL));
            CHECK(dataset_train_batch(ds, epoch * 5 + k, (void *[]){again, NULL}, NULL));
            CHECK(memcmp(x, again, sizeof x) == 0);
            for (int b = 0; b < 8; b++) {
                int i = x[b][0];
                CHECK(i < 43 && !seen[i < 50 ? i : 0]++);
                CHECK(x[b][PIXELS - 1] == i + PIXELS - 1 && y[b] == i % 10);
                first[epoch][k * 8 + b] = i;
            }
        }
    }
    CHECK(memcmp(first[0], first[1], sizeof first[0]) &&
          memcmp(first[1], first[2], sizeof first[0]));
    CHECK(!dataset_train_batch(ds, -1, (void *[]){NULL, NULL}, NULL));
    dataset_close(ds);
    spec.seed = 4;
    spec.batch = 40;
    ds = open_or_fail(&spec);
    unsigned char x[40][PIXELS];
    int same = 0;
    CHECK(dataset_train_batch(ds, 0, (void *[]){x, NULL}, NULL));
    for (int b = 0; b < 40; b++)
        same += x[b][0] == first[0][b];
    CHECK(same < 10); /* another seed, another order */
    dataset_close(ds);
}

static void test_evaluation(void)
{
    DataSpec spec = {.kind = "mnist", .batch = 4, .held_out = 10};
    spec.path = temp_path("one");
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_eval_batches(ds) == 3);
    int64_t total = 0, counted;
    for (int64_t i = 0; i < 3; i++) {
        unsigned char x[4][PIXELS];
        int32_t y[4];
        CHECK(dataset_eval_batch(ds, i, (void *[]){x, y}, &counted, NULL));
        total += counted;
        for (int b = 0; b < 4; b++) {
            int k = (int)i * 4 + b;
            CHECK(k < 10 ? x[b][0] == 40 + k && y[b] == k % 10 : x[b][0] == 0 && y[b] == -100);
        }
        int64_t without_labels;
        CHECK(dataset_eval_batch(ds, i, (void *[]){x, NULL}, &without_labels, NULL));
        CHECK(without_labels == counted);
    }
    CHECK(total == 10);
    CHECK(!dataset_eval_batch(ds, 3, (void *[]){NULL, NULL}, &counted, NULL));
    CHECK(!dataset_eval_batch(ds, -1, (void *[]){NULL, NULL}, &counted, NULL));
    dataset_close(ds);
}

/* With both pairs the test pair is held out whatever held_out says. */
static void test_both_pairs(void)
{
    write_mnist("both", "train", 60, 0, false);
    write_mnist("both", "t10k", 20, 100, true);
    DataSpec spec = {.kind = "mnist", .batch = 20, .held_out = 5};
    spec.path = temp_path("both");
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 60 && dataset_held_out_size(ds) == 20);
    CHECK(strstr(dataset_description(ds), "test part"));
    unsigned char x[20][PIXELS];
    int64_t counted;
    CHECK(dataset_eval_batch(ds, 0, (void *[]){x, NULL}, &counted, NULL) && counted == 20);
    CHECK(x[0][0] == 100 && x[19][0] == 119);
    dataset_close(ds);
    write_mnist("mixed", "train", 60, 0, false);
    rename(temp_path("mixed/train-labels-idx1-ubyte"), temp_path("mixed/other"));
    spec.path = temp_path("mixed");
    refuse(&spec, "not train-labels");
    write_mnist("counts", "train", 60, 0, false);
    write_mnist("counts2", "train", 59, 0, false);
    rename(temp_path("counts2/train-labels-idx1-ubyte"),
           temp_path("counts/train-labels-idx1-ubyte"));
    spec.path = temp_path("counts");
    refuse(&spec, "59 labels");
    spec.path = temp_path("nowhere");
    refuse(&spec, "nowhere: no such folder");
    mkdir(spec.path, 0777);
    refuse(&spec, "train-images-idx3-ubyte");
}

/* Sizes are big-endian, each of four bytes; no elements where one of them is 0. */
static void test_idx_sizes(void)
{
    static const unsigned char bytes[] = {0, 0, 8, 3, 1, 2, 3, 4, 0, 0, 0, 0, 0, 1, 0x11, 0x70};
    IdxArray array;
    RtError err = {{0}};
    CHECK_MSG(idx_parse(bytes, sizeof bytes, &array, &err), "%s", err.message);
    CHECK(array.rank == 3 && array.dims[0] == 0x01020304 && array.dims[1] == 0 &&
          array.dims[2] == 70000);
}

static void test_idx_refusals(void)
{
    static const struct {
        unsigned char bytes[24];
        int n;
    } bad[] = {
        {{0}, 0},
        {{0, 0, 8}, 3},
        {{1, 0, 8, 1, 0, 0, 0, 0}, 8},        /* magic */
        {{0, 0, 13, 1, 0, 0, 0, 0}, 8},       /* floats */
        {{0, 0, 8, 0}, 4},                    /* rank 0 */
        {{0, 0, 8, 5}, 24},                   /* rank 5 */
        {{0, 0, 8, 2, 0, 0, 0, 1}, 8},        /* header cut */
        {{0, 0, 8, 1, 0, 0, 0, 2, 7}, 9},     /* data cut */
        {{0, 0, 8, 1, 0, 0, 0, 1, 7, 7}, 10}, /* data too long */
        {{0,   0,   8,   4,   255, 255, 255, 255, 255, 255,
          255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
         20},                                               /* overflow */
        {{0, 0, 8, 2, 255, 255, 255, 255, 0, 0, 0, 2}, 24}, /* 2^33 bytes */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        IdxArray array;
        RtError err = {{0}};
        CHECK_MSG(!idx_parse(bad[i].bytes, bad[i].n, &array, &err) && err.message[0], "case %zu",
                  i);
    }
}

static void refuse_idx_gz(const unsigned char head[16], int64_t follow, const char *expect)
{
    static unsigned char bytes[16 + 4000000];
    DataSpec spec = {.kind = "mnist", .batch = 1};
    memcpy(bytes, head, 16);
    write_mnist("bomb", "train", 2, 0, false);
    remove(temp_path("bomb/train-images-idx3-ubyte"));
    temp_write_gz("bomb/train-images-idx3-ubyte.gz", bytes, (unsigned)(16 + follow));
    spec.path = temp_path("bomb");
    refuse(&spec, expect);
}

/* What a packed file may unpack to, its header says: neither more nor less is taken, and what is
 * beyond the limit, or beyond what its bytes can hold, is refused before memory is allocated. */
static void test_idx_bombs(void)
{
    static const unsigned char two[16] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, H, 0, 0, 0, W},
                               many[16] = {0, 0, 8, 3, 0, 16, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0},
                               limit[16] = {0, 0, 8, 3, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1},
                               other[16] = {0, 0, 8, 1, 0, 16, 0, 0};
    refuse_idx_gz(two, 4000000, "bomb/train-images-idx3-ubyte.gz: it goes on");
    refuse_idx_gz(two, 2 * PIXELS - 1, "it ends early");
    refuse_idx_gz(many, 4000000, "promises 68719476736 bytes; at most");
    refuse_idx_gz(limit, 4000000, "unpack it with gunzip");
    refuse_idx_gz(other, 4000000, "rank 1 instead of 3");
    static const unsigned char thin[16] = {0, 0, 8, 3, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0};
    refuse_idx_gz(thin, 100, "too many for");
}

static void test_cifar(void)
{
    enum { RECORD = 3073 };
    static unsigned char file[4 * RECORD];
    for (int i = 0; i < 4; i++) {
        file[i * RECORD] = (unsigned char)(i + 3);
        for (int p = 0; p < 3072; p++)
            file[i * RECORD + 1 + p] = (unsigned char)(p + i);
    }
    mkdir(temp_path("cifar"), 0777);
    temp_write("cifar/data_batch_1.bin", file, 3 * RECORD);
    temp_write("cifar/data_batch_4.bin", file, 4 * RECORD);
    temp_write("cifar/test_batch.bin", file + RECORD, 2 * RECORD);
    DataSpec spec = {.kind = "cifar10", .batch = 7, .path = temp_path("cifar")};
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 7 && dataset_held_out_size(ds) == 2);
    unsigned char x[7][3072];
    int32_t y[7];
    int sum = 0;
    CHECK(dataset_train_batch(ds, 0, (void *[]){x, y}, NULL));
    for (int b = 0; b < 7; b++) {
        CHECK(x[b][0] == y[b] - 3 && x[b][3071] == (unsigned char)(3071 + y[b] - 3));
        sum += y[b];
    }
    CHECK(sum == 3 * 3 + 3 + 4 * 3 + 6);
    int64_t counted;
    CHECK(dataset_eval_batch(ds, 0, (void *[]){x, y}, &counted, NULL) && counted == 2);
    CHECK(y[0] == 4 && y[1] == 5 && y[2] == -100);
    dataset_close(ds);
    file[0] = 10;
    temp_write("cifar/data_batch_1.bin", file, RECORD);
    refuse(&spec, "label 10");
    temp_write("cifar/data_batch_1.bin", file, RECORD - 1);
    refuse(&spec, "3073-byte records");
}

/* ---- npy ---- */

static void write_npy(const char *name, int version, const char *header, const void *data, size_t n)
{
    unsigned char file[4096] = "\x93NUMPY";
    size_t len = strlen(header), start = version == 1 ? 10 : 12;
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)len;
    file[9] = (unsigned char)(len >> 8);
    memcpy(file + start, header, len);
    memcpy(file + start + len, data, n);
    temp_write(name, file, start + len + n);
}

static void test_npy(void)
{
    float x[5][2];
    double wide[5];
    int64_t y[5] = {0, 3, -100, 1, 2};
    int32_t ids[5] = {7, -2, 7, 9, 7};
    unsigned char u[5] = {200, 1, 2, 3, 4};
    for (int i = 0; i < 5; i++) {
        x[i][0] = (float)i;
        x[i][1] = (float)-i;
        wide[i] = i / 3.0;
    }
    mkdir(temp_path("npy"), 0777);
    write_npy("npy/x.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }   \n", x,
              sizeof x);
    write_npy("npy/wide.npy", 2,
              "{\"shape\": (5,), \"descr\": \"<f8\", \"fortran_order\": False}\n", wide,
              sizeof wide);
    write_npy("npy/y.npy", 3, "{'descr': '<i8', 'fortran_order': False, 'shape': (5L,)}\n", y,
              sizeof y);
    write_npy("npy/ids.npy", 1, "{'descr':'<i4','fortran_order':False,'shape':(5,1,1)}", ids,
              sizeof ids);
    write_npy("npy/u.npy", 1, "{'descr':'|u1','fortran_order':False,'shape':(5,)}", u, sizeof u);
    DataSpec spec = {.kind = "npy", .batch = 3, .held_out = 5, .path = temp_path("npy")};
    Dataset *ds = open_or_fail(&spec);
    int fx = dataset_find_field(ds, "x"), fw = dataset_find_field(ds, "wide"),
        fy = dataset_find_field(ds, "y"), fi = dataset_find_field(ds, "ids"),
        fu = dataset_find_field(ds, "u");
    CHECK(fx >= 0 && fw >= 0 && fy >= 0 && fi >= 0 && fu >= 0 && dataset_n_fields(ds) == 5);
    CHECK(dataset_field(ds, fx)->dtype == RT_F32 && dataset_field(ds, fw)->dtype == RT_F32);
    CHECK(dataset_field(ds, fy)->dtype == RT_I32 && dataset_field(ds, fy)->label);
    CHECK(dataset_field(ds, fy)->max_id == 3 && dataset_field(ds, fy)->min_id == 0);
    CHECK(dataset_field(ds, fi)->max_id == 9 && dataset_field(ds, fi)->min_id == -2);
    CHECK(dataset_field(ds, fi)->rank == 2 && dataset_field(ds, fu)->dtype == RT_U8);
    float bx[3][2], bw[3];
    int32_t by[3], bi[3];
    unsigned char bu[3];
    void *dst[5];
    dst[fx] = bx, dst[fw] = bw, dst[fy] = by, dst[fi] = bi, dst[fu] = bu;
    int64_t counted;
    CHECK(dataset_eval_batch(ds, 1, dst, &counted, NULL) && counted == 2);
    CHECK(bx[0][1] <= -3 && bx[0][1] >= -3 && bx[2][0] >= 0 && bx[2][0] <= 0);
    CHECK(fabsf(bw[1] - 4 / 3.0f) < 1e-6f && by[0] == 1 && by[1] == 2 && by[2] == -100);
    CHECK(bi[0] == 9 && bi[2] == 0 && bu[0] == 3);
    CHECK(dataset_eval_batch(ds, 0, dst, &counted, NULL) && counted == 2); /* one is ignored */
    CHECK(bu[0] == 200);
    dataset_close(ds);
    /* Without labels there is nothing to pad with: whole batches only. */
    spec.path = temp_path("npy/x.npy");
    ds = open_or_fail(&spec);
    CHECK(dataset_eval_batches(ds) == 1);
    dst[0] = bx;
    CHECK(dataset_eval_batch(ds, 0, dst, &counted, NULL) && counted == 3);
    dataset_close(ds);
    int64_t large[5] = {(int64_t)1 << 31};
    write_npy("npy/y.npy", 1, "{'descr':'<i8','fortran_order':False,'shape':(5,)}", large,
              sizeof large);
    spec.path = temp_path("npy");
    refuse(&spec, "does not fit 32 bits");
    write_npy("npy/y.npy", 1, "{'descr':'<i4','fortran_order':False,'shape':(5,)}",
              (int32_t[5]){0, -1}, 20);
    refuse(&spec, "label -1");
    write_npy("npy/y.npy", 1, "{'descr':'<i4','fortran_order':False,'shape':(4,)}", ids, 16);
    refuse(&spec, "4 examples");
}

/* A loss with another ignore_index: no class of the data's, what batches are filled up with, and
 * not counted. */
static void test_ignored_label(void)
{
    static const int32_t y[5] = {0, 255, 2, 1, 255};
    mkdir(temp_path("ignored"), 0777);
    write_npy("ignored/y.npy", 1, "{'descr':'<i4','fortran_order':False,'shape':(5,)}", y,
              sizeof y);
    DataSpec spec = {.kind = "npy", .batch = 3, .held_out = 5, .path = temp_path("ignored")};
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_field(ds, 0)->max_id == 255);
    dataset_close(ds);
    strcpy(spec.ignored_field, "y");
    spec.ignored = 255;
    ds = open_or_fail(&spec);
    CHECK(dataset_field(ds, 0)->max_id == 2 && dataset_field(ds, 0)->min_id == 0);
    int32_t got[3];
    int64_t counted;
    CHECK(dataset_eval_batch(ds, 1, (void *[]){got}, &counted, NULL) && counted == 1);
    CHECK(got[0] == 1 && got[1] == 255 && got[2] == 255);
    dataset_close(ds);
}

static void test_npy_refusals(void)
{
    static const char *const bad[] = {
        "",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 0, 1)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2,)}",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '>f2', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<f1', 'fortran_order': False, 'shape': (8,)}",
        "{'descr': '<', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr' '<f4'}",
        "{'descr': '<f4\\'', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
    };
    float two[2] = {1, 2};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FileBytes file;
        NpyArray array;
        RtError err = {{0}};
        write_npy("bad.npy", 1, bad[i], two, sizeof two);
        CHECK(file_read(temp_path("bad.npy"), 10000, &file, NULL));
        CHECK_MSG(!npy_parse(file.data, file.bytes, &array, &err) && err.message[0], "%s", bad[i]);
        file_release(&file);
    }
    NpyArray array;
    FileBytes file;
    write_npy("bad.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", two, 8);
    CHECK(file_read(temp_path("bad.npy"), 10000, &file, NULL));
    CHECK(!npy_parse(file.data, file.bytes, &array, NULL)); /* bytes left over */
    CHECK(npy_parse(file.data, file.bytes - 4, &array, NULL));
    file_release(&file);
    CHECK(!npy_parse((const unsigned char *)"\x93NUMPY\x09\0\0\0\0\0\0\0", 14, &array, NULL));
    CHECK(!npy_parse((const unsigned char *)"\x93NUMPY\x01\0\xff\xff{}", 12, &array, NULL));
    write_npy("0bad.npy", 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", two, 8);
    DataSpec spec = {.kind = "npy", .batch = 1, .path = temp_path("0bad.npy")};
    refuse(&spec, "rename it");
}

static void test_specs(void)
{
    DataSpec spec = {.kind = "mnst", .batch = 1, .path = temp_path("one")};
    refuse(&spec, "mnist, cifar10");
    spec.kind = NULL;
    refuse(&spec, "no reader");
    spec.kind = "mnist";
    spec.batch = 0;
    refuse(&spec, "batch");
    spec.batch = 51;
    refuse(&spec, "lower the batch size");
    spec.batch = 1;
    spec.held_out = 51;
    refuse(&spec, "there are only 50");
    spec.held_out = -1;
    refuse(&spec, "held_out");
    spec.held_out = (double)NAN;
    refuse(&spec, "held_out");
    spec.held_out = 1.5;
    spec.held_out_is_part = true;
    refuse(&spec, "held_out");
    static const double parts[] = {0, 0.1, 0.3, 0.9, 1};
    for (int i = 0; i < 5; i++) {
        spec.held_out = parts[i];
        Dataset *ds = open_or_fail(&spec);
        CHECK(dataset_held_out_size(ds) == (int64_t)lround(50 * parts[i]));
        dataset_close(ds);
    }
    spec.batch = 64; /* nothing to train on, but there is something to evaluate */
    spec.held_out = 0.5;
    Dataset *ds = open_or_fail(&spec);
    RtError err;
    CHECK(dataset_batches_per_epoch(ds) == 0 && dataset_eval_batches(ds) == 1);
    CHECK(!dataset_train_batch(ds, 0, (void *[]){NULL, NULL}, &err) &&
          strstr(err.message, "25 examples"));
    dataset_close(ds);
}

/* Whichever allocation fails, opening says so and leaks nothing (the sanitizer build sees that). */
static void test_allocation_failures(void)
{
    static const char *const kinds[] = {"mnist", "cifar10", "npy"};
    static const char *const paths[] = {"one", "cifar2", "npy/x.npy"};
    mkdir(temp_path("cifar2"), 0777);
    temp_write("cifar2/test_batch.bin", (unsigned char[3073]){0}, 3073);
    for (int i = 0; i < 3; i++) {
        DataSpec spec = {.kind = kinds[i], .batch = 1, .path = temp_path(paths[i])};
        for (uint64_t k = 1; k < 100; k++) {
            RtError err = {{0}};
            rt_alloc_fail_at(k);
            Dataset *ds = dataset_open(&spec, &err);
            rt_alloc_fail_at(0);
            CHECK_MSG(ds || err.message[0], "%s, k = %d", kinds[i], (int)k);
            dataset_close(ds);
            if (ds)
                break;
            CHECK(k < 99);
        }
    }
}

int main(void)
{
    temp_open();
    test_epochs();
    test_evaluation();
    test_both_pairs();
    test_idx_sizes();
    test_idx_refusals();
    test_idx_bombs();
    test_cifar();
    test_npy();
    test_ignored_label();
    test_npy_refusals();
    test_specs();
    test_allocation_failures();
    return test_result();
}
