/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decoding of JPEG and PNG, and windows of pictures against a direct evaluation of the filter. */
#include "runtime/image.h"

#include "check.h"
#include "runtime/file.h"
#include "tests/support/data/picture_case.h"
#include "tests/support/data/temp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double NO_MEAN[3] = {0, 0, 0}, UNIT_STD[3] = {1, 1, 1};

static bool decode_file(const char *name, Image *image, RtError *err)
{
    FileBytes file;
    CHECK(file_read(temp_path(name), 1 << 30, &file, err));
    bool ok = image_decode(file.data, file.bytes, image, err);
    file_release(&file);
    return ok;
}

static void check_pixel(const Image *image, int x, int y, int r, int g, int b, int within)
{
    const unsigned char *p = image->rgb + 3 * (y * image->width + x);
    CHECK_MSG(abs(p[0] - r) <= within && abs(p[1] - g) <= within && abs(p[2] - b) <= within,
              "(%d,%d) is %d %d %d, wanted %d %d %d", x, y, p[0], p[1], p[2], r, g, b);
}

static void test_formats(void)
{
    Image image = {0};
    RtError err;
    const unsigned char rgb[] = {10, 20, 30, 200, 100, 50, 0, 255, 0, 1, 2, 3};
    write_png("rgb.png", 2, 2, PNG_FORMAT_RGB, rgb);
    CHECK(decode_file("rgb.png", &image, &err) && image.width == 2 && image.height == 2);
    check_pixel(&image, 0, 0, 10, 20, 30, 0);
    check_pixel(&image, 1, 0, 200, 100, 50, 0);
    check_pixel(&image, 1, 1, 1, 2, 3, 0);
    const unsigned char alpha[] = {10, 20, 30, 0, 40, 50, 60, 255};
    write_png("alpha.png", 1, 2, PNG_FORMAT_RGBA, alpha);
    CHECK(decode_file("alpha.png", &image, &err));
    check_pixel(&image, 0, 1, 40, 50, 60, 0);
    const unsigned char grey[] = {0, 128, 255};
    write_png("grey.png", 3, 1, PNG_FORMAT_GRAY, grey);
    CHECK(decode_file("grey.png", &image, &err));
    check_pixel(&image, 1, 0, 128, 128, 128, 0);
    const unsigned char deep[] = {10, 0, 100, 0, 200, 0};
    write_png16("deep.png", 1, 1, deep);
    CHECK(decode_file("deep.png", &image, &err));
    check_pixel(&image, 0, 0, 10, 100, 199, 1);
    unsigned char flat[16 * 8 * 3], cmyk[16 * 8 * 4];
    for (int i = 0; i < 16 * 8; i++) {
        memcpy(flat + 3 * i, (unsigned char[]){200, 100, 50}, 3);
        memcpy(cmyk + 4 * i, (unsigned char[]){255, 128, 0, 200}, 4); /* inverted, as stored */
    }
    write_jpeg("rgb.jpg", 16, 8, TJPF_RGB, flat);
    CHECK(decode_file("rgb.jpg", &image, &err) && image.width == 16 && image.height == 8);
    check_pixel(&image, 5, 5, 200, 100, 50, 3);
    write_jpeg("cmyk.jpg", 16, 8, TJPF_CMYK, cmyk);
    CHECK(decode_file("cmyk.jpg", &image, &err));
    check_pixel(&image, 15, 7, 200, 100, 0, 3);
    write_jpeg("grey.jpg", 16, 8, TJPF_GRAY, flat);
    CHECK(decode_file("grey.jpg", &image, &err) && image.width == 16);
    image_free(&image);
}

static void refuse_bytes(const void *bytes, int64_t n, const char *expect)
{
    Image image = {0};
    RtError err = {{0}};
    CHECK_MSG(!image_decode(bytes, n, &image, &err) && strstr(err.message, expect),
              "wanted '%s', got '%s'", expect, err.message);
    image_free(&image);
}

static void test_refusals(void)
{
    refuse_bytes("GIF89a....", 10, "neither a JPEG nor a PNG");
    refuse_bytes("", 0, "neither");
    refuse_bytes("\xff\xd8\xff\xe0", 4, "");
    FileBytes file;
    RtError err;
    CHECK(file_read(temp_path("rgb.png"), 1 << 20, &file, &err));
    refuse_bytes(file.data, file.bytes / 2, "");
    unsigned char huge[64];
    memcpy(huge, file.data, sizeof huge);
    memcpy(huge + 16, (unsigned char[]){0, 1, 0, 0, 0, 1, 0, 0},
           8); /* 65536 x 65536; CRC wrong too */
    refuse_bytes(huge, sizeof huge, "");
    file_release(&file);
    CHECK(file_read(temp_path("rgb.jpg"), 1 << 20, &file, &err));
    refuse_bytes(file.data, file.bytes * 2 / 3, "");
    file_release(&file);
}

/* ---- windows ---- */

static double triangle(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* The definition: a weighted mean of all pixels of the bounds, in double, both directions at once.
 */
static double direct(const Image *image, const ImageWindow *w, int64_t size, int c, int64_t oy,
                     int64_t ox)
{
    double sx = w->width / (double)size, sy = w->height / (double)size, sum = 0, weights = 0;
    double px = w->x + ((double)(w->mirrored ? size - 1 - ox : ox) + 0.5) * sx;
    double py = w->y + ((double)oy + 0.5) * sy;
    for (int64_t y = w->top; y < w->bottom; y++)
        for (int64_t x = w->left; x < w->right; x++) {
            double k = triangle(((double)x + 0.5 - px) / fmax(sx, 1)) *
                       triangle(((double)y + 0.5 - py) / fmax(sy, 1));
            sum += k * image->rgb[3 * (y * image->width + x) + c];
            weights += k;
        }
    return sum / weights;
}

static void check_window(const Image *image, const ImageWindow *w, int64_t size)
{
    static float planes[3 * 64 * 64];
    static const double mean[3] = {0.1, 0.2, 0.3}, std[3] = {0.5, 1, 2};
    ImageScratch scratch = {0};
    CHECK(image_sample(image, w, size, mean, std, &scratch, planes, NULL));
    double worst = 0;
    for (int c = 0; c < 3; c++)
        for (int64_t y = 0; y < size; y++)
            for (int64_t x = 0; x < size; x++) {
                double wanted = (direct(image, w, size, c, y, x) / 255 - mean[c]) / std[c];
                worst = fmax(worst, fabs(wanted - (double)planes[(c * size + y) * size + x]));
            }
    CHECK_MSG(worst < 2e-6, "off by %g", worst);
    image_scratch_free(&scratch);
}

static void test_windows(void)
{
    enum { W = 37, H = 23 };
    unsigned char rgb[3 * W * H];
    for (int i = 0; i < 3 * W * H; i++)
        rgb[i] = (unsigned char)(i * 7919 >> 3);
    const Image image = {W, H, rgb, sizeof rgb};
    ImageWindow all = {0, 0, W, H, 0, 0, W, H, false};
    check_window(&image, &all, 5);
    check_window(&image, &all, 64);
    ImageWindow part = {3, 5, 11, 13, 3, 5, 14, 18, true};
    check_window(&image, &part, 4);
    check_window(&image, &part, 30);
    ImageWindow pixel = {36, 22, 1, 1, 36, 22, 37, 23, false};
    check_window(&image, &pixel, 3);
    ImageWindow middle = image_center(&image, 28, 32);
    CHECK(fabs(middle.height - 23 * 28 / 32.0) < 1e-12 &&
          fabs(middle.x + middle.width / 2 - 18.5) < 1e-12 &&
          fabs(middle.y + middle.height / 2 - 11.5) < 1e-12);
    check_window(&image, &middle, 28);
}

/* At its own size a picture comes out as it is. */
static void test_identity(void)
{
    unsigned char rgb[3 * 8 * 8];
    float planes[3 * 8 * 8];
    ImageScratch scratch = {0};
    for (int i = 0; i < 3 * 8 * 8; i++)
        rgb[i] = (unsigned char)(i * 5);
    const Image image = {8, 8, rgb, sizeof rgb};
    ImageWindow middle = image_center(&image, 8, 8);
    CHECK(image_sample(&image, &middle, 8, NO_MEAN, UNIT_STD, &scratch, planes, NULL));
    for (int i = 0; i < 64; i++)
        for (int c = 0; c < 3; c++)
            CHECK(fabsf(planes[c * 64 + i] - (float)rgb[3 * i + c] / 255) < 1e-6f);
    image_scratch_free(&scratch);
}

int main(void)
{
    temp_open();
    test_formats();
    test_refusals();
    test_windows();
    test_identity();
    return test_result();
}
