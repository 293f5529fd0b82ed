/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/nvrtc.h"

#include "codegen/cuda/text.h"
#include "runtime/cuda/find.h"

#include <stdio.h>

/* NVRTC_FUNCTION(name in this table, name in the library, parameters); all return 0 or an error. */
#define NVRTC_FUNCTIONS(NVRTC_FUNCTION)                                                            \
    NVRTC_FUNCTION(version, nvrtcVersion, (int *major, int *minor))                                \
    NVRTC_FUNCTION(create, nvrtcCreateProgram,                                                     \
                   (void **program, const char *text, const char *name, int n_headers,             \
                    const char *const *headers, const char *const *names))                         \
    NVRTC_FUNCTION(destroy, nvrtcDestroyProgram, (void **program))                                 \
    NVRTC_FUNCTION(compile, nvrtcCompileProgram,                                                   \
                   (void *program, int n_options, const char *const *options))                     \
    NVRTC_FUNCTION(image_size, nvrtcGetCUBINSize, (void *program, size_t *size))                   \
    NVRTC_FUNCTION(image, nvrtcGetCUBIN, (void *program, char *image))                             \
    NVRTC_FUNCTION(log_size, nvrtcGetProgramLogSize, (void *program, size_t *size))                \
    NVRTC_FUNCTION(log, nvrtcGetProgramLog, (void *program, char *log))

typedef struct Nvrtc {
#define NVRTC_FUNCTION(name, symbol, parameters) int(*name) parameters;
    NVRTC_FUNCTIONS(NVRTC_FUNCTION)
#undef NVRTC_FUNCTION
} Nvrtc;

/* Contraction is written where it is wanted: fmaf.  Denormal numbers are zeros, as on the processor
 * (runtime/denormals.h). */
#define OPTIONS "--fmad=false", "--ftz=true", "--std=c++17", "--ptxas-options=-v"

enum { OLDEST_MAJOR = 12 }; /* 0: a simulated one */

static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", NULL};

static const Nvrtc *nvrtc(const char **error)
{
#define NVRTC_FUNCTION(name, symbol, parameters) {#symbol, offsetof(Nvrtc, name)},
    static const CudaSymbol symbols[] = {NVRTC_FUNCTIONS(NVRTC_FUNCTION)};
#undef NVRTC_FUNCTION
    static Nvrtc table;
    static bool found;
    int major = 0, minor = 0;
    if (found)
        return &table;
    void *library = cuda_find_library(names);
    found = library &&
            !cuda_find_symbols(library, symbols, sizeof symbols / sizeof *symbols, &table) &&
            table.version(&major, &minor) == 0 && (major == 0 || major >= OLDEST_MAJOR);
    if (!found)
        *error = library ? "the NVRTC library is too old: version 12.0 or newer is needed"
                         : "there is no NVRTC library (libnvrtc.so) to compile CUDA kernels with: "
                           "install the CUDA toolkit, or add its folder of libraries to "
                           "SCRIMP_CUDA_PATH";
    return found ? &table : NULL;
}

const char *nvrtc_compiler(Pool *pool, const char *arch, const char **error)
{
    static const char *const options[] = {OPTIONS};
    int major = 0, minor = 0;
    const Nvrtc *n = nvrtc(error);
    if (!n)
        return NULL;
    n->version(&major, &minor);
    return pool_printf(pool, "NVRTC %d.%d %s %s %s", major, minor, arch, options[0], options[1]);
}

int nvrtc_driver(void)
{
    int major = 0, minor = 0;
    const char *error;
    const Nvrtc *n = nvrtc(&error);
    if (n)
        n->version(&major, &minor);
    return 1000 * major;
}

static const char *program_log(Pool *pool, const Nvrtc *n, void *program)
{
    size_t size = 0;
    if (n->log_size(program, &size) != 0 || size == 0)
        return "no message";
    char *text = pool_alloc(pool, size + 1);
    text[0] = text[size] = '\0';
    n->log(program, text);
    return text;
}

static const void *image_of(Pool *pool, const Nvrtc *n, void *program, size_t *bytes,
                            const char **messages)
{
    *messages = "NVRTC gave no image";
    if (n->image_size(program, bytes) != 0 || *bytes == 0)
        return NULL;
    char *image = pool_alloc(pool, *bytes);
    if (n->image(program, image) != 0)
        return NULL;
    *messages = program_log(pool, n, program);
    return image;
}

const void *nvrtc_compile(Pool *pool, const char *text, const char *arch, size_t *bytes,
                          const char **messages)
{
    const Nvrtc *n = nvrtc(messages);
    const char *options[] = {pool_printf(pool, "--gpu-architecture=%s", arch), OPTIONS};
    DeviceTexts fixed = device_texts_all();
    void *program = NULL;
    if (!n)
        return NULL;
    if (n->create(&program, text, "kernel.cu", fixed.n, fixed.text, fixed.name) != 0) {
        *messages = "NVRTC does not start";
        return NULL;
    }
    const void *image = NULL;
    if (n->compile(program, sizeof options / sizeof *options, options) != 0)
        *messages = pool_printf(pool, "NVRTC: %s", program_log(pool, n, program));
    else
        image = image_of(pool, n, program, bytes, messages);
    n->destroy(&program);
    return image;
}
