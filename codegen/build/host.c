/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/host.h"

#include "codegen/build/job.h"
#include "codegen/jit/jit.h"

const char *host_compiler(Pool *pool, const char *arch, const char **error)
{
    (void)error;
    return pool_printf(pool, "%s|%s", jit_compiler_version(), arch);
}

bool host_compile(const StepProgram *p, int kernel, const char *path, char *message, size_t size)
{
    Jit *j = job_kernel(p, kernel);
    const char *error = NULL;
    bool ok = jit_write_object(j, path, &error);
    return job_end(j, ok, error, message, size);
}
