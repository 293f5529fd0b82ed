/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/build/job.h"

#include "codegen/jit/jit.h"

#include <stdio.h>

Jit *job_kernel(const StepProgram *p, int kernel)
{
    const Call *call = &p->calls[p->first_call[kernel]];
    Jit *j = jit_new(p->target, call->contract);
    jit_kernel_begin(j, step_kernel_symbol(p, kernel));
    call_emit(call, j);
    jit_kernel_end(j);
    return j;
}

bool job_end(Jit *j, bool written, const char *error, char *message, size_t size)
{
    if (!written)
        snprintf(message, size, "%s", error);
    jit_free(j);
    return written;
}
