/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Promise 19: no data race in the thread pool and in generated code.  In the tsan build kernels are
 * instrumented (codegen/jit/jit.c); models large enough for many tasks run on four threads, and a
 * kernel with a planted race must be reported.  In other builds this only runs the models.
 * SCRIMP_RACES: how many of them. */
#include "check.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"

#include "codegen/jit/jit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { TSAN = 1 };
#else
enum { TSAN = 0 };
#endif

/* --- a planted race --- */

/* Every task writes the same element. */
static bool racy_kernel(const char *path)
{
    const char *error = NULL;
    Jit *j = jit_new(target_find(NULL), false);
    const JitTypes *t = jit_types(j);
    jit_kernel_begin(j, "racy");
    JitLoop loop = jit_for(j, jit_task_begin(j), jit_task_end(j), 1, "task");
    jit_store(j, jit_buf(j, 0, t->p_f32), jit_i64(j, 0), jit_f32(j, 1));
    jit_end_for(j, &loop);
    jit_kernel_end(j);
    bool ok = jit_write_shared(j, path, NULL, 0, &error);
    jit_free(j);
    return ok;
}

_Noreturn static void run_racy(const char *path)
{
    float data[16] = {0};
    char *buf[] = {(char *)data};
    ScrimpKernel *kernel = NULL;
    void *handle = dlopen(path, RTLD_NOW), *symbol = handle ? dlsym(handle, "racy") : NULL;
    memcpy(&kernel, &symbol, sizeof kernel);
    Threads *threads = threads_new(4, NULL);
    if (!kernel || !threads || !freopen("/dev/null", "w", stderr))
        _exit(3);
    for (int i = 0; i < 100; i++)
        threads_run(threads, kernel, buf, 4);
    threads_free(threads);
    exit(0); /* the sanitizer changes the status on the way out */
}

static int child_status(void)
{
    int status = 0;
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_race_is_seen(void)
{
    char path[] = "/tmp/scrimp-racy-XXXXXX.so";
    int fd = mkstemps(path, 3);
    CHECK(fd >= 0);
    close(fd);
    if (fork() == 0)
        _exit(racy_kernel(path) ? 0 : 1);
    CHECK(child_status() == 0);
    if (fork() == 0)
        run_racy(path);
    int status = child_status();
    CHECK_MSG(TSAN ? status == 66 : status == 0, "exit code %d", status);
    unlink(path);
}

/* --- models --- */

typedef struct Case {
    const char *file;
    OptionDef defs[5];
    int n_defs;
    int64_t strip_cache; /* as CodegenOptions have it; so small that kernels run in turns */
} Case;

static const Case cases[] = {
    {"convnet", {{"N", "32"}}, 1, 0},
    {"resnet", {{"N", "3"}, {"depth", "18"}, {"size", "64"}, {"classes", "10"}}, 4, 96 << 10},
    {"chargpt", {{"N", "8"}, {"L", "1"}, {"p", "0.1"}}, 3, 0},
    {"resnet", {{"N", "2"}, {"depth", "18"}, {"size", "48"}, {"classes", "10"}}, 4, 0},
};

static char *read_example(Pool *pool, const char *name)
{
    const char *root = getenv("SCRIMP_SOURCE");
    const char *path = pool_printf(pool, "%s/examples/%s.scrimp", root ? root : ".", name);
    FILE *f = fopen(path, "rb");
    char *text = pool_alloc(pool, 100000);
    CHECK_MSG(f && fread(text, 1, 99999, f) > 0, "%s", path);
    if (f)
        fclose(f);
    return text;
}

static bool has_chains(const Step *step)
{
    bool found = false;
    for (int i = 0; i < step->n_calls; i++)
        found = found || strstr(step->calls[i].label, " > ");
    return found;
}

static void run_case(const Case *c)
{
    Pool *pool = pool_new();
    BuildOptions o = {
        .budget = "80%", .defs = c->defs, .n_defs = c->n_defs, .strip_cache = c->strip_cache};
    Built built;
    Running one, four;
    if (model_build(pool, read_example(pool, c->file), &o, &built) && run_open(&one, &built, 1) &&
        run_open(&four, &built, 4)) {
        CHECK(!c->strip_cache || has_chains(built.step));
        run_initialize(&one, 1);
        run_initialize(&four, 1);
        for (int64_t step = 0; step < 2; step++) {
            run_step(&one, 1, step);
            run_step(&four, 1, step);
        }
        const char *where = run_difference(&one, &four);
        CHECK_MSG(!where, "%s: four threads change %s", c->file, where);
        run_close(&one);
        run_close(&four);
        codegen_unload(built.step);
    }
    pool_free(pool);
}

int main(void)
{
    check_race_is_seen();
    int n = sample_number("SCRIMP_RACES", 3);
    for (int i = 0; i < n && i < (int)(sizeof cases / sizeof *cases); i++)
        run_case(&cases[i]);
    return test_result();
}
