/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Optimizers that are composed of ordinary operations: fusion makes a kernel of each tree of them,
 * and the last operation of a tree overwrites the parameter or the state in place.  Whatever reads
 * the old value of one is added before what overwrites it. */
#include "passes/autodiff/optim_rules.h"

#include "passes/autodiff/names.h"
#include "passes/rewrite.h"

#include <float.h>
#include <math.h>

/* --- expressions --- */

static ValueId op(const Update *u, OpKind kind, const ValueId *in, int n, const AttrList *attrs)
{
    return graph_add(u->g, kind, in, n, attrs, optim_name(u, "%update."),
                     value_node(u->g, u->param)->loc);
}

static ValueId unary(const Update *u, OpKind kind, ValueId a)
{
    return op(u, kind, &a, 1, NULL);
}

static ValueId binary(const Update *u, OpKind kind, ValueId a, ValueId b)
{
    const ValueId in[2] = {a, b};
    return op(u, kind, in, 2, NULL);
}

static ValueId number(const Update *u, double x)
{
    return graph_add_const(u->g, x, DTYPE_F32);
}

static ValueId add(const Update *u, ValueId a, ValueId b)
{
    return binary(u, OP_add, a, b);
}

static ValueId sub(const Update *u, ValueId a, ValueId b)
{
    return binary(u, OP_sub, a, b);
}

static ValueId mul(const Update *u, ValueId a, ValueId b)
{
    return binary(u, OP_mul, a, b);
}

static ValueId scaled(const Update *u, double factor, ValueId a)
{
    return mul(u, number(u, factor), a);
}

static ValueId square(const Update *u, ValueId a)
{
    return mul(u, a, a);
}

/* factor a + b */
static ValueId add_scaled(const Update *u, double factor, ValueId a, ValueId b)
{
    return optim_add_scaled(u->g, factor, a, b, optim_name(u, "%update."));
}

/* mean + weight (x - mean), which stays where x is: in f32 the factors beta and 1 - beta do not sum
 * up to 1. */
static ValueId mixed(const Update *u, ValueId mean, ValueId weight, ValueId x)
{
    return add(u, mean, mul(u, weight, sub(u, x, mean)));
}

/* beta mean + (1 - beta) x^2 */
static ValueId mean_square(const Update *u, double beta, ValueId mean, ValueId x)
{
    return add_scaled(u, beta, mean, scaled(u, 1 - beta, square(u, x)));
}

static double elements(const Update *u, ValueId v)
{
    return (double)type_elements(value_type(u->g, v));
}

static ValueId norm(const Update *u, ValueId v)
{
    return unary(u, OP_sqrt, unary(u, OP_sumsq, v));
}

/* The value, which was made last, overwrites a persistent tensor, of which `target` is the newest
 * contents.  It is what later reads see. */
static ValueId overwrite(const Update *u, ValueId target, ValueId v)
{
    ValueId storage = value_storage(u->g, target);
    const char *name = graph_value(u->g, storage)->name + 1;
    graph_value(u->g, v)->writes = storage;
    autodiff_rename(u->g, v, pool_printf(u->g->pool, "$next.%s", name));
    return v;
}

/* The gradient, clipped; with weight decay as a part of it. */
static ValueId gradient(const Update *u, bool decayed)
{
    ValueId g = mul(u, u->grad, u->clip);
    double decay = decayed && optim_decays(u) ? u->rule->weight_decay : 0;
    return add_scaled(u, decay, u->param, g);
}

/* The parameter, with weight decay that is no part of the gradient: w - lr decay w. */
static ValueId decayed_param(const Update *u)
{
    if (!optim_decays(u))
        return u->param;
    ValueId kept = sub(u, number(u, 1), scaled(u, u->rule->weight_decay, u->lr));
    return mul(u, u->param, kept);
}

static ValueId step_number(const Update *u)
{
    AttrList attrs = {0};
    attrs_string(&attrs, ATTR_dtype, "f32");
    return op(u, OP_cast, &u->step, 1, &attrs);
}

/* 1 - beta^step = 1 - exp(-2x) = 2 tanh(x) / (1 + tanh(x)), without the cancellation of the first
 * form. */
static ValueId correction(const Update *u, double beta)
{
    if (beta <= 0)
        return number(u, 1);
    ValueId t = unary(u, OP_tanh, scaled(u, -log(beta) / 2, step_number(u)));
    return binary(u, OP_div, scaled(u, 2, t), add(u, number(u, 1), t));
}

/* --- the optimizers --- */

/* torch.optim.RMSprop; Tieleman and Hinton 2012, lecture 6.5, centered: Graves 2013. */
void optim_add_rmsprop(const Update *u)
{
    const UpdateRule *r = u->rule;
    ValueId g = gradient(u, true);
    ValueId v = optim_add_state(u, "$rms_v.", "rms_v", "zeros");
    ValueId mean = overwrite(u, v, mean_square(u, r->alpha, v, g));
    if (r->centered) {
        ValueId a = optim_add_state(u, "$rms_mean.", "rms_mean", "zeros");
        ValueId average = overwrite(u, a, mixed(u, a, number(u, 1 - r->alpha), g));
        mean = sub(u, mean, square(u, average));
    }
    ValueId size = add(u, unary(u, OP_sqrt, mean), number(u, r->eps));
    ValueId move = binary(u, OP_div, g, size);
    if (r->momentum > 0) {
        ValueId m = optim_add_state(u, "$m.", "momentum", "zeros");
        move = overwrite(u, m, add_scaled(u, r->momentum, m, move));
    }
    overwrite(u, u->param, sub(u, u->param, mul(u, u->lr, move)));
}

/* torch.optim.Adagrad; Duchi, Hazan and Singer 2011. */
void optim_add_adagrad(const Update *u)
{
    const UpdateRule *r = u->rule;
    const char *init =
        r->initial != 0 ? pool_printf(u->g->pool, "value(%.17g)", r->initial) : "zeros";
    ValueId g = gradient(u, true), lr = u->lr;
    if (r->lr_decay > 0) {
        ValueId before = sub(u, step_number(u), number(u, 1));
        lr = binary(u, OP_div, lr, add_scaled(u, r->lr_decay, before, number(u, 1)));
    }
    ValueId s = optim_add_state(u, "$adagrad_sum.", "adagrad_sum", init);
    ValueId sum = overwrite(u, s, add(u, s, square(u, g)));
    ValueId size = add(u, unary(u, OP_sqrt, sum), number(u, r->eps));
    overwrite(u, u->param, sub(u, u->param, mul(u, lr, binary(u, OP_div, g, size))));
}

/* Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2. */
void optim_add_lion(const Update *u)
{
    const UpdateRule *r = u->rule;
    ValueId g = gradient(u, false);
    ValueId m = optim_add_state(u, "$lion_m.", "lion_m", "zeros");
    ValueId direction = unary(u, OP_sign, mixed(u, m, number(u, 1 - r->beta1), g));
    overwrite(u, u->param, sub(u, decayed_param(u), mul(u, u->lr, direction)));
    overwrite(u, m, mixed(u, m, number(u, 1 - r->beta2), g));
}

/* You et al. 2020, "Large Batch Optimization for Deep Learning", algorithm 2, where phi is the
 * identity; where either norm is 0 the ratio is 1, as in the authors' code. */
void optim_add_lamb(const Update *u)
{
    const UpdateRule *r = u->rule;
    ValueId g = gradient(u, false);
    ValueId m = optim_add_state(u, "$lamb_m.", "lamb_m", "zeros");
    ValueId v = optim_add_state(u, "$lamb_v.", "lamb_v", "zeros");
    ValueId mean = overwrite(u, m, mixed(u, m, number(u, 1 - r->beta1), g));
    ValueId spread = overwrite(u, v, mean_square(u, r->beta2, v, g));
    ValueId root = unary(u, OP_rsqrt, correction(u, r->beta2));
    ValueId size = add(u, mul(u, unary(u, OP_sqrt, spread), root), number(u, r->eps));
    ValueId top = mul(u, binary(u, OP_div, number(u, 1), correction(u, r->beta1)), mean);
    double decay = optim_decays(u) ? r->weight_decay : 0;
    ValueId move = add_scaled(u, decay, u->param, binary(u, OP_div, top, size));
    ValueId weights = norm(u, u->param), moves = norm(u, move);
    const ValueId choice[3] = {
        binary(u, OP_gt, binary(u, OP_minimum, weights, moves), number(u, 0)),
        binary(u, OP_div, weights, moves), number(u, 1)};
    ValueId rate = mul(u, u->lr, op(u, OP_select, choice, 3, NULL));
    overwrite(u, u->param, sub(u, u->param, mul(u, rate, move)));
}

/* --- Adafactor --- */

/* The storage dimension that is dimension `user` of the parameter for its user. */
static int stored_dim(const Update *u, int user)
{
    int rank;
    ValueId param = value_storage(u->g, u->param);
    const int64_t *perm = node_ints(value_node(u->g, param), ATTR_perm, &rank);
    for (int i = 0; perm && i < rank; i++)
        if (perm[i] == user)
            return i;
    return user;
}

static ValueId mean_along(const Update *u, ValueId v, int64_t axis)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_axes, &axis, 1);
    attrs_int(&attrs, ATTR_keepdims, 1);
    return op(u, OP_mean, &v, 1, &attrs);
}

/* The state that holds means of squares along an axis, after this step. */
static ValueId mean_state(const Update *u, ValueId squares, int axis, const char *prefix,
                          const char *role, ValueId weight)
{
    ValueId s = optim_add_state(u, prefix, role, "zeros");
    graph_value(u->g, s)->type.dim[axis] = 1;
    return overwrite(u, s, mixed(u, s, weight, mean_along(u, squares, axis)));
}

/* The running mean of the squares of the gradient: of a matrix the product of those of its rows and
 * columns, over their mean. */
static ValueId factored(const Update *u, ValueId g, ValueId weight)
{
    int rank = value_type(u->g, u->param)->rank;
    if (rank < 2) {
        ValueId v = optim_add_state(u, "$adafactor_v.", "adafactor_v", "zeros");
        return overwrite(u, v, mixed(u, v, weight, square(u, g)));
    }
    int column = stored_dim(u, rank - 1), row = stored_dim(u, rank - 2);
    ValueId squares = square(u, g);
    ValueId rows = mean_state(u, squares, column, "$adafactor_row.", "adafactor_row", weight);
    ValueId columns = mean_state(u, squares, row, "$adafactor_col.", "adafactor_col", weight);
    ValueId all = binary(u, OP_maximum, mean_along(u, rows, row), number(u, (double)FLT_EPSILON));
    return mul(u, binary(u, OP_div, rows, all), columns);
}

/* torch.optim.Adafactor (PyTorch 2.5 and later); Shazeer and Stern 2018. */
void optim_add_adafactor(const Update *u)
{
    const UpdateRule *r = u->rule;
    ValueId g = gradient(u, false), t = step_number(u), one = number(u, 1);
    ValueId weight = binary(u, OP_pow, t, number(u, r->beta2_decay));
    ValueId rate = binary(u, OP_minimum, u->lr, unary(u, OP_rsqrt, t));
    ValueId size = scaled(u, 1 / sqrt(elements(u, u->param)), norm(u, u->param));
    rate = mul(u, rate, binary(u, OP_maximum, number(u, r->eps), size));
    ValueId v = factored(u, g, weight);
    double least = (double)FLT_EPSILON * (double)FLT_EPSILON;
    ValueId move = mul(u, g, unary(u, OP_rsqrt, binary(u, OP_maximum, v, number(u, least))));
    ValueId length = scaled(u, 1 / (r->clip_update * sqrt(elements(u, u->param))), norm(u, move));
    rate = binary(u, OP_div, rate, binary(u, OP_maximum, one, length));
    overwrite(u, u->param, sub(u, decayed_param(u), mul(u, rate, move)));
}

/* --- Muon --- */

/* a b, a^T b or a b^T */
static ValueId product(const Update *u, ValueId a, ValueId b, bool ta, bool tb)
{
    AttrList attrs = {0};
    const ValueId in[2] = {a, b};
    if (ta)
        attrs_int(&attrs, ATTR_ta, 1);
    if (tb)
        attrs_int(&attrs, ATTR_tb, 1);
    return op(u, OP_matmul, in, 2, &attrs);
}

enum { MAX_ITERATIONS = 100 };

/* Newton-Schulz iteration: a matrix whose singular values are all near 1, with the singular vectors
 * of x, which has a norm of at most 1. */
static ValueId orthogonal(const Update *u, ValueId x)
{
    const double a = 3.4445, b = -4.7750, c = 2.0315;
    const Type *t = value_type(u->g, x);
    bool tall = t->dim[0] > t->dim[1];
    for (int64_t i = 0; i < u->rule->ns_steps && i < MAX_ITERATIONS; i++) {
        ValueId gram = product(u, x, x, tall, !tall);
        ValueId poly = add_scaled(u, b, gram, scaled(u, c, product(u, gram, gram, false, false)));
        ValueId turned =
            tall ? product(u, x, poly, false, false) : product(u, poly, x, false, false);
        x = add_scaled(u, a, x, turned);
    }
    return x;
}

static ValueId reshaped(const Update *u, ValueId v, int rank, const int64_t *dims)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    return op(u, OP_reshape, &v, 1, &attrs);
}

/* Factor on the rate of a matrix [rows, columns], torch.optim.Muon's adjust_lr_fn. */
static double muon_scale(const UpdateRule *r, double rows, double columns)
{
    return r->match_rms ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns));
}

/* torch.optim.Muon (PyTorch 2.9 and later) in f32, where that iterates in bf16; Jordan et al. 2024,
 * https://kellerjordan.github.io/posts/muon.  A convolution's weight is the matrix of its outputs
 * by all else: how it is stored decides only whether the transposed one is made orthogonal, and in
 * which order its other dimension comes. */
void optim_add_muon(const Update *u)
{
    const UpdateRule *r = u->rule;
    const Type type = *value_type(u->g, u->param);
    int rank = type.rank, at = rank ? stored_dim(u, 0) : 0;
    int64_t all = type_elements(&type), rows = rank ? type.dim[at] : 1;
    int64_t columns = rows ? all / rows : 1;
    bool last = at > 0 && at == rank - 1;
    ValueId g = gradient(u, false), m = optim_add_state(u, "$m.", "momentum", "zeros");
    ValueId x = overwrite(u, m, mixed(u, m, number(u, 1 - r->momentum), g));
    if (r->nesterov)
        x = mixed(u, g, number(u, r->momentum), x);
    ValueId length = binary(u, OP_maximum, norm(u, x), number(u, r->eps));
    x = binary(u, OP_div, x, length);
    x = reshaped(u, x, 2, last ? (int64_t[]){columns, rows} : (int64_t[]){rows, columns});
    x = reshaped(u, orthogonal(u, x), rank, type.dim);
    ValueId rate = scaled(u, muon_scale(r, (double)rows, (double)columns), u->lr);
    overwrite(u, u->param, sub(u, decayed_param(u), mul(u, rate, x)));
}

/* --- running means of parameters --- */

void optim_add_average(const Update *u, ValueId next, ValueId weight)
{
    ValueId ema = optim_add_state(u, "$ema.", "ema", "zeros");
    overwrite(u, ema, mixed(u, ema, weight, next));
}
