/* SPDX-License-Identifier: GPL-3.0-or-later */
/* audiofolder(DIR): sound files, a folder for each class, as one channel of one rate and length. */
#include "runtime/cores.h"
#include "runtime/folder.h"
#include "runtime/sound.h"

/* The most of each, of any file that was looked at. */
typedef struct SoundNeeds {
    int64_t samples, taps;
} SoundNeeds;

static SoundForm sound_form(const DataSpec *spec)
{
    return (SoundForm){.rate = spec->rate, .length = spec->length};
}

static void most(int64_t *a, int64_t b)
{
    *a = *a > b ? *a : b;
}

static bool look_at_sound(const Folder *f, const char *path, void *needs, RtError *err)
{
    SoundForm form = sound_form(&f->ds->spec);
    SoundNeeds *all = needs;
    SoundFacts facts;
    if (!sound_look(path, &facts, err))
        return false;
    most(&all->samples, sound_room_samples(&facts, &form));
    most(&all->taps, sound_room_taps(&facts, &form));
    return true;
}

static bool show_sound(const Folder *f, int64_t b, int64_t i, void *scratch, bool *damaged,
                       RtError *err)
{
    SoundForm form = sound_form(&f->ds->spec);
    double where = f->training && f->ds->spec.augment ? folder_draw(f, b, 0) : 0.5;
    return sound_read(scratch, folder_list_path(&f->list, i), &form, where, folder_values(f, b),
                      damaged, err);
}

static const FolderForm sounds = {.one = "sound",
                                  .many = "sounds",
                                  .endings = sound_endings,
                                  .ending_text = SOUND_ENDINGS,
                                  .look = look_at_sound,
                                  .show = show_sound};

static void reader_done(void *scratch)
{
    sound_room_free(scratch);
}

static bool start_readers(Dataset *ds, const SoundNeeds *needs, RtError *err)
{
    Folder *f = ds->state;
    int n = cores_allowed();
    f->loader = loader_new(n, sizeof(SoundRoom), folder_place_fill, reader_done, f, err);
    for (int i = 0; f->loader && i < n; i++)
        if (!sound_room_reserve(loader_scratch(f->loader, i), needs->samples, needs->taps, err))
            return false;
    ds->loaded_bytes +=
        n * (needs->samples * (int64_t)sizeof(float) + needs->taps * (int64_t)sizeof(double));
    return f->loader != NULL;
}

static bool check_form(const DataSpec *spec, RtError *err)
{
    if (spec->rate < SOUND_MIN_RATE || spec->rate > SOUND_MAX_RATE)
        return rt_error(err, "rate = %lld: give samples a second, from %d to %d",
                        (long long)spec->rate, SOUND_MIN_RATE, SOUND_MAX_RATE);
    if (spec->length < 1 || spec->length > SOUND_MAX_LENGTH)
        return rt_error(err, "length = %lld: give a number of samples from 1 to %d",
                        (long long)spec->length, SOUND_MAX_LENGTH);
    return true;
}

static bool audiofolder_open(Dataset *ds, RtError *err)
{
    SoundNeeds needs = {0};
    if (!check_form(&ds->spec, err) || !folder_look(ds, &sounds, &needs, err))
        return false;
    data_add_field(ds, "audio", RT_F32, 2, (int64_t[]){1, ds->spec.length});
    return folder_make_room(ds, ds->spec.length, err) && start_readers(ds, &needs, err);
}

const DataKind data_audiofolder = {.name = "audiofolder",
                                   .traits.file_per_example = true,
                                   .traits.counted = "sounds",
                                   .open = audiofolder_open,
                                   .close = folder_close,
                                   .batch = folder_batch,
                                   .left_out = folder_left_out,
                                   .example_name = folder_name};
