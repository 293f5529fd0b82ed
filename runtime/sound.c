/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/sound.h"

#include "runtime/file.h"
#include "runtime/rate_change.h"

#include <errno.h>
#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

const char *const sound_endings[] = {".wav", ".flac", NULL};

/* Longer than that is no sound but a damaged header. */
static const int64_t MOST_SAMPLES = (int64_t)1 << 40;
enum { BLOCK = 8192 }; /* numbers read at once: of all channels, of which there are at most 1024 */

/* ---- files ---- */

static bool refuse(const SF_INFO *info, RtError *err)
{
    if (info->samplerate < SOUND_MIN_RATE || info->samplerate > SOUND_MAX_RATE)
        return rt_error(err, "%d samples a second: from %d to %d can be read", info->samplerate,
                        SOUND_MIN_RATE, SOUND_MAX_RATE);
    if (info->channels < 1 || info->channels > BLOCK)
        return rt_error(err, "%d channels", info->channels);
    if (info->frames < 1 || info->frames > MOST_SAMPLES)
        return rt_error(err, "there are no samples in it");
    return true;
}

/* NULL with a message; *damaged: because of the file. */
static SNDFILE *open_sound(const char *path, SoundFacts *facts, bool *damaged, RtError *err)
{
    SF_INFO info = {0};
    int64_t bytes;
    *damaged = false;
    errno = 0;
    int fd = file_open_regular(path, &bytes, err);
    if (fd < 0) {
        *damaged = errno != EMFILE && errno != ENFILE && errno != ENOMEM;
        return NULL;
    }
    SNDFILE *file = sf_open_fd(fd, SFM_READ, &info, SF_TRUE);
    if (!file) {
        *damaged = errno != ENOMEM;
        rt_error(err, "%s", sf_strerror(NULL));
        return NULL;
    }
    *facts = (SoundFacts){info.frames, info.samplerate, info.channels};
    if (refuse(&info, err))
        return file;
    *damaged = true;
    sf_close(file);
    return NULL;
}

bool sound_look(const char *path, SoundFacts *facts, RtError *err)
{
    bool damaged;
    SNDFILE *file = open_sound(path, facts, &damaged, err);
    if (file)
        sf_close(file);
    return file != NULL;
}

/* ---- memory ---- */

int64_t sound_room_samples(const SoundFacts *facts, const SoundForm *form)
{
    RateChange r = rate_change_make(facts->rate, form->rate);
    int64_t lo, hi;
    rate_change_window(&r, 0, form->length, &lo, &hi);
    hi -= lo - 1; /* another first result may see one more */
    return hi < facts->samples ? hi : facts->samples;
}

int64_t sound_room_taps(const SoundFacts *facts, const SoundForm *form)
{
    RateChange r = rate_change_make(facts->rate, form->rate);
    return rate_change_taps(&r);
}

bool sound_room_reserve(SoundRoom *room, int64_t samples, int64_t taps, RtError *err)
{
    if (samples > room->mono_room) {
        free(room->mono);
        room->mono = rt_alloc(samples, sizeof *room->mono, err);
        room->mono_room = room->mono ? samples : 0;
    }
    if (taps > room->tap_room) {
        free(room->tap);
        room->tap = rt_alloc(taps, sizeof *room->tap, err);
        room->tap_room = room->tap ? taps : 0;
    }
    return room->mono_room >= samples && room->tap_room >= taps;
}

void sound_room_free(SoundRoom *room)
{
    free(room->mono);
    free(room->tap);
    *room = (SoundRoom){0};
}

/* ---- samples ---- */

/* n means of the channels from where the file stands. */
static bool mix_down(SNDFILE *file, int64_t channels, float *mono, int64_t n, RtError *err)
{
    float block[BLOCK];
    int64_t at_once = BLOCK / channels;
    for (int64_t i = 0; i < n;) {
        int64_t want = n - i < at_once ? n - i : at_once;
        if (sf_readf_float(file, block, want) != want)
            return rt_error(err, "it ends before the last of its samples, or is damaged there");
        for (int64_t k = 0; k < want; k++, i++) {
            double sum = 0;
            for (int64_t c = 0; c < channels; c++)
                sum += (double)block[k * channels + c];
            mono[i] = (float)(sum / (double)channels);
            if (!isfinite(mono[i]))
                return rt_error(err, "sample %lld is not a finite number", (long long)i);
        }
    }
    return true;
}

/* The part of the sound that becomes the example. */
typedef struct Part {
    RateChange r;
    int64_t first, n; /* results */
    int64_t lo, hi;   /* samples of the file */
} Part;

static Part choose_part(const SoundFacts *facts, const SoundForm *form, double where)
{
    Part p = {.r = rate_change_make(facts->rate, form->rate)};
    int64_t all = rate_change_length(&p.r, facts->samples), more = all - form->length;
    p.n = more < 0 ? all : form->length;
    p.first = more > 0 ? (int64_t)(where * (double)(more + 1)) : 0;
    p.first = p.first > more && more > 0 ? more : p.first;
    rate_change_window(&p.r, p.first, p.n, &p.lo, &p.hi);
    p.lo = p.lo < 0 ? 0 : p.lo;
    p.hi = p.hi > facts->samples ? facts->samples : p.hi;
    return p;
}

static bool read_part(SNDFILE *file, const SoundFacts *facts, const Part *p, SoundRoom *room,
                      float *dst, RtError *err)
{
    if (p->lo > 0 && sf_seek(file, p->lo, SEEK_SET) != p->lo)
        return rt_error(err, "sample %lld cannot be reached", (long long)p->lo);
    if (!mix_down(file, facts->channels, room->mono, p->hi - p->lo, err))
        return false;
    rate_change(&p->r, room->mono, p->lo, p->hi, p->first, p->n, room->tap, dst);
    return true;
}

bool sound_read(SoundRoom *room, const char *path, const SoundForm *form, double where, float *dst,
                bool *damaged, RtError *err)
{
    SoundFacts facts;
    SNDFILE *file = open_sound(path, &facts, damaged, err);
    if (!file)
        return false;
    Part p = choose_part(&facts, form, where);
    bool ok = sound_room_reserve(room, p.hi - p.lo, rate_change_taps(&p.r), err);
    if (ok) {
        ok = read_part(file, &facts, &p, room, dst, err);
        *damaged = !ok;
        memset(dst + p.n, 0, (size_t)(form->length - p.n) * sizeof *dst);
    }
    sf_close(file);
    return ok;
}
