/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/exported.h"

#include "runtime/arena.h"
#include "runtime/cuda/feed.h"
#include "runtime/cuda/step.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generated; the same shared object. */
extern ScrimpStep scrimp_step;

typedef struct Running {
    const ExportedStep *step;
    char folder[4096]; /* of the shared object */
    CudaDevice *device;
    CudaStep *cuda;
    CudaFeed *feed;
    CudaPiece *state; /* persistent tensors */
    int n_state;
    Arena image;
} Running;

enum { MOST_MANIFEST_BYTES = 64 << 20 };

static RtError error;

const char *exported_error(void)
{
    return error.message;
}

/* --- files --- */

/* The folder in which this code lies. */
static bool find_folder(Running *r)
{
    Dl_info info;
    if (!dladdr(&error, &info) || !info.dli_fname)
        return rt_error(&error, "the folder of the step is not to be found");
    const char *slash = strrchr(info.dli_fname, '/');
    int n = slash ? (int)(slash - info.dli_fname) : 1;
    const char *folder = slash ? info.dli_fname : ".";
    if (n < (int)sizeof r->folder)
        snprintf(r->folder, sizeof r->folder, "%.*s", n, folder);
    return n < (int)sizeof r->folder || rt_error(&error, "its folder has too long a name");
}

/* bytes: how many there are, or with *bytes < 0 as many as there are; the memory is followed by a
 * NUL. */
static char *read_file(const char *path, int64_t *bytes)
{
    FILE *f = fopen(path, "rbe");
    long n = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    bool ok = n >= 0 && (*bytes < 0 ? n <= MOST_MANIFEST_BYTES : n == *bytes);
    char *data = ok ? rt_alloc((int64_t)n + 1, 1, &error) : NULL;
    if (data) {
        rewind(f);
        ok = fread(data, 1, (size_t)n, f) == (size_t)n;
    }
    if (f)
        fclose(f);
    if (data && ok) {
        *bytes = n;
        return data;
    }
    free(data);
    if (!ok)
        rt_error(&error, n < 0 ? "cannot read %s" : "%s is not the file that was compiled", path);
    return NULL;
}

/* A program that was built with the header of another step would write past tensors. */
static bool same_step(const Running *r)
{
    char path[4200], key[80];
    int64_t bytes = -1;
    snprintf(path, sizeof path, "%s/manifest.json", r->folder);
    snprintf(key, sizeof key, "\"%s\"", r->step->key);
    char *text = read_file(path, &bytes);
    bool ok = text && strstr(text, key);
    if (text && !ok)
        rt_error(&error, "%s is of another step than the header that this program was built with",
                 path);
    free(text);
    return ok;
}

/* --- kernels --- */

/* Code for sm_86 runs on every device of compute capability 8.y with y >= 6; code for sm_90a on 9.0
 * alone. */
static bool runs_on(const char *arch, const char *device)
{
    size_t n = strlen(device);
    if (strcmp(arch, device) == 0)
        return true;
    if (strncmp(arch, device, n) == 0 && strcmp(arch + n, "a") == 0)
        return true;
    return strlen(arch) == n && strncmp(arch, device, n - 1) == 0 && arch[n - 1] < device[n - 1];
}

/* The newest architecture whose code runs on the device; -1 with a message. */
static int find_arch(const Running *r)
{
    const ExportedStep *s = r->step;
    const char *device = cuda_device_arch(r->device);
    int best = -1;
    for (int i = 0; i < s->n_archs; i++)
        if (runs_on(s->arch[i], device) && (best < 0 || strcmp(s->arch[i], s->arch[best]) > 0))
            best = i;
    if (best < 0)
        rt_error(&error, "the device is %s (%s), for which the step was not compiled: %s%s",
                 cuda_device_name(r->device), device, s->arch[0],
                 s->n_archs > 1 ? " and others" : "");
    return best;
}

static void *read_kernel(const Running *r, const char *arch, const ExportedKernel *k)
{
    char path[4400];
    int64_t bytes = k->bytes;
    snprintf(path, sizeof path, "%s/%s/%s.%s", r->folder, arch, k->name,
             k->library ? "plan" : "cubin");
    char *image = read_file(path, &bytes);
    if (image && scrimp_checksum(image, bytes) == k->checksum)
        return image;
    if (image)
        rt_error(&error, "%s is not the file that was compiled", path);
    free(image);
    return NULL;
}

static bool load_kernels(Running *r)
{
    int n = r->step->n_kernels, arch = find_arch(r);
    if (arch < 0)
        return false;
    ScrimpDeviceKernel *kernel = rt_alloc(n + 1, sizeof *kernel, &error);
    void **image = rt_alloc(n + 1, sizeof *image, &error);
    bool ok = kernel && image;
    for (int i = 0; i < n && ok; i++) {
        const ExportedKernel *k = &r->step->kernel[(int64_t)arch * n + i];
        image[i] = read_kernel(r, r->step->arch[arch], k);
        kernel[i] = (ScrimpDeviceKernel){k->name, image[i], k->bytes, k->library, k->threads};
        ok = image[i] != NULL;
    }
    r->cuda = ok ? cuda_step_load(r->device, scrimp_step, kernel, n, &error) : NULL;
    for (int i = 0; i < n && image; i++)
        free(image[i]);
    free(image);
    free(kernel);
    return r->cuda != NULL;
}

/* --- the step --- */

static bool is_input(const ExportedTensor *t)
{
    return strcmp(t->kind, "input") == 0;
}

static bool is_output(const ExportedTensor *t)
{
    return strcmp(t->kind, "output") == 0;
}

static bool is_state(const ExportedTensor *t)
{
    return t->init != NULL;
}

typedef bool Choice(const ExportedTensor *t);

static int pieces(const Running *r, Choice *chosen, CudaPiece *out)
{
    int n = 0;
    for (int i = 0; i < r->step->n_tensors; i++) {
        const ExportedTensor *t = &r->step->tensor[i];
        if (chosen(t) && t->offset >= 0) /* else nothing uses it */
            out[n++] = (CudaPiece){t->offset, t->bytes, r->image.base + t->offset};
    }
    return n;
}

static bool open_feed(Running *r)
{
    int most = r->step->n_tensors + 1;
    CudaPiece *in = rt_alloc(most, sizeof *in, &error), *out = rt_alloc(most, sizeof *out, &error);
    if (in && out) {
        int n_in = pieces(r, is_input, in), n_out = pieces(r, is_output, out);
        r->feed = cuda_feed_open(r->device, in, n_in, out, n_out, &error);
    }
    free(in);
    free(out);
    return r->feed != NULL;
}

static bool find_state(Running *r)
{
    r->state = rt_alloc(r->step->n_tensors + 1, sizeof *r->state, &error);
    r->n_state = r->state ? pieces(r, is_state, r->state) : 0;
    return r->state != NULL;
}

static void close_running(Running *r)
{
    if (!r)
        return;
    cuda_feed_close(r->feed);
    cuda_step_unload(r->cuda);
    cuda_device_close(r->device);
    arena_unmap(&r->image);
    free(r->state);
    free(r);
}

static bool open_running(Running *r)
{
    int64_t left;
    r->device = find_folder(r) && same_step(r) ? cuda_device_open(&error) : NULL;
    return r->device && cuda_device_takes(r->device, r->step->driver, &error) &&
           cuda_arena_map(r->device, r->step->arena_bytes, &left, &error) && load_kernels(r) &&
           arena_reserve(&r->image, r->step->arena_bytes, &error) && open_feed(r) && find_state(r);
}

int exported_open(ExportedContext *ctx, const ExportedStep *step)
{
    *ctx = (ExportedContext){0};
    Running *r = rt_alloc(1, sizeof *r, &error);
    if (!r)
        return 0;
    r->step = step;
    if (!open_running(r)) {
        close_running(r);
        return 0;
    }
    cuda_device_leave(r->device);
    *ctx = (ExportedContext){.arena = r->image.base, .device = r};
    return 1;
}

/* Whichever thread calls, and whatever else it uses devices for: what it had is there again behind
 * each of these functions. */
static bool enter(const Running *r)
{
    return r ? cuda_device_enter(r->device, &error) : rt_error(&error, "the step is not open");
}

void exported_close(ExportedContext *ctx)
{
    if (ctx->device && enter(ctx->device))
        close_running(ctx->device);
    *ctx = (ExportedContext){0};
}

static bool run(const Running *r)
{
    return cuda_feed_send(r->feed, &error) && cuda_feed_place(r->feed, &error) &&
           cuda_step_run(r->cuda, &error) && cuda_feed_return(r->feed, &error) &&
           cuda_feed_wait(r->feed, &error);
}

static bool send_state(const Running *r)
{
    return cuda_write_pieces(r->device, r->state, r->n_state, &error);
}

static bool fetch_state(const Running *r)
{
    return cuda_read_pieces(r->device, r->state, r->n_state, &error);
}

typedef bool Use(const Running *r);

static int use(ExportedContext *ctx, Use *what)
{
    const Running *r = ctx->device;
    if (!enter(r))
        return 0;
    bool ok = what(r);
    cuda_device_leave(r->device);
    return ok;
}

int exported_run(ExportedContext *ctx)
{
    return use(ctx, run);
}

int exported_send(ExportedContext *ctx)
{
    return use(ctx, send_state);
}

int exported_fetch(ExportedContext *ctx)
{
    return use(ctx, fetch_state);
}
