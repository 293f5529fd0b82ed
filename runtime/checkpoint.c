#include "runtime/checkpoint.h"

#include "runtime/file.h"
#include "runtime/safetensors.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROLES = 2, STEP_DIGITS = 10, VERSION = 1, READ_ATTEMPTS = 10, EXTRA_NAMED = 3 };
static const char FORMAT[] = "scrimp-checkpoint", MANIFEST[] = "trainer.json";
static const char *const role_names[ROLES] = {"model", "optimizer"};
static const int64_t MAX_MANIFEST = 64 << 20;

/* One tensor file of a set. */
typedef struct SetFile {
    char name[80];
    int64_t bytes;
    uint32_t crc32;
} SetFile;

/* Contents of trainer.json. */
typedef struct Manifest {
    TrainerState state;
    SetFile file[ROLES];
} Manifest;

/* ---- names ---- */

/* "model-0000000100.safetensors", with ".K" before the ending when K > 0. */
static void set_name(SetFile *file, CheckpointRole role, int64_t step, int k)
{
    char suffix[16] = "";
    if (k > 0)
        snprintf(suffix, sizeof suffix, ".%d", k);
    snprintf(file->name, sizeof file->name, "%s-%0*lld%s.safetensors", role_names[role],
             STEP_DIGITS, (long long)step, suffix);
}

/* Skips ".123"; NULL when it is not there. */
static const char *skip_number(const char *p)
{
    size_t n = p && *p == '.' ? strspn(p + 1, "0123456789") : 0;
    return n ? p + 1 + n : NULL;
}

/* Nothing, or what atomic_open and file_link append to a temporary name: ".PID.tmp". */
static bool is_ending(const char *p, bool temporary)
{
    const char *after = skip_number(p);
    return (!temporary && *p == 0) || (after && strcmp(after, ".tmp") == 0);
}

/* True for names that set_name makes, and for temporary names left by a process that was killed. */
static bool is_ours(const char *name)
{
    static const char safe[] = ".safetensors";
    if (strncmp(name, MANIFEST, sizeof MANIFEST - 1) == 0)
        return is_ending(name + sizeof MANIFEST - 1, true);
    for (int r = 0; r < ROLES; r++) {
        size_t n = strlen(role_names[r]);
        if (strncmp(name, role_names[r], n) != 0)
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

static bool read_manifest_json(const json_t *root, Manifest *m, RtError *err)
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
    bool ok = json_is_number(epoch) && read_i64(json_object_get(root, "step"), &m->state.step) &&
              read_i64(json_object_get(root, "data_position"), &m->state.data_position) &&
              read_u64(json_object_get(root, "seed"), &m->state.seed) &&
              read_u64(json_object_get(root, "model_hash"), &m->state.model_hash);
    for (int r = 0; r < ROLES; r++)
        ok = ok && read_set_file(json_object_get(files, role_names[r]), &m->file[r]);
    return ok || rt_error(err, "it is damaged");
}

/* The parsed file, or NULL; json_decref'd by the caller. */
static json_t *load_manifest(const char *dir, RtError *err)
{
    char *path = path_join(dir, MANIFEST, err);
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

static bool read_manifest(const char *dir, Manifest *m, RtError *err)
{
    *m = (Manifest){0};
    json_t *root = load_manifest(dir, err);
    bool ok =
        root && (read_manifest_json(root, m, err) || rt_error_prefix(err, "%s/%s", dir, MANIFEST));
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

static char *manifest_text(const Manifest *m)
{
    const TrainerState *s = &m->state;
    json_t *root = json_pack("{s:s, s:i, s:I, s:I, s:f, s:o, s:o, s:{s:o, s:o}}", "format", FORMAT,
                             "version", VERSION, "step", (json_int_t)s->step, "data_position",
                             (json_int_t)s->data_position, "epoch", s->epoch, "seed", hex(s->seed),
                             "model_hash", hex(s->model_hash), "files", role_names[0],
                             set_file_json(&m->file[0]), role_names[1], set_file_json(&m->file[1]));
    bool ok = root != NULL;
    if (ok && s->vocab && s->vocab->chars)
        ok = json_object_set_new(root, "vocabulary", vocab_json(s->vocab)) == 0;
    if (ok && s->settings)
        ok = json_object_set_new(root, "settings", json_deep_copy(s->settings)) == 0;
    char *text = ok ? json_dumps(root, JSON_INDENT(2)) : NULL;
    json_decref(root);
    return text;
}

static bool write_manifest(const char *dir, const Manifest *m, RtError *err)
{
    char *path = path_join(dir, MANIFEST, err), *text = manifest_text(m);
    bool ok = path && text && file_replace(path, text, (int64_t)strlen(text), err);
    if (path && !text)
        rt_error(err, "out of memory writing %s", path);
    free(path);
    free(text);
    return ok;
}

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
    bool none = faccessat(dirfd(d), MANIFEST, F_OK, 0) != 0 && errno == ENOENT;
    if (!none && !read_manifest(dir, &m, NULL)) {
        closedir(d);
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        bool keep = !is_ours(e->d_name);
        for (int r = 0; r < ROLES; r++)
            keep = keep || strcmp(e->d_name, m.file[r].name) == 0;
        if (!keep)
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
}

/* New names: not those that trainer.json names now, which must stay readable until it is switched.
 */
static void choose_names(const Manifest *now, int64_t step, Manifest *next)
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
    bool ok = entries && path &&
              safetensors_write(path, entries, count, &meta, 1, &file->bytes, &file->crc32, err);
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
                     int64_t n, RtError *err)
{
    Manifest now = {0}, next = {.state = *state};
    if (!folder_make(dir, err))
        return false;
    if (checkpoint_exists(dir) && !read_manifest(dir, &now, err))
        return rt_error_prefix(err, "not overwriting what is there");
    choose_names(&now, state->step, &next);
    bool ok = true;
    for (int r = 0; ok && r < ROLES; r++)
        ok = write_role(dir, tensors, n, (CheckpointRole)r, &next.file[r], err);
    ok = ok && write_manifest(dir, &next, err) && link_model(dir, &next, err);
    remove_others(dir);
    return ok;
}

/* ---- loading ---- */

bool checkpoint_exists(const char *dir)
{
    char *path = path_join(dir, MANIFEST, NULL);
    bool there = path && file_exists(path);
    free(path);
    return there;
}

bool checkpoint_read_state(const char *dir, TrainerState *state, RtError *err)
{
    Manifest m;
    if (!read_manifest(dir, &m, err))
        return false;
    *state = m.state;
    return true;
}

bool checkpoint_read_vocab(const char *dir, Vocab *vocab, RtError *err)
{
    *vocab = (Vocab){0};
    if (err)
        err->message[0] = 0;
    json_t *root = load_manifest(dir, err);
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
    json_decref(root);
    return ok;
}

json_t *checkpoint_read_settings(const char *dir)
{
    json_t *root = load_manifest(dir, NULL);
    json_t *settings = json_incref(json_object_get(root, "settings"));
    json_decref(root);
    if (json_is_object(settings))
        return settings;
    json_decref(settings);
    return NULL;
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
    int64_t bytes;
    uint32_t crc;
    SafeFile *safe = NULL;
    if (path && file_checksum(path, &bytes, &crc, err)) {
        if (bytes == file->bytes && crc == file->crc32)
            safe = safetensors_open(path, err);
        else
            rt_error(err, "%s is not the file that %s was written with", path, MANIFEST);
    }
    free(path);
    return safe;
}

static bool same_names(const Manifest *a, const Manifest *b)
{
    return strcmp(a->file[0].name, b->file[0].name) == 0 &&
           strcmp(a->file[1].name, b->file[1].name) == 0;
}

/* Both files of the newest set.  A run that saves meanwhile may take the files away between reading
 * trainer.json and opening them: then there is a newer set. */
static bool open_set(const char *dir, Manifest *m, SafeFile *safe[ROLES], RtError *err)
{
    for (int attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
        if (!read_manifest(dir, m, err))
            return false;
        safe[0] = open_set_file(dir, &m->file[0], err);
        safe[1] = safe[0] ? open_set_file(dir, &m->file[1], err) : NULL;
        if (safe[1])
            return true;
        safetensors_close(safe[0]);
        Manifest again;
        if (!read_manifest(dir, &again, NULL) || same_names(&again, m))
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
                            role_names[t->role], t->name);
        if (s->dtype != t->dtype || !same_shape(t, s))
            return wrong_tensor(t, s, err);
        count[t->role]++;
    }
    for (int r = 0; r < ROLES; r++)
        if (count[r] != safetensors_count(safe[r]))
            return rt_error(
                err, "the %s file has %lld tensors, the model %lld; was it changed since?",
                role_names[r], (long long)safetensors_count(safe[r]), (long long)count[r]);
    return true;
}

bool checkpoint_load(const char *dir, TrainerState *state, const CheckpointTensor *tensors,
                     int64_t n, RtError *err)
{
    Manifest m;
    SafeFile *safe[ROLES];
    if (!open_set(dir, &m, safe, err))
        return false;
    bool ok = check_set(safe, tensors, n, err) || rt_error_prefix(err, "%s", dir);
    /* Killed after the switch, before the link or the removal of the old set: were it the last
     * step, no save would make up for it. */
    ok = ok && link_model(dir, &m, err);
    if (ok)
        remove_others(dir);
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

/* A checkpoint's model file, a folder's model.safetensors, or the file itself. */
static SafeFile *open_weights(const char *path, RtError *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
        return safetensors_open(path, err);
    if (checkpoint_exists(path)) {
        Manifest m;
        SafeFile *safe[ROLES];
        if (!open_set(path, &m, safe, err))
            return NULL;
        safetensors_close(safe[CHECKPOINT_OPTIMIZER]);
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

bool checkpoint_load_weights(const char *path, const CheckpointTensor *tensors, int64_t n,
                             ExtraWeights *extra, RtError *err)
{
    ExtraWeights others = {0};
    SafeFile *safe = open_weights(path, err);
    if (!safe)
        return false;
    bool ok = check_weights(safe, tensors, n, &others, err);
    for (int64_t i = 0; ok && i < n; i++) {
        if (tensors[i].role != CHECKPOINT_MODEL)
            continue;
        const SafeTensor *s = safetensors_find(safe, tensors[i].name);
        ok = safetensors_copy(s, tensors[i].dtype, tensors[i].data, err);
        safetensors_forget(safe, s);
    }
    safetensors_close(safe);
    if (extra)
        *extra = others;
    return ok || rt_error_prefix(err, "%s", path);
}
