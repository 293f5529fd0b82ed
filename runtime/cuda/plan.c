/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/cuda/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINES(fields)                                                                              \
    {                                                                                              \
        .field = (fields), .n = sizeof(fields) / sizeof *(fields)                                  \
    }

/* --- reading --- */

/* "key value\n" at `at`, which ends before `end`; where the next line begins, or NULL. */
static const char *read_line(const char *at, const char *end, const char *key, int64_t *value)
{
    char text[24], *stop;
    size_t before = strlen(key) + 1;
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    size_t n = newline ? (size_t)(newline - at) : 0;
    if (n <= before || memcmp(at, key, before - 1) != 0 || at[before - 1] != ' ' ||
        n - before >= sizeof text)
        return NULL;
    memcpy(text, at + before, n - before);
    text[n - before] = '\0';
    errno = 0;
    *value = strtoll(text, &stop, 10);
    return *stop || errno ? NULL : newline + 1;
}

const char *cuda_plan_part(const char *at, const char *end, const PlanLines *lines, void *record)
{
    for (int i = 0; i < lines->n && at; i++) {
        int64_t value = 0;
        at = read_line(at, end, lines->field[i].key, &value);
        if (at)
            memcpy((char *)record + lines->field[i].at, &value, sizeof value);
    }
    return at;
}

static bool done(bool ok, RtError *err)
{
    return ok || rt_error(err, "the library's plan cannot be read");
}

/* --- products --- */

#define FIELD(name) {#name, offsetof(CublasltProblem, name)},
static const PlanField cublaslt_fields[] = {
    FIELD(m) FIELD(n) FIELD(k) FIELD(batch) FIELD(a_transposed) FIELD(lda) FIELD(a_stride)
        FIELD(b_transposed) FIELD(ldb) FIELD(b_stride) FIELD(factors_bf16) FIELD(result_bf16)
            FIELD(tf32) FIELD(bias) FIELD(align) FIELD(workspace)};
#undef FIELD
const PlanLines cublaslt_lines = LINES(cublaslt_fields);

bool cuda_plan_read_cublaslt(const char *plan, int64_t bytes, CublasltProblem *p, RtError *err)
{
    const char *end = plan + bytes;
    return done(cuda_plan_part(plan, end, &cublaslt_lines, p) == end, err);
}

/* --- convolutions and attention --- */

#define FIELD(key, name) {#key, offsetof(CudnnProblem, name)},
static const PlanField cudnn_fields[] = {
    FIELD(part, part) FIELD(arithmetic, arithmetic) FIELD(images, images) FIELD(h, h) FIELD(w, w)
        FIELD(c, c) FIELD(oh, oh) FIELD(ow, ow) FIELD(k, k) FIELD(r, r) FIELD(s, s)
            FIELD(groups, groups) FIELD(stride_y, stride[0]) FIELD(stride_x, stride[1])
                FIELD(pad_y, pad[0]) FIELD(pad_x, pad[1]) FIELD(dilation_y, dilation[0])
                    FIELD(dilation_x, dilation[1]) FIELD(align, align) FIELD(workspace, workspace)};
#define STRIDES(tensor, number)                                                                    \
    FIELD(tensor##_batch, at[number].batch)                                                        \
    FIELD(tensor##_head, at[number].head) FIELD(tensor##_row, at[number].row)
/* Those of tensors come last, the gradient's behind the forward operation's. */
static const PlanField attention_fields[] = {
    FIELD(part, part) FIELD(arithmetic, arithmetic) FIELD(batch, batch) FIELD(heads, heads)
        FIELD(rows, rows) FIELD(keys, keys) FIELD(width, width) FIELD(value_width, value_width)
            FIELD(causal, causal) FIELD(scale, scale) FIELD(align, align)
                FIELD(workspace, workspace) STRIDES(q, CUDNN_Q) STRIDES(k, CUDNN_K)
                    STRIDES(v, CUDNN_V) STRIDES(o, CUDNN_O) STRIDES(do, CUDNN_DO)
                        STRIDES(dq, CUDNN_DQ) STRIDES(dk, CUDNN_DK) STRIDES(dv, CUDNN_DV)};
#undef STRIDES
#undef FIELD
static const PlanField choice_fields[] = {{"version", offsetof(CudnnChoice, version)},
                                          {"engine", offsetof(CudnnChoice, engine)},
                                          {"knobs", offsetof(CudnnChoice, n_knobs)}};
static const PlanField knob_fields[] = {{"knob", offsetof(CudnnKnob, type)},
                                        {"value", offsetof(CudnnKnob, value)}};
const PlanLines cudnn_choice_lines = LINES(choice_fields), cudnn_knob_lines = LINES(knob_fields);

const PlanLines *cudnn_lines(int64_t part)
{
    static const PlanLines convolution = LINES(cudnn_fields), gradient = LINES(attention_fields);
    static const PlanLines attention = {.field = attention_fields,
                                        .n = sizeof attention_fields / sizeof *attention_fields -
                                             3 * (CUDNN_TENSORS - CUDNN_FORWARD_TENSORS)};
    return part == CUDNN_ATTENTION        ? &attention
           : part == CUDNN_ATTENTION_GRAD ? &gradient
                                          : &convolution;
}

static bool is_problem(const CudnnProblem *p)
{
    bool known = p->part >= 0 && p->part < CUDNN_PARTS;
    return known && (cudnn_is_attention(p) || p->groups > 0);
}

const char *cudnn_read_problem(const char *at, const char *end, CudnnProblem *out)
{
    static const PlanLines first = {.field = cudnn_fields, .n = 1};
    *out = (CudnnProblem){0};
    if (cuda_plan_part(at, end, &first, out))
        at = cuda_plan_part(at, end, cudnn_lines(out->part), out);
    return at && is_problem(out) ? at : NULL;
}

bool cuda_plan_read_cudnn(const char *plan, int64_t bytes, CudnnProblem *p, CudnnChoice *choice,
                          RtError *err)
{
    const char *end = plan + bytes, *at = cudnn_read_problem(plan, end, p);
    at = cuda_plan_part(at, end, &cudnn_choice_lines, choice);
    bool ok = at && choice->n_knobs >= 0 && choice->n_knobs <= CUDNN_KNOBS_MOST;
    for (int i = 0; ok && i < choice->n_knobs; i++)
        at = cuda_plan_part(at, end, &cudnn_knob_lines, &choice->knob[i]);
    return done(ok && at == end, err);
}
