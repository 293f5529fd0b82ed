/* SPDX-License-Identifier: GPL-3.0-or-later */
/* npz and safetensors: the batches of .npy files with the same numbers, stored and packed; damaged
 * archives, and those that promise too much, are refused. */
#include "check.h"
#include "runtime/array_file.h"
#include "runtime/npz.h"
#include "runtime/safetensors.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/temp.h"
#include "tests/support/data/zip_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { EXAMPLES = 7, BATCH = 3 };

static float wide[EXAMPLES][2];
static int64_t label[EXAMPLES] = {0, 3, -100, 1, 2, 0, 1};
static unsigned char byte[EXAMPLES] = {200, 1, 2, 3, 4, 5, 6};

static void make_numbers(void)
{
    for (int i = 0; i < EXAMPLES; i++) {
        wide[i][0] = (float)i;
        wide[i][1] = 1 / (float)(i + 3);
    }
}

static ZipCase make_archive(bool packed)
{
    ZipCase z = {0};
    zip_add(&z, "notes.txt", "no array", 8, false);
    zip_add_npy(&z, "x_train", "<f4", "(7, 2)", wide, sizeof wide, packed);
    zip_add_npy(&z, "y", "<i8", "(7,)", label, sizeof label, packed);
    zip_add_npy(&z, "byte", "|u1", "(7,)", byte, sizeof byte, packed);
    return z;
}

static void write_archive(const char *name, bool packed)
{
    ZipCase z = make_archive(packed);
    zip_end(&z);
    temp_write(name, z.bytes, (size_t)z.n);
    zip_free(&z);
}

static void write_npy(const char *name, const char *descr, const char *shape, const void *data,
                      size_t n)
{
    ZipCase z = {0};
    zip_add_npy(&z, "a", descr, shape, data, (int64_t)n, false);
    const size_t head = 30 + strlen("a.npy");
    temp_write(name, z.bytes + head, (size_t)z.n - head);
    zip_free(&z);
}

static void write_tensors(void)
{
    const SafeEntry entry[] = {
        {.name = "x_train", .dtype = RT_F32, .rank = 2, .dims = {EXAMPLES, 2}, .data = wide},
        {.name = "y", .dtype = RT_I64, .rank = 1, .dims = {EXAMPLES}, .data = label},
        {.name = "byte", .dtype = RT_U8, .rank = 1, .dims = {EXAMPLES}, .data = byte},
        {.name = "long", .dtype = RT_I64, .rank = 1, .dims = {EXAMPLES}, .data = label}};
    RtError err = {{0}};
    SafeContent content = {.entries = entry, .n = 4};
    CHECK_MSG(safetensors_write(temp_path("a.safetensors"), &content, NULL, NULL, &err), "%s",
              err.message);
}

/* ---- what is read ---- */

typedef struct Batch {
    float x[BATCH][2];
    int32_t y[BATCH];
    unsigned char byte[BATCH];
} Batch;

static Batch read_batch(const Dataset *ds, bool training, int64_t i)
{
    Batch b;
    void *dst[3];
    int64_t counted;
    RtError err = {{0}};
    memset(&b, 0, sizeof b);
    dst[dataset_find_field(ds, "x")] = b.x;
    dst[dataset_find_field(ds, "y")] = b.y;
    dst[dataset_find_field(ds, "byte")] = b.byte;
    CHECK_MSG(training ? dataset_train_batch(ds, i, dst, &err)
                       : dataset_eval_batch(ds, i, dst, &counted, &err),
              "%s", err.message);
    return b;
}

static DataSpec spec_of(const char *kind, const char *path)
{
    return (DataSpec){.kind = kind,
                      .path = temp_path(path),
                      .batch = BATCH,
                      .held_out = 4,
                      .seed = 9,
                      .columns = "x\tx_train\ny\ty\nbyte\tbyte"};
}

static void check_same(const char *kind, const char *path)
{
    DataSpec spec = spec_of(kind, path), plain = spec_of("npy", "npy");
    Dataset *ds = open_or_fail(&spec), *want = open_or_fail(&plain);
    int y = dataset_find_field(ds, "y");
    CHECK(dataset_train_size(ds) == 3 && dataset_held_out_size(ds) == 4);
    CHECK(dataset_field(ds, y)->label && dataset_field(ds, y)->max_id == 3 &&
          dataset_field(ds, y)->min_id == 0 && dataset_field(ds, y)->dtype == RT_I32);
    for (int64_t i = 0; i < 8; i++) {
        Batch a = read_batch(ds, i < 6, i < 6 ? i : i - 6),
              b = read_batch(want, i < 6, i < 6 ? i : i - 6);
        CHECK_MSG(memcmp(&a, &b, sizeof a) == 0, "%s, batch %d", path, (int)i);
    }
    dataset_close(ds);
    dataset_close(want);
}

static void test_same(void)
{
    mkdir(temp_path("npy"), 0777);
    write_npy("npy/x.npy", "<f4", "(7, 2)", wide, sizeof wide);
    write_npy("npy/y.npy", "<i8", "(7,)", label, sizeof label);
    write_npy("npy/byte.npy", "|u1", "(7,)", byte, sizeof byte);
    write_archive("stored.npz", false);
    write_archive("packed.npz", true);
    write_tensors();
    check_same("npz", "stored.npz");
    check_same("npz", "packed.npz");
    check_same("safetensors", "a.safetensors");
}

/* What is stored is read where it lies; only what is wanted is unpacked. */
static void test_in_place(void)
{
    for (int packed = 0; packed < 2; packed++) {
        ZipCase z = make_archive(packed);
        NpyArray a;
        RtError err = {{0}};
        zip_end(&z);
        Npz *npz = npz_parse(z.bytes, z.n, &err);
        CHECK_MSG(npz && npz_count(npz) == 4 && !npz_name(npz, 0), "%s", err.message);
        CHECK(npz && strcmp(npz_name(npz, 1), "x_train") == 0);
        CHECK_MSG(npz && npz_array(npz, 1, &a, &err), "%s", err.message);
        bool inside = a.data > z.bytes && a.data + sizeof wide <= z.bytes + z.n;
        CHECK(inside == !packed && memcmp(a.data, wide, sizeof wide) == 0);
        CHECK(npz_unpacked(npz) == (packed ? z.entry[1].size : 0));
        npz_close(npz);
        zip_free(&z);
    }
}

static void test_held_path(void)
{
    DataSpec spec = spec_of("npz", "stored.npz");
    spec.held_out = 0;
    spec.held_path = temp_path("packed.npz");
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_train_size(ds) == 7 && dataset_held_out_size(ds) == 7);
    dataset_close(ds);
}

/* ---- 16-bit numbers ---- */

enum { PATTERNS = 1 << 16 };

static uint16_t pattern[PATTERNS];

/* What the bits mean by IEEE 754: a sign, an exponent, so many bits of fraction. */
static double meaning(unsigned bits, int fraction_bits)
{
    const unsigned fraction = bits & ((1u << fraction_bits) - 1);
    const int exponent_bits = 15 - fraction_bits, top = (1 << exponent_bits) - 1;
    const int exponent = (int)(bits >> fraction_bits) & top, bias = top / 2;
    double value = exponent == top ? (fraction ? (double)NAN : (double)INFINITY)
                   : exponent == 0 ? ldexp((double)fraction, 1 - bias - fraction_bits)
                                   : ldexp((double)(fraction | 1u << fraction_bits),
                                           exponent - bias - fraction_bits);
    return bits >> 15 ? -value : value;
}

static void check_patterns(const char *kind, const char *path, const char *columns,
                           int fraction_bits)
{
    static float got[PATTERNS];
    DataSpec spec = {.kind = kind,
                     .path = temp_path(path),
                     .batch = PATTERNS,
                     .columns = columns,
                     .held_out = PATTERNS};
    int64_t counted;
    RtError err = {{0}};
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_field(ds, 0)->dtype == RT_F32 && !dataset_field(ds, 0)->label);
    CHECK_MSG(dataset_eval_batch(ds, 0, (void *[]){got}, &counted, &err), "%s", err.message);
    for (unsigned i = 0; i < PATTERNS; i++) {
        float want = (float)meaning(i, fraction_bits);
        bool same = isnan(want) ? isnan(got[i]) : memcmp(&want, &got[i], sizeof want) == 0;
        CHECK_MSG(same, "%s, bits %04x: %a instead of %a", path, i, (double)got[i], (double)want);
    }
    dataset_close(ds);
}

static void write_patterns(void)
{
    const SafeEntry entry[] = {
        {.name = "half", .dtype = RT_F16, .rank = 1, .dims = {PATTERNS}, .data = pattern},
        {.name = "brain", .dtype = RT_BF16, .rank = 1, .dims = {PATTERNS}, .data = pattern}};
    ZipCase z = {0};
    RtError err = {{0}};
    SafeContent content = {.entries = entry, .n = 2};
    for (int i = 0; i < PATTERNS; i++)
        pattern[i] = (uint16_t)i;
    CHECK_MSG(safetensors_write(temp_path("16.safetensors"), &content, NULL, NULL, &err), "%s",
              err.message);
    zip_add_npy(&z, "half", "<f2", "(65536,)", pattern, sizeof pattern, true);
    zip_end(&z);
    temp_write("16.npz", z.bytes, (size_t)z.n);
    zip_free(&z);
    mkdir(temp_path("16"), 0777);
    write_npy("16/half.npy", "<f2", "(65536,)", pattern, sizeof pattern);
}

/* All of them, subnormal numbers, infinities and NaN among them, become f32 exactly. */
static void test_16_bits(void)
{
    enum { F16_FRACTION = 10, BF16_FRACTION = 7 };
    write_patterns();
    check_patterns("safetensors", "16.safetensors", "x\thalf", F16_FRACTION);
    check_patterns("safetensors", "16.safetensors", "x\tbrain", BF16_FRACTION);
    check_patterns("npz", "16.npz", "x\thalf", F16_FRACTION);
    check_patterns("npy", "16", NULL, F16_FRACTION);
}

static void write_odd(void)
{
    static const char header[] =
        "{\"x\":{\"dtype\":\"U16\",\"shape\":[2],\"data_offsets\":[0,4]}} ";
    unsigned char bytes[8 + sizeof header - 1 + 4] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    temp_write("odd.safetensors", bytes, sizeof bytes);
}

static void test_refusals(void)
{
    write_odd();
    static const struct {
        const char *kind, *path, *columns, *expect;
    } wrong[] = {
        {"npz", "stored.npz", "x\tx_test", "there is no array x_test, but x_train, y, byte"},
        {"npz", "a.safetensors", "x\tx_train", "not a .npz file"},
        {"npz", "gone.npz", "x\tx_train", "gone.npz"},
        {"npz", "stored.npz", "", "no array is named"},
        {"npz", "stored.npz", "x\ty\nx\tbyte", "two arrays give field x"},
        {"npz", "stored.npz", "a\ty\nb\ty\nc\ty\nd\ty\ne\ty\nf\ty\ng\ty\nh\ty\ni\ty",
         "more than 8"},
        {"safetensors", "a.safetensors", "x\tx_test", "there is no array x_test, but"},
        {"safetensors", "odd.safetensors", "x\tx",
         "x: element type U16: F16, BF16, F32, F64, I32, I64, U8 and BOOL are read"},
        {"safetensors", "stored.npz", "x\tx_train", "not a safetensors file"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        DataSpec spec = spec_of(wrong[i].kind, wrong[i].path);
        spec.columns = wrong[i].columns;
        refuse(&spec, wrong[i].expect);
    }
    ZipCase z = {0};
    zip_add_npy(&z, "x", "<f4", "(7, 2)", wide, sizeof wide, false);
    zip_add_npy(&z, "y", "<i8", "(6,)", label, sizeof label - 8, false);
    zip_add_npy(&z, "one", "<i8", "()", label, 8, false);
    zip_end(&z);
    temp_write("short.npz", z.bytes, (size_t)z.n);
    zip_free(&z);
    DataSpec spec = spec_of("npz", "short.npz");
    spec.columns = "x\tx\ny\ty";
    refuse(&spec, "short.npz: y: 6 examples, but x has 7");
    spec.columns = "x\tone";
    refuse(&spec, "one: a single number is no data set");
}

/* ---- damaged archives ---- */

/* Whether every array can be read; if not, err says why. */
static bool read_all(const unsigned char *bytes, int64_t n, RtError *err)
{
    NpyArray a;
    *err = (RtError){{0}};
    Npz *npz = npz_parse(bytes, n, err);
    bool ok = npz != NULL;
    for (int64_t i = 0; ok && i < npz_count(npz); i++)
        ok = !npz_name(npz, i) || npz_array(npz, i, &a, err);
    npz_close(npz);
    CHECK(ok || err->message[0]);
    return ok;
}

static void expect_damaged(ZipCase *z, const char *said)
{
    RtError err;
    zip_end(z);
    CHECK_MSG(!read_all(z->bytes, z->n, &err) && strstr(err.message, said), "'%s': '%s'", said,
              err.message);
    zip_free(z);
}

static void test_cut_and_changed(void)
{
    for (int packed = 0; packed < 2; packed++) {
        ZipCase z = make_archive(packed);
        RtError err;
        zip_end(&z);
        CHECK_MSG(read_all(z.bytes, z.n, &err), "%s", err.message);
        for (int64_t n = 0; n < z.n; n++) {
            unsigned char *cut = malloc((size_t)n + 1); /* nothing behind it */
            memcpy(cut, z.bytes, (size_t)n);
            CHECK_MSG(!read_all(cut, n, &err), "cut after %d bytes", (int)n);
            free(cut);
        }
        for (int64_t i = 0; i < z.n; i++)
            for (int bit = 1; bit < 256; bit *= 4) {
                z.bytes[i] ^= (unsigned char)bit;
                read_all(z.bytes, z.n, &err);
                z.bytes[i] ^= (unsigned char)bit;
            }
        zip_free(&z);
    }
}

static void test_damaged(void)
{
    ZipCase z = make_archive(true);
    z.entry[1].crc ^= 1;
    expect_damaged(&z, "damaged");
    z = make_archive(true);
    z.bytes[z.entry[1].at + 60] ^= 0x55; /* in the packed bytes */
    expect_damaged(&z, "damaged");
    z = make_archive(true);
    z.entry[1].size -= 4;
    expect_damaged(&z, "damaged");
    z = make_archive(true);
    z.entry[1].size += 4;
    expect_damaged(&z, "damaged");
    z = make_archive(false);
    z.entry[1].size += 4;
    expect_damaged(&z, "two sizes");
    z = make_archive(false);
    z.entry[3].size = z.entry[3].packed += 4000; /* behind the end of the file */
    expect_damaged(&z, "damaged");
    z = make_archive(false);
    z.entry[3].at = 1 << 30;
    expect_damaged(&z, "damaged");
    z = make_archive(false);
    z.entry[1].flags = 1;
    expect_damaged(&z, "encrypted");
    z = make_archive(false);
    z.entry[1].method = 12;
    expect_damaged(&z, "packed by method 12");
    z = make_archive(false);
    strcpy(z.entry[0].name, "notes.npy");
    expect_damaged(&z, "not a .npy file");
}

/* What is promised is compared with what there is before memory is allocated. */
static void test_bombs(void)
{
    static const unsigned char zeros[6 << 20];
    ZipCase z = make_archive(true);
    z.entry[1].size = 1 << 30;
    expect_damaged(&z, "1073741824 bytes are promised, too many");
    z = make_archive(true);
    z.entry[1].size = INT64_MAX;
    expect_damaged(&z, "bytes are promised, too many");
    z = (ZipCase){0};
    zip_add(&z, "x.npy", zeros, sizeof zeros, false);
    z.entry[0].method = 8;
    z.entry[0].size = ((int64_t)4 << 30) + 1;
    expect_damaged(&z, "at most 4294967296 are unpacked");
    z = (ZipCase){0};
    zip_add_npy(&z, "x", "<f4", "(1000000000000, 7)", wide, sizeof wide, false);
    expect_damaged(&z, "the .npy shape does not fit");
}

static void test_two_of_one_name(void)
{
    ZipCase z = {0};
    zip_add_npy(&z, "x", "<f4", "(7, 2)", wide, sizeof wide, false);
    zip_add_npy(&z, "z", "<f4", "(7, 2)", wide, sizeof wide, false);
    strcpy(z.entry[1].name, "x.npy");
    z.bytes[z.entry[1].at + 30] = 'x';
    zip_end(&z);
    temp_write("twice.npz", z.bytes, (size_t)z.n);
    zip_free(&z);
    DataSpec spec = spec_of("npz", "twice.npz");
    spec.columns = "x\tx";
    refuse(&spec, "two arrays are called x");
}

int main(void)
{
    temp_open();
    make_numbers();
    test_same();
    test_in_place();
    test_held_path();
    test_16_bits();
    test_refusals();
    test_cut_and_changed();
    test_damaged();
    test_bombs();
    test_two_of_one_name();
    return test_result();
}
