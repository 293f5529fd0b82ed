/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Folders of sounds: tones whose pitch, and whether they come in beats, says the class, at any
 * loudness, out of tune and with noise.  Whole numbers only, which are the same everywhere. */
#include "runtime/file.h"
#include "runtime/standin_internal.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CLASSES = 10,
    PITCHES = 5,
    LOWEST = 220, /* a second */
    BEATS = 8,    /* a second */
    OF_A_CLASS = 32,
    HELD_OF_A_CLASS = 8,
    MOST_SECONDS = 10
};

/* A triangle wave: 2^32 is a period. */
static int64_t triangle(uint32_t phase)
{
    int64_t rising = phase < 0x80000000U ? phase : 0xffffffffU - phase;
    return rising - 0x40000000; /* -2^30 .. 2^30 */
}

static void play(int64_t class, int64_t rate, int64_t n, Dice *d, int16_t *sample)
{
    static const int64_t pitch[PITCHES] = {100, 150, 225, 338, 506}; /* fifths, in hundredths */
    int64_t mistuned = 980 + dice_roll(d, 41);
    int64_t step = (LOWEST * pitch[class % PITCHES] * mistuned << 32) / (100000 * rate);
    uint32_t phase = (uint32_t)dice_roll(d, (int64_t)1 << 32);
    int64_t loud = 6000 + dice_roll(d, 18000), late = dice_roll(d, rate);
    for (int64_t i = 0; i < n; i++, phase += (uint32_t)step) {
        bool silent = class / PITCHES && (i + late) * BEATS * 2 / rate % 2;
        int64_t tone = silent ? 0 : triangle(phase) * loud >> 30;
        sample[i] = (int16_t)(tone + dice_roll(d, 1001) - 500);
    }
}

/* ---- a file in memory, as libsndfile writes it ---- */

typedef struct MadeFile {
    MadeBytes bytes;
    int64_t at;
} MadeFile;

static sf_count_t made_length(void *user)
{
    return ((MadeFile *)user)->bytes.n;
}

static sf_count_t made_seek(sf_count_t offset, int whence, void *user)
{
    MadeFile *f = user;
    f->at = offset + (whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f->at : f->bytes.n);
    return f->at;
}

static sf_count_t made_read(void *to, sf_count_t n, void *user)
{
    MadeFile *f = user;
    int64_t left = f->bytes.n - f->at;
    n = n < left ? n : left;
    memcpy(to, f->bytes.data + f->at, (size_t)n);
    f->at += n;
    return n;
}

/* What is there already, a header, is written over. */
static sf_count_t made_put(const void *from, sf_count_t n, void *user)
{
    MadeFile *f = user;
    int64_t over = f->bytes.n - f->at;
    over = over < n ? over : n;
    if (f->bytes.failed)
        return 0;
    if (over > 0)
        memcpy(f->bytes.data + f->at, from, (size_t)over);
    made_add(&f->bytes, (const char *)from + over, n - over);
    f->at += n;
    return f->bytes.failed ? 0 : n;
}

static sf_count_t made_tell(void *user)
{
    return ((MadeFile *)user)->at;
}

static bool write_wav(const char *path, const int16_t *sample, int64_t n, int64_t rate,
                      RtError *err)
{
    SF_VIRTUAL_IO io = {made_length, made_seek, made_read, made_put, made_tell};
    SF_INFO info = {
        .samplerate = (int)rate, .channels = 1, .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    MadeFile f = {0};
    SNDFILE *wav = sf_open_virtual(&io, SFM_WRITE, &info, &f);
    bool ok = wav && sf_write_short(wav, sample, n) == n;
    ok = wav && sf_close(wav) == 0 && ok;
    if (ok)
        return made_write(&f.bytes, path, err);
    free(f.bytes.data);
    return rt_error(err, "%s: %s", path, f.bytes.failed ? "out of memory" : sf_strerror(NULL));
}

/* ---- all ---- */

static bool write_class(const DataSpec *spec, const char *part, int64_t class, int64_t files,
                        int64_t n, int16_t *sample, RtError *err)
{
    char name[80];
    bool ok = true;
    for (int64_t i = 0; ok && i < files; i++) {
        Dice d = dice_of(part, class * 100000 + i);
        play(class, spec->rate, n, &d, sample);
        snprintf(name, sizeof name, "%s/class_%lld/%05lld.wav", part, (long long)class,
                 (long long)i);
        char *path = path_join(spec->path, name, err);
        ok = path && write_wav(path, sample, n, spec->rate, err);
        free(path);
    }
    return ok;
}

bool standin_audiofolder(const DataSpec *spec, StandIn *out, RtError *err)
{
    int64_t classes = standin_limit(spec, "label", MOST_CLASSES - 1) + 1;
    classes = classes > MOST_CLASSES ? MOST_CLASSES : classes;
    int64_t files = 2 * spec->batch / classes + 1, n = spec->length;
    files = files < OF_A_CLASS ? OF_A_CLASS : files;
    n = n > MOST_SECONDS * spec->rate ? MOST_SECONDS * spec->rate : n;
    int16_t *sample = rt_alloc(n, sizeof *sample, err);
    bool ok = sample != NULL;
    for (int64_t c = 0; ok && c < classes; c++)
        ok = write_class(spec, "train", c, files, n, sample, err) &&
             write_class(spec, "val", c, HELD_OF_A_CLASS, n, sample, err);
    free(sample);
    snprintf(out->said, sizeof out->said,
             "%lld made-up sounds of %lld classes to train on, %lld held out",
             (long long)(files * classes), (long long)classes,
             (long long)(HELD_OF_A_CLASS * classes));
    return ok;
}
