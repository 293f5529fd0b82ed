/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Examples for one input of a model that is only run: an array, pictures, sounds or a text, in the
 * order of the files.  Called by predict. */
#ifndef SCRIMP_RUNTIME_EXAMPLES_H
#define SCRIMP_RUNTIME_EXAMPLES_H

#include "runtime/array_file.h"
#include "runtime/data.h"
#include "runtime/sound.h"

typedef struct Examples Examples;

/* NULL with a message.  The first axis of an array counts examples. */
Examples *examples_of_array(const char *path, RtError *err);
/* The same of an array in a .npz or .safetensors file. */
Examples *examples_of_named(const char *path, ArrayFormat format, const char *name, RtError *err);
/* A picture, or all below a folder, sorted by path: f32[3,size,size], the middle as imagefolder
 * takes it for an evaluation. */
typedef struct PictureForm {
    int64_t size, resize;
    double mean[3], std[3];
} PictureForm;
Examples *examples_of_pictures(const char *path, const PictureForm *form, RtError *err);
/* The same as bytes: u8[3,size,size] of the middle, the shorter side being `size`; grey:
 * u8[size,size]. */
Examples *examples_of_byte_pictures(const char *path, int64_t size, bool grey, RtError *err);
/* A sound, or all below a folder, sorted by path: f32[1,length], of a longer one the middle. */
Examples *examples_of_sounds(const char *path, const SoundForm *form, RtError *err);
/* The rows of a table in their order, as a field each of the spec's columns, whose name
 * examples_field has.  The spec has what was learned in training; a row that training would leave
 * out is refused.  How many fields, 0 with a message. */
int examples_of_table(const DataSpec *spec, Examples *out[DATA_MAX_FIELDS], RtError *err);
/* Consecutive windows of `length` tokens; behind the end of the last one are zeros. */
Examples *examples_of_text(const char *path, const Vocab *vocab, int64_t length, RtError *err);
void examples_close(Examples *x);

int64_t examples_count(const Examples *x);
/* What one example is; max_id and min_id are those of all, -1 for floats. */
const DataField *examples_field(const Examples *x);
/* The file of an example that has one of its own, a picture or a sound; NULL of others. */
const char *examples_file(const Examples *x, int64_t i);
/* Example i, 0 <= i < count, to dst.  False with a message for a picture or sound that cannot be
 * read. */
bool examples_read(Examples *x, int64_t i, void *dst, RtError *err);

#endif
