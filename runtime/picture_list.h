/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The pictures below a folder that has one folder for each class, as torchvision's ImageFolder
 * reads it.  Called by the imagefolder data source. */
#ifndef SCRIMP_RUNTIME_PICTURE_LIST_H
#define SCRIMP_RUNTIME_PICTURE_LIST_H

#include "runtime/status.h"

/* More than that is refused: ImageNet-21k has 14 million. */
enum { PICTURES_MAX = 32 * 1024 * 1024, CLASSES_MAX = 1024 * 1024 };

typedef struct PictureList {
    char *names; /* paths, each ended by a NUL */
    int64_t names_bytes, names_room;
    int64_t *at;    /* picture -> offset in names */
    int32_t *label; /* picture -> class */
    int64_t n, room;
    /* Set before pictures_add, paths below root: these are listed also when their files, or the
     * folders of their classes, are gone.  Both are the caller's, and as long as the list is in
     * use. */
    const char *root;
    const char *const *also;
    int64_t n_also;
    char **classes; /* sorted */
    int64_t n_classes, classes_room;
} PictureList;

/* Classes are the folders in dir, sorted by name; pictures are the .jpg, .jpeg and .png files (any
 * case) below each, sorted by path; names that start with a dot are left out.  A second call adds
 * another folder's pictures, whose classes have to be among those there are.  False with a message
 * when there is no class, or a class without a picture. */
bool pictures_add(PictureList *list, const char *dir, RtError *err);
/* Visits the pictures that are among `also`, in order. */
bool pictures_each_also(const PictureList *list, void (*visit)(void *user, int64_t i), void *user,
                        RtError *err);
const char *picture_path(const PictureList *list, int64_t i);
/* Puts pictures into an order that looks random and depends on each one's path below dir alone: a
 * part of it has all classes, and another picture more does not move the others. */
bool pictures_mix(PictureList *list, const char *dir, RtError *err);
int64_t pictures_bytes(const PictureList *list);
void pictures_free(PictureList *list);

#endif
