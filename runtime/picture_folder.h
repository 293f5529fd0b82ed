/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the two files of the imagefolder data source share: data_imagefolder.c opens a folder,
 * picture_batch.c makes batches of it. */
#ifndef SCRIMP_RUNTIME_PICTURE_FOLDER_H
#define SCRIMP_RUNTIME_PICTURE_FOLDER_H

#include "runtime/data_internal.h"
#include "runtime/loader.h"
#include "runtime/picture_list.h"
#include "runtime/picture_reader.h"

/* A place of a batch that is being made. */
typedef struct PicturePlace {
    int64_t example; /* which picture should be here, -1 = none */
    int64_t shown;   /* which one is, -1 = none */
    int64_t found;   /* the first one that could not be read, not known before; -1 = none */
    RtError why;
} PicturePlace;

typedef struct PictureFolder {
    PictureList list;
    size_t root_bytes; /* of a path, up to the part below the folder */
    int64_t memory;    /* of all readers */
    LeftOutList left_out;
    Loader *loader;
    /* The batch in `images`, being made or complete; taken: it has been asked for. */
    bool there, taken, training;
    int64_t number;
    PicturePlace *place;
    float *images;
    const Dataset *ds;
} PictureFolder;

/* The path below the folder that the data set was opened with. */
const char *picture_name(const PictureFolder *f, int64_t i);

/* A LoaderWork: place b of the batch; owner is the folder, scratch a PictureReader. */
bool picture_place_fill(void *owner, int64_t b, void *scratch, RtError *err);
/* The data kind's `batch`. */
bool picture_batch(const Dataset *ds, bool training, int64_t number, void *const *dst,
                   RtError *err);

#endif
