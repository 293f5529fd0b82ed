/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files below a folder that has one folder for each class, as torchvision's ImageFolder reads
 * it.  Called by the data sources imagefolder and audiofolder. */
#ifndef SCRIMP_RUNTIME_FOLDER_LIST_H
#define SCRIMP_RUNTIME_FOLDER_LIST_H

#include "runtime/status.h"

/* More than that is refused: ImageNet-21k has 14 million. */
enum { FOLDER_FILES_MAX = 32 * 1024 * 1024, CLASSES_MAX = 1024 * 1024 };

typedef struct FolderList {
    /* Set before folder_list_add: which files count, by their names' endings in any case, NULL
     * behind the last; and what they are called in messages: ".jpg, .jpeg or .png". */
    const char *const *endings;
    const char *ending_text;
    char *names; /* paths, each ended by a NUL */
    int64_t names_bytes, names_room;
    int64_t *at;    /* file -> offset in names */
    int32_t *label; /* file -> class */
    int64_t n, room;
    /* Set before folder_list_add, paths below root: these are listed also when their files, or the
     * folders of their classes, are gone.  Both are the caller's, and as long as the list is in
     * use. */
    const char *root;
    const char *const *also;
    int64_t n_also;
    char **classes; /* sorted */
    int64_t n_classes, classes_room;
} FolderList;

/* Whether a name has one of the endings (any case) behind something else. */
bool folder_list_wants(const char *const *endings, const char *name);
/* Classes are the folders in dir, sorted by name, with the files of the endings below each, sorted
 * by path; names that start with a dot are left out.  A second call adds another folder's files,
 * whose classes have to be among those there are.  False with a message when there is no class, or
 * a class without a file. */
bool folder_list_add(FolderList *list, const char *dir, RtError *err);
/* Visits the files that are among `also`, in order. */
bool folder_list_each_also(const FolderList *list, void (*visit)(void *user, int64_t i), void *user,
                           RtError *err);
const char *folder_list_path(const FolderList *list, int64_t i);
/* Puts files into an order that looks random and depends on each one's path below dir alone: a
 * part of it has all classes, and another file more does not move the others. */
bool folder_list_mix(FolderList *list, const char *dir, RtError *err);
int64_t folder_list_bytes(const FolderList *list);
void folder_list_free(FolderList *list);

#endif
