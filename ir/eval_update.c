/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of optimizer steps and of checksums. */
#include "ir/eval_internal.h"

#include <math.h>
#include <string.h>

/* (norm) -> min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ */
void eval_clip_scale(EvalState *s, const Node *n)
{
    double max_norm = node_float(n, ATTR_max_norm, 1);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        double scale = max_norm / (eval_in(s, n, 0)[i] + 1e-6);
        eval_out(s, n, 0)[i] = scale > 1 ? 1 : scale; /* a NaN norm stays NaN */
    }
}

/* Before gradients are there, nothing moves. */
void eval_minimize(EvalState *s, const Node *n)
{
    for (int o = 0; o < n->n_out; o++)
        memcpy(eval_out(s, n, o), eval_in(s, n, o + 1),
               (size_t)eval_out_count(s, n, o) * sizeof(double));
}

/* (w, g, m, lr, clip) -> w', m', or (w, g, lr, clip) -> w'.  torch.optim.SGD, with m = 0 before the
 * first update: with dampening d the first step is then (1-d) g, where PyTorch starts with g. */
void eval_sgd_step(EvalState *s, const Node *n)
{
    bool has_m = n->n_in == 5;
    const double *w = eval_in(s, n, 0), *g = eval_in(s, n, 1), *m = has_m ? eval_in(s, n, 2) : NULL;
    double lr = eval_in(s, n, n->n_in - 2)[0], clip = eval_in(s, n, n->n_in - 1)[0];
    double decay = node_float(n, ATTR_weight_decay, 0), momentum = node_float(n, ATTR_momentum, 0);
    double dampening = node_float(n, ATTR_dampening, 0);
    bool nesterov = node_flag(n, ATTR_nesterov);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        double step = g[i] * clip + decay * w[i];
        if (has_m) {
            double velocity = momentum * m[i] + (1 - dampening) * step;
            eval_out(s, n, 1)[i] = velocity;
            step = nesterov ? step + momentum * velocity : velocity;
        }
        eval_out(s, n, 0)[i] = w[i] - lr * step;
    }
}

/* (w, g, m, v, lr, clip, step) -> w', m', v'.  torch.optim.Adam, or AdamW when decoupled
 * (Kingma and Ba 2015; Loshchilov and Hutter 2019); eps is added outside the root. */
void eval_adam_step(EvalState *s, const Node *n)
{
    const double *w = eval_in(s, n, 0), *g = eval_in(s, n, 1);
    const double *m = eval_in(s, n, 2), *v = eval_in(s, n, 3);
    double lr = eval_in(s, n, 4)[0], clip = eval_in(s, n, 5)[0], step = eval_in(s, n, 6)[0];
    double beta1 = node_float(n, ATTR_beta1, 0.9), beta2 = node_float(n, ATTR_beta2, 0.999);
    double eps = node_float(n, ATTR_eps, 1e-8), decay = node_float(n, ATTR_weight_decay, 0);
    bool decoupled = node_flag(n, ATTR_decoupled);
    double correction1 = 1 - pow(beta1, step), correction2 = 1 - pow(beta2, step);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        double grad = g[i] * clip + (decoupled ? 0 : decay * w[i]);
        double kept = decoupled ? w[i] - lr * decay * w[i] : w[i];
        double m1 = beta1 * m[i] + (1 - beta1) * grad;
        double v1 = beta2 * v[i] + (1 - beta2) * grad * grad;
        eval_out(s, n, 0)[i] =
            kept - lr * (m1 / correction1) / (sqrt(v1) / sqrt(correction2) + eps);
        eval_out(s, n, 1)[i] = m1;
        eval_out(s, n, 2)[i] = v1;
    }
}

/* x -> i32[2] = low and high word of h = sum over i of (bits(x[i]) + 1) * c(i) modulo 2^64, where
 * bits is the float's pattern as an unsigned 32-bit number and c(i) = (2i + 1) * 0x9E3779B97F4A7C15
 * modulo 2^64.  A sum, so that any split of the elements adds up to the same hash; the odd factors
 * make it depend on where each element stands. */
void eval_checksum(EvalState *s, const Node *n)
{
    uint64_t hash = 0;
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        float value = (float)eval_in(s, n, 0)[i];
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        hash += ((uint64_t)bits + 1) * ((2 * (uint64_t)i + 1) * 0x9E3779B97F4A7C15u);
    }
    eval_out(s, n, 0)[0] = (int32_t)(uint32_t)hash;
    eval_out(s, n, 0)[1] = (int32_t)(uint32_t)(hash >> 32);
}
