/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the picture libraries allocate while they decode is no more than the header promised:
 * memory for it is asked for before training. */
#include "runtime/file.h"
#include "runtime/image.h"

#include "check.h"
#include "tests/support/data/picture_case.h"
#include "tests/support/data/temp.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* Sanitizers have an allocator of their own: there the peak stays 0, and pictures are decoded. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *p);
enum { COUNTING = 1 };

static int64_t live, peak;

static void *taken(void *p)
{
    live += p ? (int64_t)malloc_usable_size(p) : 0;
    peak = live > peak ? live : peak;
    return p;
}

void *malloc(size_t size)
{
    return taken(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return taken(__libc_calloc(n, size));
}

void free(void *p)
{
    live -= p ? (int64_t)malloc_usable_size(p) : 0;
    __libc_free(p);
}

void *realloc(void *old, size_t size)
{
    live -= old ? (int64_t)malloc_usable_size(old) : 0;
    return taken(__libc_realloc(old, size));
}
#else
enum { COUNTING = 0 };
static int64_t live, peak;
#endif

static void check_picture(const char *name)
{
    Image image = {0};
    ImageFacts facts;
    FileBytes file;
    RtError err = {{0}};
    CHECK(image_look(temp_path(name), &facts, &err) &&
          file_read(temp_path(name), 1 << 28, &file, &err));
    CHECK(image_reserve(&image, facts.pixel_bytes, &err));
    int64_t room = image.room, before = live;
    peak = live;
    bool ok = image_decode(file.data, file.bytes, &image, &err);
    int64_t most = peak - before;
    CHECK_MSG(ok, "%s: %s", name, err.message);
    CHECK(facts.width == image.width && facts.height == image.height &&
          facts.file_bytes == file.bytes);
    CHECK_MSG(image.room == room, "%s: pixels want more than the header promised", name);
    CHECK_MSG(most <= facts.library_bytes && (most > 0 || !COUNTING),
              "%s: %lld bytes at once, promised %lld", name, (long long)most,
              (long long)facts.library_bytes);
    CHECK_MSG(live == before, "%s: something is not given back", name);
    file_release(&file);
    image_free(&image);
}

static unsigned char *noise(int64_t n)
{
    unsigned char *pixels = malloc((size_t)n);
    for (int64_t i = 0; i < n; i++)
        pixels[i] = (unsigned char)(i * 2654435761u >> 11);
    return pixels;
}

static void write_with(const char *name, int width, int height, int format, int sampling, int flags)
{
    unsigned char *pixels = noise((int64_t)width * height * 4), *bytes = NULL;
    unsigned long n = 0;
    tjhandle jpeg = tjInitCompress();
    CHECK(tjCompress2(jpeg, pixels, width, 0, height, format, &bytes, &n, sampling, 90, flags) ==
          0);
    temp_write(name, bytes, n);
    tjFree(bytes);
    tjDestroy(jpeg);
    free(pixels);
}

static void test_jpeg(int width, int height)
{
    static const struct {
        const char *name;
        int format, sampling, flags;
    } cases[] = {
        {"444.jpg", TJPF_RGB, TJSAMP_444, 0},
        {"420.jpg", TJPF_RGB, TJSAMP_420, 0},
        {"grey.jpg", TJPF_RGB, TJSAMP_GRAY, 0},
        {"cmyk.jpg", TJPF_CMYK, TJSAMP_444, 0},
        {"p444.jpg", TJPF_RGB, TJSAMP_444, TJFLAG_PROGRESSIVE},
        {"p420.jpg", TJPF_RGB, TJSAMP_420, TJFLAG_PROGRESSIVE},
        {"p411.jpg", TJPF_RGB, TJSAMP_411, TJFLAG_PROGRESSIVE},
        {"pcmyk.jpg", TJPF_CMYK, TJSAMP_420, TJFLAG_PROGRESSIVE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_with(cases[i].name, width, height, cases[i].format, cases[i].sampling,
                   cases[i].flags);
        check_picture(cases[i].name);
    }
}

/* 8 or 16 bits, with or without alpha, interlaced or not. */
static void write_rows(const char *name, int width, int height, int depth, int type, int interlace)
{
    unsigned char *pixels = noise((int64_t)width * height * 8);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *out = fopen(temp_path(name), "wb");
    CHECK(out && info);
    png_init_io(png, out);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, depth, type, interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (int pass = 0; pass < (interlace ? png_set_interlace_handling(png) : 1); pass++)
        for (int y = 0; y < height; y++)
            png_write_row(png, pixels + (int64_t)8 * y * width);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    CHECK(fclose(out) == 0);
    free(pixels);
}

static void test_png(int width, int height)
{
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    for (int type = 0; type < 3; type++)
        for (int depth = 8; depth <= 16; depth += 8)
            for (int interlace = 0; interlace < 2; interlace++) {
                write_rows("rows.png", width, height, depth, types[type],
                           interlace ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE);
                check_picture("rows.png");
            }
}

int main(void)
{
    temp_open();
    test_jpeg(500, 300);
    test_jpeg(30000, 9);
    test_jpeg(9, 20000);
    test_png(300, 200);
    test_png(50000, 3);
    test_png(3, 9000);
    return test_result();
}
