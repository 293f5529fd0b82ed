/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A lowered, planned graph, of which a step is made. */
#ifndef SCRIMP_CODEGEN_BUILD_PROGRAM_H
#define SCRIMP_CODEGEN_BUILD_PROGRAM_H

#include "codegen/build/kernel.h"

/* What a step's shared object is linked with beside its kernels, and what it shows in the place of
 * the step's function. */
typedef struct StepLink {
    const void *object; /* an object file */
    size_t object_bytes;
    const char *const *shown, *const *inside; /* a name, and what it is called in the object */
    int n_shown;
} StepLink;

/* Calls that run in turns (codegen/build/strips.h): n of them from `first` on, each of which reads
 * what the one before it writes. */
enum { STRIP_CALLS_MOST = 3 };
typedef struct StripChain {
    int first, n;
    int64_t words; /* where it begins in the table */
} StripChain;

/* What the step's code has to know of a chain: how many calls; where each begins, from here; of
 * each a head; tasks where its spans begin, and where the last one ends; elements where the spans
 * of what it reads begin, and where they end; elements where those of what it writes begin, and
 * where the last one ends. */
enum { STRIP_KERNEL, STRIP_FIRST_ARGUMENT, STRIP_FIRST_NOTE, STRIP_SPANS, STRIP_HEAD };
typedef struct Strips {
    int64_t cache;          /* bytes that a core keeps */
    VEC(StripChain) chains; /* by `first` */
    VEC(int64_t) words;
} Strips;

/* A lowered, planned graph: what the shared object is made of. */
struct StepProgram {
    Pool *pool;
    const Graph *graph;
    const MemPlan *plan;
    const Backend *backend;
    const Target *target; /* of the step itself, and of linked kernels */
    const char *arch;     /* of a device: what its kernels are compiled for; NULL: no device */
    const char *compiler; /* of kernels, and their arch; part of their keys */
    Call *calls;
    int n_calls;
    bool has_loops;
    int *kernel_of; /* by call */
    int n_kernels;
    int *first_call;         /* by kernel: a call that describes it */
    const char **kernel_key; /* by kernel: content key (hash.h) */
    Strips strips;
    const char *symbol;   /* of the step's function */
    const StepLink *link; /* NULL: it is linked with its kernels alone */
};

/* Byte offset of a call's buffer in the arena; a number is itself. */
int64_t step_buffer_offset(const StepProgram *p, const Call *call, int buf);

#endif
