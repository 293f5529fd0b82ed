/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Objects that are loaded from memory: two of them at once, whatever becomes of the file they were
 * read from, damaged ones, and without files in memory. */
#include "codegen/build/image.h"

#include "check.h"
#include "codegen/build/fd.h"
#include "codegen/build/scratch.h"
#include "codegen/build/workers.h"
#include "codegen/jit/jit.h"
#include "runtime/abi.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct Job {
    const char *path[2];
} Job;

/* A kernel that writes its number. */
static bool build(void *user, int index, char *message, size_t size)
{
    const Job *job = user;
    const char *error = "";
    Jit *j = jit_new(target_find(NULL), false);
    jit_kernel_begin(j, "number");
    jit_store(j, jit_buf(j, 0, jit_types(j)->p_i32), jit_i64(j, 0), jit_i32(j, 40 + index));
    jit_kernel_end(j);
    bool ok = jit_write_shared(j, job->path[index], NULL, 0, &error);
    snprintf(message, size, "%s", error);
    jit_free(j);
    return ok;
}

static const char *name(void *user, int index)
{
    (void)user, (void)index;
    return "a number";
}

static int number(const Image *image)
{
    int32_t out = 0;
    char *buf[] = {(char *)&out};
    ScrimpKernel *kernel;
    void *symbol = image_symbol(image, "number");
    memcpy(&kernel, &symbol, sizeof symbol);
    if (kernel)
        kernel(buf, 0, 1, NULL);
    return out;
}

static void test_two(Pool *pool, char *const bytes[2], const size_t n[2])
{
    Image a, b;
    const char *error = "";
    for (int round = 0; round < 3; round++) {
        CHECK_MSG(image_load(pool, bytes[0], n[0], &a, &error), "%s", error);
        CHECK_MSG(image_load(pool, bytes[1], n[1], &b, &error), "%s", error);
        CHECK(number(&a) == 40 && number(&b) == 41);
        image_unload(&a);
        CHECK(number(&b) == 41);
        CHECK(image_load(pool, bytes[0], n[0], &a, &error) && number(&a) == 40);
        image_unload(&b);
        image_unload(&a);
        image_unload(&a);
    }
}

static void test_damaged(Pool *pool, const char *bytes, size_t n)
{
    Image image;
    const char *error = NULL;
    CHECK(!image_load(pool, bytes, 0, &image, &error) && error);
    CHECK(!image_load(pool, bytes, 60, &image, &error));
    CHECK(!image_load(pool, "rubbish", 7, &image, &error) && strstr(error, "cannot load"));
    CHECK(image_load(pool, bytes, n, &image, &error) && number(&image) == 40);
    image_unload(&image);
}

/* From here on memfd_create is refused, as some systems do. */
static bool refuse_memfd(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(void)
{
    Pool *pool = pool_new();
    Scratch s;
    const char *error = "";
    char folder[] = "/tmp/scrimp-test-XXXXXX", *bytes[2];
    size_t n[2];
    if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1) != 0 || !scratch_open(pool, &s, &error))
        return 1;
    Job job = {{scratch_path(pool, &s, "a", "so"), scratch_path(pool, &s, "b", "so")}};
    Workers w = {.n_jobs = 2, .job = build, .name = name, .user = &job, .tmpdir = s.dir};
    CHECK_MSG(workers_run(pool, &w, &error), "%s", error);
    for (int i = 0; i < 2; i++) {
        bytes[i] = fd_read_path(pool, job.path[i], 1 << 20, &n[i]);
        if (!bytes[i])
            return 1;
    }
    scratch_close(&s);
    test_two(pool, bytes, n);
    test_damaged(pool, bytes[0], n[0]);
    if (refuse_memfd()) {
        test_two(pool, bytes, n);
        test_damaged(pool, bytes[0], n[0]);
    } else {
        printf("skipped: no filters for system calls here\n");
    }
    CHECK_MSG(rmdir(folder) == 0, "%s holds something", folder);
    pool_free(pool);
    return test_result();
}
