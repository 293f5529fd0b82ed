/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random numbers: dropout, and tensors of them. */
#include "frontend/language/elaborate/builtins_table.h"

#include "ir/random.h"

#include <inttypes.h>
#include <string.h>

/* A stream of random numbers for each call: named by its path and how many the path had before, so
 * that another layer added elsewhere does not change it.  What the train section draws itself is
 * apart from what a model draws outside of any label. */
static int64_t stream_key(Elab *l)
{
    const char *path = l->block_depth ? l->path : "#train";
    const uint64_t *found = map_find(&l->ordinals, path);
    uint64_t ordinal = found ? *found : 0;
    map_set(&l->ordinals, path, ordinal + 1);
    const char *text = pool_printf(l->pool, "%s#%" PRIu64, path, ordinal);
    return (int64_t)(hash_bytes(text, strlen(text), 0) >> 1);
}

static bool is_chance(BuiltinCall *c, int arg, double p, bool below_one)
{
    if (p >= 0 && (below_one ? p < 1 : p <= 1))
        return true;
    elab_error(c->l, c->arg_span[arg], "E105", "a %sprobability lies in 0 <= p %s 1, got %s",
               below_one ? "dropout " : "", below_one ? "<" : "<=", number_text(c->l->pool, p));
    return false;
}

Val builtin_dropout(BuiltinCall *c)
{
    double p = arg_float(c, 1);
    if (!is_chance(c, 1, p, true))
        return val_poison();
    int64_t key = stream_key(c->l);
    if (p == 0 || c->l->mode != FRONTEND_TRAIN)
        return c->arg[0];
    AttrList attrs = {.n = 0};
    attrs_float(&attrs, ATTR_p, p);
    attrs_int(&attrs, ATTR_key, key);
    const ValueId in[] = {arg_tensor(c, 0), elab_rng(c->l, c->span)};
    return call_node(c, OP_dropout, in, 2, &attrs);
}

/* ---- tensors of random numbers ---- */

/* below: of integers. */
static AttrList numbers(BuiltinCall *c, RandomKind kind, const int64_t *dims, int rank,
                        int64_t below)
{
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    attrs_int(&attrs, ATTR_key, stream_key(c->l));
    attrs_string(&attrs, ATTR_kind, random_kind_name[kind]);
    if (kind == RANDOM_INTEGERS)
        attrs_int(&attrs, ATTR_below, below);
    return attrs;
}

static Val floats(BuiltinCall *c, RandomKind kind)
{
    int64_t dims[TYPE_MAX_RANK];
    int rank = call_ints(c, 0, dims, TYPE_MAX_RANK);
    if (rank < 0)
        return val_poison();
    AttrList attrs = numbers(c, kind, dims, rank, 0);
    ValueId rng = elab_rng(c->l, c->span);
    return call_node(c, OP_random, &rng, 1, &attrs);
}

Val builtin_rand(BuiltinCall *c)
{
    return floats(c, RANDOM_UNIFORM);
}

Val builtin_randn(BuiltinCall *c)
{
    return floats(c, RANDOM_NORMAL);
}

/* [low, high) from randint(shape, high) or randint(shape, low, high). */
static bool integer_bounds(BuiltinCall *c, int64_t *low, int64_t *high)
{
    *low = arg_given(c, 2) ? arg_int(c, 1) : 0;
    *high = arg_int(c, arg_given(c, 2) ? 2 : 1);
    if (*low >= INT32_MIN && *low < *high && *high <= (int64_t)INT32_MAX + 1 &&
        *high - *low <= RANDOM_MOST)
        return true;
    elab_error(c->l, c->span, "E105",
               "integers from %" PRId64 " up to and without %" PRId64
               ": 1 to 2^31 of them, each an i32",
               *low, *high);
    return false;
}

Val builtin_randint(BuiltinCall *c)
{
    int64_t dims[TYPE_MAX_RANK], low, high;
    int rank = call_ints(c, 0, dims, TYPE_MAX_RANK);
    if (rank < 0 || !integer_bounds(c, &low, &high))
        return val_poison();
    AttrList attrs = numbers(c, RANDOM_INTEGERS, dims, rank, high - low);
    ValueId rng = elab_rng(c->l, c->span);
    if (low == 0)
        return call_node(c, OP_random, &rng, 1, &attrs);
    ValueId v = elab_node1(c->l, OP_random, rng, &attrs, NULL, c->span);
    if (v == VALUE_NONE)
        return val_poison();
    const ValueId in[] = {v, elab_constant(c->l, DTYPE_I32, (double)low, c->span)};
    return call_node(c, OP_add, in, 2, NULL);
}

/* The shape asked for, else that of p; the rank, -1 after a message. */
static int chance_shape(BuiltinCall *c, int64_t *dims)
{
    if (arg_given(c, 1))
        return call_ints(c, 1, dims, TYPE_MAX_RANK);
    if (c->arg[0].kind != VAL_TENSOR) {
        elab_error(c->l, c->span, "E206", "bernoulli of a number needs a shape");
        return -1;
    }
    const Type *t = elab_type(c->l, arg_tensor(c, 0));
    memcpy(dims, t->dim, sizeof t->dim);
    return t->rank;
}

/* 1 where a uniform number is less than p. */
Val builtin_bernoulli(BuiltinCall *c)
{
    int64_t dims[TYPE_MAX_RANK];
    int rank = chance_shape(c, dims);
    Val p = c->arg[0];
    if (rank < 0 || (p.kind != VAL_TENSOR && !is_chance(c, 0, val_number(p), false)))
        return val_poison();
    AttrList attrs = numbers(c, RANDOM_UNIFORM, dims, rank, 0), to = {.n = 0};
    ValueId u = elab_node1(c->l, OP_random, elab_rng(c->l, c->span), &attrs, NULL, c->span);
    if (u == VALUE_NONE)
        return val_poison();
    Val less = elab_elementwise(c->l, OP_lt, val_tensor(u), p, c->span, c->arg_span[0], c->span);
    if (less.kind != VAL_TENSOR)
        return less;
    if (!type_same_shape(elab_type(c->l, less.tensor), elab_type(c->l, u))) {
        elab_error(c->l, c->span, "E101", "chances of shape %s for numbers of shape %s",
                   type_shape_text(c->l->pool, elab_type(c->l, p.tensor)),
                   type_shape_text(c->l->pool, elab_type(c->l, u)));
        return val_poison();
    }
    attrs_string(&to, ATTR_dtype, "f32");
    return call_node(c, OP_cast, &less.tensor, 1, &to);
}
