/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Patterns of einops, and rearrange in terms of reshape and transpose. */
#include "frontend/language/elaborate/einops.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

bool pattern_fail(const Pattern *p, const char *code, const char *what, const char *detail)
{
    elab_error(p->call->l, p->span, code, "%s: %s%s%s", p->call->fn->name, what, detail ? " " : "",
               detail ? detail : "");
    return false;
}

/* ---- parsing ---- */

static int axis_index(Pattern *p, const char *text, size_t n)
{
    for (int i = 0; i < p->n_names; i++)
        if (strlen(p->name[i]) == n && strncmp(p->name[i], text, n) == 0)
            return i;
    if (p->n_names == MAX_AXES * MAX_TERMS)
        return -1;
    p->name[p->n_names] = pool_strndup(p->call->l->pool, text, n);
    return p->n_names++;
}

static bool add_axis(Pattern *p, Side *side, bool open, const char *text, size_t n)
{
    if (!open) {
        if (side->n == MAX_AXES)
            return pattern_fail(p, "E105", "too many dimensions in the pattern", NULL);
        side->group[side->n++] = (Group){.n = 0};
    }
    Group *g = &side->group[side->n - 1];
    if (n == 1 && *text == '1')
        return true;
    int axis = axis_index(p, text, n);
    if (axis < 0 || g->n == MAX_AXES)
        return pattern_fail(p, "E105", "too many names in the pattern", NULL);
    g->axis[g->n++] = axis;
    return true;
}

static bool open_group(Pattern *p, Side *side)
{
    if (side->n == MAX_AXES)
        return pattern_fail(p, "E105", "too many dimensions in the pattern", NULL);
    side->group[side->n++] = (Group){.n = 0};
    return true;
}

/* letters: each letter is a name of its own. */
bool pattern_side(Pattern *p, const char *text, size_t len, bool letters, Side *side)
{
    bool open = false;
    side->n = 0;
    for (size_t i = 0; i < len;) {
        if (text[i] == ' ') {
            i++;
        } else if (text[i] == '(' || text[i] == ')') {
            if (open != (text[i] == ')'))
                return pattern_fail(p, "E105", "the parentheses of the pattern do not match", NULL);
            open = text[i++] == '(';
            if (open && !open_group(p, side))
                return false;
        } else if (isalnum((unsigned char)text[i]) || text[i] == '_') {
            size_t n = 1;
            while (!letters && i + n < len &&
                   (isalnum((unsigned char)text[i + n]) || text[i + n] == '_'))
                n++;
            if (isdigit((unsigned char)text[i]) && (n != 1 || text[i] != '1'))
                return pattern_fail(p, "E105", "a name in the pattern cannot start with a digit",
                                    NULL);
            if (!add_axis(p, side, open, text + i, n))
                return false;
            i += n;
        } else {
            return pattern_fail(p, "E105", "unexpected character in the pattern:",
                                pool_printf(p->call->l->pool, "'%c'", text[i]));
        }
    }
    return !open || pattern_fail(p, "E105", "the parentheses of the pattern do not match", NULL);
}

bool side_has(const Side *side, int axis)
{
    for (int i = 0; i < side->n; i++)
        for (int k = 0; k < side->group[i].n; k++)
            if (side->group[i].axis[k] == axis)
                return true;
    return false;
}

bool axes_once(const Pattern *p, const Side *side)
{
    bool seen[MAX_AXES * MAX_TERMS] = {false};
    for (int i = 0; i < side->n; i++) {
        for (int k = 0; k < side->group[i].n; k++) {
            int axis = side->group[i].axis[k];
            if (seen[axis])
                return pattern_fail(p, "E105", "a name stands twice on one side:", p->name[axis]);
            seen[axis] = true;
        }
    }
    return true;
}

/* ---- rearrange ---- */

static bool named_sizes(Pattern *p)
{
    const BuiltinCall *c = p->call;
    for (int i = 0; i < c->n_named; i++) {
        int known = p->n_names, at = axis_index(p, c->named[i].name, strlen(c->named[i].name));
        if (at < 0 || at == known) {
            elab_error(c->l, c->named[i].span, "E206", "the pattern has no name `%s`",
                       c->named[i].name);
            return false;
        }
        if (!want_int(c->l, c->named[i].value, c->named[i].span, "a size", &p->size[at]))
            return false;
        if (p->size[at] < 1) {
            elab_error(c->l, c->named[i].span, "E105", "a size must be at least 1");
            return false;
        }
    }
    return true;
}

/* Solves the group for its one unknown name, or checks the product. */
static bool solve_group(Pattern *p, const Group *g, int64_t dim, int at)
{
    int64_t known = 1;
    int unknown = -1;
    for (int k = 0; k < g->n; k++) {
        if (p->size[g->axis[k]] == 0 && unknown >= 0)
            return pattern_fail(
                p, "E105", "the sizes of a group need one more argument:", p->name[g->axis[k]]);
        if (p->size[g->axis[k]] == 0)
            unknown = g->axis[k];
        else if (!size_mul(known, p->size[g->axis[k]], &known))
            return pattern_fail(p, "E108", "the sizes are too large", NULL);
    }
    if (unknown >= 0 && dim % known == 0)
        p->size[unknown] = dim / known;
    if (unknown >= 0 ? dim % known == 0 : dim == known)
        return true;
    elab_error(p->call->l, p->span, "E101",
               "rearrange: dim %d is %" PRId64 ", which is not %s%" PRId64, at, dim,
               unknown >= 0 ? "a multiple of " : "", known);
    return false;
}

/* Dims of the side with every name a dimension of its own; -1 when too many. */
static int flat_dims(const Pattern *p, const Side *side, int *axes, int64_t *dims)
{
    int n = 0;
    for (int i = 0; i < side->n; i++) {
        for (int k = 0; k < side->group[i].n; k++) {
            if (n == TYPE_MAX_RANK) {
                pattern_fail(p, "E103", "the pattern needs too many dimensions", NULL);
                return -1;
            }
            axes[n] = side->group[i].axis[k];
            dims[n] = p->size[axes[n]];
            n++;
        }
    }
    return n;
}

static bool grouped_dims(const Pattern *p, const Side *side, int64_t *dims)
{
    if (side->n > TYPE_MAX_RANK)
        return pattern_fail(p, "E103", "the pattern needs too many dimensions", NULL);
    for (int i = 0; i < side->n; i++) {
        dims[i] = 1;
        for (int k = 0; k < side->group[i].n; k++)
            dims[i] *= p->size[side->group[i].axis[k]];
    }
    return true;
}

static bool same_names(const Pattern *p, const Side *a, const Side *b)
{
    for (int i = 0; i < p->n_names; i++)
        if (side_has(a, i) != side_has(b, i))
            return pattern_fail(p, "E105", "a name stands on one side only:", p->name[i]);
    return true;
}

static bool parse_rearrange(Pattern *p, const char *text, Side *from, Side *to)
{
    const char *arrow = strstr(text, "->");
    if (!arrow)
        return pattern_fail(p, "E105", "the pattern has no `->`", NULL);
    return pattern_side(p, text, (size_t)(arrow - text), false, from) &&
           pattern_side(p, arrow + 2, strlen(arrow + 2), false, to) && axes_once(p, from) &&
           axes_once(p, to) && named_sizes(p) && same_names(p, from, to);
}

static bool rearrange_sizes(Pattern *p, const Side *from, const Type *x)
{
    if (from->n != x->rank) {
        elab_error(p->call->l, p->span, "E103",
                   "rearrange: the pattern has %d dimensions, the tensor is %s", from->n,
                   type_shape_text(p->call->l->pool, x));
        return false;
    }
    for (int i = 0; i < from->n; i++)
        if (!solve_group(p, &from->group[i], x->dim[i], i))
            return false;
    return true;
}

Val builtin_rearrange(BuiltinCall *c)
{
    Elab *l = c->l;
    Pattern p = {.call = c, .span = c->arg_span[1]};
    Side from, to;
    Type x = *elab_type(l, arg_tensor(c, 0));
    if (!parse_rearrange(&p, c->arg[1].s, &from, &to) || !rearrange_sizes(&p, &from, &x))
        return val_poison();
    int in_axis[TYPE_MAX_RANK], out_axis[TYPE_MAX_RANK];
    int64_t in_dim[TYPE_MAX_RANK], out_dim[TYPE_MAX_RANK], perm[TYPE_MAX_RANK];
    int n = flat_dims(&p, &from, in_axis, in_dim);
    if (n < 0 || flat_dims(&p, &to, out_axis, out_dim) < 0)
        return val_poison();
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            if (in_axis[k] == out_axis[i])
                perm[i] = k;
    if (!grouped_dims(&p, &to, out_dim))
        return val_poison();
    ValueId v = elab_reshape(l, arg_tensor(c, 0), in_dim, n, NULL, c->span);
    v = elab_permutation(l, v, perm, n, NULL, c->span);
    return val_tensor(elab_reshape(l, v, out_dim, to.n, NULL, c->span));
}
