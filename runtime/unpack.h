/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files that may be gzip, read from their beginning: as much as the reader knows to be there, so
 * that a small file cannot unpack to more memory than it was allowed.  Called by data sources. */
#ifndef SCRIMP_RUNTIME_UNPACK_H
#define SCRIMP_RUNTIME_UNPACK_H

#include "runtime/file.h"

typedef struct Unpack {
    int fd;
    int64_t bytes; /* of the file as it is stored */
    bool packed;   /* it is gzip */
    struct Inflate *inflate;
} Unpack;

/* Regular files only.  The message names the path, those of the other functions do not. */
bool unpack_open(Unpack *u, const char *path, RtError *err);
/* The next bytes, up to n; fewer at the end.  -1 with a message when the file is damaged. */
int64_t unpack_some(Unpack *u, void *to, int64_t n, RtError *err);
/* The next n bytes; false with a message when there are fewer. */
bool unpack_read(Unpack *u, void *to, int64_t n, RtError *err);
/* That the data end here, and their checksum is right. */
bool unpack_at_end(Unpack *u, RtError *err);
/* Harmless after a failed unpack_open. */
void unpack_close(Unpack *u);

/* The whole file, unpacked.  Unpacked larger than limit bytes: refused.  A packed file is unpacked
 * twice, first to learn its size: memory is allocated for what there is. */
bool file_read_gz(const char *path, int64_t limit, FileBytes *out, RtError *err);

#endif
