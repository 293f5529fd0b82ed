/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The real NVRTC compiles every kernel of the examples that have CUDA code, in f32 and in bf16, for
 * several architectures, and none of them spills registers; those of max pooling for larger
 * windows, too.  Skipped where there is no NVRTC.  SCRIMP_ARCH names the architecture.
 * SCRIMP_ALL=1: all examples, else mlp in f32, chargpt and convnet in bf16.  A kernel that several
 * have is compiled once. */
#include "check.h"
#include "codegen/cuda/nvrtc.h"
#include "ir/support/map.h"
#include "ir/support/vec.h"
#include "tests/support/output.h"
#include "tests/support/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const examples[] = {
    "mlp.scrimp",           "chargpt.scrimp",   "convnet.scrimp",  "gpt2.scrimp -D N=1 -D T=64",
    "vae.scrimp",           "ffn.scrimp",       "lstm_ptb.scrimp", "transformer.scrimp",
    "resnet.scrimp -D N=4", "unet.scrimp",      "vgg.scrimp",      "densenet.scrimp",
    "alexnet.scrimp",       "googlenet.scrimp", "pspnet.scrimp",   "inception_v3.scrimp",
    "nascell.scrimp"};
static const char windows[] = "../tests/cuda/windows.scrimp";

/* The architecture, and the texts of kernels that were compiled. */
typedef struct Compiled {
    Pool *pool;
    const char *arch;
    VEC(uint64_t) seen;
} Compiled;

/* "Used 40 registers, 0 bytes spill ...": the first number before "bytes spill stores". */
static int spilled(const char *messages)
{
    const char *at = strstr(messages, " bytes spill stores");
    if (!at)
        return -1;
    while (at > messages && at[-1] >= '0' && at[-1] <= '9')
        at--;
    return atoi(at);
}

static void compile_kernel(Pool *pool, const char *name, const char *text, const char *arch)
{
    size_t bytes;
    const char *messages = "";
    bool ok = nvrtc_compile(pool, text, arch, &bytes, &messages) != NULL;
    CHECK_MSG(ok, "%s for %s: %s", name, arch, messages);
    if (ok)
        CHECK_MSG(spilled(messages) == 0, "%s for %s spills: %s", name, arch, messages);
}

static bool is_new(Compiled *c, const char *text)
{
    uint64_t hash = hash_bytes(text, strlen(text), 0);
    for (size_t i = 0; i < c->seen.len; i++)
        if (c->seen.data[i] == hash)
            return false;
    vec_push(c->pool, &c->seen, hash);
    return true;
}

/* Kernels are what follows a line "/ * kernel K: label * /". */
static int compile_kernels(Compiled *c, Pool *pool, char *text)
{
    int n = 0;
    for (char *k = strstr(text, "\n/* kernel "), *next; k; k = next, n++) {
        next = strstr(k + 1, "\n/* kernel ");
        size_t length = next ? (size_t)(next - k) : strlen(k), line = 1 + strcspn(k + 1, "\n");
        const char *one = pool_printf(pool, "%.*s", (int)(length - line), k + line);
        if (is_new(c, one))
            compile_kernel(pool, pool_printf(pool, "%.*s", (int)line - 1, k + 1), one, c->arch);
    }
    return n;
}

static void compile_all(Compiled *c, Pool *pool, const char *example, char *text)
{
    size_t before = c->seen.len;
    int n = compile_kernels(c, pool, text);
    CHECK_MSG(n > 3, "%s has %d kernels", example, n);
    printf("%s: %d kernels for %s, %zu of them new\n", example, n, c->arch, c->seen.len - before);
    fflush(stdout);
}

/* The command that prints the kernels of an example, of a copy of it for bf16. */
static const char *dump_command(Pool *pool, const char *example, const char *arch, bool bf16)
{
    int name = (int)strcspn(example, " ");
    const char *dump =
        pool_printf(pool, "%s/scrimp dump --stage=cuda --exact --device %s 2>/dev/null",
                    getenv("SCRIMP_BUILD"), arch);
    const char *folder = pool_printf(pool, "%s/examples", getenv("SCRIMP_SOURCE"));
    if (!bf16)
        return pool_printf(pool, "%s %s/%s", dump, folder, example);
    return pool_printf(pool,
                       "d=$(mktemp -d) && cp -r %s/blocks $d && sed 's/^train {/train {\\n  "
                       "precision = bf16/' %s/%.*s > $d/copy.scrimp && "
                       "%s --budget 100%% $d/copy.scrimp%s; code=$?; rm -r $d; exit $code",
                       folder, folder, name, example, dump, example + name);
}

static void test_example(Compiled *c, const char *example, bool bf16)
{
    Pool *pool = pool_new();
    const char *command = dump_command(pool, example, c->arch, bf16);
    char *text = output_of(pool, command);
    CHECK_MSG(text, "%s fails", command);
    if (text) {
        CHECK_MSG((strstr(text, "#define BF16_0 1\n") != NULL) == bf16, "%s", command);
        compile_all(c, pool, pool_printf(pool, "%s in %s", example, bf16 ? "bf16" : "f32"), text);
    }
    pool_free(pool);
}

int main(void)
{
    Pool *pool = pool_new();
    const char *error = "", *arch = getenv("SCRIMP_ARCH");
    Compiled c = {.pool = pool, .arch = arch ? arch : "sm_90"};
    unsetenv("SCRIMP_CUDA_PATH");
    const char *compiler = nvrtc_compiler(pool, c.arch, &error);
    if (!compiler) {
        printf("skipped: %s\n", error);
        return 77;
    }
    printf("%s\n", compiler);
    size_t n = sizeof examples / sizeof *examples;
    for (size_t e = 0; e < (sample_all() ? n : 3); e++) {
        if (sample_all() || e == 0)
            test_example(&c, examples[e], false);
        if (sample_all() || e > 0)
            test_example(&c, examples[e], true);
    }
    test_example(&c, windows, false);
    test_example(&c, windows, true);
    pool_free(pool);
    return test_result();
}
