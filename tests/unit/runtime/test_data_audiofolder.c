/* SPDX-License-Identifier: GPL-3.0-or-later */
/* audiofolder: channels, rates and lengths, which part of a sound is heard, what is held out, what
 * is left out and what is refused.  What it shares with imagefolder is tested there. */
#include "check.h"
#include "tests/support/data/dataset_case.h"
#include "tests/support/data/sound_case.h"
#include "tests/support/data/temp.h"

#include <sndfile.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { LENGTH = 64, RATE = 8000 };

static DataSpec folder_spec(const char *name, int64_t batch)
{
    return (DataSpec){.kind = "audiofolder",
                      .path = temp_path(name),
                      .batch = batch,
                      .seed = 5,
                      .rate = RATE,
                      .length = LENGTH,
                      .augment = true};
}

static void make_class(const char *dir, const char *class)
{
    char name[100];
    mkdir(temp_path(dir), 0777);
    snprintf(name, sizeof name, "%s/%s", dir, class);
    mkdir(temp_path(name), 0777);
}

/* Sample i of sound k is 100 k + i. */
static void write_sound(const char *dir, const char *class, int k, int frames)
{
    int16_t sample[400];
    char name[100];
    for (int i = 0; i < frames; i++)
        sample[i] = (int16_t)(100 * k + i);
    make_class(dir, class);
    snprintf(name, sizeof name, "%s/%s/s%03d.WAV", dir, class, k);
    write_wav(name, RATE, 1, sample, frames);
}

static int sample_of(float x)
{
    return (int)(x * 32768);
}

static void read_eval(DataSpec *spec, float *x, int32_t *y)
{
    int64_t counted;
    RtError err = {{0}};
    spec->held_out = 1;
    spec->held_out_is_part = true;
    Dataset *ds = open_or_fail(spec);
    CHECK_MSG(dataset_eval_batch(ds, 0, (void *[]){x, y}, &counted, &err), "%s", err.message);
    dataset_close(ds);
}

/* Of a longer sound an evaluation hears the middle; behind a shorter one are zeros. */
static void test_lengths(void)
{
    static float x[4][LENGTH];
    int32_t y[4];
    int seen = 0;
    write_sound("lengths", "a", 1, LENGTH);
    write_sound("lengths", "a", 2, LENGTH + 31);
    write_sound("lengths", "b", 3, LENGTH - 10);
    write_sound("lengths", "b", 4, 1);
    DataSpec spec = folder_spec("lengths", 4);
    read_eval(&spec, x[0], y);
    for (int b = 0; b < 4; b++) {
        int k = sample_of(x[b][0]) / 100, first = k == 2 ? 16 : 0;
        int n = k < 3 ? LENGTH : k == 3 ? LENGTH - 10 : 1;
        seen |= 1 << k;
        CHECK(y[b] == k / 3);
        for (int i = 0; i < LENGTH; i++)
            CHECK_MSG(sample_of(x[b][i]) == (i < n ? 100 * k + first + i : 0), "sound %d, %d", k,
                      i);
    }
    CHECK(seen == 30);
}

/* In training every part of a longer sound is heard, from its first to its last sample, and the
 * same ones again; without augmentation the middle. */
static void test_parts(void)
{
    float x[LENGTH], again[LENGTH];
    int seen[5] = {0};
    write_sound("parts", "a", 1, LENGTH + 4);
    DataSpec spec = folder_spec("parts", 1);
    Dataset *ds = open_or_fail(&spec);
    for (int64_t k = 0; k < 100; k++) {
        CHECK(dataset_train_batch(ds, k, (void *[]){x, NULL}, NULL));
        int first = sample_of(x[0]) - 100;
        CHECK(first >= 0 && first < 5 && sample_of(x[LENGTH - 1]) == 100 + first + LENGTH - 1);
        seen[first]++;
    }
    for (int i = 0; i < 5; i++)
        CHECK_MSG(seen[i] > 5, "part %d: %d times", i, seen[i]);
    CHECK(dataset_train_batch(ds, 3, (void *[]){x, NULL}, NULL));
    dataset_close(ds);
    spec.path = temp_path("parts");
    ds = open_or_fail(&spec);
    CHECK(dataset_train_batch(ds, 3, (void *[]){again, NULL}, NULL) &&
          memcmp(x, again, sizeof x) == 0);
    dataset_close(ds);
    spec.path = temp_path("parts");
    spec.augment = false;
    ds = open_or_fail(&spec);
    CHECK(dataset_train_batch(ds, 3, (void *[]){x, NULL}, NULL) && sample_of(x[0]) == 102);
    dataset_close(ds);
}

/* The mean of three channels, of twice the rate: a slope is the same slope. */
static void test_channels_and_rate(void)
{
    int16_t sample[300 * 3];
    float x[LENGTH];
    int32_t y[1];
    for (int i = 0; i < 300; i++) {
        sample[3 * i] = (int16_t)(20 * i);
        sample[3 * i + 1] = (int16_t)(40 * i);
        sample[3 * i + 2] = 3000;
    }
    make_class("wide", "a");
    write_wav("wide/a/x.wav", 2 * RATE, 3, sample, 300);
    DataSpec spec = folder_spec("wide", 1);
    read_eval(&spec, x, y);
    /* 150 results, of which 43 .. 106 are the middle: samples 86, 88, ... */
    for (int i = 0; i < LENGTH; i++) {
        float want = (float)(20 * (86 + 2 * i) + 1000) / 32768;
        CHECK_MSG(x[i] > want - 0.001F && x[i] < want + 0.001F, "%d: %g, not %g", i, (double)x[i],
                  (double)want);
    }
}

/* FLAC has the same whole numbers. */
static void test_flac(void)
{
    int16_t sample[LENGTH];
    float x[2][LENGTH];
    int32_t y[2];
    for (int i = 0; i < LENGTH; i++)
        sample[i] = (int16_t)(i * i * 7 - 5000);
    make_class("flac", "a");
    make_class("flac", "b");
    write_wav("flac/a/x.wav", RATE, 1, sample, LENGTH);
    SF_INFO info = {.samplerate = RATE, .channels = 1, .format = SF_FORMAT_FLAC | SF_FORMAT_PCM_16};
    SNDFILE *file = sf_open(temp_path("flac/b/x.flac"), SFM_WRITE, &info);
    CHECK(file && sf_write_short(file, sample, LENGTH) == LENGTH && sf_close(file) == 0);
    DataSpec spec = folder_spec("flac", 2);
    read_eval(&spec, x[0], y);
    CHECK(y[0] != y[1] && memcmp(x[0], x[1], sizeof x[0]) == 0);
    CHECK(sample_of(x[0][10]) == sample[10]);
}

/* ---- damaged files ---- */

static void test_left_out(void)
{
    float x[3][LENGTH];
    int32_t y[3];
    int64_t i, counted;
    const char *why;
    int unknown = 0, slow = 0, empty = 0;
    int16_t one[2] = {1, 2};
    for (int k = 0; k < 6; k++)
        write_sound("bad", "a", k, LENGTH);
    temp_write("bad/a/s001.WAV", "<html>", 6);
    write_wav("bad/a/s002.WAV", 10, 1, one, 2);
    write_wav("bad/a/s003.WAV", RATE, 1, one, 0);
    DataSpec spec = folder_spec("bad", 3);
    spec.held_out = 6;
    Dataset *ds = open_or_fail(&spec);
    while (dataset_tell_left_out(ds, &i, &why)) {
        unknown += strstr(why, "Format not recognised") != NULL;
        slow += strstr(why, "10 samples a second: from 1000 to 384000") != NULL;
        empty += strstr(why, "no samples") != NULL;
    }
    CHECK_MSG(unknown == 1 && slow == 1 && empty == 1, "%d %d %d", unknown, slow, empty);
    int64_t all = 0;
    for (int64_t k = 0; k < 2; k++) {
        CHECK(dataset_eval_batch(ds, k, (void *[]){x, y}, &counted, NULL));
        all += counted;
    }
    CHECK(all == 3);
    dataset_close(ds);
    temp_write("bad/a/s004.WAV", "", 0);
    spec.path = temp_path("bad");
    refuse(&spec, "4 of 6 files looked at are no sounds that can be read");
}

/* A float that is no number is found when its turn comes. */
static void test_not_finite(void)
{
    float sample[LENGTH] = {0}, x[LENGTH];
    int64_t i, counted;
    const char *why = "";
    sample[9] = 0.0F / 0.0F;
    make_class("nan", "a");
    SF_INFO info = {.samplerate = RATE, .channels = 1, .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
    SNDFILE *file = sf_open(temp_path("nan/a/x.wav"), SFM_WRITE, &info);
    CHECK(file && sf_write_float(file, sample, LENGTH) == LENGTH && sf_close(file) == 0);
    DataSpec spec = folder_spec("nan", 1);
    spec.held_out = 1;
    Dataset *ds = open_or_fail(&spec);
    CHECK(dataset_eval_batch(ds, 0, (void *[]){x, NULL}, &counted, NULL));
    CHECK(dataset_tell_left_out(ds, &i, &why) && strstr(why, "sample 9 is not a finite number"));
    CHECK(strcmp(dataset_left_out_name(ds, i), "a/x.wav") == 0);
    dataset_close(ds);
}

/* What cannot be opened does not keep its file open. */
static void test_files_are_closed(void)
{
    struct rlimit few;
    getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = 40;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (int k = 0; k < 60; k++) {
        DataSpec spec = folder_spec("bad", 1);
        refuse(&spec, "4 of 6 files");
    }
}

static void test_refusals(void)
{
    mkdir(temp_path("empty"), 0777);
    mkdir(temp_path("empty/class"), 0777);
    temp_write("empty/class/x.mp3", "x", 1);
    DataSpec spec = folder_spec("empty", 1);
    refuse(&spec, "no .wav or .flac file");
    spec = folder_spec("parts", 1);
    spec.rate = 999;
    refuse(&spec, "rate = 999: give samples a second, from 1000 to 384000");
    spec = folder_spec("parts", 1);
    spec.length = 0;
    refuse(&spec, "length = 0: give a number of samples");
}

int main(void)
{
    temp_open();
    test_lengths();
    test_parts();
    test_channels_and_rate();
    test_flac();
    test_left_out();
    test_not_finite();
    test_refusals();
    test_files_are_closed();
    return test_result();
}
