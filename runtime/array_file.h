/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files of named arrays, NumPy's .npz and .safetensors: mapped, so that only what is used of an
 * array is read.  Called by data sources and by predict. */
#ifndef SCRIMP_RUNTIME_ARRAY_FILE_H
#define SCRIMP_RUNTIME_ARRAY_FILE_H

#include "runtime/npy.h"

typedef enum ArrayFormat { ARRAYS_NPZ, ARRAYS_SAFETENSORS } ArrayFormat;
typedef struct ArrayFile ArrayFile;

/* The messages name the path. */
ArrayFile *array_file_open(const char *path, ArrayFormat format, RtError *err);
void array_file_close(ArrayFile *file);
/* The array of this name, valid until the file is closed. */
bool array_file_find(ArrayFile *file, const char *name, NpyArray *out, RtError *err);
/* Bytes mapped and unpacked. */
int64_t array_file_bytes(const ArrayFile *file);

/* A list of fields and what the array of each is called: a line for each, with a tab between.  The
 * next one, *at being behind it then; false behind the last. */
enum { ARRAY_MAX_NAME = 190 };
typedef struct ArrayName {
    char field[64], array[ARRAY_MAX_NAME + 1];
} ArrayName;
bool array_name_next(const char **at, ArrayName *out);
/* What the array of a field is called; the same as the field when the list (may be NULL) has it
 * not. */
void array_name_of(const char *list, const char *field, char name[ARRAY_MAX_NAME + 1]);

#endif
