/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/picture_reader.h"

#include "runtime/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void most(int64_t *a, int64_t b)
{
    *a = *a > b ? *a : b;
}

void picture_needs_add(PictureNeeds *needs, const ImageFacts *facts, int64_t size)
{
    most(&needs->file_bytes, facts->file_bytes + 1);
    most(&needs->pixel_bytes, facts->pixel_bytes);
    most(&needs->library_bytes, facts->library_bytes);
    most(&needs->scratch_bytes, image_scratch_bytes(facts->width, facts->height, size));
}

int64_t picture_needs_bytes(const PictureNeeds *needs)
{
    return needs->file_bytes + needs->pixel_bytes + needs->scratch_bytes + needs->library_bytes;
}

int picture_readers_affordable(const PictureNeeds *needs, int cores, RtError *err)
{
    int64_t one = picture_needs_bytes(needs), have = rt_available_bytes();
    int64_t n = have / 2 / one;
    if (n > 0)
        return n < cores ? (int)n : cores;
    rt_error(err,
             "the largest pictures need %.1fMiB to be decoded, and %.1fMiB of memory are "
             "available, of which half is used: make them smaller",
             (double)one / 0x1p20, (double)have / 0x1p20);
    return 0;
}

/* The kernel gives pages when they are touched: here, not in the middle of a run. */
static void touch(void *p, int64_t bytes)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    for (int64_t i = 0; i < bytes; i += page)
        ((volatile char *)p)[i] = 0;
}

static bool reserve(PictureReader *r, const PictureNeeds *needs, RtError *err)
{
    if (!file_room_reserve(&r->file, needs->file_bytes, err) ||
        !image_reserve(&r->image, needs->pixel_bytes, err) ||
        !image_scratch_reserve(&r->scratch, needs->scratch_bytes, err))
        return false;
    touch(r->file.data, needs->file_bytes);
    touch(r->image.rgb, needs->pixel_bytes);
    touch(r->scratch.data, needs->scratch_bytes);
    return true;
}

/* As much as the libraries of all threads may hold at once, and free again: nobody else allocates
 * while training, so it is there when they want it. */
static bool rehearse(int n, int64_t bytes, RtError *err)
{
    void **block = rt_alloc(n, sizeof *block, err);
    bool ok = block != NULL;
    for (int i = 0; ok && i < n; i++) {
        block[i] = rt_alloc(bytes, 1, err);
        ok = block[i] != NULL;
    }
    for (int i = 0; block && i < n; i++)
        free(block[i]);
    free(block);
    return ok;
}

bool picture_readers_reserve(PictureReader *const *reader, int n, const PictureNeeds *needs,
                             RtError *err)
{
    bool ok = true;
    for (int i = 0; ok && i < n; i++)
        ok = reserve(reader[i], needs, err);
    return (ok && rehearse(n, needs->library_bytes, err)) ||
           rt_error_prefix(err, "pictures are decoded by %d thread%s, each in %.1fMiB", n,
                           n == 1 ? "" : "s", (double)picture_needs_bytes(needs) / 0x1p20);
}

void picture_reader_free(PictureReader *reader)
{
    image_free(&reader->image);
    image_scratch_free(&reader->scratch);
    free(reader->file.data);
    *reader = (PictureReader){0};
}

/* libjpeg-turbo and libpng say "insufficient memory" or "out of memory", as rt_alloc does. */
static bool is_about_memory(const RtError *err)
{
    return strcasestr(err->message, "memory") != NULL;
}

bool picture_read(PictureReader *r, const char *path, bool *damaged, RtError *err)
{
    errno = 0;
    bool there = file_read_into(path, IMAGE_MAX_FILE_BYTES, &r->file, err);
    bool short_of_files = !there && (errno == EMFILE || errno == ENFILE || errno == ENOMEM);
    if (there && image_decode(r->file.data, r->file.bytes, &r->image, err))
        return true;
    *damaged = there ? !is_about_memory(err) : !short_of_files;
    return false;
}
