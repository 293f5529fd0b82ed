/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/manifest.h"

#include "runtime/file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROLES = CHECKPOINT_ROLES, STEP_DIGITS = 10, VERSION = 1 };
static const char FORMAT[] = "scrimp-checkpoint";
static const int64_t MAX_MANIFEST = 64 << 20;

const char manifest_file[] = "trainer.json";
const char *const checkpoint_role_names[CHECKPOINT_ROLES] = {"model", "optimizer"};

/* ---- names ---- */

/* "model-0000000100.safetensors", with ".K" before the ending when K > 0. */
static void set_name(SetFile *file, CheckpointRole role, int64_t step, int k)
{
    char suffix[16] = "";
    if (k > 0)
        snprintf(suffix, sizeof suffix, ".%d", k);
    snprintf(file->name, sizeof file->name, "%s-%0*lld%s.safetensors", checkpoint_role_names[role],
             STEP_DIGITS, (long long)step, suffix);
}

/* Skips ".123"; NULL when it is not there. */
static const char *skip_number(const char *p)
{
    size_t n = p && *p == '.' ? strspn(p + 1, "0123456789") : 0;
    return n ? p + 1 + n : NULL;
}

/* Nothing, or what atomic_open and file_link append to a temporary name: ".NUMBER.tmp". */
static bool is_ending(const char *p, bool temporary)
{
    const char *after = skip_number(p);
    return (!temporary && *p == 0) || (after && strcmp(after, ".tmp") == 0);
}

bool manifest_owns(const char *name)
{
    static const char safe[] = ".safetensors";
    size_t n_file = sizeof manifest_file - 1;
    if (strncmp(name, manifest_file, n_file) == 0)
        return is_ending(name + n_file, true);
    for (int r = 0; r < ROLES; r++) {
        size_t n = strlen(checkpoint_role_names[r]);
        if (strncmp(name, checkpoint_role_names[r], n) != 0)
            continue;
        if (strncmp(name + n, safe, sizeof safe - 1) == 0) /* the link model.safetensors */
            return is_ending(name + n + sizeof safe - 1, true);
        size_t digits = name[n] == '-' ? strspn(name + n + 1, "0123456789") : 0;
        const char *rest = name + n + 1 + digits;
        if (digits < STEP_DIGITS)
            return false;
        rest = skip_number(rest) ? skip_number(rest) : rest;
        return strncmp(rest, safe, sizeof safe - 1) == 0 &&
               is_ending(rest + sizeof safe - 1, false);
    }
    return false;
}

/* A name from trainer.json stays in its folder. */
static bool is_plain_name(const char *name)
{
    return name && name[0] && name[0] != '.' && !strchr(name, '/') &&
           strlen(name) < sizeof((SetFile *)NULL)->name;
}

/* ---- trainer.json ---- */

static bool read_u64(const json_t *j, uint64_t *out)
{
    const char *text = json_string_value(j);
    char *end;
    if (!text || text[0] != '0' || text[1] != 'x' || !isxdigit((unsigned char)text[2]))
        return false;
    errno = 0;
    *out = strtoull(text + 2, &end, 16);
    return *end == 0 && errno == 0;
}

static bool read_i64(const json_t *j, int64_t *out)
{
    *out = json_integer_value(j);
    return json_is_integer(j) && *out >= 0;
}

static bool read_set_file(const json_t *j, SetFile *file)
{
    uint64_t crc;
    const char *name = json_string_value(json_object_get(j, "name"));
    if (!is_plain_name(name) || !read_i64(json_object_get(j, "bytes"), &file->bytes) ||
        !read_u64(json_object_get(j, "crc32"), &crc) || crc > UINT32_MAX)
        return false;
    strcpy(file->name, name);
    file->crc32 = (uint32_t)crc;
    return true;
}

bool manifest_from_json(const json_t *root, Manifest *m, RtError *err)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    int64_t version;
    if (!format || strcmp(format, FORMAT) != 0 ||
        !read_i64(json_object_get(root, "version"), &version))
        return rt_error(err, "it is no scrimp checkpoint");
    if (version != VERSION)
        return rt_error(err, "version %lld, but this scrimp reads version %d", (long long)version,
                        VERSION);
    const json_t *files = json_object_get(root, "files"), *epoch = json_object_get(root, "epoch");
    m->state.epoch = json_number_value(epoch);
    m->state.evaluation_due = json_is_true(json_object_get(root, "evaluation_due"));
    bool ok = json_is_number(epoch) && read_i64(json_object_get(root, "step"), &m->state.step) &&
              read_i64(json_object_get(root, "data_position"), &m->state.data_position) &&
              read_u64(json_object_get(root, "seed"), &m->state.seed) &&
              read_u64(json_object_get(root, "model_hash"), &m->state.model_hash);
    for (int r = 0; r < ROLES; r++)
        ok = ok && read_set_file(json_object_get(files, checkpoint_role_names[r]), &m->file[r]);
    return ok || rt_error(err, "it is damaged");
}

json_t *manifest_load(const char *dir, RtError *err)
{
    char *path = path_join(dir, manifest_file, err);
    FileBytes file = {0};
    json_t *root = NULL;
    if (path && file_read(path, MAX_MANIFEST, &file, err)) {
        json_error_t why;
        root =
            json_loadb((const char *)file.data, (size_t)file.bytes, JSON_REJECT_DUPLICATES, &why);
        if (!root)
            rt_error(err, "%s is damaged: %s at line %d", path, why.text, why.line);
        file_release(&file);
    }
    free(path);
    return root;
}

bool manifest_read(const char *dir, Manifest *m, RtError *err)
{
    *m = (Manifest){0};
    json_t *root = manifest_load(dir, err);
    bool ok = root && (manifest_from_json(root, m, err) ||
                       rt_error_prefix(err, "%s/%s", dir, manifest_file));
    json_decref(root);
    return ok;
}

static json_t *hex(uint64_t v)
{
    return json_sprintf("0x%" PRIx64, v);
}

static json_t *vocab_json(const Vocab *vocab)
{
    json_t *codes = json_array();
    for (int32_t i = 0; i < vocab->size; i++)
        if (json_array_append_new(codes, json_integer(vocab->code[i])) != 0) {
            json_decref(codes);
            return NULL;
        }
    return codes;
}

static json_t *set_file_json(const SetFile *file)
{
    return json_pack("{s:s, s:I, s:o}", "name", file->name, "bytes", (json_int_t)file->bytes,
                     "crc32", hex(file->crc32));
}

char *manifest_text(const Manifest *m)
{
    const TrainerState *s = &m->state;
    json_t *root =
        json_pack("{s:s, s:i, s:I, s:I, s:f, s:o, s:o, s:{s:o, s:o}}", "format", FORMAT, "version",
                  VERSION, "step", (json_int_t)s->step, "data_position",
                  (json_int_t)s->data_position, "epoch", s->epoch, "seed", hex(s->seed),
                  "model_hash", hex(s->model_hash), "files", checkpoint_role_names[0],
                  set_file_json(&m->file[0]), checkpoint_role_names[1], set_file_json(&m->file[1]));
    bool ok = root != NULL;
    if (ok && s->evaluation_due)
        ok = json_object_set_new(root, "evaluation_due", json_true()) == 0;
    if (ok && s->vocab && s->vocab->chars)
        ok = json_object_set_new(root, "vocabulary", vocab_json(s->vocab)) == 0;
    if (ok && s->learned)
        ok = json_object_set_new(root, "learned", json_deep_copy(s->learned)) == 0;
    if (ok && s->settings)
        ok = json_object_set_new(root, "settings", json_deep_copy(s->settings)) == 0;
    char *text = ok ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

bool manifest_write(const char *dir, const Manifest *m, RtError *err)
{
    char *path = path_join(dir, manifest_file, err), *text = manifest_text(m);
    bool ok = path && text && file_replace(path, text, (int64_t)strlen(text), err);
    if (path && !text)
        rt_error(err, "out of memory writing %s", path);
    free(path);
    free(text);
    return ok;
}

void manifest_choose_names(const Manifest *now, int64_t step, Manifest *next)
{
    for (int k = 0;; k++) {
        bool taken = false;
        for (int r = 0; r < ROLES; r++) {
            set_name(&next->file[r], (CheckpointRole)r, step, k);
            taken = taken || strcmp(next->file[r].name, now->file[r].name) == 0;
        }
        if (!taken)
            return;
    }
}

bool manifest_exists(const char *dir)
{
    char *path = path_join(dir, manifest_file, NULL);
    bool there = path && file_exists(path);
    free(path);
    return there;
}

bool manifest_vocab(const json_t *root, Vocab *vocab, RtError *err)
{
    *vocab = (Vocab){0};
    const json_t *codes = json_object_get(root, "vocabulary");
    int32_t n = (int32_t)json_array_size(codes);
    uint32_t *code = codes ? rt_alloc(n, sizeof *code, err) : NULL;
    for (int32_t i = 0; code && i < n; i++) {
        int64_t v;
        bool ok = read_i64(json_array_get(codes, (size_t)i), &v) && v <= UINT32_MAX;
        code[i] = ok ? (uint32_t)v : UINT32_MAX; /* refused below */
    }
    bool ok = code && vocab_from_codes(vocab, code, n, err);
    free(code);
    return ok;
}

static bool same_file(const SetFile *a, const SetFile *b)
{
    return strcmp(a->name, b->name) == 0 && a->bytes == b->bytes && a->crc32 == b->crc32;
}

bool manifest_same_set(const Manifest *a, const Manifest *b)
{
    for (int r = 0; r < ROLES; r++)
        if (!same_file(&a->file[r], &b->file[r]))
            return false;
    return true;
}
