/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/folder_list.h"

#include "runtime/file.h"
#include "runtime/rng.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

void folder_list_free(FolderList *list)
{
    for (int64_t i = 0; i < list->n_classes; i++)
        free(list->classes[i]);
    free(list->classes);
    free(list->names);
    free(list->at);
    free(list->label);
    *list = (FolderList){0};
}

const char *folder_list_path(const FolderList *list, int64_t i)
{
    return list->names + list->at[i];
}

int64_t folder_list_bytes(const FolderList *list)
{
    return list->names_room + list->room * (int64_t)(sizeof *list->at + sizeof *list->label);
}

/* Doubles an array until it has room for `need` elements. */
static bool grow(void *array, int64_t used, int64_t *room, int64_t need, size_t size, RtError *err)
{
    void *old, *new;
    int64_t more = *room ? *room : 64;
    if (need <= *room)
        return true;
    while (more < need)
        more *= 2;
    memcpy(&old, array, sizeof old);
    new = rt_alloc(more, size, err);
    if (!new)
        return false;
    if (used)
        memcpy(new, old, (size_t)used * size);
    free(old);
    memcpy(array, &new, sizeof new);
    *room = more;
    return true;
}

/* ---- classes ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool push_class(FolderList *list, const char *dir, const char *name, size_t n, RtError *err)
{
    if (list->n_classes == CLASSES_MAX)
        return rt_error(err, "%s: more than %d classes", dir, CLASSES_MAX);
    if (!grow(&list->classes, list->n_classes, &list->classes_room, list->n_classes + 1,
              sizeof *list->classes, err))
        return false;
    char *copy = rt_alloc((int64_t)n + 1, 1, err);
    if (!copy)
        return false;
    memcpy(copy, name, n);
    list->classes[list->n_classes++] = copy;
    return true;
}

static bool add_class(void *user, const char *dir, const char *name, RtError *err)
{
    char *path = path_join(dir, name, err);
    bool folder = path && folder_exists(path), ok = path != NULL;
    free(path);
    return folder ? push_class(user, dir, name, strlen(name), err) : ok;
}

/* Path k of `also` as it would be found; allocated. */
static char *also_path(const FolderList *list, int64_t k, RtError *err)
{
    return path_join(list->root, list->also[k], err);
}

/* What is below dir of a path; NULL when it is elsewhere. */
static const char *below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

static bool has_class(const FolderList *list, const char *name, size_t n)
{
    for (int64_t c = 0; c < list->n_classes; c++)
        if (strncmp(list->classes[c], name, n) == 0 && list->classes[c][n] == 0)
            return true;
    return false;
}

/* The class of a file that is gone, when its folder is gone with it.  No class begins with a dot
 * (folder_each), so a name that leads out of dir is none. */
static bool add_class_also(FolderList *list, const char *dir, int64_t k, RtError *err)
{
    char *path = also_path(list, k, err);
    const char *name = path ? below(path, dir) : NULL, *end = name ? strchr(name, '/') : NULL;
    bool ok = path != NULL;
    if (end && *name != '.' && !has_class(list, name, (size_t)(end - name)))
        ok = push_class(list, dir, name, (size_t)(end - name), err);
    free(path);
    return ok;
}

static bool read_classes(FolderList *list, const char *dir, RtError *err)
{
    if (!folder_each(dir, add_class, list, err))
        return false;
    for (int64_t k = 0; k < list->n_also; k++)
        if (!add_class_also(list, dir, k, err))
            return false;
    if (list->n_classes == 0)
        return rt_error(err, "%s: no folders; one is wanted for each class, with its files", dir);
    qsort(list->classes, (size_t)list->n_classes, sizeof *list->classes, by_text);
    return true;
}

/* ---- files ---- */

bool folder_list_wants(const char *const *endings, const char *name)
{
    size_t n = strlen(name);
    for (; *endings; endings++) {
        size_t k = strlen(*endings);
        if (n > k && strcasecmp(name + n - k, *endings) == 0)
            return true;
    }
    return false;
}

static bool add_path(FolderList *list, const char *path, int32_t label, RtError *err)
{
    int64_t bytes = (int64_t)strlen(path) + 1, room = list->room;
    if (list->n == FOLDER_FILES_MAX)
        return rt_error(err, "more than %d files", FOLDER_FILES_MAX);
    if (!grow(&list->names, list->names_bytes, &list->names_room, list->names_bytes + bytes, 1,
              err) ||
        !grow(&list->at, list->n, &room, list->n + 1, sizeof *list->at, err) ||
        !grow(&list->label, list->n, &list->room, list->n + 1, sizeof *list->label, err))
        return false;
    memcpy(list->names + list->names_bytes, path, (size_t)bytes);
    list->at[list->n] = list->names_bytes;
    list->label[list->n++] = label;
    list->names_bytes += bytes;
    return true;
}

typedef struct ClassFiles {
    FolderList *list;
    int32_t label;
} ClassFiles;

static bool add_file(void *user, const char *path, const char *name, RtError *err)
{
    const ClassFiles *c = user;
    return !folder_list_wants(c->list->endings, name) || add_path(c->list, path, c->label, err);
}

static int by_path(const void *a, const void *b, void *names)
{
    return strcmp((const char *)names + *(const int64_t *)a,
                  (const char *)names + *(const int64_t *)b);
}

static bool add_also(FolderList *list, const char *class_dir, int32_t label, RtError *err)
{
    bool ok = true;
    for (int64_t k = 0; ok && k < list->n_also; k++) {
        char *path = also_path(list, k, err);
        ok = path &&
             (!below(path, class_dir) || file_exists(path) || add_path(list, path, label, err));
        free(path);
    }
    return ok;
}

bool folder_list_each_also(const FolderList *list, void (*visit)(void *user, int64_t i), void *user,
                           RtError *err)
{
    if (list->n_also == 0)
        return true;
    size_t n = (size_t)list->n_also;
    const char **sorted = rt_alloc(list->n_also, sizeof *sorted, err);
    if (!sorted)
        return false;
    memcpy(sorted, list->also, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_text);
    for (int64_t i = 0; i < list->n; i++) {
        const char *name = below(folder_list_path(list, i), list->root);
        if (name && bsearch(&name, sorted, n, sizeof *sorted, by_text))
            visit(user, i);
    }
    free(sorted);
    return true;
}

static bool add_class_files(FolderList *list, const char *dir, int32_t label, RtError *err)
{
    char *path = path_join(dir, list->classes[label], err);
    int64_t first = list->n;
    bool ok =
        path &&
        (!folder_exists(path) || folder_walk(path, add_file, &(ClassFiles){list, label}, err)) &&
        add_also(list, path, label, err);
    free(path);
    if (ok && list->n > first)
        qsort_r(list->at + first, (size_t)(list->n - first), sizeof *list->at, by_path,
                list->names);
    return ok;
}

/* A class of dir that the first folder does not have would have no label. */
static bool known_classes(const FolderList *list, const char *dir, RtError *err)
{
    FolderList here = {.root = list->root, .also = list->also, .n_also = list->n_also};
    bool ok = read_classes(&here, dir, err);
    for (int64_t i = 0; ok && i < here.n_classes; i++)
        if (!bsearch(&here.classes[i], list->classes, (size_t)list->n_classes,
                     sizeof *list->classes, by_text))
            ok = rt_error(err, "%s: the class '%s' is not among those to train on", dir,
                          here.classes[i]);
    folder_list_free(&here);
    return ok;
}

bool folder_list_add(FolderList *list, const char *dir, RtError *err)
{
    bool first = list->n_classes == 0;
    if (!(first ? read_classes(list, dir, err) : known_classes(list, dir, err)))
        return false;
    for (int64_t c = 0; c < list->n_classes; c++) {
        int64_t before = list->n;
        if (!add_class_files(list, dir, (int32_t)c, err))
            return false;
        if (first && list->n == before)
            return rt_error(err, "%s/%s: no %s file", dir, list->classes[c], list->ending_text);
    }
    return true;
}

/* ---- order ---- */

typedef struct Mixed {
    uint64_t hash;
    int64_t at;
    int32_t label;
} Mixed;

static int by_hash(const void *a, const void *b)
{
    const Mixed *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* FNV-1a's last bytes hardly reach its upper bits: one more round of mixing (splitmix64). */
static uint64_t path_hash(const char *path)
{
    uint64_t h = rt_name_key(path);
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
    return h ^ (h >> 31);
}

bool folder_list_mix(FolderList *list, const char *dir, RtError *err)
{
    size_t skip = strlen(dir);
    Mixed *mixed = rt_alloc(list->n, sizeof *mixed, err);
    if (!mixed)
        return false;
    for (int64_t i = 0; i < list->n; i++)
        mixed[i] =
            (Mixed){path_hash(folder_list_path(list, i) + skip), list->at[i], list->label[i]};
    qsort(mixed, (size_t)list->n, sizeof *mixed, by_hash);
    for (int64_t i = 0; i < list->n; i++) {
        list->at[i] = mixed[i].at;
        list->label[i] = mixed[i].label;
    }
    free(mixed);
    return true;
}
