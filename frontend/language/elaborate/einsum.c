/* SPDX-License-Identifier: GPL-3.0-or-later */
/* einsum in terms of transpose, sum, mul, linear and matmul.  Besides einops' notation it takes
 * numpy's, where a word stands for its letters ("bik,bkj->bij"). */
#include "frontend/language/elaborate/einops.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* A tensor with a name for each dimension. */
typedef struct Operand {
    ValueId v;
    int axis[TYPE_MAX_RANK];
    int n;
} Operand;

/* A term "i j" with a space inside means names; when there is none, every letter is a name. */
static bool has_inner_space(const char *text)
{
    bool inside = false, space = false;
    for (; *text; text++) {
        bool letter = isalnum((unsigned char)*text) || *text == '_';
        if (letter && space)
            return true;
        inside = letter || (inside && *text == ' ');
        space = inside && *text == ' ';
    }
    return false;
}

static bool parse_einsum(Pattern *p, const char *text, Side *terms, int *n_terms, Side *out)
{
    const char *arrow = strstr(text, "->");
    if (!arrow)
        return pattern_fail(p, "E105", "the pattern has no `->`", NULL);
    bool letters = !has_inner_space(text);
    for (const char *at = text;; at++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at)), *end = comma ? comma : arrow;
        if (*n_terms == MAX_TERMS)
            return pattern_fail(p, "E105", "too many operands", NULL);
        Side *term = &terms[(*n_terms)++];
        if (!pattern_side(p, at, (size_t)(end - at), letters, term) || !axes_once(p, term))
            return false;
        if (!comma)
            break;
        at = comma;
    }
    int known = p->n_names;
    if (!pattern_side(p, arrow + 2, strlen(arrow + 2), letters, out) || !axes_once(p, out))
        return false;
    return p->n_names == known ||
           pattern_fail(p, "E105", "a name of the result stands in no operand:", p->name[known]);
}

static bool bind_operand(Pattern *p, const Side *term, int i, Operand *o)
{
    BuiltinCall *c = p->call;
    Elab *l = c->l;
    if (!want_tensor(l, c->rest[i], c->rest_span[i], "an operand of einsum"))
        return false;
    o->v = c->rest[i].tensor;
    const Type *t = elab_type(l, o->v);
    if (term->n != t->rank) {
        elab_error(l, c->rest_span[i], "E103",
                   "einsum: the pattern gives operand %d %d dimensions, it is %s", i + 1, term->n,
                   type_shape_text(l->pool, t));
        return false;
    }
    for (int k = 0; k < term->n; k++) {
        if (term->group[k].n != 1)
            return pattern_fail(p, "E105", "einsum takes plain names, no groups and no 1", NULL);
        int axis = o->axis[o->n++] = term->group[k].axis[0];
        if (p->size[axis] && p->size[axis] != t->dim[k]) {
            elab_error(l, c->rest_span[i], "E101",
                       "dim %s is %" PRId64 " here but %" PRId64 " before (in einsum)",
                       p->name[axis], t->dim[k], p->size[axis]);
            return false;
        }
        p->size[axis] = t->dim[k];
    }
    return true;
}

static int position(const Operand *o, int axis)
{
    for (int i = 0; i < o->n; i++)
        if (o->axis[i] == axis)
            return i;
    return -1;
}

/* The operand with its dimensions in this order. */
static void reorder(Pattern *p, Operand *o, const int *axes, int n)
{
    int64_t perm[TYPE_MAX_RANK];
    for (int i = 0; i < n; i++)
        perm[i] = position(o, axes[i]);
    o->v = elab_permutation(p->call->l, o->v, perm, n, NULL, p->call->span);
    memcpy(o->axis, axes, (size_t)n * sizeof *axes);
}

/* Sums over the dimensions that nobody else needs. */
static void sum_away(Pattern *p, Operand *o, const bool *needed)
{
    int64_t axes[TYPE_MAX_RANK];
    int n = 0, left = 0;
    for (int i = 0; i < o->n; i++) {
        if (needed[o->axis[i]])
            o->axis[left++] = o->axis[i];
        else
            axes[n++] = i;
    }
    o->n = left;
    if (n == 0)
        return;
    AttrList attrs = {.n = 0};
    attrs_ints(&attrs, ATTR_axes, axes, n);
    o->v = elab_node1(p->call->l, OP_sum, o->v, &attrs, NULL, p->call->span);
}

/* The roles of names in a product of two: in both and kept, in one only, summed. */
typedef struct Roles {
    int batch[TYPE_MAX_RANK], free_a[TYPE_MAX_RANK], free_b[TYPE_MAX_RANK], summed[TYPE_MAX_RANK];
    int n_batch, n_a, n_b, n_summed;
} Roles;

static Roles roles_of(const Operand *a, const Operand *b, const bool *needed)
{
    Roles r = {.n_batch = 0};
    for (int i = 0; i < a->n; i++) {
        if (position(b, a->axis[i]) < 0)
            r.free_a[r.n_a++] = a->axis[i];
        else if (needed[a->axis[i]])
            r.batch[r.n_batch++] = a->axis[i];
        else
            r.summed[r.n_summed++] = a->axis[i];
    }
    for (int i = 0; i < b->n; i++)
        if (position(a, b->axis[i]) < 0)
            r.free_b[r.n_b++] = b->axis[i];
    return r;
}

static int64_t product(const Pattern *p, const int *axes, int n)
{
    int64_t r = 1;
    for (int i = 0; i < n; i++)
        r *= p->size[axes[i]];
    return r;
}

/* Appends axes to out. */
static int append(int *out, int at, const int *axes, int n)
{
    if (n)
        memcpy(out + at, axes, (size_t)n * sizeof *axes);
    return at + n;
}

static bool in_order(const Operand *o, const int *axes, int n)
{
    return n == o->n && memcmp(o->axis, axes, (size_t)n * sizeof *axes) == 0;
}

/* Brings o to [batch, left, right] or, when that needs no transpose, [batch, right, left]
 * (*swapped), and joins the groups into single dimensions. */
static void fold_operand(Pattern *p, Operand *o, const Roles *r, const int *left, int n_left,
                         const int *right, int n_right, bool *swapped)
{
    int plain[TYPE_MAX_RANK], other[TYPE_MAX_RANK];
    int n = append(plain, 0, r->batch, r->n_batch);
    append(other, 0, r->batch, r->n_batch);
    append(plain, append(plain, n, left, n_left), right, n_right);
    append(other, append(other, n, right, n_right), left, n_left);
    *swapped = !in_order(o, plain, o->n) && in_order(o, other, o->n);
    if (!*swapped)
        reorder(p, o, plain, o->n);
    int64_t dims[TYPE_MAX_RANK + 2];
    int rank = 0;
    for (int i = 0; i < r->n_batch; i++)
        dims[rank++] = p->size[r->batch[i]];
    dims[rank++] = *swapped ? product(p, right, n_right) : product(p, left, n_left);
    dims[rank++] = *swapped ? product(p, left, n_left) : product(p, right, n_right);
    o->v = rank > TYPE_MAX_RANK ? VALUE_NONE
                                : elab_reshape(p->call->l, o->v, dims, rank, NULL, p->call->span);
}

/* Axes and sizes of the product: batch, free of a, free of b. */
static void finish(Pattern *p, Operand *out, const Roles *r)
{
    int n = append(out->axis, 0, r->batch, r->n_batch);
    n = append(out->axis, n, r->free_a, r->n_a);
    out->n = append(out->axis, n, r->free_b, r->n_b);
    int64_t dims[TYPE_MAX_RANK];
    for (int i = 0; i < out->n; i++)
        dims[i] = p->size[out->axis[i]];
    out->v = elab_reshape(p->call->l, out->v, dims, out->n, NULL, p->call->span);
}

/* x[.., c] times a matrix of one free name: the operation that layers use, whose gradient needs no
 * batch of products. */
static bool as_linear(Pattern *p, const Operand *a, const Operand *b, const Roles *r, Operand *out)
{
    if (r->n_batch || r->n_summed != 1 || r->n_b != 1 || r->n_a < 1 || r->n_a > 2 ||
        a->axis[a->n - 1] != r->summed[0])
        return false;
    AttrList attrs = {.n = 0};
    attrs_int(&attrs, ATTR_in_out, b->axis[0] == r->summed[0]);
    out->v = elab_node2(p->call->l, OP_linear, a->v, b->v, &attrs, NULL, p->call->span);
    return true;
}

/* Nothing is summed: a product with broadcasting. */
static void as_mul(Pattern *p, Operand a, Operand b, const Roles *r, Operand *out)
{
    int64_t dims[TYPE_MAX_RANK];
    int order[TYPE_MAX_RANK], n = append(order, 0, r->batch, r->n_batch);
    Elab *l = p->call->l;
    append(order, n, r->free_a, r->n_a);
    reorder(p, &a, order, a.n);
    append(order, n, r->free_b, r->n_b);
    reorder(p, &b, order, b.n);
    for (int i = 0; i < n; i++)
        dims[i] = p->size[r->batch[i]];
    for (int i = 0; i < r->n_a; i++)
        dims[n + i] = p->size[r->free_a[i]];
    for (int i = 0; i < r->n_b; i++)
        dims[n + r->n_a + i] = 1;
    a.v = elab_reshape(l, a.v, dims, n + r->n_a + r->n_b, NULL, p->call->span);
    for (int i = 0; i < r->n_a; i++)
        dims[n + i] = 1;
    for (int i = 0; i < r->n_b; i++)
        dims[n + r->n_a + i] = p->size[r->free_b[i]];
    b.v = elab_reshape(l, b.v, dims, n + r->n_a + r->n_b, NULL, p->call->span);
    out->v = elab_node2(l, OP_mul, a.v, b.v, NULL, NULL, p->call->span);
}

static bool multiply(Pattern *p, Operand a, Operand b, const bool *needed, Operand *out)
{
    Elab *l = p->call->l;
    Roles r = roles_of(&a, &b, needed);
    if (r.n_batch + r.n_a + r.n_b > TYPE_MAX_RANK)
        return pattern_fail(p, "E103", "the product needs too many dimensions", NULL);
    if (r.n_summed == 0) {
        as_mul(p, a, b, &r, out);
    } else if (!as_linear(p, &a, &b, &r, out)) {
        bool ta = false, tb = false;
        fold_operand(p, &a, &r, r.free_a, r.n_a, r.summed, r.n_summed, &ta);
        fold_operand(p, &b, &r, r.summed, r.n_summed, r.free_b, r.n_b, &tb);
        AttrList attrs = {.n = 0};
        attrs_int(&attrs, ATTR_ta, ta);
        attrs_int(&attrs, ATTR_tb, tb);
        out->v = elab_node2(l, OP_matmul, a.v, b.v, &attrs, NULL, p->call->span);
    }
    finish(p, out, &r);
    return out->v != VALUE_NONE;
}

/* Names that the result or a later operand still needs. */
static void needed_after(const Side *terms, int from, int n_terms, const Side *out, bool *needed)
{
    for (int i = 0; i < MAX_AXES * MAX_TERMS; i++) {
        needed[i] = side_has(out, i);
        for (int k = from; k < n_terms; k++)
            needed[i] |= side_has(&terms[k], i);
    }
}

static Val contract(Pattern *p, const Side *terms, int n_terms, const Side *out)
{
    bool needed[MAX_AXES * MAX_TERMS];
    Operand left = {.n = 0};
    if (!bind_operand(p, &terms[0], 0, &left))
        return val_poison();
    needed_after(terms, 1, n_terms, out, needed);
    sum_away(p, &left, needed);
    for (int i = 1; i < n_terms; i++) {
        Operand right = {.n = 0}, joint = {.n = 0};
        if (!bind_operand(p, &terms[i], i, &right))
            return val_poison();
        needed_after(terms, i + 1, n_terms, out, needed);
        bool either[MAX_AXES * MAX_TERMS];
        for (int k = 0; k < MAX_AXES * MAX_TERMS; k++)
            either[k] = needed[k] || position(&left, k) >= 0;
        sum_away(p, &right, either);
        for (int k = 0; k < MAX_AXES * MAX_TERMS; k++)
            either[k] = needed[k] || position(&right, k) >= 0;
        sum_away(p, &left, either);
        if (!multiply(p, left, right, needed, &joint))
            return val_poison();
        left = joint;
    }
    int order[TYPE_MAX_RANK];
    for (int i = 0; i < out->n; i++)
        order[i] = out->group[i].axis[0];
    reorder(p, &left, order, out->n);
    return val_tensor(left.v);
}

Val builtin_einsum(BuiltinCall *c)
{
    Pattern p = {.call = c, .span = c->arg_span[0]};
    Side terms[MAX_TERMS], out;
    int n_terms = 0;
    if (!parse_einsum(&p, c->arg[0].s, terms, &n_terms, &out))
        return val_poison();
    if (n_terms != c->n_rest) {
        elab_error(c->l, c->span, "E206", "the pattern has %d operands, the call %d", n_terms,
                   c->n_rest);
        return val_poison();
    }
    for (int i = 0; i < out.n; i++) {
        if (out.group[i].n != 1) {
            pattern_fail(&p, "E105", "einsum takes plain names, no groups and no 1", NULL);
            return val_poison();
        }
    }
    if (out.n > TYPE_MAX_RANK) {
        pattern_fail(&p, "E103", "the result has too many dimensions", NULL);
        return val_poison();
    }
    return contract(&p, terms, n_terms, &out);
}
