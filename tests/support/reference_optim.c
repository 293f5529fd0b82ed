/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/reference_optim.h"

#include <math.h>
#include <string.h>

/* torch.optim.SGD, Adam and AdamW, one element. */
static void reference_update(const UpdateRule *o, Tensor *p, int64_t i, double g, double lr, int t)
{
    double *w = &p->data[i], *m = &p->m[i], *v = &p->v[i];
    double decay = o->decay_matrices_only && !p->matrix ? 0 : o->weight_decay;
    if (o->optim == OPTIM_ADAMW)
        *w *= 1 - lr * decay;
    else
        g += decay * *w;
    if (o->optim == OPTIM_SGD) {
        *m = o->momentum * *m + (1 - o->dampening) * g;
        *w -= lr * (o->nesterov ? g + o->momentum * *m : *m);
        return;
    }
    *m += (1 - o->beta1) * (g - *m);
    *v += (1 - o->beta2) * (g * g - *v);
    double m_hat = *m / (1 - pow(o->beta1, t)), v_hat = *v / (1 - pow(o->beta2, t));
    *w -= lr * m_hat / (sqrt(v_hat) + o->eps);
}

/* torch.optim.RMSprop: v mean of squares, a mean, m momentum. */
static void reference_rmsprop(const UpdateRule *o, Tensor *p, const double *grad, double lr)
{
    for (int64_t i = 0; i < p->count; i++) {
        double g = grad[i] + o->weight_decay * p->data[i];
        p->v[i] = o->alpha * p->v[i] + (1 - o->alpha) * g * g;
        p->a[i] = o->alpha * p->a[i] + (1 - o->alpha) * g;
        double variance = p->v[i] - (o->centered ? p->a[i] * p->a[i] : 0);
        p->m[i] = o->momentum * p->m[i] + g / (sqrt(variance) + o->eps);
        p->data[i] -= lr * p->m[i];
    }
}

/* torch.optim.Adagrad: v sum of squares, without what it starts at. */
static void reference_adagrad(const UpdateRule *o, Tensor *p, const double *grad, double lr, int t)
{
    for (int64_t i = 0; i < p->count; i++) {
        double g = grad[i] + o->weight_decay * p->data[i];
        p->v[i] += g * g + (t == 1 ? o->initial : 0);
        p->data[i] -= lr / (1 + (t - 1) * o->lr_decay) * g / (sqrt(p->v[i]) + o->eps);
    }
}

/* Chen et al. 2023, program 1. */
static void reference_lion(const UpdateRule *o, Tensor *p, const double *grad, double lr)
{
    double decay = o->decay_matrices_only && !p->matrix ? 0 : o->weight_decay;
    for (int64_t i = 0; i < p->count; i++) {
        double mean = o->beta1 * p->m[i] + (1 - o->beta1) * grad[i];
        double sign = mean > 0 ? 1 : mean < 0 ? -1 : 0;
        p->data[i] -= lr * (sign + decay * p->data[i]);
        p->m[i] = o->beta2 * p->m[i] + (1 - o->beta2) * grad[i];
    }
}

static double length_of(const double *x, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += x[i] * x[i];
    return sqrt(squares);
}

/* You et al. 2020, algorithm 2. */
static void reference_lamb(const UpdateRule *o, Tensor *p, const double *grad, double lr, int t)
{
    Pool *pool = pool_new();
    double decay = o->decay_matrices_only && !p->matrix ? 0 : o->weight_decay;
    double *r = POOL_ARRAY(pool, (size_t)p->count, double);
    for (int64_t i = 0; i < p->count; i++) {
        p->m[i] = o->beta1 * p->m[i] + (1 - o->beta1) * grad[i];
        p->v[i] = o->beta2 * p->v[i] + (1 - o->beta2) * grad[i] * grad[i];
        double m = p->m[i] / (1 - pow(o->beta1, t)), v = p->v[i] / (1 - pow(o->beta2, t));
        r[i] = m / (sqrt(v) + o->eps) + decay * p->data[i];
    }
    double a = length_of(p->data, p->count), b = length_of(r, p->count);
    for (int64_t i = 0; i < p->count; i++)
        p->data[i] -= lr * (a > 0 && b > 0 ? a / b : 1) * r[i];
    pool_free(pool);
}

/* The running mean of the squares at [.., row, column], from those of rows (m) and of columns (v),
 * as torch.optim.Adafactor: row column / mean of the rows. */
static double factored_square(const Tensor *p, int64_t i)
{
    int64_t matrix = i / (p->rows * p->columns), in = i % (p->rows * p->columns);
    double mean = 0;
    for (int64_t r = 0; r < p->rows; r++)
        mean += p->m[matrix * p->rows + r] / (double)p->rows;
    return p->m[matrix * p->rows + in / p->columns] * p->v[matrix * p->columns + in % p->columns] /
           fmax(mean, 0x1p-23);
}

static void factor_squares(Tensor *p, const double *grad, double weight)
{
    int64_t matrices = p->count / (p->rows * p->columns);
    for (int64_t k = 0; k < matrices * p->rows; k++)
        p->m[k] *= 1 - weight;
    for (int64_t k = 0; k < matrices * p->columns; k++)
        p->v[k] *= 1 - weight;
    for (int64_t i = 0; i < p->count; i++) {
        int64_t row = i / p->columns, matrix = row / p->rows;
        double square = weight * grad[i] * grad[i];
        p->m[row] += square / (double)p->columns;
        p->v[matrix * p->columns + i % p->columns] += square / (double)p->rows;
    }
}

/* torch.optim.Adafactor of PyTorch 2.5. */
static void reference_adafactor(const UpdateRule *o, Tensor *p, const double *grad, double lr,
                                int t)
{
    Pool *pool = pool_new();
    double weight = pow(t, o->beta2_decay), rho = fmin(lr, 1 / sqrt(t));
    double root = sqrt((double)p->count), *u = POOL_ARRAY(pool, (size_t)p->count, double);
    double alpha = fmax(o->eps, length_of(p->data, p->count) / root) * rho;
    if (p->matrix)
        factor_squares(p, grad, weight);
    for (int64_t i = 0; i < p->count; i++) {
        if (!p->matrix)
            p->v[i] += weight * (grad[i] * grad[i] - p->v[i]);
        double square = p->matrix ? factored_square(p, i) : p->v[i];
        u[i] = grad[i] / sqrt(fmax(square, 0x1p-46));
    }
    double denominator = fmax(1, length_of(u, p->count) / (root * o->clip_update));
    for (int64_t i = 0; i < p->count; i++)
        p->data[i] += -lr * o->weight_decay * p->data[i] - alpha / denominator * u[i];
    pool_free(pool);
}

/* x <- 3.4445 x - 4.7750 (x x^T) x + 2.0315 (x x^T)^2 x of [rows, columns] */
static void newton_schulz(Pool *pool, double *x, int64_t rows, int64_t columns)
{
    double *gram = POOL_ARRAY(pool, (size_t)(rows * rows), double);
    double *next = POOL_ARRAY(pool, (size_t)(rows * columns), double);
    for (int64_t i = 0; i < rows * rows; i++) {
        gram[i] = 0;
        for (int64_t k = 0; k < columns; k++)
            gram[i] += x[i / rows * columns + k] * x[i % rows * columns + k];
    }
    double *once = POOL_ARRAY(pool, (size_t)(rows * columns), double);
    for (int64_t i = 0; i < rows * columns; i++)
        for (int64_t k = 0; k < rows; k++)
            once[i] += gram[i / columns * rows + k] * x[k * columns + i % columns];
    for (int64_t i = 0; i < rows * columns; i++) {
        double twice = 0;
        for (int64_t k = 0; k < rows; k++)
            twice += gram[i / columns * rows + k] * once[k * columns + i % columns];
        next[i] = 3.4445 * x[i] - 4.7750 * once[i] + 2.0315 * twice;
    }
    memcpy(x, next, (size_t)(rows * columns) * sizeof *x);
}

/* torch.optim.Muon of PyTorch 2.9, of a tensor as the matrix of its first dimension by all else. */
static void reference_muon(const UpdateRule *o, Tensor *p, const double *grad, double lr)
{
    Pool *pool = pool_new();
    int64_t rows = p->first, columns = p->count / rows;
    double *x = POOL_ARRAY(pool, (size_t)p->count, double);
    for (int64_t i = 0; i < p->count; i++) {
        p->m[i] = o->momentum * p->m[i] + (1 - o->momentum) * grad[i];
        x[i] = o->nesterov ? (1 - o->momentum) * grad[i] + o->momentum * p->m[i] : p->m[i];
    }
    double length = fmax(length_of(x, p->count), o->eps);
    for (int64_t i = 0; i < p->count; i++)
        x[i] /= length;
    for (int64_t k = 0; k < o->ns_steps; k++)
        newton_schulz(pool, x, rows, columns);
    double larger = (double)(rows > columns ? rows : columns);
    double tall = (double)rows / (double)columns;
    double scale = o->match_rms ? 0.2 * sqrt(larger) : sqrt(fmax(1, tall));
    for (int64_t i = 0; i < p->count; i++)
        p->data[i] -= lr * (o->weight_decay * p->data[i] + scale * x[i]);
    pool_free(pool);
}

void reference_tensor(const UpdateRule *o, Tensor *p, const double *grad, double lr, int t)
{
    switch (o->optim) {
    case OPTIM_SGD:
    case OPTIM_ADAM:
    case OPTIM_ADAMW:
        for (int64_t i = 0; i < p->count; i++)
            reference_update(o, p, i, grad[i], lr, t);
        return;
    case OPTIM_RMSPROP:
        reference_rmsprop(o, p, grad, lr);
        return;
    case OPTIM_ADAGRAD:
        reference_adagrad(o, p, grad, lr, t);
        return;
    case OPTIM_LION:
        reference_lion(o, p, grad, lr);
        return;
    case OPTIM_LAMB:
        reference_lamb(o, p, grad, lr, t);
        return;
    case OPTIM_ADAFACTOR:
        reference_adafactor(o, p, grad, lr, t);
        return;
    case OPTIM_MUON:
        reference_muon(o, p, grad, lr);
        return;
    }
}
