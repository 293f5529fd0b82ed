/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IR + plan -> callable step.  Called by the command line. */
#ifndef SCRIMP_CODEGEN_BUILD_CODEGEN_H
#define SCRIMP_CODEGEN_BUILD_CODEGEN_H

#include "codegen/build/image.h"
#include "codegen/build/kernel.h"

typedef struct CodegenOptions {
    const char *march;      /* NULL = this host */
    const Backend *backend; /* NULL = cpu_backend */
    const char *arch;       /* of the backend's device */
    const Tuning *tuning;   /* may be NULL */
    const char
        *cache_dir; /* NULL = $SCRIMP_CACHE, else $XDG_CACHE_HOME/scrimp, else ~/.cache/scrimp */
    int jobs;       /* child processes at once; 0 = number of cores */
    bool no_cache;
    /* Bytes of a core's cache that kernels in turns count on (codegen/build/strips.h); 0: as many
     * as the second level has; STRIPS_NONE: kernels run one after another. */
    int64_t strip_cache;
    void (*progress)(void *user, int done, int total); /* may be NULL */
    void (*note)(void *user, const char *text);        /* may be NULL */
    void *user;
} CodegenOptions;

/* A loaded step.  calls: what scrimp_step runs, in order (for profiles). */
typedef struct Step {
    ScrimpStep *run;
    Image image;
    const char *key; /* content key: equal keys run equal code at equal offsets */
    int n_calls, n_kernels, n_compiled; /* compiled: kernels that were not in the cache */
    const ScrimpDeviceKernel *kernel;   /* NULL: all are linked */
    int driver; /* of a device: the oldest that loads them, 12000 for 12.0 */
    const Call *calls;
    const char *const *call_key; /* by call: the identity of its kernel (CallList) */
    double compile_seconds;
} Step;

/* Compiles (children write object files; the last links the shared object) what the cache has not,
 * and loads.  Nothing of the cache is used that is not whole.  NULL and *error on an environment
 * failure, a crashed child included. */
Step *codegen_compile(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                      const char **error);
void codegen_unload(Step *step);
/* What a graph runs, in order; it needs no plan.  Calls of equal keys run the same code, on so many
 * tasks each.  False and *error where there is no compiler, by whom a device's kernels are known.
 */
typedef struct CallList {
    const Call *calls;
    const char *const *key;
    int n;
} CallList;
bool codegen_list_calls(Pool *pool, const Graph *g, const CodegenOptions *o, CallList *out,
                        const char **error);
typedef struct ExportFiles {
    const char *name; /* a C identifier: all names of the header begin with it, and NAME_step is all
                         that the object exports */
    const char *so_path, *header_path; /* NULL: no header */
    bool inference;                    /* of a graph that is no training step */
} ExportFiles;
/* Ahead of time: a shared object that needs nothing of scrimp, and a C header that describes its
 * arena. */
bool codegen_export(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                    const ExportFiles *files, const char **error);
/* The same for devices: FOLDER/NAME.so and manifest.json, a folder with kernels for each
 * architecture, and the header.  The program needs a driver, and nothing of scrimp. */
typedef struct DeviceFiles {
    const char *name, *folder, *header_path;
    const char *const *arch;
    int n_archs;
    bool inference;
} DeviceFiles;
/* What the file of an inference's weights begins with, before the persistent part of the arena. */
typedef struct WeightsHead {
    char magic[8];
    uint64_t key, bytes, checksum;
} WeightsHead;
WeightsHead codegen_weights_head(const Graph *g, const MemPlan *plan, const char *image);
bool codegen_export_device(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                           const DeviceFiles *files, const char **error);
/* What `dump` shows: the list of kernels and calls; their assembly; what the backend's compiler
 * compiles. */
typedef enum CodeDump { DUMP_CALLS, DUMP_ASSEMBLY, DUMP_TEXT } CodeDump;
bool codegen_dump(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                  CodeDump what, FILE *out, const char **error);

#endif
