/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What one thread needs to make numbers of picture files, and the memory for it: asked for before
 * the first batch, by what the files' headers say.  Called by the imagefolder data source. */
#ifndef SCRIMP_RUNTIME_PICTURE_READER_H
#define SCRIMP_RUNTIME_PICTURE_READER_H

#include "runtime/file.h"
#include "runtime/image.h"

typedef struct PictureReader {
    Image image;
    ImageScratch scratch;
    FileRoom file;
} PictureReader;

/* The most of each, of any picture that was looked at. */
typedef struct PictureNeeds {
    int64_t file_bytes, pixel_bytes, scratch_bytes, library_bytes;
} PictureNeeds;

void picture_needs_add(PictureNeeds *needs, const ImageFacts *facts, int64_t size);
int64_t picture_needs_bytes(const PictureNeeds *needs);
/* How many threads' needs are to be had, at most `cores`: no more than half of the memory that is
 * available, so that as much is left for everything else.  0 with a message when there is not
 * enough for one. */
int picture_readers_affordable(const PictureNeeds *needs, int cores, RtError *err);
/* Memory for each of n readers.  What the decoder's library allocates is asked for at the same
 * time and given back. */
bool picture_readers_reserve(PictureReader *const *reader, int n, const PictureNeeds *needs,
                             RtError *err);
void picture_reader_free(PictureReader *reader);

/* Reads and decodes a file.  False with a message; *damaged: because of the file, not because of
 * memory or open files. */
bool picture_read(PictureReader *reader, const char *path, bool *damaged, RtError *err);

#endif
