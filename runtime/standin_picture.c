/* SPDX-License-Identifier: GPL-3.0-or-later */
/* MNIST, CIFAR-10 and folders of pictures.  Digits are those of a pocket calculator, shifted,
 * slanted and noisy; pictures have stripes, squares or rings in two colours that say the class,
 * also when they are cropped or mirrored.  Only arithmetic that is the same everywhere. */
#include "runtime/file.h"
#include "runtime/standin_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum {
    DIGIT = 28,
    DIGITS_TRAIN = 4000,
    DIGITS_TEST = 1000,
    CIFAR = 32,
    CIFAR_TRAIN = 2000,
    CIFAR_TEST = 500,
    MOST_CLASSES = 10,
    OF_A_CLASS = 32,
    HELD_OF_A_CLASS = 8
};

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* ---- digits ---- */

/* Distance of (x, y) to the line from a to b. */
static double to_line(double x, double y, const double a[2], const double b[2])
{
    double dx = b[0] - a[0], dy = b[1] - a[1];
    double t = clamp(((x - a[0]) * dx + (y - a[1]) * dy) / (dx * dx + dy * dy), 0, 1);
    double ex = x - a[0] - t * dx, ey = y - a[1] - t * dy;
    return sqrt(ex * ex + ey * ey);
}

/* Seven segments between six corners: top, right upper, right lower, bottom, left lower, left
 * upper, middle. */
static double to_digit(int digit, double x, double y)
{
    static const double corner[6][2] = {{-1, -2}, {1, -2}, {1, 0}, {1, 2}, {-1, 2}, {-1, 0}};
    static const int segment[7][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}, {5, 2}};
    static const unsigned lit[10] = {0x3f, 0x06, 0x5b, 0x4f, 0x66, 0x6d, 0x7d, 0x07, 0x7f, 0x6f};
    double least = 100;
    for (int s = 0; s < 7; s++) {
        double d = to_line(x, y, corner[segment[s][0]], corner[segment[s][1]]);
        if (lit[digit] >> s & 1 && d < least)
            least = d;
    }
    return least;
}

static void draw_digit(int digit, Dice *d, unsigned char *pixel)
{
    double scale = 3.6 + 0.1 * (double)dice_roll(d, 12), slant = 0.05 * (double)dice_roll(d, 9),
           thick = 0.25 + 0.02 * (double)dice_roll(d, 10);
    double left = 11 + 0.5 * (double)dice_roll(d, 12), top = 11 + 0.5 * (double)dice_roll(d, 12);
    for (int y = 0; y < DIGIT; y++)
        for (int x = 0; x < DIGIT; x++) {
            double v = (y - top) / scale, u = (x - left) / scale + slant * v;
            double ink = clamp((thick + 0.25 - to_digit(digit, u, v)) * 4, 0, 1);
            pixel[y * DIGIT + x] =
                (unsigned char)(ink * (double)(200 + dice_roll(d, 56)) +
                                (ink > 0 ? 0 : (double)(dice_roll(d, 16) == 0) * 40));
        }
}

static bool write_idx(const char *dir, const char *part, const char *what, MadeBytes *b,
                      RtError *err)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%s-ubyte", part, what);
    char *path = path_join(dir, name, err);
    bool ok = path && made_write(b, path, err);
    free(path);
    free(b->data);
    *b = (MadeBytes){0};
    return ok;
}

static bool write_digits(const DataSpec *spec, const char *part, int n, RtError *err)
{
    unsigned char pixel[DIGIT * DIGIT], count[2] = {(unsigned char)(n >> 8), (unsigned char)n};
    MadeBytes image = {0}, label = {0};
    int64_t classes = standin_limit(spec, "label", 9) + 1;
    made_add(&image, (unsigned char[]){0, 0, 8, 3, 0, 0, count[0], count[1]}, 8);
    made_add(&image, (unsigned char[]){0, 0, 0, DIGIT, 0, 0, 0, DIGIT}, 8);
    made_add(&label, (unsigned char[]){0, 0, 8, 1, 0, 0, count[0], count[1]}, 8);
    for (int i = 0; i < n; i++) {
        Dice d = dice_of(part, i);
        unsigned char digit = (unsigned char)dice_roll(&d, classes < 10 ? classes : 10);
        draw_digit(digit, &d, pixel);
        made_add(&image, pixel, sizeof pixel);
        made_add(&label, &digit, 1);
    }
    bool ok = write_idx(spec->path, part, "images-idx3", &image, err);
    return write_idx(spec->path, part, "labels-idx1", &label, ok ? err : NULL) && ok;
}

bool standin_mnist(const DataSpec *spec, StandIn *out, RtError *err)
{
    snprintf(out->said, sizeof out->said, "%d made-up digits to train on, %d held out",
             DIGITS_TRAIN, DIGITS_TEST);
    return write_digits(spec, "train", DIGITS_TRAIN, err) &&
           write_digits(spec, "t10k", DIGITS_TEST, err);
}

/* ---- pictures ---- */

/* 0 or 1 at a place: stripes across or down, squares, rings. */
static int pattern(int kind, double x, double y)
{
    int across = (int)floor(y) & 1, down = (int)floor(x) & 1;
    switch (kind) {
    case 0:
        return across;
    case 1:
        return down;
    case 2:
        return across ^ down;
    default:
        return (int)floor(sqrt(x * x + y * y)) & 1;
    }
}

/* size * size pixels, red, green and blue in turn. */
static void draw_picture(int64_t class, int size, Dice *d, unsigned char *pixel)
{
    static const int colour[8][3] = {{220, 60, 50},  {60, 180, 75},  {50, 90, 220},
                                     {240, 200, 60}, {160, 60, 200}, {230, 230, 230},
                                     {40, 40, 40},   {70, 200, 210}};
    const int *a = colour[class % 8], *b = colour[(class + 3 + class / 8) % 8];
    double period = size / (4.0 + (double)(class / 4 % 3)), u = (double)dice_roll(d, size) / period,
           v = (double)dice_roll(d, size) / period, light = 0.7 + 0.03 * (double)dice_roll(d, 20);
    for (int y = 0; y < size; y++)
        for (int x = 0; x < size; x++) {
            const int *c = pattern((int)(class % 4), x / period + u, y / period + v) ? a : b;
            double noise = (double)dice_roll(d, 41) - 20;
            for (int k = 0; k < 3; k++)
                *pixel++ = (unsigned char)clamp(light * c[k] + noise, 0, 255);
        }
}

static bool write_cifar(const DataSpec *spec, const char *name, int n, RtError *err)
{
    unsigned char rgb[CIFAR * CIFAR * 3], record[1 + sizeof rgb];
    MadeBytes b = {0};
    int64_t classes = standin_limit(spec, "label", 9) + 1;
    for (int i = 0; i < n; i++) {
        Dice d = dice_of(name, i);
        record[0] = (unsigned char)dice_roll(&d, classes < 10 ? classes : 10);
        draw_picture(record[0], CIFAR, &d, rgb);
        for (int p = 0; p < CIFAR * CIFAR; p++)
            for (int k = 0; k < 3; k++)
                record[1 + k * CIFAR * CIFAR + p] = rgb[3 * p + k];
        made_add(&b, record, sizeof record);
    }
    char *path = path_join(spec->path, name, err);
    bool ok = path && made_write(&b, path, err);
    free(path);
    free(b.data);
    return ok;
}

bool standin_cifar10(const DataSpec *spec, StandIn *out, RtError *err)
{
    snprintf(out->said, sizeof out->said, "%d made-up pictures to train on, %d held out",
             CIFAR_TRAIN, CIFAR_TEST);
    return write_cifar(spec, "data_batch_1.bin", CIFAR_TRAIN, err) &&
           write_cifar(spec, "test_batch.bin", CIFAR_TEST, err);
}

static bool write_jpeg(const char *path, int size, const unsigned char *rgb, RtError *err)
{
    unsigned char *packed = NULL;
    unsigned long n = 0;
    tjhandle jpeg = tjInitCompress();
    bool ok = jpeg && tjCompress2(jpeg, rgb, size, 0, size, TJPF_RGB, &packed, &n, TJSAMP_420, 85,
                                  TJFLAG_ACCURATEDCT) == 0;
    MadeBytes b = {0};
    if (ok)
        made_add(&b, packed, (int64_t)n);
    else
        rt_error(err, "%s: %s", path, jpeg ? tjGetErrorStr2(jpeg) : "out of memory");
    tjFree(packed);
    if (jpeg)
        tjDestroy(jpeg);
    return ok && made_write(&b, path, err);
}

static bool write_class(const DataSpec *spec, const char *part, int64_t class, int64_t n,
                        unsigned char *rgb, RtError *err)
{
    char name[80];
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        Dice d = dice_of(part, class * 100000 + i);
        draw_picture(class, (int)spec->resize, &d, rgb);
        snprintf(name, sizeof name, "%s/class_%lld/%05lld.jpg", part, (long long)class,
                 (long long)i);
        char *path = path_join(spec->path, name, err);
        ok = path && write_jpeg(path, (int)spec->resize, rgb, err);
        free(path);
    }
    return ok;
}

bool standin_imagefolder(const DataSpec *spec, StandIn *out, RtError *err)
{
    int64_t classes = standin_limit(spec, "label", MOST_CLASSES - 1) + 1, pixels;
    classes = classes > MOST_CLASSES ? MOST_CLASSES : classes;
    int64_t n = 2 * spec->batch / classes + 1;
    n = n < OF_A_CLASS ? OF_A_CLASS : n;
    unsigned char *rgb =
        rt_mul(spec->resize, spec->resize, &pixels) ? rt_alloc(pixels, 3, err) : NULL;
    bool ok = rgb != NULL;
    for (int64_t c = 0; ok && c < classes; c++)
        ok = write_class(spec, "train", c, n, rgb, err) &&
             write_class(spec, "val", c, HELD_OF_A_CLASS, rgb, err);
    free(rgb);
    snprintf(out->said, sizeof out->said,
             "%lld made-up pictures of %lld classes to train on, %lld held out",
             (long long)(n * classes), (long long)classes, (long long)(HELD_OF_A_CLASS * classes));
    return ok;
}
