/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A simulated libcublasLt.so: takes what its documentation allows of products of f32 and bf16, with
 * a bias or without, and computes them in double when the stream runs.  Its workspace is full of
 * NaNs afterwards.  What it does not allow is an error, with a line on standard error.
 *
 * SCRIMP_SIM_CUBLASLT: its version (120000: 12.0.0), or `none`: it knows no algorithm.
 * SCRIMP_SIM_FULL: the name of a function, which says that memory is out. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    NOT_INITIALIZED = 1,
    ALLOC_FAILED = 3,
    BAD_VALUE = 7,
    EXECUTION_FAILED = 13,
    NOT_SUPPORTED = 15
};
enum { R_32F = 0, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_TF32 = 77 };

int cuLaunchHostFunc(void *stream, void (*call)(void *user), void *user);

static int refuse(int status, const char *why)
{
    fprintf(stderr, "simulator: cuBLASLt: %s\n", why);
    return status;
}

static int is_full(const char *function)
{
    const char *name = getenv("SCRIMP_SIM_FULL");
    return name && strcmp(name, function) == 0;
}

/* --- descriptions --- */

typedef struct Layout {
    int32_t type, batch;
    uint64_t rows, columns;
    int64_t ld, stride;
} Layout;

typedef struct Product {
    int32_t compute, transposed[2], bias_type;
    uint32_t epilogue, unused;
    const char *bias;
} Product;

typedef struct Preference {
    uint64_t workspace;
    uint32_t scheme, align[4];
} Preference;

/* What is put into the caller's opaque algorithm: it fits one problem. */
typedef struct Chosen {
    uint64_t problem, workspace;
    uint32_t align[4], bias_align;
    char unused[28];
} Chosen;

/* An attribute: its number, where it is in the description, its size. */
typedef struct Field {
    int attribute;
    size_t at, bytes;
} Field;

#define FIELD(number, type, field)                                                                 \
    {                                                                                              \
        number, offsetof(type, field), sizeof((type *)0)->field                                    \
    }

static int set_field(void *description, const Field *field, size_t n, int attribute,
                     const void *value, size_t bytes)
{
    for (size_t i = 0; i < n; i++)
        if (field[i].attribute == attribute) {
            if (!value || bytes != field[i].bytes)
                return refuse(BAD_VALUE, "an attribute of another size");
            memcpy((char *)description + field[i].at, value, bytes);
            return SUCCESS;
        }
    return refuse(BAD_VALUE, "an attribute that is not simulated");
}

EXPORT size_t cublasLtGetVersion(void)
{
    const char *text = getenv("SCRIMP_SIM_CUBLASLT");
    return text && strcmp(text, "none") != 0 ? (size_t)strtoull(text, NULL, 10) : 139900;
}

static int make(void **out, const void *value, size_t bytes)
{
    *out = malloc(bytes);
    if (*out)
        memcpy(*out, value, bytes);
    return *out ? SUCCESS : ALLOC_FAILED;
}

static int is_type(int type)
{
    return type == R_32F || type == R_16BF;
}

EXPORT int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns,
                                      int64_t ld)
{
    if (!is_type(type) || !rows || !columns || ld < (int64_t)rows || rows > INT32_MAX ||
        columns > INT32_MAX)
        return refuse(BAD_VALUE, "no such matrix");
    const Layout l = {type, 1, rows, columns, ld, 0};
    return make(out, &l, sizeof l);
}

EXPORT int cublasLtMatrixLayoutDestroy(void *layout)
{
    free(layout);
    return SUCCESS;
}

EXPORT int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value,
                                            size_t bytes)
{
    static const Field fields[] = {FIELD(5, Layout, batch), FIELD(6, Layout, stride)};
    return set_field(layout, fields, 2, attribute, value, bytes);
}

EXPORT int cublasLtMatmulDescCreate(void **out, int compute, int scale)
{
    if ((compute != COMPUTE_32F && compute != COMPUTE_TF32) || scale != R_32F)
        return refuse(NOT_SUPPORTED, "another type of sums");
    const Product p = {.compute = compute, .bias_type = -1, .epilogue = 1};
    return make(out, &p, sizeof p);
}

EXPORT int cublasLtMatmulDescDestroy(void *product)
{
    free(product);
    return SUCCESS;
}

EXPORT int cublasLtMatmulDescSetAttribute(void *product, int attribute, const void *value,
                                          size_t bytes)
{
    static const Field fields[] = {FIELD(3, Product, transposed[0]),
                                   FIELD(4, Product, transposed[1]), FIELD(7, Product, epilogue),
                                   FIELD(8, Product, bias), FIELD(26, Product, bias_type)};
    return set_field(product, fields, sizeof fields / sizeof *fields, attribute, value, bytes);
}

EXPORT int cublasLtMatmulPreferenceCreate(void **out)
{
    const Preference p = {.scheme = 7, .align = {256, 256, 256, 256}};
    return make(out, &p, sizeof p);
}

EXPORT int cublasLtMatmulPreferenceDestroy(void *preference)
{
    free(preference);
    return SUCCESS;
}

EXPORT int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                                size_t bytes)
{
    static const Field fields[] = {FIELD(1, Preference, workspace), FIELD(3, Preference, scheme),
                                   FIELD(5, Preference, align[0]),  FIELD(6, Preference, align[1]),
                                   FIELD(7, Preference, align[2]),  FIELD(8, Preference, align[3])};
    return set_field(preference, fields, sizeof fields / sizeof *fields, attribute, value, bytes);
}

/* --- handles, and what was put on streams --- */

/* A product that was asked for; it may be replayed until the handle goes. */
typedef struct Job {
    Product p;
    Layout a, b, d;
    const char *a_at, *b_at;
    char *d_at, *workspace;
    size_t workspace_bytes;
    struct Job *next;
} Job;

typedef struct Handle {
    Job *jobs;
} Handle;

EXPORT int cublasLtCreate(void **handle)
{
    *handle = is_full(__func__) ? NULL : calloc(1, sizeof(Handle));
    return *handle ? SUCCESS : NOT_INITIALIZED; /* as the real one says of a full device */
}

EXPORT int cublasLtDestroy(void *handle)
{
    Handle *h = handle;
    for (Job *j = h->jobs, *next; j; j = next) {
        next = j->next;
        free(j);
    }
    free(h);
    return SUCCESS;
}

/* --- problems --- */

static int has_bias(const Product *p)
{
    return p->epilogue == 4;
}

/* Types, as the table of cublasLtMatmul has them; the bias has the result's. */
static int types_fit(const Product *p, const Layout *a, const Layout *b, const Layout *d)
{
    int bias = p->bias_type < 0 ? d->type : p->bias_type;
    return a->type == b->type && (a->type == R_16BF || d->type == R_32F) &&
           (p->compute == COMPUTE_32F || a->type == R_32F) && (!has_bias(p) || bias == d->type);
}

static uint64_t inner(const Product *p, const Layout *a)
{
    return p->transposed[0] ? a->rows : a->columns;
}

static int sizes_fit(const Product *p, const Layout *a, const Layout *b, const Layout *d)
{
    uint64_t m = p->transposed[0] ? a->columns : a->rows;
    uint64_t n = p->transposed[1] ? b->rows : b->columns;
    uint64_t k = p->transposed[1] ? b->columns : b->rows;
    int64_t result = d->ld * (int64_t)d->columns;
    return m == d->rows && n == d->columns && k == inner(p, a) && a->batch == b->batch &&
           a->batch == d->batch && d->batch > 0 && a->stride >= 0 && b->stride >= 0 &&
           (d->batch == 1 || d->stride >= result);
}

static int problem_fits(const Product *p, const Layout *a, const Layout *b, const Layout *c,
                        const Layout *d)
{
    if (p->transposed[0] < 0 || p->transposed[0] > 1 || p->transposed[1] < 0 ||
        p->transposed[1] > 1 || (p->epilogue != 1 && !has_bias(p)))
        return refuse(BAD_VALUE, "a transposition or an epilogue that there is not");
    if (memcmp(c, d, sizeof *c) != 0)
        return refuse(NOT_SUPPORTED, "C is not like D");
    if (!types_fit(p, a, b, d))
        return refuse(NOT_SUPPORTED, "types that do not go together");
    return sizes_fit(p, a, b, d) ? SUCCESS : refuse(BAD_VALUE, "sizes that do not go together");
}

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return h;
}

static uint64_t problem_hash(const Product *p, const Layout *a, const Layout *b, const Layout *d)
{
    Product without = *p;
    without.bias = NULL;
    uint64_t h = mix(0xcbf29ce484222325u, &without, sizeof without);
    return mix(mix(mix(h, a, sizeof *a), b, sizeof *b), d, sizeof *d);
}

static uint32_t alignment_of(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    uint32_t align = 256;
    while (align > 1 && at % align)
        align /= 2;
    return align;
}

typedef struct Heuristic {
    Chosen chosen;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Heuristic;

EXPORT int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c,
                                          void *d, void *preference, int wanted, Heuristic *found,
                                          int *n)
{
    const Product *p = product;
    const Preference *prefer = preference;
    const char *fails = getenv("SCRIMP_SIM_CUBLASLT");
    *n = 0;
    if (!handle || wanted < 1)
        return refuse(BAD_VALUE, "no handle, or no room for an algorithm");
    int status = problem_fits(p, a, b, c, d);
    if (status != SUCCESS)
        return status;
    if (prefer->scheme & ~2u)
        return refuse(NOT_SUPPORTED, "sums of parts whose order is not fixed are not simulated");
    if (has_bias(p) && !p->bias)
        return refuse(BAD_VALUE, "a bias without an address");
    if (fails && strcmp(fails, "none") == 0)
        return NOT_SUPPORTED;
    Heuristic h = {.chosen = {.problem = problem_hash(p, a, b, d),
                              .workspace = prefer->workspace,
                              .bias_align = alignment_of(p->bias)},
                   .workspace = prefer->workspace};
    memcpy(h.chosen.align, prefer->align, sizeof prefer->align);
    found[0] = h;
    *n = 1;
    return SUCCESS;
}

/* --- products --- */

static double bf16_at(const char *at)
{
    uint16_t half;
    memcpy(&half, at, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* f32 with 10 bits behind the point, to nearest. */
static double tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + 0x1000u) & ~0x1fffu;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static double element(const Product *p, int type, const char *base, int64_t i)
{
    float value;
    if (type == R_16BF)
        return bf16_at(base + 2 * i);
    memcpy(&value, base + 4 * i, sizeof value);
    return p->compute == COMPUTE_TF32 ? tf32(value) : (double)value;
}

static void store(int type, char *base, int64_t i, double value)
{
    float f = (float)value;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (type == R_16BF) {
        uint32_t up = f != f ? 0x400000u : 0x7fffu + (bits >> 16 & 1);
        uint16_t half = (uint16_t)((f != f ? bits | up : bits + up) >> 16);
        memcpy(base + 2 * i, &half, sizeof half);
    } else
        memcpy(base + 4 * i, &f, sizeof f);
}

static double sum(const Job *j, int64_t batch, int64_t row, int64_t column)
{
    const Product *p = &j->p;
    int64_t k = (int64_t)inner(p, &j->a);
    int64_t a = batch * j->a.stride + row * (p->transposed[0] ? j->a.ld : 1);
    int64_t b = batch * j->b.stride + column * (p->transposed[1] ? 1 : j->b.ld);
    int64_t a_step = p->transposed[0] ? 1 : j->a.ld, b_step = p->transposed[1] ? j->b.ld : 1;
    double total = 0;
    while (k-- > 0)
        total += element(p, j->a.type, j->a_at, a + k * a_step) *
                 element(p, j->b.type, j->b_at, b + k * b_step);
    return total;
}

static double bias_at(const Product *p, int type, int64_t row)
{
    const Product exact = {.compute = COMPUTE_32F};
    return has_bias(p) ? element(&exact, type, p->bias, row) : 0;
}

/* When the stream gets to it. */
static void compute(void *user)
{
    const Job *j = user;
    for (size_t i = 0; i < j->workspace_bytes; i++)
        j->workspace[i] = (char)0xff;
    for (int64_t batch = 0; batch < j->d.batch; batch++)
        for (int64_t column = 0; column < (int64_t)j->d.columns; column++)
            for (int64_t row = 0; row < (int64_t)j->d.rows; row++)
                store(j->d.type, j->d_at, batch * j->d.stride + column * j->d.ld + row,
                      sum(j, batch, row, column) + bias_at(&j->p, j->d.type, row));
}

static int addresses_fit(const Job *j, const Chosen *chosen)
{
    const void *const at[] = {j->a_at, j->b_at, j->d_at, j->d_at};
    for (int i = 0; i < 4; i++)
        if (!at[i] || alignment_of(at[i]) < chosen->align[i])
            return refuse(BAD_VALUE,
                          "a matrix at an address that the algorithm was not chosen for");
    if (has_bias(&j->p) && (!j->p.bias || alignment_of(j->p.bias) < chosen->bias_align))
        return refuse(BAD_VALUE, "a bias at an address that the algorithm was not chosen for");
    if (j->workspace_bytes < chosen->workspace ||
        (j->workspace_bytes && alignment_of(j->workspace) < 256))
        return refuse(BAD_VALUE, "a workspace that is too small, or not at a multiple of 256");
    return SUCCESS;
}

EXPORT int cublasLtMatmul(void *handle, void *product, const void *alpha, const void *a,
                          void *a_layout, const void *b, void *b_layout, const void *beta,
                          const void *c, void *c_layout, void *d, void *d_layout,
                          const void *algorithm, void *workspace, size_t workspace_bytes,
                          void *stream)
{
    Handle *h = handle;
    Chosen chosen;
    if (!h || !algorithm || *(const float *)alpha != 1 || *(const float *)beta != 0 || c != d)
        return refuse(BAD_VALUE, "arguments that are not simulated");
    memcpy(&chosen, algorithm, sizeof chosen);
    int status = problem_fits(product, a_layout, b_layout, c_layout, d_layout);
    if (status != SUCCESS)
        return status;
    if (chosen.problem != problem_hash(product, a_layout, b_layout, d_layout))
        return refuse(BAD_VALUE, "an algorithm that was chosen for another problem");
    Job *j = is_full(__func__) ? NULL : calloc(1, sizeof *j);
    if (!j)
        return EXECUTION_FAILED;
    *j = (Job){*(Product *)product,
               *(Layout *)a_layout,
               *(Layout *)b_layout,
               *(Layout *)d_layout,
               a,
               b,
               d,
               workspace,
               workspace_bytes,
               h->jobs};
    h->jobs = j;
    status = addresses_fit(j, &chosen);
    if (status != SUCCESS)
        return status;
    return cuLaunchHostFunc(stream, compute, j) == 0 ? SUCCESS : EXECUTION_FAILED;
}
