/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/run/step_compare.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A value may be off by tolerance times the largest of its tensor and a little, or by its own
 * slack. */
typedef struct Expected {
    const double *value;
    const double *slack; /* NULL: none */
    double little;
} Expected;

/* What is little beside the terms of a sum.  Where these cancel, as in the gradient of a bias
 * before batch normalization, all that is left is the rounding of terms of about 1, and momenta
 * hold it as it is: CANCELLED times the tolerance are three units of it. */
static const double LITTLE = 1e-3, CANCELLED = 4e-3;

static bool is_momentum(const Node *n)
{
    return n->op == OP_state && strcmp(node_string(n, ATTR_role, ""), "momentum") == 0;
}

static double largest(const double *x, int64_t n)
{
    double most = 0;
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, fabs(x[k]));
    return most;
}

/* Index of the first element of a stored tensor that is off, or -1. */
static int64_t first_off(Pool *pool, const Graph *h, const Node *stored, const float *got,
                         const Graph *g, const Node *plain, Expected want, double tolerance)
{
    const Type *t = value_type(h, stored->out[0]);
    int64_t n = type_elements(t);
    int64_t *theirs = model_layout(pool, stored, t);
    int64_t *mine = model_layout(pool, plain, value_type(g, plain->out[0]));
    int64_t *at = POOL_ARRAY(pool, (size_t)n + 1, int64_t); /* user's -> plain's */
    for (int64_t k = 0; k < n; k++)
        at[mine[k]] = k;
    double scale = largest(want.value, n);
    for (int64_t k = 0; k < n; k++) {
        int64_t p = at[theirs[k]];
        double slack = tolerance * (scale + want.little) + (want.slack ? want.slack[p] : 0);
        if (!(fabs((double)got[k] - want.value[p]) <= slack))
            return k;
    }
    return -1;
}

static ValueId state_of(const Graph *g, const char *param, const char *role)
{
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (n->op == OP_state && strcmp(node_string(n, ATTR_of, ""), param + 1) == 0 &&
            strcmp(node_string(n, ATTR_role, ""), role) == 0)
            return n->out[0];
    }
    return VALUE_NONE;
}

/* Adam divides the mean gradient by its root mean square: where both are tiny, rounding decides the
 * direction of the update, and the weight may be off by it. */
static const double *adam_slack(Pool *pool, const EvalState *s, const char *param, double lr,
                                double tolerance)
{
    ValueId m = state_of(s->graph, param, "adam_m"), v = state_of(s->graph, param, "adam_v");
    if (m == VALUE_NONE || v == VALUE_NONE)
        return NULL;
    int64_t n = type_elements(value_type(s->graph, m));
    const double *mean = eval_get(s, m), *square = eval_get(s, v);
    double *slack = POOL_ARRAY(pool, (size_t)n, double), most = largest(mean, n);
    for (int64_t k = 0; k < n; k++) {
        double small = fmin(fabs(mean[k]), sqrt(square[k])) + 1e-30;
        slack[k] = 8 * lr * fmin(1, 10 * tolerance * (most + 1e-3) / small);
    }
    return slack;
}

const char *compare_state(const Running *r, const EvalState *s, double lr, double tolerance)
{
    const Graph *g = s->graph, *h = r->built->graph;
    Pool *pool = r->built->pool;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!node_is_persistent(n))
            continue;
        const char *name = graph_value(g, n->out[0])->name;
        Expected want = {eval_get(s, n->out[0]), NULL, is_momentum(n) ? CANCELLED : LITTLE};
        if (n->op == OP_param)
            want.slack = adam_slack(pool, s, name, lr, tolerance);
        ValueId v = graph_find(h, name);
        /* Statistics are of the forward part only: ten times as exact as gradients. */
        double allowed = n->op == OP_buffer ? 0.1 * tolerance : tolerance;
        int64_t k = first_off(pool, h, value_node(h, v), run_at(r, v), g, n, want, allowed);
        if (k >= 0)
            return pool_printf(pool, "%s element %lld is %.9g", name, (long long)k,
                               (double)((const float *)run_at(r, v))[k]);
    }
    return NULL;
}

/* A norm whose square is no f32 is infinite, as in PyTorch. */
static bool square_overflows(double norm)
{
    return norm * norm > (double)FLT_MAX;
}

const char *compare_numbers(const Running *r, const EvalState *s, double tolerance)
{
    static const char *const names[] = {"loss", "grad_norm"};
    for (int i = 0; i < 2; i++) {
        if (graph_output(s->graph, names[i]) == VALUE_NONE)
            continue; /* no norm without gradients */
        double got = run_output(r, names[i]);
        double want = eval_get(s, graph_output(s->graph, names[i]))[0];
        if (i == 1 && square_overflows(want) && isinf(got))
            continue;
        if (!(fabs(got - want) <= tolerance * (fabs(want) + 1e-2)))
            return pool_printf(r->built->pool, "%s is %.9g, expected %.9g", names[i], got, want);
    }
    return NULL;
}
