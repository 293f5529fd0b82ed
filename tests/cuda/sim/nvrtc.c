/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated libnvrtc.so: compiles the text of a kernel as C, with the system's compiler, into a
 * shared object, which the simulated driver takes for a cubin.  SCRIMP_SIM_NVRTC: its major
 * version.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK, FAILED = 6 };

typedef struct Program {
    char *text, *image;
    int n_headers;
    char **header, **header_name;
    char *wanted; /* of each header: it is included */
    char log[4096];
    size_t bytes;
} Program;

EXPORT int nvrtcVersion(int *major, int *minor)
{
    const char *text = getenv("SCRIMP_SIM_NVRTC");
    *major = text ? atoi(text) : 0; /* no version of the real one: their images are told apart in
                                       the cache */
    *minor = 99;
    return OK;
}

EXPORT int nvrtcCreateProgram(void **program, const char *text, const char *name, int n_headers,
                              const char *const *headers, const char *const *names)
{
    (void)name;
    Program *p = calloc(1, sizeof *p);
    if (!p || !(p->text = strdup(text)))
        return FAILED;
    p->header = calloc((size_t)n_headers + 1, sizeof *p->header);
    p->header_name = calloc((size_t)n_headers + 1, sizeof *p->header_name);
    p->wanted = calloc((size_t)n_headers + 1, 1);
    if (!p->header || !p->header_name || !p->wanted)
        return FAILED;
    for (; p->n_headers < n_headers; p->n_headers++) {
        p->header[p->n_headers] = strdup(headers[p->n_headers]);
        p->header_name[p->n_headers] = strdup(names[p->n_headers]);
    }
    *program = p;
    return OK;
}

EXPORT int nvrtcDestroyProgram(void **program)
{
    Program *p = *program;
    for (int i = 0; i < p->n_headers; i++) {
        free(p->header[i]);
        free(p->header_name[i]);
    }
    free(p->header);
    free(p->header_name);
    free(p->wanted);
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

/* Marks the headers that a text names, and those that these name. */
static void want_headers(const Program *p, const char *text)
{
    char quoted[256];
    for (int i = 0; i < p->n_headers; i++) {
        snprintf(quoted, sizeof quoted, "\"%s\"", p->header_name[i]);
        if (!p->wanted[i] && strstr(text, quoted)) {
            p->wanted[i] = 1;
            want_headers(p, p->header[i]);
        }
    }
}

/* Writes the headers that are wanted into the folder, or removes them. */
static int put_headers(const Program *p, const char *folder, int write)
{
    int result = OK;
    for (int i = 0; i < p->n_headers; i++) {
        char path[256];
        if (!p->wanted[i])
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, p->header_name[i]);
        if (write && result == OK)
            result = write_text(path, p->header[i]);
        else if (!write)
            unlink(path);
    }
    return result;
}

static int run_compiler(const char *source, const char *object, const char *log)
{
    char command[1024];
    /* Contraction is off on a device, too (--fmad=false); fmaf is one instruction.  Kernels are
     * compiled for longer than they run, hence -O1; what they call is loaded already (kernels.c),
     * which saves the linker the libraries. */
    snprintf(command, sizeof command,
             "exec %s -x c -std=gnu17 -O1 -march=native -ffp-contract=off -fno-math-errno -w "
             "-shared -fPIC -nostdlib -include %s %s -o %s 2>%s",
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
    want_headers(p, p->text);
    if (result == OK)
        result = put_headers(p, folder, 1);
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
    put_headers(p, folder, 0);
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
