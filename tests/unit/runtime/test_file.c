/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading with limits, and replacing a file when every single operation fails in turn. */
#include "runtime/file.h"
#include "runtime/unpack.h"

#include "check.h"
#include "tests/support/data/temp.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int entries_of(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static int entries(void)
{
    return entries_of(temp_dir);
}

static bool holds(const char *name, const char *text)
{
    FileBytes file;
    if (!file_read(temp_path(name), 1000, &file, NULL))
        return false;
    bool same = file.bytes == (int64_t)strlen(text) &&
                memcmp(file.data, text, strlen(text) + 1) == 0; /* the NUL too */
    file_release(&file);
    return same;
}

static void test_read(void)
{
    FileBytes file;
    RtError err;
    temp_write("a", "hello", 5);
    CHECK(holds("a", "hello"));
    CHECK(!file_read(temp_path("a"), 4, &file, &err) && strstr(err.message, "at most 4"));
    CHECK(!file_read(temp_path("none"), 4, &file, &err) && strstr(err.message, "none"));
    CHECK(!file_read(temp_dir, 4, &file, &err) && strstr(err.message, "not a regular file"));
    CHECK(mkfifo(temp_path("pipe"), 0600) == 0);
    CHECK(!file_read(temp_path("pipe"), 4, &file, &err)); /* does not hang */
    remove(temp_path("pipe"));
    CHECK(file_map(temp_path("a"), &file, &err) && file.bytes == 5 && file.data[4] == 'o');
    file_release(&file);
    temp_write("empty", "", 0);
    CHECK(file_map(temp_path("empty"), &file, &err) && file.bytes == 0);
    file_release(&file);
    CHECK(file_exists(temp_path("a")) && !file_exists(temp_dir));
    int64_t bytes;
    uint32_t crc;
    temp_write("check", "123456789", 9); /* CRC-32's published check value */
    CHECK(file_checksum(temp_path("check"), &bytes, &crc, &err) && bytes == 9 && crc == 0xCBF43926);
    remove(temp_path("check"));
    remove(temp_path("empty"));
}

static void test_gz(void)
{
    static unsigned char big[300000];
    FileBytes file;
    RtError err;
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (unsigned char)(i * i >> 7);
    temp_write_gz("z", big, sizeof big);
    CHECK(file_read_gz(temp_path("z"), 1 << 20, &file, &err) && file.bytes == sizeof big &&
          memcmp(file.data, big, sizeof big) == 0);
    file_release(&file);
    CHECK(file_read_gz(temp_path("z"), sizeof big, &file, &err));
    file_release(&file);
    CHECK(!file_read_gz(temp_path("z"), sizeof big - 1, &file, &err));
    CHECK_MSG(strstr(err.message, "unpacks to more"), "%s", err.message);
    /* Cut anywhere, or with a bit flipped, it is refused. */
    CHECK(file_read(temp_path("z"), 1 << 20, &file, &err));
    for (int64_t cut = 2; cut < file.bytes; cut += file.bytes / 40 + 1) {
        FileBytes part;
        temp_write("cut", file.data, (size_t)cut);
        CHECK_MSG(!file_read_gz(temp_path("cut"), 1 << 20, &part, &err), "cut at %d", (int)cut);
    }
    unsigned char *flipped = malloc((size_t)file.bytes);
    memcpy(flipped, file.data, (size_t)file.bytes);
    flipped[file.bytes - 6] ^= 1; /* in the checksum */
    temp_write("cut", flipped, (size_t)file.bytes);
    FileBytes part;
    CHECK(!file_read_gz(temp_path("cut"), 1 << 20, &part, &err));
    free(flipped);
    file_release(&file);
    CHECK(file_read_gz(temp_path("a"), 10, &file, &err) &&
          file.bytes == 5); /* not gzip: as it is */
    file_release(&file);
    remove(temp_path("z"));
    remove(temp_path("cut"));
}

/* The k-th operation fails, for every k: the old file or the new one, whole, and nothing else. */
static void test_replace(void)
{
    RtError err;
    CHECK(file_replace(temp_path("f"), "old", 3, &err) && holds("f", "old"));
    int before = entries(), failures = 0;
    for (uint64_t k = 1;; k++) {
        CHECK(file_replace(temp_path("f"), "old", 3, &err));
        file_fail_at(k);
        bool ok = file_replace(temp_path("f"), "newer", 5, &err);
        file_fail_at(0);
        CHECK_MSG(entries() == before, "k = %d leaves something behind", (int)k);
        if (ok) {
            CHECK(holds("f", "newer"));
            break;
        }
        /* Past the rename the new file stands although syncing its folder failed. */
        bool renamed = strstr(err.message, "is written") != NULL;
        CHECK_MSG(holds("f", renamed ? "newer" : "old"), "k = %d: %s", (int)k, err.message);
        failures++;
    }
    CHECK_MSG(failures == 6, "%d",
              failures); /* open write fsync rename, open fsync of the folder */
    CHECK(!file_replace(temp_path("none/f"), "x", 1, &err));
}

/* Processes of two containers may have the same number: a name that another writer chose is its
 * own, and both write to the end. */
static void test_two_writers(void)
{
    RtError err;
    AtomicFile one, two;
    char taken[64];
    int before = entries();
    snprintf(taken, sizeof taken, "w.%ld.tmp", (long)getpid());
    temp_write(taken, "another's", 9);
    CHECK(atomic_open(&one, temp_path("w"), &err) && atomic_open(&two, temp_path("w"), &err));
    CHECK(strcmp(one.temporary, two.temporary) != 0);
    CHECK(atomic_write(&one, "first", 5, &err) && atomic_write(&two, "second", 6, &err));
    CHECK(atomic_commit(&one, &err) && holds("w", "first"));
    CHECK(atomic_commit(&two, &err) && holds("w", "second"));
    CHECK(holds(taken, "another's"));
    remove(temp_path(taken));
    remove(temp_path("w"));
    CHECK(entries() == before);
}

static void test_folders_and_links(void)
{
    RtError err;
    CHECK(folder_make(temp_path("p/q/r"), &err) && folder_make(temp_path("p/q/r"), &err));
    CHECK(!folder_make(temp_path("a"), &err) && strstr(err.message, "a file has that name"));
    /* The reason is mkdir's: of a link to nothing, looking at it afterwards says something else. */
    CHECK(symlink("nowhere", temp_path("dangling")) == 0);
    CHECK(!folder_make(temp_path("dangling"), &err) && strstr(err.message, "a file has that name"));
    CHECK(file_replace(temp_path("p/1"), "one", 3, &err));
    CHECK(file_replace(temp_path("p/2"), "two", 3, &err));
    CHECK(file_link(temp_path("p/1"), temp_path("p/now"), &err) && holds("p/now", "one"));
    CHECK(file_link(temp_path("p/1"), temp_path("p/now"), &err) && holds("p/now", "one"));
    CHECK(file_link(temp_path("p/2"), temp_path("p/now"), &err) && holds("p/now", "two"));
    /* A link that fails has others to stand in for it (test_no_links.c); then rename, and syncing.
     */
    for (uint64_t k = 1; k <= 4; k++) {
        CHECK(file_link(temp_path("p/2"), temp_path("p/now"), &err));
        file_fail_at(k);
        bool ok = file_link(temp_path("p/1"), temp_path("p/now"), &err);
        CHECK(file_fail_at(0) == 0);
        CHECK_MSG(ok == (k == 1) && holds("p/now", k == 2 ? "two" : "one"), "k = %d", (int)k);
    }
    CHECK(entries_of(temp_path("p")) == 4); /* q 1 2 now */
}

/* Every allocation fails in turn. */
static void test_allocation_failures(void)
{
    RtError err;
    int failures = 0;
    for (uint64_t k = 1;; k++) {
        rt_alloc_fail_at(k);
        bool ok = file_replace(temp_path("f"), "x", 1, &err);
        rt_alloc_fail_at(0);
        if (ok)
            break;
        failures++;
    }
    CHECK(failures == 3);
    rt_alloc_fail_at(1);
    FileBytes file;
    CHECK(!file_read(temp_path("f"), 10, &file, &err) && strstr(err.message, "out of memory"));
    rt_alloc_fail_at(0);
}

int main(void)
{
    temp_open();
    test_read();
    test_gz();
    test_replace();
    test_two_writers();
    test_folders_and_links();
    test_allocation_failures();
    return test_result();
}
