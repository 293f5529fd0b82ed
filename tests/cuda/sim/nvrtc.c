/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated libnvrtc.so: compiles the text of a kernel as C, with the system's compiler, into a
 * shared object, which the simulated driver takes for a cubin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK, FAILED = 6 };

typedef struct Program {
    char *text, *image;
    char log[4096];
    size_t bytes;
} Program;

EXPORT int nvrtcVersion(int *major, int *minor)
{
    *major = 0; /* no version of the real one: their images are told apart in the cache */
    *minor = 1;
    return OK;
}

EXPORT int nvrtcCreateProgram(void **program, const char *text, const char *name, int n_headers,
                              const char *const *headers, const char *const *names)
{
    (void)name, (void)n_headers, (void)headers, (void)names;
    Program *p = calloc(1, sizeof *p);
    if (!p || !(p->text = strdup(text)))
        return FAILED;
    *program = p;
    return OK;
}

EXPORT int nvrtcDestroyProgram(void **program)
{
    Program *p = *program;
    free(p->text);
    free(p->image);
    free(p);
    *program = NULL;
    return OK;
}

static int write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return FAILED;
    int bad = fputs(text, f) < 0;
    return fclose(f) != 0 || bad ? FAILED : OK;
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    long n = ftell(f);
    char *data = n > 0 ? malloc((size_t)n) : NULL;
    rewind(f);
    if (data && fread(data, 1, (size_t)n, f) != (size_t)n) {
        free(data);
        data = NULL;
    }
    fclose(f);
    *bytes = data ? (size_t)n : 0;
    return data;
}

static int run_compiler(const char *source, const char *object, const char *log)
{
    char command[1024];
    /* Contraction is off on a device, too (--fmad=false); fmaf is one instruction. */
    snprintf(
        command, sizeof command,
        "%s -x c -std=gnu17 -O2 -march=native -ffp-contract=off -w -shared -fPIC -include %s %s "
        "-o %s -lm 2>%s",
        SIM_COMPILER, SIM_KERNEL_HEADER, source, object, log);
    return system(command) == 0 ? OK : FAILED;
}

EXPORT int nvrtcCompileProgram(void *program, int n_options, const char *const *options)
{
    (void)n_options, (void)options;
    Program *p = program;
    char folder[] = "/tmp/sim-nvrtc-XXXXXX", source[64], object[64], log[64];
    if (!mkdtemp(folder))
        return FAILED;
    snprintf(source, sizeof source, "%s/kernel.c", folder);
    snprintf(object, sizeof object, "%s/kernel.so", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    int result = write_text(source, p->text);
    if (result == OK)
        result = run_compiler(source, object, log);
    size_t n;
    char *text = read_file(log, &n);
    if (text)
        snprintf(p->log, sizeof p->log, "%.*s", (int)n, text);
    free(text);
    if (result == OK && !(p->image = read_file(object, &p->bytes)))
        result = FAILED;
    unlink(source);
    unlink(object);
    unlink(log);
    rmdir(folder);
    return result;
}

EXPORT int nvrtcGetCUBINSize(void *program, size_t *size)
{
    *size = ((Program *)program)->bytes;
    return OK;
}

EXPORT int nvrtcGetCUBIN(void *program, char *image)
{
    const Program *p = program;
    memcpy(image, p->image, p->bytes);
    return OK;
}

EXPORT int nvrtcGetProgramLogSize(void *program, size_t *size)
{
    *size = strlen(((Program *)program)->log) + 1;
    return OK;
}

EXPORT int nvrtcGetProgramLog(void *program, char *log)
{
    strcpy(log, ((Program *)program)->log);
    return OK;
}
