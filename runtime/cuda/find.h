/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where NVIDIA's libraries are looked for: they are opened when they are asked for, and linked by
 * nobody.  Called by the other files of this folder and, for the same libraries, by
 * codegen/cuda/. */
#ifndef SCRIMP_RUNTIME_CUDA_FIND_H
#define SCRIMP_RUNTIME_CUDA_FIND_H

#include <stdbool.h>

/* Opens the first of these names (ended by NULL) that is there: in the folders that
 * SCRIMP_CUDA_PATH lists, one after another, then in the system's.  NULL: in none of them. */
void *cuda_find_listed(const char *const *names);
/* The same; after these, in $CUDA_HOME/lib64 and /usr/local/cuda/lib64. */
void *cuda_find_library(const char *const *names);
/* Stores the address of a symbol at `function`, a pointer to a function; false: there is none. */
bool cuda_find_symbol(void *library, const char *symbol, void *function);

#endif
