/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/checkpoint.h"

#include "runtime/file.h"
#include "runtime/manifest.h"
#include "runtime/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(CHECKPOINT_MODEL == 0, "open_set of one file opens the model's");
enum { ROLES = CHECKPOINT_ROLES, READ_ATTEMPTS = 10, EXTRA_NAMED = 3 };

/* ---- saving ---- */

/* Removes tensor files that trainer.json does not name: the set before, or one that was never
 * finished.  When trainer.json is there but cannot be read, everything is left alone. */
static void remove_others(const char *dir)
{
    Manifest m = {0};
    DIR *d = opendir(dir);
    if (!d)
        return;
    /* Not checkpoint_exists, which is false when memory is short: nothing would be kept then. */
    bool none = faccessat(dirfd(d), manifest_file, F_OK, 0) != 0 && errno == ENOENT;
    if (!none && !manifest_read(dir, &m, NULL)) {
        closedir(d);
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        bool keep = !manifest_owns(e->d_name);
        for (int r = 0; r < ROLES; r++)
            keep = keep || strcmp(e->d_name, m.file[r].name) == 0;
        if (!keep)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}

static bool write_role(const char *dir, const CheckpointTensor *tensors, int64_t n,
                       CheckpointRole role, SetFile *file, RtError *err)
{
    SafeEntry *entries = rt_alloc(n, sizeof *entries, err);
    char *path = path_join(dir, file->name, err);
    int64_t count = 0;
    for (int64_t i = 0; entries && i < n; i++) {
        const CheckpointTensor *t = &tensors[i];
        if (t->role != role)
            continue;
        SafeEntry *e = &entries[count++];
        *e = (SafeEntry){.name = t->name, .dtype = t->dtype, .rank = t->rank, .data = t->data};
        memcpy(e->dims, t->dims, sizeof e->dims);
    }
    SafeMeta meta = {"format", "pt"}; /* what PyTorch-side readers look for */
    const SafeContent content = {entries, count, &meta, 1};
    bool ok = entries && path && safetensors_write(path, &content, &file->bytes, &file->crc32, err);
    free(entries);
    free(path);
    return ok;
}

static bool link_model(const char *dir, const Manifest *m, RtError *err)
{
    char *from = path_join(dir, m->file[CHECKPOINT_MODEL].name, err);
    char *to = path_join(dir, "model.safetensors", err);
    bool ok = from && to && file_link(from, to, err);
    free(from);
    free(to);
    return ok;
}

bool checkpoint_save(const char *dir, const TrainerState *state, const CheckpointTensor *tensors,
                     int64_t n, RtError *note, RtError *err)
{
    Manifest now = {0}, next = {.state = *state};
    if (note)
        note->message[0] = 0;
    if (!folder_make(dir, err))
        return false;
    if (checkpoint_exists(dir) && !manifest_read(dir, &now, err))
        return rt_error_prefix(err, "not overwriting what is there");
    manifest_choose_names(&now, state->step, &next);
    bool ok = true;
    for (int r = 0; ok && r < ROLES; r++)
        ok = write_role(dir, tensors, n, (CheckpointRole)r, &next.file[r], err);
    ok = ok && manifest_write(dir, &next, err);
    if (ok) /* the set is complete: its second name is no reason to end a run */
        link_model(dir, &next, note);
    remove_others(dir);
    return ok;
}

/* ---- loading ---- */

bool checkpoint_exists(const char *dir)
{
    return manifest_exists(dir);
}

bool checkpoint_read_state(const char *dir, TrainerState *state, RtError *err)
{
    Manifest m;
    if (!manifest_read(dir, &m, err))
        return false;
    *state = m.state;
    return true;
}

bool checkpoint_read_vocab(const char *dir, Vocab *vocab, RtError *err)
{
    if (err)
        err->message[0] = 0;
    json_t *root = manifest_load(dir, err);
    bool ok = manifest_vocab(root, vocab, err);
    json_decref(root);
    return ok;
}

/* An object, or a list; the caller's. */
static json_t *read_part(const char *dir, const char *key)
{
    json_t *root = manifest_load(dir, NULL);
    json_t *part = json_incref(json_object_get(root, key));
    json_decref(root);
    if (json_is_object(part) || json_is_array(part))
        return part;
    json_decref(part);
    return NULL;
}

json_t *checkpoint_read_settings(const char *dir)
{
    return read_part(dir, "settings");
}

json_t *checkpoint_read_learned(const char *dir)
{
    return read_part(dir, "learned");
}

static bool wrong_tensor(const CheckpointTensor *t, const SafeTensor *s, RtError *err)
{
    char have[96], want[96];
    rt_shape_text(s->rank, s->dims, have, sizeof have);
    rt_shape_text(t->rank, t->dims, want, sizeof want);
    return rt_error(err, "%s is %s%s, model wants %s%s", t->name, s->type_name, have,
                    rt_dtype_name(t->dtype), want);
}

static bool same_shape(const CheckpointTensor *t, const SafeTensor *s)
{
    return t->rank == s->rank && memcmp(t->dims, s->dims, (size_t)t->rank * sizeof *t->dims) == 0;
}

/* Opens one file of the set and verifies size and checksum. */
static SafeFile *open_set_file(const char *dir, const SetFile *file, RtError *err)
{
    char *path = path_join(dir, file->name, err);
    SafeFile *safe = path ? safetensors_open_exact(path, file->bytes, file->crc32, err) : NULL;
    free(path);
    return safe;
}

/* The first n files of the newest set.  A run that saves meanwhile may take a file away between
 * reading trainer.json and opening it: then there is a newer set. */
static bool open_set(const char *dir, Manifest *m, SafeFile **safe, int n, RtError *err)
{
    for (int attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
        if (!manifest_read(dir, m, err))
            return false;
        int opened = 0;
        while (opened < n && (safe[opened] = open_set_file(dir, &m->file[opened], err)))
            opened++;
        if (opened == n)
            return true;
        while (opened > 0)
            safetensors_close(safe[--opened]);
        Manifest again;
        if (!manifest_read(dir, &again, NULL) || manifest_same_set(&again, m))
            return false;
    }
    return rt_error(err, "%s changes faster than it can be read", dir);
}

/* Every tensor is there with its exact type and shape, and nothing else is. */
static bool check_set(SafeFile *const safe[ROLES], const CheckpointTensor *tensors, int64_t n,
                      RtError *err)
{
    int64_t count[ROLES] = {0};
    for (int64_t i = 0; i < n; i++) {
        const CheckpointTensor *t = &tensors[i];
        const SafeTensor *s = safetensors_find(safe[t->role], t->name);
        if (!s)
            return rt_error(err, "the %s file has no tensor %s; was the model changed since?",
                            checkpoint_role_names[t->role], t->name);
        if (s->dtype != t->dtype || !same_shape(t, s))
            return wrong_tensor(t, s, err);
        count[t->role]++;
    }
    for (int r = 0; r < ROLES; r++)
        if (count[r] != safetensors_count(safe[r]))
            return rt_error(err,
                            "the %s file has %lld tensors, the model %lld; was it changed since?",
                            checkpoint_role_names[r], (long long)safetensors_count(safe[r]),
                            (long long)count[r]);
    return true;
}

bool checkpoint_load(const char *dir, TrainerState *state, const CheckpointTensor *tensors,
                     int64_t n, RtError *err)
{
    Manifest m;
    SafeFile *safe[ROLES];
    if (!open_set(dir, &m, safe, ROLES, err))
        return false;
    bool ok = check_set(safe, tensors, n, err) || rt_error_prefix(err, "%s", dir);
    /* Killed after the switch, before the link or the removal of the old set: were it the last
     * step, no save would make up for it. */
    if (ok) {
        link_model(dir, &m, NULL);
        remove_others(dir);
    }
    for (int64_t i = 0; ok && i < n; i++) {
        const SafeFile *file = safe[tensors[i].role];
        const SafeTensor *s = safetensors_find(file, tensors[i].name);
        ok = safetensors_copy(s, tensors[i].dtype, tensors[i].data, err);
        safetensors_forget(file, s);
    }
    for (int r = 0; r < ROLES; r++)
        safetensors_close(safe[r]);
    if (ok)
        *state = m.state;
    return ok;
}

/* A checkpoint's model file, a folder's model.safetensors, or the file itself.  *state: the
 * checkpoint's optimizer state, or NULL. */
static SafeFile *open_weights(const char *path, bool with_state, SafeFile **state, RtError *err)
{
    *state = NULL;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return safetensors_open(path, err);
    if (checkpoint_exists(path)) {
        Manifest m;
        SafeFile *safe[ROLES] = {NULL};
        /* Weights are enough where somebody has removed the state. */
        if (!(with_state && open_set(path, &m, safe, ROLES, err)) &&
            !open_set(path, &m, safe, 1, err))
            return NULL;
        *state = safe[CHECKPOINT_OPTIMIZER];
        return safe[CHECKPOINT_MODEL];
    }
    char *inside = path_join(path, "model.safetensors", err);
    SafeFile *safe = inside ? safetensors_open(inside, err) : NULL;
    free(inside);
    return safe;
}

/* Where the file's names are the model's with something in front, such as DataParallel's "module.":
 * that, else "". */
static void find_prefix(const SafeFile *safe, const char *name, char *prefix, size_t size)
{
    size_t length = strlen(name);
    prefix[0] = 0;
    for (int64_t i = 0; i < safetensors_count(safe) && !prefix[0]; i++) {
        const char *theirs = safetensors_at(safe, i)->name;
        size_t n = strlen(theirs);
        if (n > length + 1 && theirs[n - length - 1] == '.' &&
            strcmp(theirs + n - length, name) == 0)
            snprintf(prefix, size, "%.*s", (int)(n - length), theirs);
    }
}

static bool model_has(const CheckpointTensor *tensors, int64_t n, const char *name)
{
    for (int64_t i = 0; i < n; i++)
        if (tensors[i].role == CHECKPOINT_MODEL && strcmp(tensors[i].name, name) == 0)
            return true;
    return false;
}

/* PyTorch's batch normalization counts steps for momentum = None, which scrimp's has not: nothing
 * is lost with the count. */
static bool is_step_count(const char *name)
{
    static const char end[] = ".num_batches_tracked";
    size_t n = strlen(name), k = sizeof end - 1;
    return n > k && strcmp(name + n - k, end) == 0;
}

static void name_extra(const SafeFile *safe, const CheckpointTensor *tensors, int64_t n,
                       ExtraWeights *extra)
{
    size_t at = 0;
    for (int64_t i = 0; i < safetensors_count(safe); i++) {
        const char *name = safetensors_at(safe, i)->name;
        if (is_step_count(name) || model_has(tensors, n, name) || ++extra->count > EXTRA_NAMED + 1)
            continue;
        bool more = extra->count > EXTRA_NAMED;
        at += (size_t)snprintf(extra->names + at, sizeof extra->names - at, "%s%.50s",
                               extra->count > 1 ? ", " : "", more ? "..." : name);
    }
}

static bool convertible(RtDType from, RtDType to)
{
    bool from_float = from == RT_F16 || from == RT_BF16 || from == RT_F64;
    return from == to || (to == RT_F32 && from_float) || (to == RT_I32 && from == RT_I64);
}

/* The first thing wrong, how much more is, and what may explain it. */
static bool check_weights(const SafeFile *safe, const CheckpointTensor *tensors, int64_t n,
                          ExtraWeights *extra, RtError *err)
{
    int64_t missing = 0, wrong = 0;
    RtError first = {0};
    char prefix[64] = "";
    for (int64_t i = 0; i < n; i++) {
        const CheckpointTensor *t = &tensors[i];
        if (t->role != CHECKPOINT_MODEL)
            continue;
        const SafeTensor *s = safetensors_find(safe, t->name);
        if (!s && missing++ + wrong == 0) {
            rt_error(&first, "%s is missing", t->name);
            find_prefix(safe, t->name, prefix, sizeof prefix);
        }
        if (s && (!same_shape(t, s) || !convertible(s->dtype, t->dtype)) && missing + wrong++ == 0)
            wrong_tensor(t, s, &first);
    }
    name_extra(safe, tensors, n, extra);
    if (missing + wrong == 0)
        return true;
    if (*prefix)
        return rt_error(err, "%s, but the file has it with `%s` before its name: save it without",
                        first.message, prefix);
    return rt_error(err, "%s; %lld missing, %lld of another shape or type, %lld unexpected",
                    first.message, (long long)missing, (long long)wrong, (long long)extra->count);
}

/* The running mean of a tensor, or NULL. */
static const SafeTensor *find_average(const SafeFile *state, const CheckpointTensor *t)
{
    char *name = NULL;
    if (!state || t->role != CHECKPOINT_MODEL || asprintf(&name, "ema.%s", t->name) < 0)
        return NULL;
    const SafeTensor *s = safetensors_find(state, name);
    free(name);
    return s && same_shape(t, s) && convertible(s->dtype, t->dtype) ? s : NULL;
}

bool checkpoint_load_weights(const char *path, const CheckpointTensor *tensors, int64_t n,
                             bool averages, ExtraWeights *extra, RtError *err)
{
    ExtraWeights others = {0};
    SafeFile *state, *safe = open_weights(path, averages, &state, err);
    if (!safe)
        return false;
    bool ok = check_weights(safe, tensors, n, &others, err);
    for (int64_t i = 0; ok && i < n; i++) {
        if (tensors[i].role != CHECKPOINT_MODEL)
            continue;
        const SafeTensor *mean = find_average(state, &tensors[i]);
        others.averages += mean != NULL;
        const SafeTensor *s = mean ? mean : safetensors_find(safe, tensors[i].name);
        ok = safetensors_copy(s, tensors[i].dtype, tensors[i].data, err);
        safetensors_forget(mean ? state : safe, s);
    }
    safetensors_close(safe);
    safetensors_close(state);
    if (extra)
        *extra = others;
    return ok || rt_error_prefix(err, "%s", path);
}
