/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lists of files, folders and globs to files. */
#include "runtime/data_internal.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 1000000 };

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void paths_free(PathList *list)
{
    for (int64_t i = 0; i < list->n; i++)
        free(list->path[i]);
    free(list->path);
    *list = (PathList){0};
}

/* Takes over path (allocated; NULL when that failed). */
static bool paths_push(PathList *list, char *path, RtError *err)
{
    if (!path)
        return false;
    if (list->n == list->cap) {
        int64_t cap = list->cap ? 2 * list->cap : 16;
        char **grown = list->n < MAX_FILES ? rt_alloc(cap, sizeof *grown, err) : NULL;
        if (!grown) {
            if (list->n >= MAX_FILES)
                rt_error(err, "more than %d files; name fewer", MAX_FILES);
            free(path);
            return false;
        }
        if (list->n)
            memcpy(grown, list->path, (size_t)list->n * sizeof *grown);
        free(list->path);
        list->path = grown;
        list->cap = cap;
    }
    list->path[list->n++] = path;
    return true;
}

static char *copy_text(const char *s, size_t n, RtError *err)
{
    char *copy = rt_alloc((int64_t)n + 1, 1, err);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), k = suffix ? strlen(suffix) : 0;
    return k == 0 || (n >= k && strcmp(name + n - k, suffix) == 0);
}

typedef struct Wanted {
    const char *suffix; /* NULL: any */
    PathList *out;
} Wanted;

static bool add_wanted(void *user, const char *path, const char *name, RtError *err)
{
    const Wanted *w = user;
    return !ends_in(name, w->suffix) || paths_push(w->out, copy_text(path, strlen(path), err), err);
}

static bool add_glob(const char *pattern, PathList *out, RtError *err)
{
    glob_t found;
    int status = glob(pattern, 0, NULL, &found);
    bool ok = true;
    for (size_t i = 0; status == 0 && ok && i < found.gl_pathc; i++)
        if (file_exists(found.gl_pathv[i]))
            ok = paths_push(out, copy_text(found.gl_pathv[i], strlen(found.gl_pathv[i]), err), err);
    if (status == 0)
        globfree(&found);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One entry of the list; a file that is really called so comes before a pattern. */
static bool add_item(const char *item, const char *suffix, PathList *out, RtError *err)
{
    struct stat st;
    int64_t first = out->n;
    bool ok;
    if (stat(item, &st) != 0)
        ok = add_glob(item, out, err);
    else if (S_ISDIR(st.st_mode))
        ok = folder_walk(item, add_wanted, &(Wanted){suffix, out}, err);
    else
        ok = paths_push(out, copy_text(item, strlen(item), err), err);
    bool named = !suffix || ends_in(item, suffix);
    if (ok && out->n == first)
        return rt_error(err, "%s: no such file%s%s%s", item, named ? "" : " (in a folder: *",
                        named ? "" : suffix, named ? "" : ")");
    if (ok)
        qsort(out->path + first, (size_t)(out->n - first), sizeof *out->path, by_name);
    return ok;
}

static bool is_there(const char *item)
{
    glob_t found;
    if (access(item, F_OK) == 0)
        return true;
    bool any = glob(item, 0, NULL, &found) == 0;
    if (any)
        globfree(&found);
    return any;
}

bool data_paths_exist(const char *list)
{
    bool all = true;
    while (all && list && *list) {
        size_t n = strcspn(list, "\n");
        char *item = n ? copy_text(list, n, NULL) : NULL;
        all = !item || is_there(item);
        free(item);
        list += n + (list[n] == '\n');
    }
    return all;
}

bool paths_expand(const char *list, const char *suffix, PathList *out, RtError *err)
{
    *out = (PathList){0};
    bool ok = true;
    while (ok && list && *list) {
        size_t n = strcspn(list, "\n");
        char *item = n ? copy_text(list, n, err) : NULL;
        ok = n == 0 || (item && add_item(item, suffix, out, err));
        free(item);
        list += n + (list[n] == '\n');
    }
    if (ok && out->n == 0)
        ok = rt_error(err, "no data file is named; give a path in the model or with --data");
    if (!ok)
        paths_free(out);
    return ok;
}
