/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files: whole reads with limits, read-only maps, and writes that replace a file atomically or
 * leave the old one as it was.  Called by data, safetensors and checkpoint. */
#ifndef SCRIMP_RUNTIME_FILE_H
#define SCRIMP_RUNTIME_FILE_H

#include "runtime/status.h"

/* Contents of a file, read or mapped; released by file_release. */
typedef struct FileBytes {
    const unsigned char *data; /* read files: followed by a NUL */
    int64_t bytes;
    bool mapped;
} FileBytes;

/* A regular file, open for reading, and its size; -1 with a message. */
int file_open_regular(const char *path, int64_t *bytes, RtError *err);
/* Regular files only.  Larger than limit bytes: refused. */
bool file_read(const char *path, int64_t limit, FileBytes *out, RtError *err);
/* The same into memory that is kept from one file to the next and grows when it has to. */
typedef struct FileRoom {
    unsigned char *data;
    int64_t bytes, room;
} FileRoom;
bool file_room_reserve(FileRoom *room, int64_t bytes, RtError *err);
bool file_read_into(const char *path, int64_t limit, FileRoom *room, RtError *err);
/* Read-only map.  The file must not be cut while it is mapped. */
bool file_map(const char *path, FileBytes *out, RtError *err);
/* The same, and refuses a file of another size or CRC-32.  It is opened once: what was compared is
 * what is mapped, also when the name is taken away or given to another file meanwhile. */
bool file_map_exact(const char *path, int64_t bytes, uint32_t crc32, FileBytes *out, RtError *err);
/* Size and CRC-32, read through a small buffer. */
bool file_checksum(const char *path, int64_t *bytes, uint32_t *crc32, RtError *err);
void file_release(FileBytes *file);
bool file_exists(const char *path);
bool folder_exists(const char *path);

/* A file being written: bytes go to a temporary name in the same folder; commit syncs it and
 * renames it over path, then syncs the folder.  After any failure the old file is intact and the
 * temporary name is gone. */
typedef struct AtomicFile {
    char *path, *temporary;
    int fd;
    int64_t bytes, started; /* written so far; of these, handed to the disk */
    uint32_t crc32;         /* of everything written so far */
} AtomicFile;

bool atomic_open(AtomicFile *file, const char *path, RtError *err);
bool atomic_write(AtomicFile *file, const void *data, int64_t bytes, RtError *err);
bool atomic_commit(AtomicFile *file, RtError *err);
/* Gives up; harmless after commit or a failure. */
void atomic_abort(AtomicFile *file);
/* open + write + commit. */
bool file_replace(const char *path, const void *data, int64_t bytes, RtError *err);
/* Makes `to`, in the same folder, another name of the file `from`, replacing what was there at
 * once: a hard link, or a symbolic one, or a copy where the file system has neither. */
bool file_link(const char *from, const char *to, RtError *err);
/* Makes `to` a second name of the file `from`, or a copy where there are no hard links.  `to` must
 * not be there. */
bool file_second(const char *from, const char *to, RtError *err);
/* Calls visit for every name in dir that does not start with a dot, in no particular order.  False
 * with a message when the folder cannot be read to its end, or when visit returned false. */
typedef bool FolderEntry(void *user, const char *dir, const char *name, RtError *err);
bool folder_each(const char *dir, FolderEntry *visit, void *user, RtError *err);
/* Calls visit for every regular file below dir, in no particular order: names that start with a dot
 * are left out, links are followed to files only (one to a folder could lead back up).  False with
 * a message when a folder cannot be read or they are nested deeper than 64, or when visit returned
 * false. */
typedef bool FolderVisit(void *user, const char *path, const char *name, RtError *err);
bool folder_walk(const char *dir, FolderVisit *visit, void *user, RtError *err);
/* Makes the folder (and its parents) when missing, and syncs the folders they were made in. */
bool folder_make(const char *path, RtError *err);
/* dir + "/" + name, allocated; NULL when out of memory. */
char *path_join(const char *dir, const char *name, RtError *err);

/* Test hook: the k-th following open, write, fsync, rename or link of this module fails as on a
 * full disk (1 = the next, 0 = off); a failing write first writes half.  Returns what was left to
 * count: 0 when there was nothing, or it has failed. */
uint64_t file_fail_at(uint64_t k);

#endif
