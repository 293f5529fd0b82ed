/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The emitter itself: a kernel with loops, branches, helpers, vectors and tails, run for every
 * target of this host and compared with the same computation in C. */
#include "codegen/jit/jit.h"
#include "ir/support/pool.h"
#include "runtime/abi.h"

#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 37 };

/* abs-like helper made while the kernel is open: |v| as max(v, -v) with a branch. */
static JitFunction helper(Jit *j)
{
    JitFunction f = jit_function_lookup(j, "magnitude");
    if (f)
        return f;
    const JitTypes *t = jit_types(j);
    const JitType types[] = {t->f32};
    f = jit_function_begin(j, "magnitude", t->f32, 1, types);
    JitVar v = jit_var(j, t->f32, "v");
    jit_set(j, v, jit_param(j, 0));
    JitIf s = jit_if(j, jit_compare(j, JIT_LT, jit_get(v), jit_f32(j, 0)));
    jit_set(j, v, jit_neg(j, jit_get(v)));
    jit_else(j, &s);
    jit_set(j, v, jit_add(j, jit_get(v), jit_f32(j, 1)));
    jit_end_if(j, &s);
    jit_function_return(j, jit_get(v));
    return f;
}

/* y[i] = 3 x[i] + i-th lane pattern, by vectors with a partial tail; then z[task] =
 * helper(x[task]). */
static void emit(Jit *j)
{
    const JitTypes *t = jit_types(j);
    int w = jit_lanes(j);
    JitValue x = jit_buf(j, 0, t->p_f32), y = jit_buf(j, 1, t->p_f32);
    JitLoop task = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    JitValue z = jit_buf(j, 2, t->p_f32);
    const JitValue arg = jit_load(j, x, jit_index(&task));
    jit_store(j, z, jit_index(&task), jit_call(j, helper(j), 1, &arg));
    jit_end_for(j, &task);
    JitLoop l = jit_for(j, jit_i64(j, 0), jit_i64(j, N), w, "i");
    JitValue n = jit_min_i64(j, jit_i64(j, w), jit_sub(j, jit_i64(j, N), jit_index(&l)));
    JitValue v = jit_vload_partial(j, x, jit_index(&l), n, 7);
    v = jit_tmp(j, jit_add(j, jit_mul(j, v, jit_vf(j, 3)), jit_splat(j, jit_lane(j, v, 1))));
    jit_vstore_partial(j, y, jit_index(&l), n, v);
    jit_end_for(j, &l);
    JitValue xi = jit_buf(j, 3, t->p_i32);
    jit_vstore(j, xi, jit_i64(j, 1), jit_shl(j, jit_vload(j, xi, jit_i64(j, 1)), jit_vi(j, 2)));
    jit_store(j, xi, jit_i64(j, 0), jit_not(j, jit_cast(j, jit_i64(j, 5), t->i32)));
}

/* In a child: libgccjit leaks a little. */
static void compile(const Target *target, const char *path)
{
    Jit *j = jit_new(target, false);
    jit_kernel_begin(j, "k");
    emit(j);
    jit_kernel_end(j);
    const char *error = "";
    bool ok = jit_write_shared(j, path, NULL, 0, &error);
    if (!ok)
        fprintf(stderr, "%s\n", error);
    _exit(ok ? 0 : 1);
}

static ScrimpKernel *build(const Target *target, void **handle)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/scrimp_test_jit_%d.so", (int)getpid());
    pid_t child = fork();
    if (child == 0)
        compile(target, path);
    int status = 1;
    waitpid(child, &status, 0);
    *handle = status == 0 ? dlopen(path, RTLD_NOW) : NULL;
    unlink(path);
    ScrimpKernel *kernel = NULL;
    void *symbol = *handle ? dlsym(*handle, "k") : NULL;
    memcpy(&kernel, &symbol, sizeof symbol);
    return kernel;
}

static void test_target(const Target *target)
{
    void *handle;
    ScrimpKernel *kernel = build(target, &handle);
    CHECK(kernel);
    if (!kernel)
        return;
    float x[N], y[N], z[N];
    int32_t xi[40];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i - 20) * 0.5f;
        z[i] = -100;
    }
    for (int i = 0; i < 40; i++)
        xi[i] = i;
    char *bufs[] = {(char *)x, (char *)y, (char *)z, (char *)xi};
    kernel(bufs, 3, 30, NULL);
    int w = target->vector_floats;
    for (int i = 0; i < N; i++) {
        int second = i / w * w + 1;
        CHECK(y[i] == 3 * x[i] + (second < N ? x[second] : 7));
        float expect = i < 3 || i >= 30 ? -100 : x[i] < 0 ? -x[i] : x[i] + 1;
        CHECK(z[i] == expect);
    }
    CHECK(xi[0] == ~5 && xi[1] == 4 && xi[w] == 4 * w && xi[w + 1] == w + 1);
    dlclose(handle);
}

int main(void)
{
    for (const char *const *name = target_names(); *name; name++)
        if (target_runs_here(target_find(*name)))
            test_target(target_find(*name));
    return test_result();
}
