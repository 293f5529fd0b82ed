/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Functions that GCC leaves apart, and kernels within kernels. */
#include "codegen/jit/jit.h"

void jit_call_apart(Jit *j, JitFunction f, int n, const JitType *types, const JitValue *args)
{
    static const char *const in[] = {"0"};
    JitValue pointer = jit_function_pointer(j, f);
    pointer = jit_asm(j, "", jit_type_of(pointer), "=r", 1, &pointer, in);
    jit_call_pointer_void(j, pointer, n, types, args);
}

enum { KERNEL_PARAMS = 4 };

static void kernel_types(Jit *j, JitType *types)
{
    const JitTypes *t = jit_types(j);
    types[0] = jit_pointer_to(j, t->p_char);
    types[1] = types[2] = t->i64;
    types[3] = t->p_char;
}

JitFunction jit_inner_kernel_begin(Jit *j, const char *name)
{
    JitType types[KERNEL_PARAMS];
    kernel_types(j, types);
    JitFunction f = jit_function_begin(j, name, jit_types(j)->none, KERNEL_PARAMS, types);
    jit_function_is_kernel(j);
    return f;
}

void jit_inner_kernel_call(Jit *j, JitFunction f, JitValue bufs, JitValue begin, JitValue end,
                           JitValue scratch)
{
    JitType types[KERNEL_PARAMS];
    kernel_types(j, types);
    const JitValue args[KERNEL_PARAMS] = {bufs, begin, end, scratch};
    jit_call_apart(j, f, KERNEL_PARAMS, types, args);
}
