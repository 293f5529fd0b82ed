/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a picture's header says, without decoding it.  Sources: the PNG specification, 5 and 11.2.2;
 * ITU-T T.81 (JPEG), annex B. */
#include "runtime/image_header.h"

#include "runtime/file.h"

#include <string.h>
#include <unistd.h>

/* Beside what grows with the picture: tables, windows of inflate, and of PNG chunks that libpng
 * unpacks, of which it takes 8 MB. */
enum { JPEG_BYTES = 1 << 20, PNG_BYTES = 10 << 20 };
/* Rows of 8-bit samples that libjpeg-turbo holds of one component, and of 16-bit RGBA pixels that
 * libpng does, with room to spare. */
enum { JPEG_ROWS = 64, PNG_ROWS = 4 };
/* A JPEG file with more segments in front of its picture is left to the decoder. */
enum { MAX_SEGMENTS = 1000 };

bool image_is_jpeg(const unsigned char *bytes, int64_t n)
{
    static const unsigned char magic[] = {0xff, 0xd8, 0xff};
    return n >= (int64_t)sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

bool image_is_png(const unsigned char *bytes, int64_t n)
{
    static const unsigned char magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return n >= (int64_t)sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

bool image_size_allowed(int64_t width, int64_t height, RtError *err)
{
    int64_t pixels;
    return (width >= 1 && height >= 1 && rt_mul(width, height, &pixels) &&
            pixels <= IMAGE_MAX_PIXELS) ||
           rt_error(err, "%lld x %lld pixels; at most %d megapixels are read", (long long)width,
                    (long long)height, IMAGE_MAX_PIXELS / (1024 * 1024));
}

static int64_t be(const unsigned char *p, int n)
{
    int64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* ---- PNG ---- */

/* Alpha may come from a tRNS chunk further in: four bytes a pixel in any case. */
static bool look_at_png(const unsigned char *head, int64_t n, ImageFacts *facts, RtError *err)
{
    if (n < 26 || memcmp(head + 12, "IHDR", 4) != 0)
        return true; /* damaged, which the decoder says */
    facts->width = be(head + 16, 4);
    facts->height = be(head + 20, 4);
    if (!image_size_allowed(facts->width, facts->height, err))
        return false;
    facts->pixel_bytes = 4 * facts->width * facts->height;
    facts->library_bytes = PNG_BYTES + PNG_ROWS * 8 * facts->width;
    return true;
}

/* ---- JPEG ---- */

typedef struct Frame {
    bool progressive;
    int components;
    int64_t blocks; /* of 64 coefficients in a unit of 8 h x 8 v pixels */
    int h, v;       /* the largest sampling factors */
} Frame;

/* The segment that starts a frame: precision, height, width, and of each component its number,
 * sampling factors and table. */
static void read_frame(const unsigned char *p, int64_t n, bool progressive, Frame *f,
                       ImageFacts *facts)
{
    int components = p[5];
    if (components < 1 || components > 4 || n < 6 + 3 * components)
        return;
    *f = (Frame){.progressive = progressive, .components = components};
    for (int c = 0; c < components; c++) {
        int h = p[7 + 3 * c] >> 4, v = p[7 + 3 * c] & 15;
        f->blocks += h * v;
        f->h = h > f->h ? h : f->h;
        f->v = v > f->v ? v : f->v;
    }
    facts->height = be(p + 1, 2);
    facts->width = be(p + 3, 2);
}

static int64_t up(int64_t n, int64_t unit)
{
    return unit > 0 ? (n + unit - 1) / unit : 0;
}

/* All coefficients are kept when they come in several scans. */
static void jpeg_memory(const Frame *f, bool several_scans, ImageFacts *facts)
{
    int64_t units = up(facts->width, 8 * f->h) * up(facts->height, 8 * f->v);
    facts->pixel_bytes = (f->components == 4 ? 4 : 3) * facts->width * facts->height;
    facts->library_bytes = JPEG_BYTES + JPEG_ROWS * f->components * (facts->width + 64) +
                           (f->progressive || several_scans ? units * f->blocks * 128 : 0);
}

static bool starts_frame(int marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* From segment to segment up to the first scan. */
static bool look_at_jpeg(int fd, ImageFacts *facts, RtError *err)
{
    Frame frame = {0};
    int64_t at = 2;
    for (int i = 0; i < MAX_SEGMENTS; i++) {
        unsigned char p[4 + 6 + 3 * 4];
        ssize_t n = pread(fd, p, sizeof p, at);
        if (n < 10 || p[0] != 0xff)
            return true;
        int marker = p[1];
        if (marker == 0xff) { /* filling */
            at++;
            continue;
        }
        if (starts_frame(marker)) {
            read_frame(p + 4, n - 4, (marker & 3) == 2, &frame, facts);
            if (frame.components && !image_size_allowed(facts->width, facts->height, err))
                return false;
        }
        if (marker == 0xda) {
            if (frame.components)
                jpeg_memory(&frame, p[4] < frame.components, facts);
            return true;
        }
        at += 2 + be(p + 2, 2);
    }
    return true;
}

bool image_look(const char *path, ImageFacts *facts, RtError *err)
{
    unsigned char head[32];
    *facts = (ImageFacts){0};
    int fd = file_open_regular(path, &facts->file_bytes, err);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, head, sizeof head, 0);
    bool ok = true;
    if (facts->file_bytes > IMAGE_MAX_FILE_BYTES)
        ok = rt_error(err, "%lld bytes; at most %lld are read", (long long)facts->file_bytes,
                      (long long)IMAGE_MAX_FILE_BYTES);
    else if (image_is_png(head, n))
        ok = look_at_png(head, n, facts, err);
    else if (image_is_jpeg(head, n))
        ok = look_at_jpeg(fd, facts, err);
    else
        ok = rt_error(err, "neither a JPEG nor a PNG picture");
    close(fd);
    return ok;
}
