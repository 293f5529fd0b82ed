/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sound files, read by libsndfile, as numbers for a network: one channel, one rate, one length.
 * Called by the audiofolder data source and by predict. */
#ifndef SCRIMP_RUNTIME_SOUND_H
#define SCRIMP_RUNTIME_SOUND_H

#include "runtime/status.h"

/* Samples a second of files and networks; samples of an example. */
enum { SOUND_MIN_RATE = 1000, SOUND_MAX_RATE = 384000, SOUND_MAX_LENGTH = 1 << 24 };

/* Endings of the names of sound files, NULL behind the last, and as a text. */
extern const char *const sound_endings[];
#define SOUND_ENDINGS ".wav or .flac"

/* What an example is: `length` samples at `rate` a second. */
typedef struct SoundForm {
    int64_t rate, length;
} SoundForm;

/* What a file has: samples of each channel. */
typedef struct SoundFacts {
    int64_t samples, rate, channels;
} SoundFacts;

/* Memory of one thread; grows when it has to. */
typedef struct SoundRoom {
    float *mono;
    double *tap;
    int64_t mono_room, tap_room;
} SoundRoom;

/* By the file's header.  False with a message when it is no sound that can be read. */
bool sound_look(const char *path, SoundFacts *facts, RtError *err);

/* Samples, and filter taps, that the room needs for a part of such a file. */
int64_t sound_room_samples(const SoundFacts *facts, const SoundForm *form);
int64_t sound_room_taps(const SoundFacts *facts, const SoundForm *form);
bool sound_room_reserve(SoundRoom *room, int64_t samples, int64_t taps, RtError *err);
void sound_room_free(SoundRoom *room);

/* Writes form->length numbers to dst: the mean of the channels (in -1..1 as libsndfile scales whole
 * numbers), at form->rate.  Of a longer sound the part that begins at the fraction `where` (0..1)
 * of what is too much; behind a shorter one are zeros.  Only what is needed is read.  *damaged as
 * picture_read says it. */
bool sound_read(SoundRoom *room, const char *path, const SoundForm *form, double where, float *dst,
                bool *damaged, RtError *err);

#endif
