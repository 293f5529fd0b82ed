/* SPDX-License-Identifier: GPL-3.0-or-later */
/* File systems that have no hard links, or no links at all: a checkpoint is complete on them, and
 * model.safetensors is there.  And folders that are made are synced where they were made. */
#include "tests/support/data/checkpoint_sets.h"

#include "runtime/file.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In the place of the C library's: what the file system cannot do fails with link_errno. */
static int link_errno, symlink_errno;
static ino_t synced[64];
static int n_synced;

int link(const char *from, const char *to)
{
    errno = link_errno;
    return link_errno ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int symlink(const char *from, const char *to)
{
    errno = symlink_errno;
    return symlink_errno ? -1 : (int)syscall(SYS_symlinkat, from, AT_FDCWD, to);
}

int fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && n_synced < (int)(sizeof synced / sizeof *synced))
        synced[n_synced++] = st.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

static bool was_synced(const char *name)
{
    struct stat st;
    CHECK(stat(temp_path(name), &st) == 0);
    for (int i = 0; i < n_synced; i++)
        if (synced[i] == st.st_ino)
            return true;
    return false;
}

static bool holds(const char *name, const char *text)
{
    FileBytes file;
    bool same = file_read(temp_path(name), 1 << 20, &file, NULL) &&
                file.bytes == (int64_t)strlen(text) &&
                memcmp(file.data, text, (size_t)file.bytes) == 0;
    file_release(&file);
    return same;
}

static mode_t kind(const char *name)
{
    struct stat st;
    CHECK(lstat(temp_path(name), &st) == 0);
    return st.st_mode & S_IFMT;
}

/* Errors as FAT, NFS, overlay and FUSE give them: whatever it is, the next way is tried. */
static const int cannot[] = {EPERM, ENOTSUP, EMLINK, EXDEV, ENOSYS, EINVAL};
enum { N_CANNOT = sizeof cannot / sizeof *cannot };

static void test_links(void)
{
    RtError err;
    temp_write("one", "one", 3);
    temp_write("two", "two", 3);
    for (int i = 0; i < N_CANNOT; i++)
        for (int both = 0; both < 2; both++) {
            link_errno = cannot[i];
            symlink_errno = both ? cannot[i] : 0;
            CHECK_MSG(file_link(temp_path("one"), temp_path("now"), &err), "%s", err.message);
            CHECK(holds("now", "one") && kind("now") == (both ? S_IFREG : S_IFLNK));
            CHECK(file_link(temp_path("two"), temp_path("now"), &err) && holds("now", "two"));
        }
}

/* Whatever the copy meets, the old name or the new one is there, whole. */
static void test_failing_copy(void)
{
    RtError err;
    link_errno = symlink_errno = EPERM;
    for (uint64_t k = 1;; k++) {
        CHECK(k < 100 && file_link(temp_path("one"), temp_path("now"), &err));
        file_fail_at(k);
        bool ok = file_link(temp_path("two"), temp_path("now"), &err);
        if (file_fail_at(0) != 0) {
            CHECK(ok && k > 6);
            return;
        }
        CHECK_MSG(holds("now", "two") || (!ok && holds("now", "one")), "k = %d", (int)k);
        CHECK(ok || err.message[0]);
    }
}

static void test_save(void)
{
    static Set set;
    RtError err, note;
    float w[SET_ELEMENTS];
    char dir[512];
    CheckpointTensor want = {"fc.weight", RT_F32, 2, {50, 100}, w, CHECKPOINT_MODEL};
    snprintf(dir, sizeof dir, "%s", temp_path("run"));
    set_init(&set);
    for (int step = 1; step < 5; step++) {
        link_errno = step > 1 ? EPERM : 0;
        symlink_errno = step > 2 ? EPERM : 0;
        set_fill(&set, step);
        CHECK_MSG(checkpoint_save(dir, &set.state, set.tensor, SET_TENSORS, &note, &err), "%s",
                  err.message);
        CHECK_MSG(!note.message[0], "%s", note.message);
        CHECK(set_loaded_step(dir, &err) == step);
        CHECK(checkpoint_load_weights(temp_path("run/model.safetensors"), &want, 1, false, NULL,
                                      &err) &&
              memcmp(w, set.w, sizeof w) == 0);
    }
}

/* Of a power failure after the first save, nothing may be left but what was there before, or all.
 */
static void test_synced_parents(void)
{
    RtError err;
    n_synced = 0;
    CHECK(mkdir(temp_path("old"), 0777) == 0);
    CHECK(folder_make(temp_path("old/new/run"), &err));
    CHECK(was_synced("old") && was_synced("old/new"));
    n_synced = 0;
    CHECK(folder_make(temp_path("old/new/run"), &err) && n_synced == 0); /* it was there */
    CHECK(folder_make(temp_path("old/new/next/"), &err) && was_synced("old/new"));
    for (uint64_t k = 1; k <= 2; k++) { /* open and fsync of the parent */
        file_fail_at(k);
        CHECK(!folder_make(temp_path(k == 1 ? "old/a" : "old/b"), &err));
        CHECK(file_fail_at(0) == 0 && strstr(err.message, "cannot be synced"));
    }
}

int main(void)
{
    temp_open();
    test_links();
    test_failing_copy();
    test_save();
    test_synced_parents();
    return test_result();
}
