/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Round trips, bytes as the reference implementation writes them, conversions, malformed headers.
 */
#include "runtime/safetensors.h"

#include "runtime/file.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool write_file(const SafeEntry *entries, int64_t n, const char *name, RtError *err)
{
    SafeMeta meta = {"format", "pt"};
    return safetensors_write(temp_path(name), &(SafeContent){entries, n, &meta, 1}, NULL, NULL,
                             err);
}

static void test_round_trip(void)
{
    float f[6] = {1, -2, 3.5f, 0, -0.0f, 1e-40f};
    int32_t i32[2] = {-7, 1 << 30};
    int64_t i64[1] = {INT64_MIN};
    uint8_t u8[3] = {0, 128, 255}, b[2] = {1, 0};
    uint16_t h[1] = {0x3C00};
    SafeEntry e[] = {
        {.name = "u", .dtype = RT_U8, .rank = 1, .dims = {3}, .data = u8},
        {.name = "w.b", .dtype = RT_F32, .rank = 2, .dims = {2, 3}, .data = f},
        {.name = "scalar", .dtype = RT_I64, .data = i64},
        {.name = "empty", .dtype = RT_F32, .rank = 2, .dims = {0, 5}, .data = f},
        {.name = "quote\"\\\u00e9", .dtype = RT_I32, .rank = 1, .dims = {2}, .data = i32},
        {.name = "flag", .dtype = RT_BOOL, .rank = 1, .dims = {2}, .data = b},
        {.name = "half", .dtype = RT_F16, .rank = 1, .dims = {1}, .data = h},
    };
    enum { N = sizeof e / sizeof *e };
    RtError err = {{0}};
    int64_t bytes, check_bytes;
    uint32_t crc, check_crc;
    SafeMeta meta[] = {{"format", "pt"}, {"note", "x"}};
    CHECK_MSG(safetensors_write(temp_path("a"), &(SafeContent){e, N, meta, 2}, &bytes, &crc, &err),
              "%s", err.message);
    CHECK(file_checksum(temp_path("a"), &check_bytes, &check_crc, &err) && bytes == check_bytes &&
          crc == check_crc);
    SafeFile *file = safetensors_open(temp_path("a"), &err);
    CHECK_MSG(file, "%s", err.message);
    if (!file)
        return;
    CHECK(safetensors_count(file) == N && !safetensors_at(file, N) && !safetensors_at(file, -1));
    for (int i = 0; i < N; i++) {
        const SafeTensor *t = safetensors_find(file, e[i].name);
        CHECK(t && t->dtype == e[i].dtype && t->rank == e[i].rank);
        if (!t)
            continue;
        CHECK(memcmp(t->dims, e[i].dims, sizeof t->dims) == 0);
        char copy[64];
        CHECK((uintptr_t)t->data % (uintptr_t)rt_dtype_bytes(t->dtype) == 0);
        CHECK(safetensors_copy(t, e[i].dtype, copy, &err));
        CHECK(t->bytes == 0 || memcmp(copy, e[i].data, (size_t)t->bytes) == 0);
        safetensors_forget(file, t);
    }
    CHECK(strcmp(safetensors_metadata(file, "note"), "x") == 0);
    CHECK(!safetensors_metadata(file, "none") && !safetensors_find(file, "none"));
    safetensors_close(file);
    /* The order of the entries does not matter. */
    SafeEntry reversed[N];
    for (int i = 0; i < N; i++)
        reversed[i] = e[N - 1 - i];
    uint32_t again;
    CHECK(safetensors_write(temp_path("b"), &(SafeContent){reversed, N, meta, 2}, &bytes, &again,
                            &err));
    CHECK(again == crc);
}

/* What the safetensors Python package writes for {"b": int32 [5], "a": float32 [[1, 2]]}. */
static void test_reference_bytes(void)
{
    static const char header[] =
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"b\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[8,12]}}";
    float a[2] = {1, 2};
    int32_t b[1] = {5};
    SafeEntry e[] = {{.name = "b", .dtype = RT_I32, .rank = 1, .dims = {1}, .data = b},
                     {.name = "a", .dtype = RT_F32, .rank = 2, .dims = {1, 2}, .data = a}};
    CHECK(safetensors_write(temp_path("r"), &(SafeContent){e, 2, NULL, 0}, NULL, NULL, NULL));
    FileBytes file;
    CHECK(file_read(temp_path("r"), 10000, &file, NULL));
    uint64_t len;
    memcpy(&len, file.data, 8);
    CHECK(len % 8 == 0 && memcmp(file.data + 8, header, sizeof header - 1) == 0);
    for (size_t i = sizeof header - 1; i < len; i++)
        CHECK(file.data[8 + i] == ' ');
    CHECK(file.bytes == (int64_t)len + 8 + 12);
    CHECK(memcmp(file.data + 8 + len, a, 8) == 0 && memcmp(file.data + 16 + len, b, 4) == 0);
    file_release(&file);
}

static void test_halves(void)
{
    /* Against the definition, for all 65,536 halves. */
    for (uint32_t h = 0; h < 65536; h++) {
        int e = (int)(h >> 10 & 31), f = (int)(h & 1023);
        double want = e == 0 ? ldexp(f, -24) : ldexp(1024 + f, e - 25);
        want = h >> 15 ? -want : want;
        float got = rt_f16_to_f32((uint16_t)h);
        if (e == 31 && f)
            CHECK(isnan(got));
        else if (e == 31)
            CHECK(isinf(got) && (got < 0) == (h >> 15 != 0));
        else
            CHECK_MSG(memcmp(&got, &(float){(float)want}, 4) == 0, "0x%04x", h);
    }
    float one = rt_bf16_to_f32(0x3F80), third = rt_bf16_to_f32(0x3EAB);
    CHECK(one >= 1 && one <= 1 && fabsf(third - 0.333984375f) < 1e-9f);
}

/* ---- hand-made files ---- */

/* Length, header and n bytes of data (zeros, then 2s). */
static SafeFile *parse(const char *header, int64_t n, RtError *err)
{
    static unsigned char file[4096];
    uint64_t len = strlen(header);
    memcpy(file, &len, 8);
    memcpy(file + 8, header, len);
    memset(file + 8 + len, 2, (size_t)n);
    /* An exact allocation, so that the sanitizer sees reads past the end. */
    static unsigned char *exact;
    free(exact);
    exact = malloc(8 + len + (size_t)n);
    memcpy(exact, file, 8 + len + (size_t)n);
    return safetensors_parse(exact, 8 + (int64_t)len + n, err);
}

#define T(type, shape, begin, end)                                                                 \
    "{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void test_valid_headers(void)
{
    static const struct {
        const char *header;
        int64_t n, count;
    } good[] = {
        {"{}", 0, 0},
        {"{}   ", 0, 0},
        {"{\"__metadata__\":{\"a\":\"b\"}}", 0, 0},
        {"{\"a\":" T("F32", "[]", "0", "4") "}", 4, 1},
        {"{\"b\":" T("U8", "[2]", "4", "6") ",\"a\":" T("F32", "[1]", "0", "4") "}", 6, 2},
        {"{\"a\":" T("F32", "[0]", "0", "0") ",\"b\":" T("U8", "[1]", "0", "1") "}", 1, 2},
        {"{\"a\":" T("F8_E4M3", "[3]", "0", "3") "}", 3, 1},
        {"{\"a\":" T("U64", "[1,1,1,1,1,1,1,1]", "0", "8") "}", 8, 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        RtError err = {{0}};
        SafeFile *file = parse(good[i].header, good[i].n, &err);
        CHECK_MSG(file && safetensors_count(file) == good[i].count, "case %zu: %s", i, err.message);
        safetensors_close(file);
    }
}

static void test_malformed_headers(void)
{
    static const struct {
        const char *header;
        int64_t n;
    } bad[] = {
        {"", 0},
        {"[]", 0},
        {" {}", 0},
        {"{", 0},
        {"{}x", 0},
        {"{}{}", 0},
        {"{\"a\":1}", 0},
        {"{\"a\":{}}", 0},
        {"{\"a\":" T("F32", "[1]", "0", "4") "}", 0}, /* data missing */
        {"{\"a\":" T("F32", "[1]", "0", "4") "}", 3}, /* data cut */
        {"{\"a\":" T("F32", "[1]", "0", "4") "}", 5}, /* data too long */
        {"{}", 1},                                    /* data of nothing */
        {"{\"a\":" T("F32", "[2]", "0", "4") "}", 4}, /* shape larger */
        {"{\"a\":" T("F32", "[1]", "0", "8") "}", 8}, /* shape smaller */
        {"{\"a\":" T("F32", "[1]", "4", "0") "}", 4}, /* backwards */
        {"{\"a\":" T("F32", "[1]", "4", "8") "}", 8}, /* hole at the start */
        {"{\"a\":" T("U8", "[1]", "0", "1") ",\"b\":" T("U8", "[1]", "2", "3") "}", 3}, /* hole */
        {"{\"a\":" T("U8", "[2]", "0", "2") ",\"b\":" T("U8", "[2]", "1", "3") "}",
         3}, /* overlap */
        {"{\"a\":" T("U8", "[2]", "0", "2") ",\"b\":" T("U8", "[2]", "0", "2") "}",
         2}, /* the same */
        {"{\"a\":" T("U8", "[1]", "0", "1") ",\"a\":" T("U8", "[1]", "1", "2") "}", 2}, /* twice */
        {"{\"a\":" T("U8", "[1]", "0", "1") ",\"a\":" T("U8", "[1]", "0", "1") "}", 1},
        {"{\"a\":" T("f32", "[1]", "0", "4") "}", 4},
        {"{\"a\":" T("", "[1]", "0", "4") "}", 4},
        {"{\"a\":" T("F32", "1", "0", "4") "}", 4},
        {"{\"a\":" T("F32", "[-1]", "0", "4") "}", 4},
        {"{\"a\":" T("F32", "[1.0]", "0", "4") "}", 4},
        {"{\"a\":" T("F32", "[\"1\"]", "0", "4") "}", 4},
        {"{\"a\":" T("F32", "[1]", "0.0", "4") "}", 4},
        {"{\"a\":" T("F32", "[1]", "-4", "4") "}", 4},
        {"{\"a\":" T("F32", "[1]", "0", "99999999999999999999") "}", 4},
        {"{\"a\":" T("F32", "[4294967296,4294967296]", "0", "0") "}", 0},
        {"{\"a\":" T("F32", "[4611686018427387905]", "0", "4") "}", 4}, /* times 4 wraps to 4 */
        {"{\"a\":" T("F32", "[0,9223372036854775807,9223372036854775807]", "0", "0") "}", 0},
        {"{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1}, /* rank 9 */
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1},
        {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1},
        {"{\"a\\u0000b\":" T("U8", "[1]", "0", "1") "}", 1},
        {"{\"a\xff\":" T("U8", "[1]", "0", "1") "}", 1},
        {"{\"__metadata__\":[]}", 0},
        {"{\"__metadata__\":{\"a\":1}}", 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RtError err = {{0}};
        SafeFile *file = parse(bad[i].header, bad[i].n, &err);
        CHECK_MSG(!file && err.message[0], "case %zu: %s", i, bad[i].header);
        safetensors_close(file);
    }
    /* Lengths that lie. */
    static const uint64_t lengths[] = {3, 100, 1ull << 32, UINT64_MAX, UINT64_MAX - 7, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned char file[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        RtError err = {{0}};
        memcpy(file, &lengths[i], 8);
        CHECK(!safetensors_parse(file, sizeof file, &err) && err.message[0]);
        CHECK(!safetensors_parse(file, (int64_t)i, &err));
    }
    /* The header ends past the file, where by chance it would go on well. */
    unsigned char cut[12] = {4, 0, 0, 0, 0, 0, 0, 0, '{', '}', ' ', ' '};
    CHECK(!safetensors_parse(cut, 10, NULL) && !safetensors_parse(cut, 11, NULL));
    /* Nesting is bounded by the JSON parser, not by the stack. */
    static unsigned char deep[100008];
    uint64_t len = sizeof deep - 8;
    memcpy(deep, &len, 8);
    memset(deep + 8, '{', len);
    for (size_t i = 8; i + 5 <= sizeof deep; i += 5)
        memcpy(deep + i, "{\"a\":", 5);
    CHECK(!safetensors_parse(deep, sizeof deep, NULL));
}

static void test_copy(void)
{
    RtError err;
    float f[2];
    int32_t i[2];
    unsigned char u[8];
    SafeFile *file = parse("{\"b\":" T("BOOL", "[2]", "0", "2") "}", 2, &err);
    CHECK(!safetensors_copy(safetensors_at(file, 0), RT_BOOL, u, &err)); /* bytes are 2 */
    CHECK(!safetensors_copy(safetensors_at(file, 0), RT_F32, f, &err) &&
          strstr(err.message, "not converted"));
    safetensors_close(file);
    file = parse("{\"b\":" T("F8_E5M2", "[4]", "0", "4") "}", 4, &err);
    CHECK(!safetensors_copy(safetensors_at(file, 0), RT_F32, f, &err));
    CHECK(!safetensors_copy(safetensors_at(file, 0), RT_OTHER, f, &err));
    safetensors_close(file);

    double wide[2] = {0.1, -3};
    uint16_t brain[2] = {0x3F80, 0xC000};
    int64_t large[2] = {5, -6}, too_large[2] = {5, (int64_t)1 << 31};
    struct {
        char name[8];
        const char *type;
        const void *data;
        size_t n;
    } files[] = {{"f64", "F64", wide, 16},
                 {"bf16", "BF16", brain, 4},
                 {"i64", "I64", large, 16},
                 {"big", "I64", too_large, 16}};
    for (size_t k = 0; k < 4; k++) {
        unsigned char bytes[300];
        int len = snprintf((char *)bytes + 8, sizeof bytes - 8,
                           "{\"x\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}",
                           files[k].type, files[k].n);
        uint64_t header = (uint64_t)len;
        memcpy(bytes, &header, 8);
        memcpy(bytes + 8 + len, files[k].data, files[k].n);
        file = safetensors_parse(bytes, 8 + len + (int64_t)files[k].n, &err);
        const SafeTensor *t = file ? safetensors_find(file, "x") : NULL;
        CHECK(t);
        if (t && k == 0)
            CHECK(safetensors_copy(t, RT_F32, f, &err) && fabsf(f[0] - 0.1f) < 1e-9f &&
                  f[1] < -2.9f);
        if (t && k == 1)
            CHECK(safetensors_copy(t, RT_F32, f, &err) && f[0] > 0.99f && f[1] < -1.99f);
        if (t && k == 2)
            CHECK(safetensors_copy(t, RT_I32, i, &err) && i[0] == 5 && i[1] == -6);
        if (t && k == 3)
            CHECK(!safetensors_copy(t, RT_I32, i, &err) && strstr(err.message, "32 bits"));
        safetensors_close(file);
    }
}

static void test_bad_writes(void)
{
    float f[1] = {0};
    RtError err = {{0}};
    SafeEntry same[] = {{.name = "a", .dtype = RT_F32, .data = f},
                        {.name = "a", .dtype = RT_F32, .data = f}};
    CHECK(!write_file(same, 2, "w", &err) && strstr(err.message, "two tensors"));
    SafeEntry one = {.name = "__metadata__", .dtype = RT_F32, .data = f};
    CHECK(!write_file(&one, 1, "w", &err));
    one = (SafeEntry){.name = "x", .dtype = RT_F64, .rank = 9, .data = f};
    CHECK(!write_file(&one, 1, "w", &err));
    one = (SafeEntry){.name = "x", .dtype = RT_OTHER, .data = f};
    CHECK(!write_file(&one, 1, "w", &err));
    one = (SafeEntry){.name = "x\xff", .dtype = RT_F32, .data = f};
    CHECK(!write_file(&one, 1, "w", &err));
    one = (SafeEntry){.name = "x", .dtype = RT_F32, .rank = 2, .dims = {1L << 40, 1L << 40}};
    CHECK(!write_file(&one, 1, "w", &err));
    CHECK(!file_exists(temp_path("w")));
}

int main(void)
{
    temp_open();
    test_round_trip();
    test_reference_bytes();
    test_halves();
    test_valid_headers();
    test_malformed_headers();
    test_copy();
    test_bad_writes();
    return test_result();
}
