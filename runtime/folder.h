/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Data sources that read a folder for each class, of files that are decoded: folder.c finds the
 * files, folder_batch.c makes batches of them a batch ahead.  What the files are is said by a
 * FolderForm (data_imagefolder.c, data_audiofolder.c).  Such a source has two fields, what is in
 * the files (f32) and their class. */
#ifndef SCRIMP_RUNTIME_FOLDER_H
#define SCRIMP_RUNTIME_FOLDER_H

#include "runtime/data_internal.h"
#include "runtime/folder_list.h"
#include "runtime/loader.h"

typedef struct Folder Folder;

/* A kind of files. */
typedef struct FolderForm {
    const char *one, *many;     /* "picture" */
    const char *const *endings; /* FolderList's */
    const char *ending_text;
    /* Looks at a file before the first batch, and adds to `needs` what reading it will take.  False
     * with a message when it is damaged. */
    bool (*look)(const Folder *f, const char *path, void *needs, RtError *err);
    /* Puts file i into place b of `values`, with a thread's scratch memory.  False with a message;
     * *damaged: because of the file, not because of memory or open files. */
    bool (*show)(const Folder *f, int64_t b, int64_t i, void *scratch, bool *damaged, RtError *err);
} FolderForm;

/* A place of a batch that is being made. */
typedef struct FolderPlace {
    int64_t example; /* which file should be here, -1 = none */
    int64_t shown;   /* which one is, -1 = none */
    int64_t found;   /* the first one that could not be read, not known before; -1 = none */
    RtError why;
} FolderPlace;

struct Folder {
    const FolderForm *form;
    FolderList list;
    size_t root_bytes; /* of a path, up to the part below the folder */
    LeftOutList left_out;
    Loader *loader; /* set by the kind, behind folder_look */
    /* The batch in `values`, being made or complete; taken: it has been asked for. */
    bool there, taken, training;
    int64_t number;
    FolderPlace *place;
    float *values;
    const Dataset *ds;
};

/* Sets ds->state, and lists, in ds->total and ds->test too: DIR/train and DIR/val (or DIR/test) are
 * the parts to train on and to hold out, if there are both; else DIR itself has the classes.  Then
 * looks at the files: what cannot be read is found before training and not hours later; of many, a
 * sample. */
bool folder_look(Dataset *ds, const FolderForm *form, void *needs, RtError *err);
/* The field `label`, and room for a batch of `floats` numbers an
 * example; sets ds->loaded_bytes to the memory so far. */
bool folder_make_room(Dataset *ds, int64_t floats, RtError *err);

/* Where place b of the batch that is being made goes. */
float *folder_values(const Folder *f, int64_t b);
/* Uniform in [0, 1): draw k for place b of the training batch that is being made. */
double folder_draw(const Folder *f, int64_t b, int k);

/* A LoaderWork: place b of the batch; owner is the folder. */
bool folder_place_fill(void *owner, int64_t b, void *scratch, RtError *err);

/* Of the data kinds: `close`, `batch`, `left_out`, `example_name` (the path below the folder that
 * the data set was opened with). */
void folder_close(Dataset *ds);
bool folder_batch(const Dataset *ds, bool training, int64_t number, void *const *dst, RtError *err);
LeftOutList *folder_left_out(const Dataset *ds);
const char *folder_name(const Dataset *ds, int64_t i);

#endif
