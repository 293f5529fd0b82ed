/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Ahead of time for devices: a folder with the host's part, which brings the runtime of a device
 * along, kernels for each architecture, and a manifest, which is written last. */
#include "codegen/build/compile.h"
#include "codegen/build/export_header.h"
#include "codegen/build/exported_object.h"
#include "codegen/build/hash.h"
#include "codegen/build/supports.h"
#include "ir/support/bug.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Export {
    Pool *pool;
    const Graph *graph;
    const MemPlan *plan;
    const CodegenOptions *options;
    const DeviceFiles *files;
    const Target *target; /* of the host's part */
    StepLink link;
    const char *so, *compiler; /* of the first architecture; the host's part is that of all */
    size_t so_bytes;
    StrBuf keys; /* of the steps */
    KernelFile *kernel;
    int n_kernels; /* for each architecture */
} Export;

/* --- building --- */

/* Functions of runtime/cuda/exported.h, and what follows the step's name in what they are called.
 */
static const char *const functions[][2] = {
    {"open_on_device", "exported_open"}, {"run_step", "exported_run"}, {"send", "exported_send"},
    {"fetch", "exported_fetch"},         {"close", "exported_close"},  {"error", "exported_error"}};

enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

static StepLink link_of(Pool *pool, const char *name)
{
    StepLink link = {.n_shown = N_FUNCTIONS};
    const char **shown = POOL_ARRAY(pool, N_FUNCTIONS, const char *);
    const char **inside = POOL_ARRAY(pool, N_FUNCTIONS, const char *);
    for (int i = 0; i < N_FUNCTIONS; i++) {
        shown[i] = pool_printf(pool, "%s_%s", name, functions[i][0]);
        inside[i] = functions[i][1];
    }
    link.shown = shown;
    link.inside = inside;
    link.object = exported_object(&link.object_bytes);
    return link;
}

/* The step for one architecture; equal kernels of a graph are equal for each. */
static bool build_for(Export *e, int arch, const char **error)
{
    BuiltStep built;
    StepTarget to = step_target(e->options, e->target);
    to.arch = e->files->arch[arch];
    StepProgram *p = step_program(e->pool, e->graph, e->plan, to, error);
    if (!p)
        return false;
    p->link = &e->link;
    if (!codegen_build(p, e->options, &built, error))
        return false;
    if (arch == 0) {
        e->so = built.so;
        e->so_bytes = built.so_bytes;
        e->compiler = p->compiler;
        e->n_kernels = p->n_kernels;
        e->kernel =
            POOL_ARRAY(e->pool, (size_t)p->n_kernels * (size_t)e->files->n_archs + 1, KernelFile);
    }
    if (p->n_kernels != e->n_kernels)
        BUG("%d kernels for %s, %d for %s", p->n_kernels, to.arch, e->n_kernels, e->files->arch[0]);
    strbuf_printf(&e->keys, "%s %s\n", to.arch, step_key(p));
    for (int k = 0; k < p->n_kernels; k++) {
        const Call *call = &p->calls[p->first_call[k]];
        e->kernel[arch * e->n_kernels + k] =
            (KernelFile){step_kernel_symbol(p, k), call->library, call->threads, built.image[k],
                         built.image_bytes[k]};
    }
    return true;
}

/* --- the manifest --- */

typedef struct TensorList {
    const Export *of;
    json_t *list;
} TensorList;

static void add_tensor(void *user, ValueId v, const char *kind, const char *what)
{
    TensorList *l = user;
    const Type *t = value_type(l->of->graph, v);
    json_t *dims = json_array();
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(dims, json_integer(t->dim[i]));
    json_array_append_new(l->list, json_pack("{s:s,s:s,s:s,s:o,s:I,s:I}", "kind", kind, "name",
                                             what, "dtype", dtype_name(t->dtype), "dims", dims,
                                             "offset", (json_int_t)l->of->plan->offset[v], "bytes",
                                             (json_int_t)type_bytes(t)));
}

static json_t *kernel_list(const Export *e)
{
    json_t *list = json_array();
    for (int i = 0; i < e->n_kernels * e->files->n_archs; i++) {
        const KernelFile *k = &e->kernel[i];
        const char *arch = e->files->arch[i / e->n_kernels];
        const char *file = pool_printf(e->pool, "%s/%s.%s", arch, k->symbol, kernel_file_kind(k));
        json_t *row = json_pack("{s:s,s:I}", "file", file, "bytes", (json_int_t)k->n);
        if (k->library)
            json_object_set_new(row, "library", json_string(k->library));
        else
            json_object_update_new(
                row, json_pack("{s:s,s:i}", "function", k->symbol, "threads", k->threads));
        json_array_append_new(list, row);
    }
    return list;
}

static const char *manifest(const Export *e, const DeviceSide *device)
{
    TensorList tensors = {e, json_array()};
    export_tensors(e->graph, add_tensor, &tensors);
    const char *driver =
        pool_printf(e->pool, "%d.%d", device->driver / 1000, device->driver % 1000 / 10);
    json_t *o = json_pack(
        "{s:s,s:s,s:s,s:s,s:s,s:s,s:I,s:I,s:o,s:o}", "format", "scrimp.step.1", "key", device->key,
        "name", e->files->name, "model", e->graph->name, "compiler", e->compiler, "oldest_driver",
        driver, "arena_bytes", (json_int_t)e->plan->arena_bytes, "persistent_bytes",
        (json_int_t)e->plan->persistent_bytes, "kernels", kernel_list(e), "tensors", tensors.list);
    char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
    const char *copy = text ? pool_printf(e->pool, "%s\n", text) : NULL;
    free(text);
    json_decref(o);
    return copy;
}

/* --- files --- */

static bool make_folder(const Export *e, const char *path, const char **error)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return true;
    *error = pool_printf(e->pool, "cannot make the folder %s: %s", path, strerror(errno));
    return false;
}

static const char *arch_folder(const Export *e, int arch)
{
    return pool_printf(e->pool, "%s/%s", e->files->folder, e->files->arch[arch]);
}

static bool write_kernels(const Export *e, int arch, const char **error)
{
    const char *folder = arch_folder(e, arch);
    bool ok = make_folder(e, folder, error);
    for (int i = 0; i < e->n_kernels && ok; i++) {
        const KernelFile *k = &e->kernel[arch * e->n_kernels + i];
        const char *path = pool_printf(e->pool, "%s/%s.%s", folder, k->symbol, kernel_file_kind(k));
        ok = codegen_write(e->pool, path, k->bytes, k->n, 0666, error);
    }
    return ok;
}

static bool is_kernel(const Export *e, int arch, const char *file)
{
    for (int i = 0; i < e->n_kernels; i++) {
        const char *symbol = e->kernel[arch * e->n_kernels + i].symbol;
        if (strncmp(file, symbol, strlen(symbol)) == 0)
            return true;
    }
    return false;
}

/* Kernels of an earlier export, which nothing names any more.  What cannot be removed stays. */
static void remove_old(const Export *e, int arch)
{
    const char *folder = arch_folder(e, arch);
    DIR *dir = opendir(folder);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        size_t n = strlen(d->d_name), key = strspn(d->d_name + (n > 2 ? 2 : 0), "0123456789abcdef");
        bool ours = strncmp(d->d_name, "k_", 2) == 0 && key == 32 &&
                    (strcmp(d->d_name + 2 + key, ".cubin") == 0 ||
                     strcmp(d->d_name + 2 + key, ".plan") == 0);
        if (ours && !is_kernel(e, arch, d->d_name))
            unlink(pool_printf(e->pool, "%s/%s", folder, d->d_name));
    }
    if (dir)
        closedir(dir);
}

/* The manifest goes first and comes last: what was cut off in between is no step. */
static bool write_files(const Export *e, const DeviceSide *device, const char **error)
{
    const DeviceFiles *f = e->files;
    const char *header = export_header(e->pool, e->graph, e->plan, f->name, f->inference, device);
    const char *facts = manifest(e, device);
    const char *so = pool_printf(e->pool, "%s/%s.so", f->folder, f->name);
    const char *manifest_path = pool_printf(e->pool, "%s/manifest.json", f->folder);
    bool ok = facts != NULL;
    if (!ok)
        *error = "out of memory for the manifest";
    else
        unlink(manifest_path);
    for (int i = 0; i < f->n_archs && ok; i++)
        ok = write_kernels(e, i, error);
    ok = ok && codegen_write(e->pool, so, e->so, e->so_bytes, 0777, error) &&
         codegen_write(e->pool, f->header_path, header, strlen(header), 0666, error) &&
         codegen_write(e->pool, manifest_path, facts, strlen(facts), 0666, error);
    for (int i = 0; i < f->n_archs && ok; i++)
        remove_old(e, i);
    return ok;
}

bool codegen_export_device(Pool *pool, const Graph *g, const MemPlan *plan, const CodegenOptions *o,
                           const DeviceFiles *files, const char **error)
{
    Export e = {.pool = pool,
                .graph = g,
                .plan = plan,
                .options = o,
                .files = files,
                .target = codegen_target(pool, o->march, false, error),
                .link = link_of(pool, files->name),
                .keys = strbuf_new(pool)};
    *error = e.target ? codegen_unsupported_by(pool, o->backend, g) : *error;
    bool ok = e.target && !*error && make_folder(&e, files->folder, error);
    for (int i = 0; i < files->n_archs && ok; i++)
        ok = build_for(&e, i, error);
    if (!ok)
        return false;
    const DeviceSide empty = {.key = "", .arch = files->arch};
    strbuf_put(&e.keys, export_header(pool, g, plan, files->name, files->inference, &empty));
    const DeviceSide device = {.key = content_key(pool, e.keys.text, e.keys.len),
                               .driver = o->backend->driver ? o->backend->driver() : 0,
                               .arch = files->arch,
                               .n_archs = files->n_archs,
                               .n_kernels = e.n_kernels,
                               .kernel = e.kernel};
    return write_files(&e, &device, error);
}
