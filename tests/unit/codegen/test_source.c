/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernels of small graphs ask of libgccjit, against source/NAME.expect; UPDATE=1 rewrites
 * these.  For the target "generic", which every machine has; in the order in which gcc evaluates
 * arguments, and in the words of libgccjit 12. */
#include "check.h"
#include "codegen/build/kernel.h"
#include "codegen/jit/jit.h"
#include "tests/support/graph_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Case {
    const char *name, *body;
} Case;

static const Case cases[] = {
    {"point", "  %x = input : f32[3,5]\n  %b = input : f32[5]\n  %y = add %x, %b : f32[3,5]\n"
              "  output y = %y\n"},
    {"reduce", "  %x = input : f32[2,6]\n  %y = sum %x {axes=[1]} : f32[2]\n  output y = %y\n"},
    {"gemm", "  %a = input : f32[2,3]\n  %b = input : f32[3,4]\n  %y = matmul %a, %b : f32[2,4]\n"
             "  output y = %y\n"},
    {"conv", "  %x = input : f32[1,2,2,4]\n  %w = input : f32[1,2,4,4]\n"
             "  %y = conv2d %x, %w {nhwc=true} : f32[1,2,1,4]\n  output y = %y\n"},
};

static const char *file_text(Pool *pool, const char *path)
{
    StrBuf text = strbuf_new(pool);
    char chunk[4097];
    FILE *f = fopen(path, "r");
    for (size_t n; f && (n = fread(chunk, 1, sizeof chunk - 1, f)) > 0;) {
        chunk[n] = '\0';
        strbuf_put(&text, chunk);
    }
    if (f)
        fclose(f);
    return text.text ? text.text : "";
}

static const char *source_of(Pool *pool, const Call *c, const Target *target, const char *path)
{
    Jit *j = jit_new(target, c->contract);
    jit_kernel_begin(j, "kernel");
    call_emit(c, j);
    jit_kernel_end(j);
    jit_write_source(j, path);
    jit_free(j);
    return file_text(pool, path);
}

static const char *case_text(Pool *pool, const Case *c, const char *path)
{
    const Graph *g = graph_of(pool, "forward", c->body);
    Lowering l = {
        .pool = pool, .graph = g, .target = target_find("generic"), .backend = &cpu_backend};
    StrBuf text = strbuf_new(pool);
    lower_graph(&l);
    for (size_t i = 0; i < l.calls.len; i++) {
        const Call *call = &l.calls.data[i];
        strbuf_printf(&text, "/* %s: %lld tasks */\n", call->label, (long long)call->n_tasks);
        strbuf_put(&text, source_of(pool, call, l.target, path));
    }
    return text.text;
}

static void check_case(const Case *c, const char *path)
{
    Pool *pool = pool_new();
    const char *got = case_text(pool, c, path);
    const char *expected_path = pool_printf(pool, "%s/tests/unit/codegen/source/%s.expect",
                                            getenv("SCRIMP_SOURCE"), c->name);
    FILE *f = fopen(getenv("UPDATE") ? expected_path : path, "w");
    CHECK(f && fputs(got, f) >= 0 && fclose(f) == 0);
    bool same = strcmp(file_text(pool, expected_path), got) == 0;
    CHECK_MSG(same, "%s differs", expected_path);
    if (!same)
        (void)!system(pool_printf(pool, "diff -u %s %s | head -n 40 >&2", expected_path, path));
    pool_free(pool);
}

int main(void)
{
    char path[] = "/tmp/scrimp_test_source_XXXXXX";
#ifdef __clang__
    bool comparable = false;
#else
    bool comparable = strncmp(jit_compiler_version(), "libgccjit 12.", 13) == 0;
#endif
    if (!comparable || !getenv("SCRIMP_SOURCE")) {
        fprintf(stderr, "skipped: %s, or built by clang, or no SCRIMP_SOURCE\n",
                jit_compiler_version());
        return 77;
    }
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i], path);
    unlink(path);
    return test_result();
}
