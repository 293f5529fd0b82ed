/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where NVIDIA's libraries are looked for: they are opened when they are asked for, and linked by
 * nobody.  Called by the other files of this folder and, for the same libraries, by
 * codegen/cuda/. */
#ifndef SCRIMP_RUNTIME_CUDA_FIND_H
#define SCRIMP_RUNTIME_CUDA_FIND_H

#include "runtime/status.h"

/* Opens the first of these names (ended by NULL) that is there: in the folders that
 * SCRIMP_CUDA_PATH lists, one after another, then in the system's.  NULL: in none of them. */
void *cuda_find_listed(const char *const *names);
/* The same; after these, in $CUDA_HOME/lib64 and /usr/local/cuda/lib64. */
void *cuda_find_library(const char *const *names);

/* The driver, or the toolkit's stub of it, which has its name and all of its functions, and does
 * nothing: for libraries that open it themselves.  Whoever opened a stub never gets the driver. */
void *cuda_find_driver_or_stub(void);

/* A function of a library, and where a table of its functions has the pointer to it. */
typedef struct CudaSymbol {
    const char *symbol;
    size_t at;
} CudaSymbol;
/* Fills a table; NULL, or the first symbol that the library does not have. */
const char *cuda_find_symbols(void *library, const CudaSymbol *symbol, size_t n, void *table);

/* A library that says which version it has. */
typedef struct CudaFile {
    const char *name;         /* "cuDNN" */
    const char *const *files; /* what it may be called, ended by NULL */
    const char *version;      /* the function that says it, as a size_t */
    int64_t oldest;           /* that can be used: 91100 for 9.11 */
    const char *way_out;      /* where it is missing */
    const CudaSymbol *symbol;
    size_t n_symbols;
} CudaFile;

/* Fills a table; false with a message where the library is not there or cannot be used. */
bool cuda_find_file(const CudaFile *f, void *table, int64_t *version, RtError *err);

#endif
