/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text and token files: vocabularies, windows, held-out coverage, lists of files, refusals. */
#include "runtime/data_internal.h"

#include "check.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/temp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_utf8(void)
{
    /* Every code point survives; every neighbour of the valid forms does not. */
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char s[4];
        uint32_t back = 1;
        if (code >= 0xD800 && code < 0xE000)
            continue;
        int n = utf8_encode(code, s);
        CHECK(utf8_decode((const unsigned char *)s, n, &back) == n && back == code);
        CHECK(n == 1 || utf8_decode((const unsigned char *)s, n - 1, &back) == 0);
    }
    static const char *const bad[] = {"\x80",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF8\x88\x80\x80",
                                      "\xC3\x28",
                                      "\xFF"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t code;
        CHECK_MSG(utf8_decode((const unsigned char *)bad[i], 4, &code) == 0, "case %zu", i);
    }
}

static void test_vocab(void)
{
    static const char text[] = "h\u00e9llo w\u00f6rld \U0001F600 h";
    Vocab v, copy;
    RtError err;
    int32_t token[32];
    CHECK(vocab_from_text(&v, (const unsigned char *)text, sizeof text - 1, &err));
    CHECK(v.size == 10); /* space d h l o r w e-acute o-umlaut smile */
    CHECK(v.code[0] == ' ' && v.code[9] == 0x1F600);
    int64_t n = vocab_encode(&v, text, sizeof text - 1, token, 32, &err);
    CHECK(n == 15 && token[0] == token[14] && token[1] == 7);
    char back[64];
    size_t len = 0;
    for (int64_t i = 0; i < n; i++)
        len += (size_t)vocab_decode(&v, token[i], back + len);
    CHECK(len == sizeof text - 1 && memcmp(back, text, len) == 0);
    CHECK(vocab_encode(&v, text, sizeof text - 1, token, 3, &err) == 15); /* counts past the cap */
    CHECK(vocab_encode(&v, "hx", 2, token, 32, &err) == -1 && strstr(err.message, "'x'"));
    CHECK(vocab_decode(&v, 10, back) == 0 && vocab_decode(&v, -1, back) == 0);
    CHECK(vocab_from_codes(&copy, v.code, v.size, &err) && vocab_find(&copy, 'w') == 6);
    vocab_free(&copy);
    CHECK(!vocab_from_codes(&copy, (uint32_t[]){5, 5}, 2, &err));
    CHECK(!vocab_from_codes(&copy, (uint32_t[]){0xD800}, 1, &err));
    CHECK(!vocab_from_text(&copy, (const unsigned char *)"ab\xff", 3, &err) &&
          strstr(err.message, "offset 2"));
    vocab_free(&v);
    v = vocab_bytes();
    CHECK(v.size == 256 && vocab_encode(&v, "\xff", 1, token, 1, &err) == 1 && token[0] == 255);
    vocab_free(&v);
}

/* Every held-out token is a target once, after the token before it. */
static void check_coverage(const DataSpec *spec, const int32_t *token, int64_t total)
{
    Dataset *ds = open_or_fail(spec);
    int64_t length = spec->length, batch = spec->batch, at = dataset_train_size(ds), sum = 0;
    int32_t *x = malloc((size_t)(length * batch) * 4), *y = malloc((size_t)(length * batch) * 4);
    at += at == 0;
    for (int64_t i = 0; i < dataset_eval_batches(ds); i++) {
        int64_t counted, here = 0;
        CHECK(dataset_eval_batch(ds, i, (void *[]){x, y}, &counted, NULL));
        for (int64_t k = 0; k < length * batch; k++) {
            if (y[k] == DATA_IGNORE)
                continue;
            CHECK(at < total && y[k] == token[at] && x[k] == token[at - 1]);
            at++;
            here++;
        }
        CHECK(counted == here);
        sum += counted;
    }
    CHECK_MSG(at == total, "%d of %d", (int)at, (int)total);
    CHECK(sum == dataset_held_out_size(ds) - (dataset_train_size(ds) == 0));
    free(x);
    free(y);
    dataset_close(ds);
}

static void test_bytes(void)
{
    enum { N = 1000 };
    unsigned char text[N];
    int32_t token[N];
    uint32_t state = 1; /* a linear congruential generator: no window occurs twice */
    for (int i = 0; i < N; i++) {
        state = state * 1664525u + 1013904223u;
        token[i] = text[i] = (unsigned char)(state >> 24);
    }
    temp_write("text", text, N);
    DataSpec spec = {.kind = "text",
                     .batch = 3,
                     .length = 16,
                     .held_out = 0.1,
                     .held_out_is_part = true,
                     .seed = 1};
    char path[512];
    snprintf(path, sizeof path, "%s", temp_path("text"));
    spec.path = path;
    check_coverage(&spec, token, N);
    spec.held_out = 1;
    check_coverage(&spec, token, N);
    spec.held_out_is_part = false;
    for (int held = 1; held < 200; held += 11) {
        spec.held_out = held;
        check_coverage(&spec, token, N);
    }
    spec.length = 1;
    check_coverage(&spec, token, N);

    /* Training windows: y follows x, offsets cover the training part and never leave it. */
    spec.length = 16;
    spec.held_out = 100;
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_batches_per_epoch(ds) == 900 / 48 && dataset_vocab(ds)->size == 256);
    CHECK(dataset_field(ds, 1)->label && dataset_field(ds, 0)->max_id == 255);
    int32_t x[3][16], y[3][16], again[3][16];
    int lowest = N, highest = 0;
    for (int64_t step = 0; step < 3000; step++) {
        CHECK(dataset_train_batch(ds, step, (void *[]){x, y}, NULL));
        for (int b = 0; b < 3; b++) {
            int start = 0;
            while (start < N && memcmp(&token[start], x[b], sizeof x[b]) != 0)
                start++;
            CHECK(start + 16 < 900 && memcmp(&token[start + 1], y[b], sizeof y[b]) == 0);
            lowest = start < lowest ? start : lowest;
            highest = start > highest ? start : highest;
        }
    }
    CHECK_MSG(lowest == 0 && highest == 900 - 17, "%d %d", lowest, highest);
    CHECK(dataset_train_batch(ds, 2999, (void *[]){again, NULL}, NULL));
    CHECK(memcmp(again, x, sizeof x) == 0);
    CHECK(dataset_train_batch(ds, 2998, (void *[]){again, NULL}, NULL));
    CHECK(memcmp(again, x, sizeof x) != 0);
    dataset_close(ds);
    spec.length = 900;
    spec.held_out = 0;
    spec.batch = 64; /* one window is enough to train */
    ds = open_or_fail(&spec);
    CHECK(dataset_batches_per_epoch(ds) == 1);
    dataset_close(ds);
    spec.length = 1000;
    refuse(&spec, "lower the length");
    spec.length = 0;
    refuse(&spec, "length");
}

static void test_chars(void)
{
    /* More than 256 characters: tokens are wider than bytes. */
    char text[4000];
    int32_t token[1200];
    size_t len = 0;
    for (int i = 0; i < 1000; i++) {
        token[i] = i * 37 % 300;
        len += (size_t)utf8_encode(0x400 + (uint32_t)token[i], text + len);
    }
    temp_write("wide", text, len);
    char path[512];
    snprintf(path, sizeof path, "%s", temp_path("wide"));
    DataSpec spec = {
        .kind = "text", .path = path, .batch = 2, .length = 7, .chars = true, .held_out = 333};
    check_coverage(&spec, token, 1000);
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_vocab(ds)->chars && dataset_vocab(ds)->size == 300);
    CHECK(dataset_field(ds, 0)->max_id == 299);
    CHECK(dataset_loaded_bytes(ds) == 2000); /* 16 bits a token */
    dataset_close(ds);
    temp_write("narrow",
               "abca\xC3\xA9"
               "bcab",
               10);
    snprintf(path, sizeof path, "%s", temp_path("narrow"));
    spec.held_out = 4;
    spec.length = 2;
    check_coverage(&spec, (int32_t[]){0, 1, 2, 0, 3, 1, 2, 0, 1}, 9);
    temp_write("latin1", "abc\xE9 def", 8);
    snprintf(path, sizeof path, "%s", temp_path("latin1"));
    refuse(&spec, "offset 3 is not UTF-8");
}

/* A list, a folder with folders, a glob: joined in a fixed order. */
static void test_file_lists(void)
{
    mkdir(temp_path("d"), 0777);
    mkdir(temp_path("d/sub"), 0777);
    temp_write("d/b.c", "bb", 2);
    temp_write("d/a.c", "a", 1);
    temp_write("d/sub/z.h", "zzz", 3);
    temp_write("d/.hidden", "hhhh", 4);
    CHECK(symlink("..", temp_path("d/loop")) == 0); /* folder links are not followed */
    static const struct {
        const char *list, *joined;
    } cases[] = {
        {"d", "abbzzz"},
        {"d/*.c", "abb"},
        {"d/b.c\nd/a.c", "bba"},
        {"d/sub\nd/a.c\n", "zzza"},
        {"d/?.c\nd/sub/*", "abbzzz"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char list[1100] = "", item[64];
        const char *p = cases[i].list;
        for (size_t n; *p; p += n + (p[n] == '\n')) {
            n = strcspn(p, "\n");
            snprintf(item, sizeof item, "%.*s", (int)n, p);
            strcat(strcat(list, temp_path(item)), "\n");
        }
        int64_t total = (int64_t)strlen(cases[i].joined);
        DataSpec spec = {
            .kind = "text", .path = list, .batch = 1, .length = 1, .held_out = (double)(total - 1)};
        int32_t token[16];
        for (int64_t k = 0; k < total; k++)
            token[k] = cases[i].joined[k];
        check_coverage(&spec, token, total);
    }
    DataSpec spec = {.kind = "text", .batch = 1, .length = 1, .path = temp_path("d/*.x")};
    refuse(&spec, "no such file");
    spec.path = "";
    refuse(&spec, "--data");
    spec.path = NULL;
    refuse(&spec, "--data");
}

/* ---- token files ---- */

static void write_llmc(const char *name, int32_t magic, int32_t version, int32_t count,
                       const void *token, size_t bytes)
{
    static unsigned char file[1 << 16];
    int32_t header[256] = {magic, version, count};
    memcpy(file, header, sizeof header);
    memcpy(file + sizeof header, token, bytes);
    temp_write(name, file, sizeof header + bytes);
}

static void test_tokens(void)
{
    enum { N = 700 };
    uint16_t narrow[N];
    uint32_t wide[N];
    int32_t token[2 * N];
    for (int i = 0; i < N; i++) {
        token[i] = narrow[i] = (uint16_t)(i * 71 % 50257);
        wide[i] = (uint32_t)(i + 100000);
        token[N + i] = (int32_t)wide[i];
    }
    write_llmc("a.bin", 20240520, 1, N, narrow, sizeof narrow);
    write_llmc("b.bin", 20240801, 7, N, wide, sizeof wide);
    temp_write("raw.bin", narrow, sizeof narrow);
    char path[1100];
    DataSpec spec = {.kind = "tokens", .path = path, .batch = 2, .length = 9, .held_out = 100};
    snprintf(path, sizeof path, "%s", temp_path("a.bin"));
    check_coverage(&spec, token, N);
    snprintf(path, sizeof path, "%s", temp_path("raw.bin"));
    check_coverage(&spec, token, N);
    snprintf(path, sizeof path, "%s\n%s", temp_path("a.bin"), temp_path("b.bin"));
    spec.held_out = 1000; /* windows go across the files' border */
    check_coverage(&spec, token, 2 * N);
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_field(ds, 0)->max_id == 100000 + N - 1 && !dataset_vocab(ds));
    dataset_close(ds);
    /* A file named val beside others is what is held out, wherever it stands. */
    mkdir(temp_path("t"), 0777);
    write_llmc("t/x_val_000.bin", 20240520, 1, N, narrow, sizeof narrow);
    write_llmc("t/y_train_000.bin", 20240801, 7, N, wide, sizeof wide);
    snprintf(path, sizeof path, "%s", temp_path("t"));
    int32_t swapped[2 * N];
    memcpy(swapped, token + N, N * sizeof *token);
    memcpy(swapped + N, token, N * sizeof *token);
    spec.held_out = 3;
    check_coverage(&spec, swapped, 2 * N);

    /* A text of even length would be numbers below 50257, and trained on. */
    static char text[8192];
    memset(text, 'e', sizeof text);
    temp_write("text.bin", text, sizeof text);
    snprintf(path, sizeof path, "%s", temp_path("text.bin"));
    refuse(&spec, "is a text, not 16-bit tokens");
    text[4000] = 0;
    temp_write("text.bin", text, sizeof text);
    dataset_close(open_or_fail(&spec));

    static const struct {
        int32_t magic, version, count;
        const char *expect;
    } bad[] = {{20240520, 2, N, "version 2"},
               {20240801, 1, N / 2, "version 1"},
               {20240520, 1, N - 1, "promises"},
               {20240520, 1, -1, "promises"}};
    snprintf(path, sizeof path, "%s", temp_path("bad.bin"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_llmc("bad.bin", bad[i].magic, bad[i].version, bad[i].count, narrow, sizeof narrow);
        refuse(&spec, bad[i].expect);
    }
    wide[3] = UINT32_MAX;
    write_llmc("bad.bin", 20240801, 7, N, wide, sizeof wide);
    refuse(&spec, "31 bits");
    temp_write("bad.bin", narrow, 999);
    refuse(&spec, "16-bit");
}

/* ---- synthetic ---- */

enum { CLASSES = 5, FEATURES = 40, EXAMPLES = 2000, HELD = 400 };

/* Nearest mean of the training examples: a rule that can be learned gives more than chance. */
static void test_synthetic_classes(RtDType dtype)
{
    DataSpec spec = {
        .kind = "synthetic",
        .batch = 100,
        .held_out = HELD,
        .examples = EXAMPLES,
        .seed = 9,
        .n_fields = 2,
        .field = {{.name = "image", .dtype = dtype, .rank = 2, .dim = {8, 5}},
                  {.name = "label", .dtype = RT_I32, .label = true, .max_id = CLASSES - 1}}};
    Dataset *ds = open_or_fail(&spec);
    float x[100][FEATURES];
    unsigned char u[100][FEATURES];
    int32_t y[100];
    void *dst[2] = {dtype == RT_U8 ? (void *)u : (void *)x, y};
    double mean[CLASSES][FEATURES] = {{0}};
    int count[CLASSES] = {0}, right = 0;
    for (int64_t step = 0; step < 16; step++) {
        CHECK(dataset_train_batch(ds, step, dst, NULL));
        for (int b = 0; b < 100; b++) {
            CHECK(y[b] >= 0 && y[b] < CLASSES);
            count[y[b]]++;
            for (int f = 0; f < FEATURES; f++)
                mean[y[b]][f] += dtype == RT_U8 ? u[b][f] : (double)x[b][f];
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        CHECK_MSG(count[c] > 230 && count[c] < 410, "class %d: %d", c, count[c]);
        for (int f = 0; f < FEATURES; f++)
            mean[c][f] /= count[c];
    }
    for (int64_t i = 0; i < dataset_eval_batches(ds); i++) {
        int64_t counted;
        CHECK(dataset_eval_batch(ds, i, dst, &counted, NULL));
        for (int b = 0; b < 100; b++) {
            int best = 0;
            double least = 1e300;
            for (int c = 0; c < CLASSES; c++) {
                double d = 0;
                for (int f = 0; f < FEATURES; f++) {
                    double v = (dtype == RT_U8 ? u[b][f] : (double)x[b][f]) - mean[c][f];
                    d += v * v;
                }
                if (d < least)
                    least = d, best = c;
            }
            right += best == y[b];
        }
    }
    CHECK_MSG(right > HELD * 9 / 10, "%d of %d", right, HELD);
    dataset_close(ds);
}

static void test_synthetic_walk(void)
{
    DataSpec spec = {
        .kind = "synthetic",
        .batch = 50,
        .seed = 2,
        .n_fields = 2,
        .field = {
            {.name = "x", .dtype = RT_I32, .rank = 1, .dim = {20}, .max_id = 30},
            {.name = "y", .dtype = RT_I32, .rank = 1, .dim = {20}, .label = true, .max_id = 30}}};
    Dataset *ds = open_or_fail(&spec);
    int32_t x[50][20], y[50][20];
    int pairs[31][31] = {{0}}, usual = 0, total = 0;
    for (int64_t step = 0; step < 20; step++) {
        CHECK(dataset_train_batch(ds, step, (void *[]){x, y}, NULL));
        for (int b = 0; b < 50; b++)
            for (int k = 0; k < 20; k++) {
                CHECK(x[b][k] >= 0 && x[b][k] <= 30 && (k == 0 || x[b][k] == y[b][k - 1]));
                pairs[x[b][k]][y[b][k]]++;
                total++;
            }
    }
    for (int a = 0; a < 31; a++) {
        int most = 0;
        for (int b = 0; b < 31; b++)
            most = pairs[a][b] > most ? pairs[a][b] : most;
        usual += most;
    }
    CHECK_MSG(usual > total * 8 / 10 && usual < total * 95 / 100, "%d of %d", usual, total);
    dataset_close(ds);
}

/* Quarters of an image: c, c+1 above, c+1, c+2 below, c being the class. */
static void test_synthetic_map(void)
{
    DataSpec spec = {
        .kind = "synthetic",
        .batch = 4,
        .n_fields = 1,
        .field = {{.name = "label",
                   .dtype = RT_I32,
                   .rank = 2,
                   .dim = {3, 5},
                   .label = true,
                   .max_id = 6}},
    };
    Dataset *ds = open_or_fail(&spec);
    int32_t map[4][3][5];
    bool other = false;
    CHECK(dataset_train_batch(ds, 0, (void *[]){map}, NULL));
    for (int n = 0; n < 4; n++) {
        other |= map[n][0][0] != map[0][0][0];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 5; j++)
                CHECK(map[n][i][j] == (map[n][0][0] + (i >= 2) + (j >= 3)) % 7);
    }
    CHECK_MSG(other, "examples of one class only");
    dataset_close(ds);
}

static void test_synthetic_other(void)
{
    DataSpec spec = {
        .kind = "synthetic",
        .batch = 4,
        .n_fields = 2,
        .field = {{.name = "x", .dtype = RT_F32, .rank = 1, .dim = {6}},
                  {.name = "y", .dtype = RT_F32, .rank = 1, .dim = {3}, .label = true}}};
    Dataset *ds = open_or_fail(&spec);
    float x[4][6], y[4][3];
    CHECK(dataset_train_batch(ds, 0, (void *[]){x, y}, NULL));
    CHECK(isfinite(x[3][5]) && isfinite(y[3][2]) && dataset_eval_batches(ds) == 0);
    dataset_close(ds);
    spec.field[0].dtype = RT_BF16;
    refuse(&spec, "bf16");
    spec.n_fields = 0;
    refuse(&spec, "0 fields");
    spec.n_fields = 1;
    spec.field[0] =
        (DataField){.name = "x", .dtype = RT_F32, .rank = 2, .dim = {1L << 40, 1L << 40}};
    refuse(&spec, "address space");
    spec.field[0].dim[0] = -1;
    refuse(&spec, "address space");
}

static void test_allocation_failures(void)
{
    char path[512];
    static const char *const kinds[] = {"text", "text", "tokens", "synthetic"};
    static const char *const files[] = {"d", "wide", "t", ""};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s", temp_path(files[i]));
        DataSpec spec = {.kind = kinds[i],
                         .batch = 1,
                         .length = 1,
                         .path = path,
                         .chars = i == 1,
                         .n_fields = 1,
                         .field = {{.name = "x", .dtype = RT_F32}}};
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
    test_utf8();
    test_vocab();
    test_bytes();
    test_chars();
    test_file_lists();
    test_tokens();
    test_synthetic_classes(RT_F32);
    test_synthetic_classes(RT_U8);
    test_synthetic_walk();
    test_synthetic_other();
    test_synthetic_map();
    test_allocation_failures();
    return test_result();
}
