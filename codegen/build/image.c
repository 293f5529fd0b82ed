/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/image.h"

#include "codegen/build/fd.h"
#include "codegen/build/scratch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A file in memory that nobody else can name, cut or change from here on; -1 where the system has
 * none. */
static int sealed_copy(const void *bytes, size_t n)
{
    int fd = memfd_create("scrimp-step", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (fd_write(fd, bytes, n) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
        return fd;
    close(fd);
    return -1;
}

static void *open_object(Pool *pool, const char *path, const char **error)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *why = handle ? NULL : dlerror();
    if (!handle)
        *error = pool_printf(pool, "%s", why ? why : "it cannot be loaded");
    return handle;
}

/* The file stays open as long as it is loaded: two objects of one name would be one for dlopen. */
static bool load_sealed(Pool *pool, const void *bytes, size_t n, Image *out, const char **error)
{
    int fd = sealed_copy(bytes, n);
    if (fd < 0) {
        *error = pool_printf(pool, "%s", strerror(errno));
        return false;
    }
    void *handle = open_object(pool, pool_printf(pool, "/proc/self/fd/%d", fd), error);
    if (handle)
        *out = (Image){handle, fd};
    else
        close(fd);
    return handle != NULL;
}

/* Without memfd_create or /proc: a file in a folder of this process, which is gone once it is
 * mapped. */
static bool load_file(Pool *pool, const void *bytes, size_t n, Image *out, const char **error)
{
    Scratch s;
    if (!scratch_open(pool, &s, error))
        return false;
    const char *path = scratch_path(pool, &s, "step", "so");
    bool ok = fd_create(path, bytes, n);
    if (!ok)
        *error = pool_printf(pool, "cannot write %s: %s", path, strerror(errno));
    void *handle = ok ? open_object(pool, path, error) : NULL;
    scratch_close(&s);
    *out = (Image){handle, -1};
    return handle != NULL;
}

bool image_load(Pool *pool, const void *bytes, size_t n, Image *out, const char **error)
{
    const char *first;
    if (load_sealed(pool, bytes, n, out, &first) || load_file(pool, bytes, n, out, error))
        return true;
    *error = pool_printf(pool, "cannot load compiled code: %s; %s", first, *error);
    return false;
}

void *image_symbol(const Image *image, const char *name)
{
    return dlsym(image->handle, name);
}

void image_unload(Image *image)
{
    if (image->handle)
        dlclose(image->handle);
    if (image->handle && image->file >= 0)
        close(image->file);
    *image = (Image){NULL, -1};
}
