/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The last checkpoints of a run, each in a folder of its own beside the newest. */
#include "runtime/checkpoint.h"

#include "runtime/file_internal.h"
#include "runtime/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char folder_start[] = "step-", unfinished[] = ".unfinished";

/* ---- removing ---- */

/* Of a folder that goes only what a checkpoint consists of, trainer.json first: half a checkpoint
 * is none.  What else is in it stays, and the folder with it. */
static void remove_folder(const char *path)
{
    char *manifest = path_join(path, manifest_file, NULL);
    DIR *d = opendir(path);
    if (manifest)
        unlink(manifest);
    free(manifest);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (manifest_owns(e->d_name) || strcmp(e->d_name, "model.safetensors") == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

/* step-STEP, or step-STEP.unfinished, which a killed run leaves. */
static bool is_kept(const char *name, int64_t *step, bool *whole)
{
    size_t n = sizeof folder_start - 1;
    size_t digits = strncmp(name, folder_start, n) == 0 ? strspn(name + n, "0123456789") : 0;
    if (digits == 0 || digits > 18)
        return false;
    *step = strtoll(name + n, NULL, 10);
    *whole = name[n + digits] == 0;
    return *whole || strcmp(name + n + digits, unfinished) == 0;
}

typedef struct Kept {
    int64_t newest; /* later ones are of a run that --overwrite replaced */
    int64_t *step;  /* of those that may stay */
    int64_t n, room;
} Kept;

static bool note_step(void *user, const char *dir, const char *name, RtError *err)
{
    (void)dir;
    Kept *k = user;
    int64_t step;
    bool whole;
    if (!is_kept(name, &step, &whole) || !whole || step > k->newest)
        return true;
    if (k->n == k->room) {
        int64_t room = 2 * k->room + 16;
        int64_t *more = realloc(k->step, (size_t)room * sizeof *more);
        if (!more)
            return rt_error(err, "out of memory");
        k->step = more;
        k->room = room;
    }
    k->step[k->n++] = step;
    return true;
}

static int later_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

typedef struct Range {
    int64_t first, last;
} Range;

static bool remove_outside(void *user, const char *dir, const char *name, RtError *err)
{
    const Range *keep = user;
    int64_t step;
    bool whole;
    if (!is_kept(name, &step, &whole) || (whole && step >= keep->first && step <= keep->last))
        return true;
    char *path = path_join(dir, name, err);
    if (path)
        remove_folder(path);
    free(path);
    return path != NULL;
}

static bool remove_old(const char *dir, int64_t newest, int64_t count, RtError *err)
{
    Kept k = {.newest = newest};
    bool ok = folder_each(dir, note_step, &k, err);
    if (ok && k.n > 0)
        qsort(k.step, (size_t)k.n, sizeof *k.step, later_first);
    Range keep = {ok && k.n > 0 ? k.step[k.n < count ? k.n - 1 : count - 1] : newest, newest};
    free(k.step);
    return ok && folder_each(dir, remove_outside, &keep, err);
}

/* ---- keeping ---- */

static bool keep_file(const char *dir, const char *name, const char *folder, const char *as,
                      RtError *err)
{
    char *from = path_join(dir, name, err), *to = path_join(folder, as, err);
    bool ok = from && to && file_second(from, to, err);
    free(from);
    free(to);
    return ok;
}

/* Under another name until it is whole. */
static bool make_folder(const char *dir, const Manifest *m, const char *folder, RtError *err)
{
    char *partial = NULL;
    if (asprintf(&partial, "%s%s", folder, unfinished) < 0)
        return rt_error(err, "out of memory");
    remove_folder(partial);
    bool ok = folder_make(partial, err);
    for (int r = 0; ok && r < CHECKPOINT_ROLES; r++)
        ok = keep_file(dir, m->file[r].name, partial, m->file[r].name, err);
    ok = ok && keep_file(dir, m->file[CHECKPOINT_MODEL].name, partial, "model.safetensors", err) &&
         keep_file(dir, manifest_file, partial, manifest_file, err);
    char *inside = ok ? path_join(partial, manifest_file, err) : NULL;
    ok = inside && io_sync_folder(inside, err);
    free(inside);
    if (ok && (io_fails() || rename(partial, folder) != 0))
        ok = rt_error(err, "cannot rename %s: %s", partial, strerror(errno));
    if (!ok)
        remove_folder(partial);
    free(partial);
    return ok && io_sync_folder(folder, err);
}

static bool has_set(const char *folder, const Manifest *m)
{
    Manifest there;
    return manifest_exists(folder) && manifest_read(folder, &there, NULL) &&
           manifest_same_set(&there, m);
}

bool checkpoint_keep(const char *dir, int64_t count, RtError *err)
{
    Manifest m;
    char *folder = NULL;
    if (!manifest_read(dir, &m, err))
        return false;
    if (asprintf(&folder, "%s/%s%lld", dir, folder_start, (long long)m.state.step) < 0)
        return rt_error(err, "out of memory");
    bool ok = has_set(folder, &m);
    if (!ok) {
        remove_folder(folder); /* of a run that --overwrite replaced */
        ok = make_folder(dir, &m, folder, err);
    }
    free(folder);
    return ok && remove_old(dir, m.state.step, count, err);
}
