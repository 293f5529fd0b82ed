/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints: round trip, what is refused, and every failing file operation and allocation. */
#include "tests/support/data/checkpoint_sets.h"

#include "runtime/file.h"
#include "runtime/safetensors.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Set set;
static RtError note; /* of the last save */

/* Entries of the folder; names of the set files are not fixed, their number is. */
static int entries(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static bool save(const char *dir, int64_t step, RtError *err)
{
    set_fill(&set, step);
    return checkpoint_save(dir, &set.state, set.tensor, SET_TENSORS, &note, err);
}

static void test_round_trip(void)
{
    char dir[512];
    RtError err = {{0}};
    snprintf(dir, sizeof dir, "%s", temp_path("runs/a"));
    CHECK(!checkpoint_exists(dir));
    CHECK(set_loaded_step(dir, &err) == -1 && strstr(err.message, "trainer.json"));
    for (int64_t step = 0; step < 12; step += 4) {
        CHECK_MSG(save(dir, step, &err), "%s", err.message);
        CHECK_MSG(set_loaded_step(dir, &err) == step, "%s", err.message);
        CHECK(entries(dir) == 4);
        CHECK(save(dir, step, &err) &&
              set_loaded_step(dir, &err) == step); /* the same step again */
        CHECK(entries(dir) == 4);
    }
    TrainerState state;
    Vocab none;
    CHECK(checkpoint_exists(dir) && checkpoint_read_state(dir, &state, &err) && state.step == 8);
    CHECK(!checkpoint_read_vocab(dir, &none, &err) && !err.message[0]);
    /* Files the user put there stay. */
    static const char *const mine[] = {
        "model-best.safetensors",           "model-1.safetensors",      "notes.txt",
        "model-0000000004.safetensors.bak", "optimizer-0000000004.txt", "trainer.json.old"};
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        char name[600];
        snprintf(name, sizeof name, "runs/a/%s", mine[i]);
        temp_write(name, "x", 1);
    }
    /* What a killed run left goes away. */
    temp_write("runs/a/model-0000000002.safetensors", "x", 1);
    temp_write("runs/a/optimizer-0000000002.1.safetensors.77.tmp", "x", 1);
    temp_write("runs/a/trainer.json.123.tmp", "x", 1);
    temp_write("runs/a/model.safetensors.123.tmp", "x", 1);
    CHECK(save(dir, 12, &err) && entries(dir) == 4 + 6);
}

static void test_weights(void)
{
    char dir[512], path[600];
    RtError err = {{0}};
    ExtraWeights extra;
    float w[SET_ELEMENTS], b[3];
    CheckpointTensor want[] = {{"fc.weight", RT_F32, 2, {50, 100}, w, CHECKPOINT_MODEL},
                               {"other", RT_F32, 0, {0}, NULL, CHECKPOINT_OPTIMIZER}};
    snprintf(dir, sizeof dir, "%s", temp_path("runs/a"));
    CHECK(checkpoint_load_weights(dir, want, 2, false, &extra, &err) && extra.count == 1 &&
          strcmp(extra.names, "fc.bias") == 0);
    CHECK(memcmp(w, set.w, sizeof w) == 0);
    snprintf(path, sizeof path, "%s/model.safetensors", dir); /* the fixed name */
    memset(w, 0, sizeof w);
    CHECK(checkpoint_load_weights(path, want, 1, false, NULL, &err));
    CHECK(memcmp(w, set.w, sizeof w) == 0);
    CheckpointTensor wrong[] = {{"fc.weight", RT_F32, 2, {100, 50}, w, CHECKPOINT_MODEL},
                                {"fc.bias", RT_F32, 1, {3}, b, CHECKPOINT_MODEL},
                                {"fc2.weight", RT_F32, 0, {0}, w, CHECKPOINT_MODEL},
                                {"fc3.weight", RT_F32, 0, {0}, w, CHECKPOINT_MODEL}};
    CHECK(!checkpoint_load_weights(path, wrong, 4, false, &extra, &err));
    CHECK_MSG(strstr(err.message, "fc.weight is F32[50,100], model wants f32[100,50]") &&
                  strstr(err.message, "2 missing") && strstr(err.message, "0 unexpected"),
              "%s", err.message);
    CHECK(!checkpoint_load_weights(path, wrong + 2, 1, false, &extra, &err) &&
          strstr(err.message, "fc2.weight is missing"));
    CHECK(!checkpoint_load_weights(temp_path("nowhere"), want, 1, false, NULL, &err));
    /* A folder with only weights, as published ones come. */
    uint16_t half[2] = {0x3C00, 0xC000};
    SafeEntry entry = {.name = "h", .dtype = RT_F16, .rank = 1, .dims = {2}, .data = half};
    CHECK(folder_make(temp_path("hub"), &err));
    CHECK(safetensors_write(temp_path("hub/model.safetensors"), &(SafeContent){&entry, 1, NULL, 0},
                            NULL, NULL, &err));
    CheckpointTensor h = {"h", RT_F32, 1, {2}, b, CHECKPOINT_MODEL};
    CHECK(checkpoint_load_weights(temp_path("hub"), &h, 1, false, NULL, &err));
    CHECK(b[0] > 0.99f && b[0] < 1.01f && b[1] < -1.99f);
}

/* What people have at hand: more tensors, names with a prefix, a file of torch.save. */
static void test_others_weights(void)
{
    RtError err = {{0}};
    ExtraWeights extra;
    float x = 1, y = 0;
    SafeEntry entry[6] = {{.name = "fc.bias"}, {.name = "a"}, {.name = "b"},
                          {.name = "c"},       {.name = "d"}, {.name = "module.fc.weight"}};
    for (int i = 0; i < 6; i++) {
        entry[i].dtype = RT_F32;
        entry[i].data = &x;
    }
    const char *path = temp_path("others.safetensors");
    CHECK(safetensors_write(path, &(SafeContent){entry, 6, NULL, 0}, NULL, NULL, &err));
    CheckpointTensor bias = {"fc.bias", RT_F32, 0, {0}, &y, CHECKPOINT_MODEL},
                     weight = {"fc.weight", RT_F32, 0, {0}, &y, CHECKPOINT_MODEL};
    CHECK(checkpoint_load_weights(path, &bias, 1, false, &extra, &err) && extra.count == 5 &&
          y > 0);
    CHECK_MSG(strcmp(extra.names, "a, b, c, ...") == 0, "%s", extra.names);
    CHECK(!checkpoint_load_weights(path, &weight, 1, false, &extra, &err));
    CHECK_MSG(strstr(err.message, "fc.weight is missing") && strstr(err.message, "`module.`"), "%s",
              err.message);
    /* What batch normalization of PyTorch counts and scrimp's does not is no tensor too many. */
    entry[1].name = "bn1.num_batches_tracked";
    CHECK(safetensors_write(path, &(SafeContent){entry, 4, NULL, 0}, NULL, NULL, &err));
    CHECK(checkpoint_load_weights(path, &bias, 1, false, &extra, &err) && extra.count == 2);
    CHECK_MSG(strcmp(extra.names, "b, c") == 0, "%s", extra.names);
    static const char *const saved[] = {"PK\3\4........", "\x80\2ctorch........"};
    for (int i = 0; i < 2; i++) {
        temp_write("saved.pth", saved[i], 12);
        CHECK(!checkpoint_load_weights(temp_path("saved.pth"), &weight, 1, false, &extra, &err));
        CHECK_MSG(strstr(err.message, "torch.load("), "%s", err.message);
    }
}

/* A run that is killed at its very end leaves the fixed name a step behind; resuming mends it. */
static void test_renewed_name(void)
{
    char dir[512], path[600];
    RtError err = {{0}};
    TrainerState state;
    snprintf(dir, sizeof dir, "%s", temp_path("runs/a"));
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    CHECK(save(dir, 14, &err) && unlink(path) == 0);
    temp_write("runs/a/model.safetensors", "old", 3);
    temp_write("runs/a/optimizer-0000000013.safetensors", "old", 3);
    int before = entries(dir);
    CHECK(!checkpoint_load_weights(path, set.tensor, SET_TENSORS, false, NULL, &err));
    CHECK(checkpoint_load(dir, &state, set.tensor, SET_TENSORS, &err));
    CHECK(entries(dir) == before - 1);
    CHECK_MSG(checkpoint_load_weights(path, set.tensor, SET_TENSORS, false, NULL, &err), "%s",
              err.message);
}

/* A resumed model must be the same model; nothing is written unless it is. */
static void test_mismatches(void)
{
    char dir[512];
    RtError err = {{0}};
    TrainerState state;
    snprintf(dir, sizeof dir, "%s", temp_path("runs/a"));
    CHECK(save(dir, 20, &err));
    Set copy = set;
    set_fill(&set, 99);
    CheckpointTensor t[SET_TENSORS + 1];
    memcpy(t, set.tensor, sizeof set.tensor);
    t[SET_TENSORS] = (CheckpointTensor){"extra", RT_F32, 0, {0}, set.b, CHECKPOINT_MODEL};
    CHECK(!checkpoint_load(dir, &state, t, SET_TENSORS + 1, &err) && strstr(err.message, "extra"));
    CHECK(!checkpoint_load(dir, &state, t, SET_TENSORS - 1, &err) &&
          strstr(err.message, "2 tensors"));
    t[3].dtype = RT_F32;
    CHECK(!checkpoint_load(dir, &state, t, SET_TENSORS, &err) &&
          strstr(err.message, "model wants f32"));
    memcpy(t, set.tensor, sizeof set.tensor);
    t[1].rank = 2;
    CHECK(!checkpoint_load(dir, &state, t, SET_TENSORS, &err) && strstr(err.message, "fc.bias"));
    CHECK(set.w[0] > 9899 && set.m[0] > 296 && set.b[0] > 98); /* still step 99 */
    (void)copy;
}

static void rewrite(const char *name, const char *from, const char *to)
{
    FileBytes file;
    CHECK(file_read(temp_path(name), 1 << 20, &file, NULL));
    const char *at = strstr((const char *)file.data, from);
    CHECK_MSG(at, "%s", from);
    if (at) {
        char text[8192];
        size_t before = (size_t)(at - (const char *)file.data);
        int n = snprintf(text, sizeof text, "%.*s%s%s", (int)before, (const char *)file.data, to,
                         at + strlen(from));
        temp_write(name, text, (size_t)n);
    }
    file_release(&file);
}

static void test_damage(void)
{
    char dir[512], from[64];
    RtError err = {{0}};
    snprintf(dir, sizeof dir, "%s", temp_path("dmg"));
    static const char *const changes[][2] = {
        {"scrimp-checkpoint", "something-else"},
        {"\"version\": 1", "\"version\": 2"},
        {"\"step\": 7", "\"step\": -7"},
        {"\"step\": 7", "\"stop\": 7"},
        {"\"step\": 7", "\"step\": 7.5"},
        {"\"seed\": \"0x", "\"seed\": \""},
        {"\"seed\": \"0x", "\"seed\": \"0x1"}, /* 17 digits */
        {"\"name\": \"model", "\"name\": \"../model"},
        {"\"name\": \"model", "\"name\": \"nodel"},
        {"\"name\": \"model-0000000007.safetensors\"",
         "\"name\": \"optimizer-0000000007.safetensors\""},
        {"\"crc32\": \"0x", "\"crc32\": \"0x1"},
        {"\"bytes\": ", "\"bytes\": 1"},
        {"\"epoch\"", "\"step\""},
        {"}", ""},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        remove(temp_path("dmg/trainer.json"));
        CHECK(save(dir, 7, &err) && set_loaded_step(dir, &err) == 7);
        rewrite("dmg/trainer.json", changes[i][0], changes[i][1]);
        CHECK_MSG(set_loaded_step(dir, &err) == -1 && err.message[0], "change %zu: %s", i,
                  changes[i][1]);
    }
    remove(temp_path("dmg/trainer.json"));
    CHECK(save(dir, 7, &err));
    /* One flipped bit in either tensor file. */
    for (int r = 0; r < 2; r++) {
        FileBytes file;
        snprintf(from, sizeof from, "dmg/%s-0000000007.safetensors", r ? "optimizer" : "model");
        CHECK(file_read(temp_path(from), 1 << 20, &file, &err));
        unsigned char *bytes = malloc((size_t)file.bytes);
        memcpy(bytes, file.data, (size_t)file.bytes);
        bytes[file.bytes - 5] ^= 4;
        temp_write(from, bytes, (size_t)file.bytes);
        CHECK(set_loaded_step(dir, &err) == -1 && strstr(err.message, "is not the file"));
        temp_write(from, file.data, (size_t)file.bytes);
        CHECK(set_loaded_step(dir, &err) == 7);
        free(bytes);
        file_release(&file);
    }
    /* A damaged trainer.json is not written over: its files may be all there is. */
    temp_write("dmg/trainer.json", "{", 1);
    int before = entries(dir);
    CHECK(!save(dir, 8, &err) && strstr(err.message, "not overwriting"));
    CHECK(entries(dir) == before);
}

static void test_vocab(void)
{
    char dir[512];
    RtError err = {{0}};
    Vocab vocab, back;
    snprintf(dir, sizeof dir, "%s", temp_path("voc"));
    CHECK(vocab_from_text(&vocab, (const unsigned char *)"a\0\"\\\xC3\xA9", 6, &err));
    set_fill(&set, 1);
    set.state.vocab = &vocab;
    CHECK(checkpoint_save(dir, &set.state, set.tensor, SET_TENSORS, NULL, &err));
    CHECK(checkpoint_read_vocab(dir, &back, &err) && back.size == 5);
    CHECK(memcmp(back.code, vocab.code, 5 * sizeof *back.code) == 0);
    vocab_free(&back);
    rewrite("voc/trainer.json", "97,", "233,"); /* out of order */
    CHECK(!checkpoint_read_vocab(dir, &back, &err) && strstr(err.message, "damaged"));
    vocab_free(&back);
    vocab_free(&vocab);
}

/* The k-th file operation fails, for every k: the old step or the new one loads, whole, nothing
 * else is left in the folder, and the next save works. */
static void test_failing_files(bool first_save)
{
    char dir[512];
    RtError err = {{0}};
    int failures = 0;
    for (uint64_t k = 1; k < 200; k++) {
        snprintf(dir, sizeof dir, "%s/fail%d-%d", temp_dir, first_save, (int)k);
        if (!first_save)
            CHECK(save(dir, 1, &err));
        file_fail_at(k);
        bool ok = save(dir, 2, &err), failed = file_fail_at(0) == 0;
        int64_t step = set_loaded_step(dir, NULL);
        if (!failed) {
            CHECK(ok && step == 2 && failures >= 15 && !note.message[0]);
            return;
        }
        CHECK_MSG(ok ? step == 2 : step == 2 || step == (first_save ? -1 : 1), "k = %d: step %d",
                  (int)k, (int)step);
        int n = entries(dir);
        CHECK_MSG(n == (step == -1 ? 0 : 4) || (step == 2 && n == 3), "k = %d leaves %d files: %s",
                  (int)k, n, err.message);
        CHECK_MSG(!ok || n == 4 || note.message[0], "k = %d: no word of the missing name", (int)k);
        CHECK(save(dir, 3, &err) && set_loaded_step(dir, &err) == 3 && entries(dir) == 4);
        failures++;
    }
    CHECK_MSG(false, "the save never succeeds");
}

/* Allocations of ours and of jansson fail in turn. */
static uint64_t json_fail_at;

static void *json_malloc(size_t n)
{
    if (json_fail_at && --json_fail_at == 0)
        return NULL;
    return malloc(n);
}

static void test_failing_allocations(bool json)
{
    char dir[512];
    RtError err = {{0}};
    snprintf(dir, sizeof dir, "%s/alloc%d", temp_dir, json);
    json_set_alloc_funcs(json_malloc, free);
    for (int loading = 0; loading < 2; loading++) {
        CHECK(save(dir, 1, &err));
        for (uint64_t k = 1;; k++) {
            CHECK(k < 5000);
            json ? (void)(json_fail_at = k) : rt_alloc_fail_at(k);
            bool ok = loading ? set_loaded_step(dir, &err) >= 0 : save(dir, 2, &err);
            json_fail_at = 0;
            rt_alloc_fail_at(0);
            int64_t step = set_loaded_step(dir, &err);
            CHECK_MSG(step == 1 || step == 2, "k = %d: %s", (int)k, err.message);
            if (ok || k >= 5000)
                break;
        }
    }
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    temp_open();
    set_init(&set);
    test_round_trip();
    test_weights();
    test_others_weights();
    test_renewed_name();
    test_mismatches();
    test_damage();
    test_vocab();
    test_failing_files(false);
    test_failing_files(true);
    test_failing_allocations(false);
    test_failing_allocations(true);
    return test_result();
}
