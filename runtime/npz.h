/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NumPy's .npz: a zip archive of .npy files, read by libzip.  What is stored as it is stays where
 * it lies; what is packed is unpacked once.  Called by array_file. */
#ifndef SCRIMP_RUNTIME_NPZ_H
#define SCRIMP_RUNTIME_NPZ_H

#include "runtime/npy.h"

typedef struct Npz Npz;

/* bytes: of the whole file; they have to outlive the result.  NULL with a message. */
Npz *npz_parse(const unsigned char *bytes, int64_t n, RtError *err);
void npz_close(Npz *npz);
int64_t npz_count(const Npz *npz);
/* What array i is called; NULL for what is no array.  Valid until the next call. */
const char *npz_name(Npz *npz, int64_t i);
/* Array i; its data are there until npz_close. */
bool npz_array(Npz *npz, int64_t i, NpyArray *out, RtError *err);
/* Bytes of what has been unpacked. */
int64_t npz_unpacked(const Npz *npz);

#endif
