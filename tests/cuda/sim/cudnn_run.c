/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated cuDNN: a plan that is run, in plain loops in double, when the stream runs.  Its
 * workspace is full of NaNs afterwards. */
#include "cudnn_internal.h"

#include <stdlib.h>
#include <string.h>

int cuLaunchHostFunc(void *stream, void (*call)(void *user), void *user);

struct Job {
    Operation q;
    char *address[3];     /* x, w, y */
    char *attention[128]; /* by letter */
    float scalar[128];    /* as they were when it was launched */
    char *workspace;
    int64_t workspace_bytes;
    int tf32;
    struct Job *next;
};

/* --- elements --- */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even, so that the low `cut` bits are zeros. */
static uint32_t rounded(uint32_t bits, int cut)
{
    uint32_t half = (1u << (cut - 1)) - 1;
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits & 0x007fffffu ? bits | 0x00400000u : bits;
    return (bits + half + (bits >> cut & 1)) >> cut << cut;
}

float cudnn_from_bf16(const char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof half);
    return float_of((uint32_t)half << 16);
}

void cudnn_to_bf16(char *at, double value)
{
    uint16_t half = (uint16_t)(rounded(bits_of((float)value), 16) >> 16);
    memcpy(at, &half, sizeof half);
}

double cudnn_round_bf16(double value)
{
    return (double)float_of(rounded(bits_of((float)value), 16));
}

static double load(const Job *j, int tensor, int64_t at)
{
    float value;
    if (j->q.bf16)
        return (double)cudnn_from_bf16(j->address[tensor] + 2 * at);
    memcpy(&value, j->address[tensor] + 4 * at, sizeof value);
    return (double)(j->tf32 ? float_of(rounded(bits_of(value), 13)) : value);
}

static void store(const Job *j, int tensor, int64_t at, double sum)
{
    float value = (float)sum;
    if (j->q.bf16)
        cudnn_to_bf16(j->address[tensor] + 2 * at, sum);
    else
        memcpy(j->address[tensor] + 4 * at, &value, sizeof value);
}

/* --- loops --- */

/* The three tensors in double: the result is a sum that grows. */
typedef struct Tensors {
    double *of[3];
    int64_t n[3];
} Tensors;

/* One place of y, one of the taps, one group. */
static void add_products(const Operation *q, const double *x, double *w, double *y)
{
    int64_t channels = q->group_c, results = q->k / (q->c / q->group_c);
    int64_t step = q->r * q->s * channels;
    for (int64_t k = 0; k < results; k++, w += step)
        for (int64_t c = 0; c < channels; c++)
            if (q->part == CUDNN_FORWARD)
                y[k] += x[c] * w[c];
            else
                w[c] += x[c] * y[k];
}

static void add_gradients(const Operation *q, double *x, const double *w, const double *y)
{
    int64_t channels = q->group_c, results = q->k / (q->c / q->group_c);
    int64_t step = q->r * q->s * channels;
    for (int64_t k = 0; k < results; k++, w += step)
        for (int64_t c = 0; c < channels; c++)
            x[c] += w[c] * y[k];
}

/* All taps of one place of y that lie within the image. */
static void each_tap(const Operation *q, const Tensors *t, int64_t image, int64_t row,
                     int64_t column)
{
    int64_t groups = q->c / q->group_c;
    double *y = t->of[2] + ((image * q->oh + row) * q->ow + column) * q->k;
    for (int64_t r = 0; r < q->r; r++)
        for (int64_t s = 0; s < q->s; s++) {
            int64_t from = row * q->stride[0] - q->pad[0] + r * q->dilation[0];
            int64_t at = column * q->stride[1] - q->pad[1] + s * q->dilation[1];
            if (from < 0 || from >= q->h || at < 0 || at >= q->w)
                continue;
            double *x = t->of[0] + ((image * q->h + from) * q->w + at) * q->c;
            double *w = t->of[1] + (r * q->s + s) * q->group_c;
            for (int64_t g = 0; g < groups; g++) {
                int64_t k = g * (q->k / groups);
                double *group_w = w + k * q->r * q->s * q->group_c;
                if (q->part == CUDNN_DGRAD)
                    add_gradients(q, x + g * q->group_c, group_w, y + k);
                else
                    add_products(q, x + g * q->group_c, group_w, y + k);
            }
        }
}

/* Which tensor is computed. */
static int result_of(const Operation *q)
{
    return q->part == CUDNN_FORWARD ? 2 : q->part == CUDNN_DGRAD ? 0 : 1;
}

static void open_tensors(const Job *j, Tensors *t)
{
    const Operation *q = &j->q;
    *t = (Tensors){.n = {q->images * q->h * q->w * q->c, q->k * q->r * q->s * q->group_c,
                         q->images * q->oh * q->ow * q->k}};
    for (int k = 0; k < 3; k++) {
        t->of[k] = calloc((size_t)t->n[k], sizeof *t->of[k]);
        if (!t->of[k])
            abort();
        for (int64_t i = 0; k != result_of(q) && i < t->n[k]; i++)
            t->of[k][i] = load(j, k, i);
    }
}

static void perform_convolution(const Job *j)
{
    const Operation *q = &j->q;
    Tensors t;
    int to = result_of(q);
    open_tensors(j, &t);
    for (int64_t image = 0; image < q->images; image++)
        for (int64_t y = 0; y < q->oh; y++)
            for (int64_t x = 0; x < q->ow; x++)
                each_tap(q, &t, image, y, x);
    for (int64_t i = 0; i < t.n[to]; i++)
        store(j, to, i, t.of[to][i]);
    for (int k = 0; k < 3; k++)
        free(t.of[k]);
}

static int is_attention(const Operation *q)
{
    return q->part == CUDNN_ATTENTION || q->part == CUDNN_ATTENTION_GRAD;
}

/* On the stream, as often as it is replayed. */
static void perform(void *user)
{
    const Job *j = user;
    if (is_attention(&j->q))
        cudnn_run_attention(&j->q, j->attention, j->scalar);
    else
        perform_convolution(j);
    memset(j->workspace, 0xff, (size_t)j->workspace_bytes);
}

/* --- plans --- */

enum { FIRST_TENSOR_CORE = 42, LAST_TENSOR_CORE = 46 };

static char *address_of(const Pack *pack, int64_t id)
{
    for (int64_t i = 0; i < pack->n; i++)
        if (pack->id[i] == id)
            return pack->address[i];
    return NULL;
}

static int place_convolution(Job *j, const Pack *pack)
{
    for (int t = 0; t < 3; t++) {
        j->address[t] = address_of(pack, j->q.id[t]);
        if (!j->address[t] || (uintptr_t)j->address[t] % (uintptr_t)j->q.align)
            return cudnn_refuse(BAD_PARAM, "a tensor has no address, or a crooked one");
    }
    return pack->n == 3 ? CUDNN_SUCCESS
                        : cudnn_refuse(BAD_PARAM, "an address of what is no tensor");
}

/* What is given by value is read here. */
static int place_attention(Job *j, const Pack *pack)
{
    const char *tensors = cudnn_attention_tensors(&j->q);
    const char *scalars = cudnn_attention_scalars_of(&j->q);
    const int64_t *id = j->q.attention.id;
    for (const char *t = tensors; *t; t++) {
        char *at = j->attention[(int)*t] = address_of(pack, id[(int)*t]);
        if (!at || (uintptr_t)at % (uintptr_t)j->q.align)
            return cudnn_refuse(BAD_PARAM, "a tensor has no address, or a crooked one");
    }
    for (const char *t = scalars; *t; t++) {
        const char *at = address_of(pack, id[(int)*t]);
        if (!at)
            return cudnn_refuse(BAD_PARAM, "a number has no address");
        memcpy(&j->scalar[(int)*t], at, sizeof(float));
    }
    return pack->n == (int64_t)(strlen(tensors) + strlen(scalars))
               ? CUDNN_SUCCESS
               : cudnn_refuse(BAD_PARAM, "an address of what is no tensor");
}

int cudnn_run(Object *plan, const Pack *pack, void *stream)
{
    Job *j = calloc(1, sizeof *j);
    if (!j)
        return ALLOCATION_FAILED;
    *j = (Job){.q = plan->operation,
               .workspace = pack->workspace,
               .workspace_bytes = plan->workspace,
               .tf32 = plan->engine >= FIRST_TENSOR_CORE && plan->engine <= LAST_TENSOR_CORE,
               .next = plan->jobs};
    plan->jobs = j;
    int status = is_attention(&j->q) ? place_attention(j, pack) : place_convolution(j, pack);
    if (status != CUDNN_SUCCESS)
        return status;
    if (!plan->on_device)
        return cudnn_refuse(EXECUTION_FAILED, "a plan of no device is run");
    if (plan->workspace && (!pack->workspace || (uintptr_t)pack->workspace % CUDNN_WORKSPACE_ALIGN))
        return cudnn_refuse(BAD_PARAM, "there is no workspace, or a crooked one");
    return cuLaunchHostFunc(stream, perform, j) ? EXECUTION_FAILED : CUDNN_SUCCESS;
}

void cudnn_forget(Object *plan)
{
    for (Job *j = plan->jobs, *next; j; j = next) {
        next = j->next;
        free(j);
    }
    plan->jobs = NULL;
}
