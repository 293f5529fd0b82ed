/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The real cuDNN plans every convolution of the examples without a device, and every attention
 * without dropout and bias in bf16, and wants the workspace that the step's plan has for it.
 * Skipped where there is no cuDNN.  SCRIMP_ALL=1: all examples, for several architectures and all
 * precisions, else, for sm_90, ResNet-50 and U-Net in f32, and chargpt and gpt2. */
#include "check.h"
#include "codegen/cuda/library/cudnn_ask.h"
#include "codegen/cuda/library/cudnn_device.h"
#include "codegen/cuda/library/library.h"
#include "codegen/cuda/nvrtc.h"
#include "passes/memplan/memplan.h"
#include "runtime/cuda/find.h"
#include "runtime/cuda/library.h"
#include "tests/support/output.h"
#include "tests/support/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const examples[] = {
    "resnet.scrimp",    "unet.scrimp",   "convnet.scrimp",      "vgg.scrimp",     "densenet.scrimp",
    "googlenet.scrimp", "pspnet.scrimp", "inception_v3.scrimp", "alexnet.scrimp", "nascell.scrimp"};
static const char *const transformers[] = {"chargpt.scrimp", "gpt2.scrimp",
                                           "transformer.scrimp -D p=0.0",
                                           "transformer.scrimp -D p=0.0 -D size_name=big"};
static const char *const architectures[] = {"sm_90", "sm_80", "sm_100"};

static char *dump_of(Pool *pool, const char *stage, const char *example, const char *arch)
{
    const char *command = pool_printf(
        pool, "%s/scrimp dump --stage=%s --fast --no-loc --device %s %s/examples/%s 2>/dev/null",
        getenv("SCRIMP_BUILD"), stage, arch, getenv("SCRIMP_SOURCE"), example);
    char *text = output_of(pool, command);
    CHECK_MSG(text, "%s fails", command);
    return text;
}

/* --- one problem --- */

/* An execution plan of what was chosen, as the runtime makes it, for a device that is not here.
 * That of attention is compiled, and loaded into the driver: its engine's configuration says what
 * it wants. */
static int64_t plan_workspace(const CudnnProblem *p, const CudnnChoice *choice, const char *arch,
                              RtError *err)
{
    CudnnChoice again = {0};
    char json[1024];
    int64_t workspace = -1;
    const Cudnn *cudnn = cudnn_api(err);
    cudnn_device_json(json, sizeof json, atoi(arch + 3), cudnn->version);
    const CudnnPlanner by = {.cudnn = cudnn, .device = cudnn_device(cudnn, json, err)};
    if (!by.device)
        return -1;
    CudnnPlan *plan = NULL;
    if (!cudnn_is_attention(p))
        plan = cudnn_plan_make(&by, p, choice, &workspace, err);
    else if (cudnn_choose(&by, p, &again, err) && again.engine == choice->engine)
        workspace = again.workspace;
    cudnn_plan_free(plan);
    cudnn->object_destroy(by.device);
    return plan || cudnn_is_attention(p) ? workspace : -1;
}

/* reserved: the plan has exactly that for it; -1: another precision than the step's. */
static void plan_one(Pool *pool, const CudnnProblem *p, const char *arch, const char *label,
                     int64_t reserved)
{
    const char *error = "";
    RtError err = {"no message"};
    CudnnProblem asked;
    CudnnChoice choice = {0};
    const char *plan = cudnn_library.plan(pool, p, arch, &error);
    CHECK_MSG(plan && cuda_plan_read_cudnn(plan, (int64_t)strlen(plan), &asked, &choice, &err) &&
                  choice.version == cudnn_version(),
              "%s for %s, precision %d: %s", label, arch, (int)p->arithmetic, error);
    if (!plan)
        return;
    int64_t workspace = plan_workspace(p, &choice, arch, &err);
    CHECK_MSG(workspace >= 0, "%s for %s: %s", label, arch, err.message);
    int64_t planned = (workspace + MEMPLAN_ALIGN - 1) / MEMPLAN_ALIGN * MEMPLAN_ALIGN;
    CHECK_MSG(reserved < 0 || planned == reserved, "%s for %s: %lld bytes of workspace, not %lld",
              label, arch, (long long)workspace, (long long)reserved);
}

static void plan_all(Pool *pool, CudnnProblem p, const char *arch, const char *label)
{
    plan_one(pool, &p, arch, label, p.workspace);
    if (cudnn_is_attention(&p))
        return;
    p.workspace = INT64_MAX;
    for (p.arithmetic = CUDNN_TF32; sample_all() && p.arithmetic <= CUDNN_BF16; p.arithmetic++)
        plan_one(pool, &p, arch, label, -1);
}

/* --- an example --- */

/* A kernel is what follows a line "/ * kernel K: label", up to the next. */
static int plan_kernels(Pool *pool, char *text, const char *arch)
{
    int n = 0;
    for (char *k = strstr(text, "\n/* kernel "), *next; k; k = next) {
        CudnnProblem p = {0};
        char *line = strchr(k + 1, '\n');
        next = strstr(k + 1, "\n/* kernel ");
        *line = '\0';
        if (!strstr(k + 1, ", by cudnn"))
            continue;
        bool ok = cudnn_read_problem(line + 1, line + 1 + strlen(line + 1), &p);
        CHECK_MSG(ok, "%s cannot be read", k + 1);
        if (ok)
            plan_all(pool, p, arch, k + 1);
        n++;
    }
    return n;
}

/* Lines of operations that libraries do not compute. */
static int own_convolutions(const char *text)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, "conv2d")); at++) {
        const char *library = strstr(at, "library="), *end = strchr(at, '\n');
        bool operation = at[-1] == ' ' || strncmp(at - 3, " de", 3) == 0;
        n += operation && (!library || (end && library > end));
    }
    return n;
}

static void test_example(const char *example, const char *arch)
{
    Pool *pool = pool_new();
    char *text = dump_of(pool, "cuda", example, arch);
    char *plan = dump_of(pool, "plan", example, arch);
    if (text && plan) {
        int n = plan_kernels(pool, text, arch);
        CHECK_MSG(n >= 4, "cuDNN computes %d convolutions of %s", n, example);
        CHECK_MSG(own_convolutions(plan) == 0, "%d convolutions of %s are not for libraries",
                  own_convolutions(plan), example);
        printf("%s: %d convolutions for %s\n", example, n, arch);
    }
    pool_free(pool);
}

/* Lines of attention without a bias, and its gradient, that no library computes. */
static int own_attentions(char *text)
{
    int n = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *inputs = strstr(line, " = attention");
        int commas = 0;
        for (const char *at = inputs; at && *at && *at != '{' && *at != ':'; at++)
            commas += *at == ',';
        bool biased = inputs && commas > (strstr(inputs, "_grad ") ? 5 : 2);
        n += inputs && !biased && !strstr(inputs, "library=\"cudnn\"");
    }
    return n;
}

static char *dump_of_copy(Pool *pool, const char *stage, const char *example, const char *arch)
{
    const int name = (int)strcspn(example, " ");
    char *text = output_of(
        pool,
        pool_printf(pool,
                    "d=$(mktemp -d) && sed 's/^train {/train {\\n  precision = bf16/' "
                    "%s/examples/%.*s > $d/%.*s && %s/scrimp dump --stage=%s --fast --no-loc "
                    "--budget 100%% --device %s $d/%s 2>/dev/null; code=$?; rm -r $d; exit $code",
                    getenv("SCRIMP_SOURCE"), name, example, name, example, getenv("SCRIMP_BUILD"),
                    stage, arch, example));
    CHECK_MSG(text, "%s in bf16 has no %s", example, stage);
    return text;
}

/* Where neither a driver nor a stub is, no attention is planned. */
static void test_attention(const char *example, const char *arch)
{
    Pool *pool = pool_new();
    char *text = dump_of_copy(pool, "cuda", example, arch);
    char *plan = dump_of_copy(pool, "plan", example, arch);
    if (text && plan) {
        int n = plan_kernels(pool, text, arch), own = own_attentions(plan);
        CHECK_MSG(n >= 2, "cuDNN computes %d attentions of %s", n, example);
        CHECK_MSG(own == 0, "%d attentions of %s are not for libraries", own, example);
        printf("%s: %d attentions for %s\n", example, n, arch);
    }
    pool_free(pool);
}

/* --- scrimp's own kernels beside the library --- */

/* One of this label, of a dump. */
static void compile_kernel(Pool *pool, char *text, const char *label, const char *arch)
{
    const char *error = "";
    char *k = text ? strstr(text, pool_printf(pool, ": %s */\n", label)) : NULL;
    CHECK_MSG(k, "there is no kernel for %s", label);
    if (k && nvrtc_compiler(pool, arch, &error)) {
        size_t bytes;
        char *next = strstr(k, "\n/* kernel ");
        *next = '\0';
        bool ok = nvrtc_compile(pool, strchr(k, '\n'), arch, &bytes, &error) != NULL;
        CHECK_MSG(ok && strstr(error, " 0 bytes spill stores"), "%s", error);
        *next = '\n';
    }
}

static void test_weights(const char *arch)
{
    Pool *pool = pool_new();
    compile_kernel(pool, dump_of(pool, "cuda", "convnet.scrimp", arch), "weights of conv", arch);
    pool_free(pool);
}

/* Ones beside what a library wrote, and logarithms for a gradient, which is lowered later. */
static void test_rows(const char *arch)
{
    Pool *pool = pool_new();
    static const char label[] = "rows of attention";
    char *text = dump_of_copy(pool, "cuda", transformers[0], arch);
    char *ones = text ? strstr(text, label) : NULL;
    compile_kernel(pool, text, label, arch);
    compile_kernel(pool, ones ? ones + 1 : NULL, label, arch);
    pool_free(pool);
}

int main(void)
{
    unsetenv("SCRIMP_CUDA_PATH");
    const char *missing = cudnn_missing();
    if (missing) {
        printf("skipped: %s\n", missing);
        return 77;
    }
    printf("cuDNN %lld\n", (long long)cudnn_version());
    bool can_attend = cudnn_version() >= CUDNN_ATTENTION_OLDEST && cuda_find_driver_or_stub();
    if (!can_attend)
        printf("no attention: cuDNN is too old, or there is neither a driver nor a stub of it\n");
    size_t n = sample_all() ? sizeof examples / sizeof *examples : 2;
    for (size_t a = 0; a < (sample_all() ? 3 : 1); a++) {
        test_weights(architectures[a]);
        if (can_attend)
            test_rows(architectures[a]);
        for (size_t e = 0; e < n; e++)
            test_example(examples[e], architectures[a]);
        for (size_t e = 0; can_attend && e < (sample_all() ? 4 : 2); e++)
            test_attention(transformers[e], architectures[a]);
    }
    return test_result();
}
