/* SPDX-License-Identifier: GPL-3.0-or-later */
/* NVIDIA's libraries in folders of their own, as Python's packages have them: SCRIMP_CUDA_PATH
 * lists them, and the first folder that has a library is taken. */
#include "check.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/find.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/scrimp-find-XXXXXX";

static bool in_folder(const char *command)
{
    char line[4200];
    snprintf(line, sizeof line, "cd %s && %s", folder, command);
    return system(line) == 0;
}

/* %s: the folder of this test. */
static void list(const char *format)
{
    char path[512];
    snprintf(path, sizeof path, format, folder, folder, folder);
    setenv("SCRIMP_CUDA_PATH", path, 1);
}

/* The file that is opened by one of these names, within the folder of this test. */
static const char *found(const char *name, const char *other)
{
    const char *const names[] = {name, other, NULL};
    void *address;
    Dl_info is = {0};
    void *library = cuda_find_library(names);
    if (!library || cuda_find_symbols(library, &(CudaSymbol){"nvrtcVersion", 0}, 1, &address))
        return "none";
    size_t n = strlen(folder);
    return dladdr(address, &is) && strncmp(is.dli_fname, folder, n) == 0 ? is.dli_fname + n : "";
}

static void expect(const char *path, const char *name, const char *other, const char *file)
{
    list(path);
    CHECK_MSG(strcmp(found(name, other), file) == 0, "%s: %s instead of %s", path,
              found(name, other), file);
}

static bool is_within(void *library, const char *file)
{
    Dl_info is = {0};
    void *address = library ? dlsym(library, "cuInit") : NULL;
    size_t n = strlen(folder);
    return address && dladdr(address, &is) && strncmp(is.dli_fname, folder, n) == 0 &&
           strcmp(is.dli_fname + n, file) == 0;
}

/* A stub where there is no driver: neither listed nor the system's. */
static void test_stub(void)
{
    setenv("CUDA_HOME", folder, 1);
    list("%s/a");
    if (!dlopen("libcuda.so.1", RTLD_NOW))
        CHECK(is_within(cuda_find_driver_or_stub(), "/lib64/stubs/libcuda.so"));
    list("%s/a:%s/b");
    CHECK(is_within(cuda_find_driver_or_stub(), "/b/libcuda.so.1"));
}

int main(void)
{
    RtError err = {"no message"};
    CHECK(mkdtemp(folder));
    CHECK(in_folder("mkdir a b && cp $SCRIMP_BUILD/cuda-sim/libcuda.so.1 b && "
                    "cp $SCRIMP_BUILD/cuda-sim/libnvrtc.so a/libscrimp-x.so.2 && "
                    "cp $SCRIMP_BUILD/cuda-sim/libnvrtc.so b/libscrimp-x.so && "
                    "cp $SCRIMP_BUILD/cuda-sim/libnvrtc.so b/libscrimp-y.so"));
    CHECK(in_folder("mkdir -p lib64/stubs && cp b/libcuda.so.1 lib64/stubs/libcuda.so"));
    test_stub();
    expect("%s/b", "libscrimp-x.so", NULL, "/b/libscrimp-x.so");
    expect("%s/a:%s/b", "libscrimp-x.so", "libscrimp-x.so.2", "/a/libscrimp-x.so.2");
    expect("%s/b:%s/a", "libscrimp-x.so.2", "libscrimp-x.so", "/b/libscrimp-x.so");
    expect("%s/a:%s/b", "libscrimp-y.so", NULL, "/b/libscrimp-y.so");
    expect(":/none::%s/b:", "libscrimp-y.so", NULL, "/b/libscrimp-y.so");
    expect("%s/a:/none", "libscrimp-y.so", NULL, "none");
    list("%s/a:%s/b");
    CHECK_MSG(cuda_driver(&err), "%s", err.message);
    CHECK(in_folder("rm -r a b lib64") && remove(folder) == 0);
    return test_result();
}
