/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The backend for CUDA devices: the lowering rule of every operation, and the text of its kernels
 * through NVRTC. */
#include "codegen/build/fd.h"
#include "codegen/build/step.h"
#include "codegen/cuda/library/library.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/point.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"

#include "ir/support/bug.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static LowerRule *const rules[OP_COUNT] = {
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, access, workspace,     \
           layout, cpu, cuda, ...)                                                                 \
    [OP_##name] = cuda,
#include "ir/ops.def"
#undef OP
};

/* Operations without CUDA code are refused before anything is lowered. */
void cuda_missing(Lowering *l, const Node *node)
{
    (void)l;
    BUG("there is no CUDA code for %s", op_name(node->op));
}

static bool has_code(const Node *n)
{
    for (size_t i = 0; n->body && i < n->body->order.len; i++)
        if (!has_code(graph_node(n->body, n->body->order.data[i])))
            return false;
    return rules[n->op] != cuda_missing;
}

/* "cuda" plans as sm_90 does wherever it runs, so that equal options give equal plans. */
static const char *costs(const char *device)
{
    int number = 0;
    return sscanf(device, "sm_%d", &number) == 1 && number < 90 ? "sm_80" : "sm_90";
}

static const char *text_of(Pool *pool, const StepProgram *p, int kernel)
{
    const Call *call = &p->calls[p->first_call[kernel]];
    StrBuf text = strbuf_new(pool);
    call_text(call, &text, step_kernel_symbol(p, kernel));
    return text.text;
}

static bool names(const StrBuf *text, const char *file)
{
    return text->text && strstr(text->text, pool_printf(text->pool, "\"%s\"", file));
}

/* The fixed parts that kernels of the step include. */
static const char *included(Pool *pool, const StepProgram *p)
{
    DeviceTexts fixed = device_texts_all();
    StrBuf all = strbuf_new(pool), out = strbuf_new(pool);
    for (int k = 0; k < p->n_kernels; k++)
        strbuf_put(&all, text_of(pool, p, k));
    for (int deep = 0; deep < 2; deep++) /* they include others, which may, too */
        for (int i = 0; i < fixed.n; i++)
            if (names(&all, fixed.name[i]))
                strbuf_put(&all, fixed.text[i]);
    for (int i = 0; i < fixed.n; i++)
        if (names(&all, fixed.name[i]))
            strbuf_printf(&out, "/* %s */\n%s\n", fixed.name[i], fixed.text[i]);
    return out.text ? out.text : "";
}

/* A kernel, or a library's plan. */
static const void *image_of(const StepProgram *p, int kernel, size_t *bytes, const char **error)
{
    const Call *call = &p->calls[p->first_call[kernel]];
    const char *text = text_of(p->pool, p, kernel);
    if (!call->library)
        return nvrtc_compile(p->pool, text, p->arch, bytes, error);
    const char *plan = cuda_library_plan(p->pool, call, text, p->arch, error);
    *bytes = plan ? strlen(plan) : 0;
    return plan;
}

static bool compile(const StepProgram *p, int kernel, const char *path, char *message, size_t size)
{
    size_t bytes = 0;
    const char *error = NULL;
    const void *image = image_of(p, kernel, &bytes, &error);
    bool ok = image && fd_create(path, image, bytes);
    if (!image)
        snprintf(message, size, "%s", error);
    else if (!ok)
        snprintf(message, size, "cannot write %s: %s", path, strerror(errno));
    return ok;
}

const Backend cuda_backend = {.name = "cuda",
                              .rules = rules,
                              .has_code = has_code,
                              .library = cuda_library,
                              .point = cuda_point_call,
                              .costs = costs,
                              .compiler = nvrtc_compiler,
                              .library_version = cuda_library_version,
                              .driver = nvrtc_driver,
                              .compile = compile,
                              .text = text_of,
                              .included = included,
                              .object = "cubin"};
