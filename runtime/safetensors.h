/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The safetensors format: weights that PyTorch, Hugging Face and others read and write.  Files are
 * mapped, and validated before they are used.  Called by checkpoint and the command line. Source:
 * the format's README (8-byte header length, JSON header, data without holes). */
#ifndef SCRIMP_RUNTIME_SAFETENSORS_H
#define SCRIMP_RUNTIME_SAFETENSORS_H

#include "runtime/dtype.h"

typedef struct SafeTensor {
    const char *name;
    const char *type_name; /* as in the file: "F32", "BF16", ... */
    RtDType dtype;         /* RT_OTHER for a type scrimp does not convert */
    int rank;
    int64_t dims[RT_MAX_RANK];
    const void *data; /* little-endian, not necessarily aligned */
    int64_t bytes;
} SafeTensor;

typedef struct SafeFile SafeFile;

/* Maps and checks path; tensors point into the map. */
SafeFile *safetensors_open(const char *path, RtError *err);
/* The same, and refuses a file of another size or CRC-32 (file_map_exact). */
SafeFile *safetensors_open_exact(const char *path, int64_t bytes, uint32_t crc32, RtError *err);
/* The same on bytes of the caller, which must outlive the result (fuzzing, tests). */
SafeFile *safetensors_parse(const void *data, int64_t bytes, RtError *err);
void safetensors_close(SafeFile *file);
int64_t safetensors_count(const SafeFile *file);
/* In order of offset. */
const SafeTensor *safetensors_at(const SafeFile *file, int64_t i);
const SafeTensor *safetensors_find(const SafeFile *file, const char *name);
/* Lets go of the memory a tensor's pages take (they are read again when needed).  Only after
 * safetensors_open. */
void safetensors_forget(const SafeFile *file, const SafeTensor *t);
/* A string of __metadata__, or NULL. */
const char *safetensors_metadata(const SafeFile *file, const char *key);
/* Copies all elements of t into dst of type dtype: equal types, or any float type to RT_F32, or
 * i64 to i32 where every value fits. */
bool safetensors_copy(const SafeTensor *t, RtDType dtype, void *dst, RtError *err);

/* What to write.  data: dense elements of dtype (F32, F16, BF16, I32, I64, U8, BOOL). */
typedef struct SafeEntry {
    const char *name;
    RtDType dtype;
    int rank;
    int64_t dims[RT_MAX_RANK];
    const void *data;
} SafeEntry;
typedef struct SafeMeta {
    const char *key, *value;
} SafeMeta;
typedef struct SafeContent {
    const SafeEntry *entries;
    int64_t n;
    const SafeMeta *meta; /* the strings of __metadata__ */
    int n_meta;
} SafeContent;

/* Writes path atomically: by element size (large first, so that all data is aligned), then by name.
 * *bytes and *crc32 (may be NULL) receive the size and CRC-32 of the file. */
bool safetensors_write(const char *path, const SafeContent *content, int64_t *bytes,
                       uint32_t *crc32, RtError *err);

#endif
