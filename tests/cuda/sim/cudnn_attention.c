/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The simulated cuDNN: attention and its gradient, which are known by their operations.  As in the
 * real one the graph is a pattern: other operations, types or strides than those that NVIDIA's
 * cudnn-frontend gives are not supported.
 *
 * Tensors have letters here: q, k, v, o and s, the statistics; g, the gradient of o; Q, K, V, those
 * of q, k, v; d, a number of each row; c, m, 1: the factor of the scores, what stands for masked
 * ones, and a one. */
#include "cudnn_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- patterns --- */

/* An operation: its kind, its mode, the letters of what it reads (' ': nothing), and what it
 * makes. */
typedef struct Step {
    int kind, mode;
    const char *reads;
    char makes;
    int masks; /* only where there is a mask */
} Step;

#define MATMUL(reads, makes)                                                                       \
    {                                                                                              \
        CUDNN_OPERATION_MATMUL, 0, reads, makes, 0                                                 \
    }
#define REDUCE(op, reads, makes)                                                                   \
    {                                                                                              \
        CUDNN_OPERATION_REDUCTION, CUDNN_REDUCE_##op, reads, makes, 0                              \
    }
#define POINT(op, reads, makes)                                                                    \
    {                                                                                              \
        CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_##op, reads, makes, 0                           \
    }
#define MASK(op, reads, makes)                                                                     \
    {                                                                                              \
        CUDNN_OPERATION_POINTWISE, CUDNN_POINTWISE_##op, reads, makes, 1                           \
    }
#define RESHAPE(reads, makes)                                                                      \
    {                                                                                              \
        CUDNN_OPERATION_RESHAPE, 0, reads, makes, 0                                                \
    }
#define MASKED(from, to)                                                                           \
    MASK(GEN_INDEX, from, 'r'), MASK(GEN_INDEX, from, 'l'), MASK(CMP_GE, "rl", 't'),               \
        MASK(BINARY_SELECT, from "mt", to)

/* u is b where nothing is masked, and w is f. */
static const Step forward[] = {MATMUL("qk", 'a'),     POINT(MUL, "ac", 'b'), MASKED("b", 'u'),
                               REDUCE(MAX, "u", 'x'), POINT(SUB, "ux", 'y'), POINT(EXP, "y", 'e'),
                               REDUCE(ADD, "e", 'z'), POINT(LOG, "z", 'L'),  POINT(ADD, "xL", 's'),
                               POINT(DIV, "ez", 'p'), MATMUL("pv", 'o')};
static const Step gradient[] = {POINT(MUL, "go", 'A'), REDUCE(ADD, "A", 'B'), POINT(MUL, "B1", 'd'),
                                MATMUL("qk", 'a'),     POINT(MUL, "ac", 'b'), POINT(SUB, "bs", 'f'),
                                MASKED("f", 'w'),      POINT(EXP, "w", 'e'),  RESHAPE("e", 'E'),
                                MATMUL("Eg", 'V'),     MATMUL("gv", 'h'),     POINT(SUB, "hd", 'i'),
                                POINT(MUL, "ie", 'j'), POINT(MUL, "jc", 'n'), RESHAPE("n", 'N'),
                                MATMUL("Nq", 'K'),     RESHAPE("k", 'C'),     MATMUL("nC", 'Q')};
enum { FORWARD = sizeof forward / sizeof *forward, GRADIENT = sizeof gradient / sizeof *gradient };

/* --- tensors --- */

enum { ADDRESS, VIRTUAL, BY_VALUE };
/* Sizes of the last two dims: r rows, k keys, w, v widths, 1; TURNED: they lie the other way round.
 * HEADS: the rows of heads, HEADS_TURNED: as columns, lie anywhere, but elements of a row side by
 * side; LIKE_KEYS: as the keys do. */
typedef struct Tensor {
    char letter, rows, columns;
    int type, where;
    enum { DENSE, TURNED, HEADS, HEADS_TURNED, LIKE_KEYS } strides;
} Tensor;

#define F CUDNN_DATA_FLOAT
#define H CUDNN_DATA_BFLOAT16
static const Tensor tensors[] = {{'q', 'r', 'w', H, ADDRESS, HEADS},
                                 {'k', 'w', 'k', H, ADDRESS, HEADS_TURNED},
                                 {'s', 'r', '1', F, ADDRESS, DENSE},
                                 {'g', 'r', 'v', H, ADDRESS, HEADS},
                                 {'Q', 'r', 'w', H, ADDRESS, HEADS},
                                 {'K', 'k', 'w', H, ADDRESS, HEADS},
                                 {'V', 'k', 'v', H, ADDRESS, HEADS},
                                 {'d', 'r', '1', F, ADDRESS, DENSE},
                                 {'a', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'b', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'u', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'y', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'e', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'p', 'r', 'k', H, VIRTUAL, DENSE},
                                 {'f', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'w', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'h', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'i', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'j', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'n', 'r', 'k', F, VIRTUAL, DENSE},
                                 {'x', 'r', '1', F, VIRTUAL, DENSE},
                                 {'z', 'r', '1', F, VIRTUAL, DENSE},
                                 {'L', 'r', '1', F, VIRTUAL, DENSE},
                                 {'B', 'r', '1', F, VIRTUAL, DENSE},
                                 {'A', 'r', 'v', F, VIRTUAL, DENSE},
                                 {'E', 'k', 'r', H, VIRTUAL, TURNED},
                                 {'N', 'k', 'r', H, VIRTUAL, TURNED},
                                 {'C', 'k', 'w', H, VIRTUAL, LIKE_KEYS},
                                 {'c', '1', '1', F, BY_VALUE, DENSE},
                                 {'m', '1', '1', F, BY_VALUE, DENSE},
                                 {'1', '1', '1', F, BY_VALUE, DENSE},
                                 {'r', 'r', 'k', CUDNN_DATA_INT32, VIRTUAL, DENSE},
                                 {'l', 'r', 'k', CUDNN_DATA_INT32, VIRTUAL, DENSE},
                                 {'t', 'r', 'k', CUDNN_DATA_BOOLEAN, VIRTUAL, DENSE}};
/* Which differ between the two. */
static const Tensor of_forward[] = {{'v', 'k', 'v', H, ADDRESS, HEADS},
                                    {'o', 'r', 'v', H, ADDRESS, HEADS}};
static const Tensor of_gradient[] = {{'v', 'v', 'k', H, ADDRESS, HEADS_TURNED},
                                     {'o', 'r', 'v', H, ADDRESS, HEADS}};

static int64_t size_of(const Attention *a, char size)
{
    return size == 'r'   ? a->rows
           : size == 'k' ? a->keys
           : size == 'w' ? a->width
           : size == 'v' ? a->value_width
                         : 1;
}

static int flag(const Object *o, int attribute)
{
    return cudnn_value(o, attribute) && *(const char *)cudnn_elements(o, attribute);
}

/* 16 bytes at a time, and no two elements in one place. */
static int lies_well(const int64_t *d, const int64_t *s, int row, int element)
{
    const int outer[] = {row, 0, 1};
    if (s[element] != 1)
        return 0;
    for (int i = 0; i < 3; i++) {
        int64_t behind = d[element]; /* of what lies closer */
        for (int k = 0; k < 3; k++)
            if (s[outer[k]] < s[outer[i]] || (s[outer[k]] == s[outer[i]] && k < i))
                behind += s[outer[k]] * (d[outer[k]] - 1);
        if (s[outer[i]] % 8 || (d[outer[i]] > 1 && s[outer[i]] < behind))
            return 0;
    }
    return 1;
}

static int has_shape(const Attention *a, const Tensor *t, const Object *o)
{
    const int64_t *d = cudnn_elements(o, CUDNN_TENSOR_DIMENSIONS);
    const int64_t *s = cudnn_elements(o, CUDNN_TENSOR_STRIDES);
    int64_t rows = size_of(a, t->rows), columns = size_of(a, t->columns);
    int scalar = t->where == BY_VALUE;
    if (d[0] != (scalar ? 1 : a->batch) || d[1] != (scalar ? 1 : a->heads) || d[2] != rows ||
        d[3] != columns)
        return 0;
    if (t->strides == LIKE_KEYS)
        return s[0] == a->at['k'][0] && s[1] == a->at['k'][1] && s[2] == a->at['k'][2] && s[3] == 1;
    if (t->strides == HEADS || t->strides == HEADS_TURNED)
        return lies_well(d, s, t->strides == HEADS ? 2 : 3, t->strides == HEADS ? 3 : 2);
    return s[0] == d[1] * rows * columns && s[1] == rows * columns &&
           s[2] == (t->strides == TURNED ? 1 : columns) &&
           s[3] == (t->strides == TURNED ? rows : 1);
}

static int suits(const Attention *a, const Tensor *t, const Object *o)
{
    return has_shape(a, t, o) &&
           *(const int *)cudnn_elements(o, CUDNN_TENSOR_DATA_TYPE) == t->type &&
           flag(o, CUDNN_TENSOR_IS_VIRTUAL) == (t->where == VIRTUAL) &&
           flag(o, CUDNN_TENSOR_IS_BY_VALUE) == (t->where == BY_VALUE);
}

/* --- matching --- */

/* By letter. */
typedef struct Bound {
    const Object *of[128];
} Bound;

static const Object *named(const Object *o, int attribute)
{
    return cudnn_value(o, attribute) ? *(Object *const *)cudnn_elements(o, attribute) : NULL;
}

static int enumerated(const Object *o, int attribute)
{
    return *(const int *)cudnn_elements(o, attribute);
}

static int bind(Bound *b, char letter, const Object *o)
{
    if (!b->of[(int)letter])
        b->of[(int)letter] = o;
    return b->of[(int)letter] == o;
}

static int reads(Bound *b, const Step *s, const Object *o, const int *attribute, int n)
{
    for (int i = 0; i < n; i++) {
        const Object *t = named(o, attribute[i]);
        if ((t != NULL) != (i < (int)strlen(s->reads)) || (t && !bind(b, s->reads[i], t)))
            return 0;
    }
    return 1;
}

/* What the arithmetic of a step is done in. */
static int arithmetic(const Step *s)
{
    return s->mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
}

static int matches_pointwise(Bound *b, const Step *s, const Object *o)
{
    static const int in[] = {CUDNN_POINTWISE_X, CUDNN_POINTWISE_B, CUDNN_POINTWISE_T};
    const Object *how = named(o, CUDNN_POINTWISE_PW_DESCRIPTOR);
    const Value *axis = cudnn_value(how, CUDNN_POINTWISE_AXIS);
    if (enumerated(how, CUDNN_POINTWISE_MODE) != s->mode ||
        enumerated(how, CUDNN_POINTWISE_MATH_PREC) != arithmetic(s) ||
        (axis != NULL) != (s->mode == CUDNN_POINTWISE_GEN_INDEX) ||
        (axis && *(const int64_t *)axis->elements != (s->makes == 'r' ? 2 : 3)))
        return 0;
    return reads(b, s, o, in, 3) && bind(b, s->makes, named(o, CUDNN_POINTWISE_Y));
}

static int matches(Bound *b, const Step *s, const Object *o)
{
    static const int factors[] = {CUDNN_MATMUL_A, CUDNN_MATMUL_B};
    if (o->kind != s->kind)
        return 0;
    switch (s->kind) {
    case CUDNN_OPERATION_MATMUL:
        return enumerated(named(o, CUDNN_MATMUL_DESC), CUDNN_MATMUL_COMP_TYPE) == F &&
               reads(b, s, o, factors, 2) && bind(b, s->makes, named(o, CUDNN_MATMUL_C));
    case CUDNN_OPERATION_REDUCTION:
        return enumerated(named(o, CUDNN_REDUCTION_DESC), CUDNN_REDUCTION_OPERATOR) == s->mode &&
               enumerated(named(o, CUDNN_REDUCTION_DESC), CUDNN_REDUCTION_COMP_TYPE) == F &&
               reads(b, s, o, &(int){CUDNN_REDUCTION_X}, 1) &&
               bind(b, s->makes, named(o, CUDNN_REDUCTION_Y));
    case CUDNN_OPERATION_RESHAPE:
        return reads(b, s, o, &(int){CUDNN_RESHAPE_X}, 1) &&
               bind(b, s->makes, named(o, CUDNN_RESHAPE_Y));
    default:
        return matches_pointwise(b, s, o);
    }
}

static int match_all(Bound *b, const Step *step, int steps, const Object *const *operation,
                     int64_t n, int causal)
{
    int64_t at = 0;
    for (int i = 0; i < steps; i++) {
        if (step[i].masks && !causal) {
            if (step[i].mode == CUDNN_POINTWISE_BINARY_SELECT)
                b->of[(int)step[i].makes] = b->of[(int)step[i].reads[0]];
            continue;
        }
        if (at == n || !matches(b, &step[i], operation[at++]))
            return 0;
    }
    return at == n;
}

static void read_sizes(const Bound *b, int grad, Attention *a)
{
    const int64_t *q = cudnn_elements(b->of['q'], CUDNN_TENSOR_DIMENSIONS);
    const int64_t *v = cudnn_elements(b->of['v'], CUDNN_TENSOR_DIMENSIONS);
    a->batch = q[0];
    a->heads = q[1];
    a->rows = q[2];
    a->width = q[3];
    a->keys = v[grad ? 3 : 2];
    a->value_width = v[grad ? 2 : 3];
    for (const char *t = grad ? "qkvogQKV" : "qkvo"; *t; t++) {
        const int64_t *s = cudnn_elements(b->of[(int)*t], CUDNN_TENSOR_STRIDES);
        const int turned = *t == 'k' || (grad && *t == 'v');
        a->at[(int)*t][0] = s[0];
        a->at[(int)*t][1] = s[1];
        a->at[(int)*t][2] = s[turned ? 3 : 2];
    }
}

static const Tensor *tensor_of(char letter, int grad)
{
    const Tensor *own = grad ? of_gradient : of_forward;
    for (int i = 0; i < 2; i++)
        if (own[i].letter == letter)
            return &own[i];
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++)
        if (tensors[i].letter == letter)
            return &tensors[i];
    abort();
}

/* Every tensor has its type, shape and strides, and a name of its own. */
static int check_tensors(const Bound *b, int grad, Attention *a)
{
    for (int letter = 0; letter < 128; letter++) {
        const Object *o = b->of[letter];
        if (!o)
            continue;
        a->id[letter] = *(const int64_t *)cudnn_elements(o, CUDNN_TENSOR_UNIQUE_ID);
        if (!a->causal && (letter == 'u' || letter == 'w'))
            continue; /* another's */
        if (!suits(a, tensor_of((char)letter, grad), o))
            return cudnn_refuse(NOT_SUPPORTED, "a tensor of attention has another type or shape");
        for (int other = 0; other < letter; other++)
            if (b->of[other] && b->of[other] != o && a->id[other] == a->id[letter])
                return cudnn_refuse(BAD_PARAM, "two tensors of attention have one name");
    }
    return CUDNN_SUCCESS;
}

static int check_sizes(const Operation *q)
{
    const Attention *a = &q->attention;
    if (a->width % 8 || a->value_width % 8 || a->width > 128 || a->value_width > 128)
        return cudnn_refuse(NOT_SUPPORTED, "a head of another number of elements");
    if (q->part == CUDNN_ATTENTION_GRAD && a->rows == 1 && a->keys == 1)
        return cudnn_refuse(NOT_SUPPORTED, "the gradient of attention of one row to one key");
    if (q->align < 16)
        return cudnn_refuse(NOT_SUPPORTED, "tensors of attention that are not aligned");
    return CUDNN_SUCCESS;
}

int cudnn_match_attention(const Object *const *operation, int64_t n, Operation *out)
{
    for (int grad = 0; grad < 2; grad++)
        for (int causal = 0; causal < 2; causal++) {
            Bound b = {{0}};
            if (!match_all(&b, grad ? gradient : forward, grad ? GRADIENT : FORWARD, operation, n,
                           causal))
                continue;
            *out = (Operation){.part = grad ? CUDNN_ATTENTION_GRAD : CUDNN_ATTENTION, .bf16 = 1};
            out->attention.causal = causal;
            out->align = *(const int64_t *)cudnn_elements(b.of['q'], CUDNN_TENSOR_BYTE_ALIGNMENT);
            read_sizes(&b, grad, &out->attention);
            int status = check_tensors(&b, grad, &out->attention);
            return status == CUDNN_SUCCESS ? check_sizes(out) : status;
        }
    return cudnn_refuse(NOT_SUPPORTED, "operations that are no pattern of attention");
}

int64_t cudnn_scores_bytes(const Attention *a)
{
    return 2 * a->batch * a->heads * ((a->rows + 63) / 64 * 64) * ((a->keys + 127) / 128 * 128);
}

const char *cudnn_attention_tensors(const Operation *q)
{
    return q->part == CUDNN_ATTENTION ? "qkvos" : "qkvogsQKVd";
}

const char *cudnn_attention_scalars_of(const Operation *q)
{
    if (q->part == CUDNN_ATTENTION)
        return q->attention.causal ? "cm" : "c";
    return q->attention.causal ? "cm1" : "c1";
}

/* --- computing --- */

/* A head of a tensor in double. */
typedef struct Head {
    double *q, *k, *v, *o, *g, *dq, *dk, *dv;
} Head;

static double *numbers(int64_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    if (!x)
        abort();
    return x;
}

/* A head of one of the tensors, wherever its rows lie. */
typedef struct Place {
    const Attention *a;
    char *const *address;
    int64_t head;
} Place;

static char *row_at(const Place *p, char letter, int64_t row)
{
    const int64_t *at = p->a->at[(int)letter], heads = p->a->heads;
    return p->address[(int)letter] +
           2 * (p->head / heads * at[0] + p->head % heads * at[1] + row * at[2]);
}

static double *load(const Place *p, char letter, int64_t rows, int64_t width)
{
    double *x = numbers(rows * width);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < width; e++)
            x[i * width + e] = (double)cudnn_from_bf16(row_at(p, letter, i) + 2 * e);
    return x;
}

static void store(const Place *p, char letter, double *x, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = 0; e < width; e++)
            cudnn_to_bf16(row_at(p, letter, i) + 2 * e, x[i * width + e]);
    free(x);
}

static double product(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add(double *to, const double *x, double factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += x[i] * factor;
}

static double *scores_of(const Attention *a, const Head *h, int64_t row, const float *scalar)
{
    double *x = numbers(a->keys);
    for (int64_t j = 0; j < a->keys; j++) {
        x[j] = product(h->q + row * a->width, h->k + j * a->width, a->width) * (double)scalar['c'];
        if (a->causal && j > row)
            x[j] = (double)scalar['m'];
    }
    return x;
}

/* As the kernels do, probabilities are rounded for the product. */
static double forward_row(const Attention *a, const Head *h, int64_t row, const float *scalar)
{
    double *x = scores_of(a, h, row, scalar), most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < a->keys; j++)
        most = x[j] > most ? x[j] : most;
    for (int64_t j = 0; j < a->keys; j++)
        sum += exp(x[j] - most);
    for (int64_t j = 0; j < a->keys; j++)
        add(h->o + row * a->value_width, h->v + j * a->value_width,
            cudnn_round_bf16(exp(x[j] - most) / sum), a->value_width);
    free(x);
    return most + log(sum);
}

static void run_forward(const Attention *a, char *const *address, const float *scalar, int64_t head)
{
    const Place p = {a, address, head};
    Head h = {.q = load(&p, 'q', a->rows, a->width),
              .k = load(&p, 'k', a->keys, a->width),
              .v = load(&p, 'v', a->keys, a->value_width),
              .o = numbers(a->rows * a->value_width)};
    for (int64_t i = 0; i < a->rows; i++)
        ((float *)address['s'])[head * a->rows + i] = (float)forward_row(a, &h, i, scalar);
    free(h.q);
    free(h.k);
    free(h.v);
    store(&p, 'o', h.o, a->rows, a->value_width);
}

static float gradient_row(const Attention *a, const Head *h, int64_t row, double statistics,
                          const float *scalar)
{
    const double *g = h->g + row * a->value_width, *q = h->q + row * a->width;
    double *x = scores_of(a, h, row, scalar);
    double sum = product(g, h->o + row * a->value_width, a->value_width) * (double)scalar['1'];
    for (int64_t j = 0; j < a->keys; j++) {
        double p = exp(x[j] - statistics);
        double dp = product(g, h->v + j * a->value_width, a->value_width);
        double ds = cudnn_round_bf16((dp - sum) * p * (double)scalar['c']);
        add(h->dv + j * a->value_width, g, cudnn_round_bf16(p), a->value_width);
        add(h->dk + j * a->width, q, ds, a->width);
        add(h->dq + row * a->width, h->k + j * a->width, ds, a->width);
    }
    free(x);
    return (float)sum;
}

static void run_gradient(const Attention *a, char *const *address, const float *scalar,
                         int64_t head)
{
    const Place p = {a, address, head};
    const float *statistics = (const float *)address['s'] + head * a->rows;
    Head h = {.q = load(&p, 'q', a->rows, a->width),
              .k = load(&p, 'k', a->keys, a->width),
              .v = load(&p, 'v', a->keys, a->value_width),
              .o = load(&p, 'o', a->rows, a->value_width),
              .g = load(&p, 'g', a->rows, a->value_width),
              .dq = numbers(a->rows * a->width),
              .dk = numbers(a->keys * a->width),
              .dv = numbers(a->keys * a->value_width)};
    for (int64_t i = 0; i < a->rows; i++)
        ((float *)address['d'])[head * a->rows + i] =
            gradient_row(a, &h, i, (double)statistics[i], scalar);
    free(h.q);
    free(h.k);
    free(h.v);
    free(h.o);
    free(h.g);
    store(&p, 'Q', h.dq, a->rows, a->width);
    store(&p, 'K', h.dk, a->keys, a->width);
    store(&p, 'V', h.dv, a->keys, a->value_width);
}

void cudnn_run_attention(const Operation *q, char *const *address, const float *scalar)
{
    for (int64_t head = 0; head < q->attention.batch * q->attention.heads; head++)
        if (q->part == CUDNN_ATTENTION)
            run_forward(&q->attention, address, scalar, head);
        else
            run_gradient(&q->attention, address, scalar, head);
}
