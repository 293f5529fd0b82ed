/* rearrange and einsum in terms of reshape, transpose, sum, mul, linear and matmul.
 * Notation: einops' (names separated by spaces, groups in parentheses); einsum also takes numpy's
 * form, where a word stands for its letters ("bik,bkj->bij"). */
#include "frontend/language/elaborate/builtins_table.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_AXES = 2 * TYPE_MAX_RANK, MAX_TERMS = 8 };

/* One dimension of a side: some axis names, joined; none is a dimension of size 1. */
typedef struct Group {
    int axis[MAX_AXES]; /* index into Pattern.name */
    int n;
} Group;

typedef struct Side {
    Group group[MAX_AXES];
    int n;
} Side;

typedef struct Pattern {
    Call *call;
    Span span;
    const char *name[MAX_AXES * MAX_TERMS];
    int64_t size[MAX_AXES * MAX_TERMS]; /* 0 = not known yet */
    int n_names;
} Pattern;

static bool fail(const Pattern *p, const char *code, const char *what, const char *detail)
{
    lower_error(p->call->l, p->span, code, "%s: %s%s%s", p->call->fn->name, what, detail ? " " : "",
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
            return fail(p, "E105", "too many dimensions in the pattern", NULL);
        side->group[side->n++] = (Group){.n = 0};
    }
    Group *g = &side->group[side->n - 1];
    if (n == 1 && *text == '1')
        return true;
    int axis = axis_index(p, text, n);
    if (axis < 0 || g->n == MAX_AXES)
        return fail(p, "E105", "too many names in the pattern", NULL);
    g->axis[g->n++] = axis;
    return true;
}

static bool open_group(Pattern *p, Side *side)
{
    if (side->n == MAX_AXES)
        return fail(p, "E105", "too many dimensions in the pattern", NULL);
    side->group[side->n++] = (Group){.n = 0};
    return true;
}

/* letters: each letter is a name of its own. */
static bool parse_side(Pattern *p, const char *text, size_t len, bool letters, Side *side)
{
    bool open = false;
    side->n = 0;
    for (size_t i = 0; i < len;) {
        if (text[i] == ' ') {
            i++;
        } else if (text[i] == '(' || text[i] == ')') {
            if (open != (text[i] == ')'))
                return fail(p, "E105", "the parentheses of the pattern do not match", NULL);
            open = text[i++] == '(';
            if (open && !open_group(p, side))
                return false;
        } else if (isalnum((unsigned char)text[i]) || text[i] == '_') {
            size_t n = 1;
            while (!letters && i + n < len &&
                   (isalnum((unsigned char)text[i + n]) || text[i + n] == '_'))
                n++;
            if (isdigit((unsigned char)text[i]) && (n != 1 || text[i] != '1'))
                return fail(p, "E105", "a name in the pattern cannot start with a digit", NULL);
            if (!add_axis(p, side, open, text + i, n))
                return false;
            i += n;
        } else {
            return fail(p, "E105", "unexpected character in the pattern:",
                        pool_printf(p->call->l->pool, "'%c'", text[i]));
        }
    }
    return !open || fail(p, "E105", "the parentheses of the pattern do not match", NULL);
}

static bool side_has(const Side *side, int axis)
{
    for (int i = 0; i < side->n; i++)
        for (int k = 0; k < side->group[i].n; k++)
            if (side->group[i].axis[k] == axis)
                return true;
    return false;
}

static bool axes_once(const Pattern *p, const Side *side)
{
    bool seen[MAX_AXES * MAX_TERMS] = {false};
    for (int i = 0; i < side->n; i++) {
        for (int k = 0; k < side->group[i].n; k++) {
            int axis = side->group[i].axis[k];
            if (seen[axis])
                return fail(p, "E105", "a name stands twice on one side:", p->name[axis]);
            seen[axis] = true;
        }
    }
    return true;
}

/* ---- rearrange ---- */

static bool named_sizes(Pattern *p)
{
    const Call *c = p->call;
    for (int i = 0; i < c->n_named; i++) {
        int known = p->n_names, at = axis_index(p, c->named[i].name, strlen(c->named[i].name));
        if (at < 0 || at == known) {
            lower_error(c->l, c->named[i].span, "E206", "the pattern has no name `%s`",
                        c->named[i].name);
            return false;
        }
        if (!want_int(c->l, c->named[i].value, c->named[i].span, "a size", &p->size[at]))
            return false;
        if (p->size[at] < 1) {
            lower_error(c->l, c->named[i].span, "E105", "a size must be at least 1");
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
            return fail(p, "E105",
                        "the sizes of a group need one more argument:", p->name[g->axis[k]]);
        if (p->size[g->axis[k]] == 0)
            unknown = g->axis[k];
        else if (!size_mul(known, p->size[g->axis[k]], &known))
            return fail(p, "E108", "the sizes are too large", NULL);
    }
    if (unknown >= 0 && dim % known == 0)
        p->size[unknown] = dim / known;
    if (unknown >= 0 ? dim % known == 0 : dim == known)
        return true;
    lower_error(p->call->l, p->span, "E101",
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
                fail(p, "E103", "the pattern needs too many dimensions", NULL);
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
        return fail(p, "E103", "the pattern needs too many dimensions", NULL);
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
            return fail(p, "E105", "a name stands on one side only:", p->name[i]);
    return true;
}

static bool parse_rearrange(Pattern *p, const char *text, Side *from, Side *to)
{
    const char *arrow = strstr(text, "->");
    if (!arrow)
        return fail(p, "E105", "the pattern has no `->`", NULL);
    return parse_side(p, text, (size_t)(arrow - text), false, from) &&
           parse_side(p, arrow + 2, strlen(arrow + 2), false, to) && axes_once(p, from) &&
           axes_once(p, to) && named_sizes(p) && same_names(p, from, to);
}

static bool rearrange_sizes(Pattern *p, const Side *from, const Type *x)
{
    if (from->n != x->rank) {
        lower_error(p->call->l, p->span, "E103",
                    "rearrange: the pattern has %d dimensions, the tensor is %s", from->n,
                    type_shape_text(p->call->l->pool, x));
        return false;
    }
    for (int i = 0; i < from->n; i++)
        if (!solve_group(p, &from->group[i], x->dim[i], i))
            return false;
    return true;
}

Val builtin_rearrange(Call *c)
{
    Lower *l = c->l;
    Pattern p = {.call = c, .span = c->arg_span[1]};
    Side from, to;
    Type x = *lower_type(l, arg_tensor(c, 0));
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
    ValueId v = lower_reshape(l, arg_tensor(c, 0), in_dim, n, NULL, c->span);
    v = lower_permutation(l, v, perm, n, NULL, c->span);
    return val_tensor(lower_reshape(l, v, out_dim, to.n, NULL, c->span));
}

/* ---- einsum ---- */

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
        return fail(p, "E105", "the pattern has no `->`", NULL);
    bool letters = !has_inner_space(text);
    for (const char *at = text;; at++) {
        const char *comma = memchr(at, ',', (size_t)(arrow - at)), *end = comma ? comma : arrow;
        if (*n_terms == MAX_TERMS)
            return fail(p, "E105", "too many operands", NULL);
        Side *term = &terms[(*n_terms)++];
        if (!parse_side(p, at, (size_t)(end - at), letters, term) || !axes_once(p, term))
            return false;
        if (!comma)
            break;
        at = comma;
    }
    int known = p->n_names;
    if (!parse_side(p, arrow + 2, strlen(arrow + 2), letters, out) || !axes_once(p, out))
        return false;
    return p->n_names == known ||
           fail(p, "E105", "a name of the result stands in no operand:", p->name[known]);
}

static bool bind_operand(Pattern *p, const Side *term, int i, Operand *o)
{
    Call *c = p->call;
    Lower *l = c->l;
    if (!want_tensor(l, c->rest[i], c->rest_span[i], "an operand of einsum"))
        return false;
    o->v = c->rest[i].tensor;
    const Type *t = lower_type(l, o->v);
    if (term->n != t->rank) {
        lower_error(l, c->rest_span[i], "E103",
                    "einsum: the pattern gives operand %d %d dimensions, it is %s", i + 1, term->n,
                    type_shape_text(l->pool, t));
        return false;
    }
    for (int k = 0; k < term->n; k++) {
        if (term->group[k].n != 1)
            return fail(p, "E105", "einsum takes plain names, no groups and no 1", NULL);
        int axis = o->axis[o->n++] = term->group[k].axis[0];
        if (p->size[axis] && p->size[axis] != t->dim[k]) {
            lower_error(l, c->rest_span[i], "E101",
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
    o->v = lower_permutation(p->call->l, o->v, perm, n, NULL, p->call->span);
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
    o->v = lower_node1(p->call->l, OP_sum, o->v, &attrs, NULL, p->call->span);
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
                                : lower_reshape(p->call->l, o->v, dims, rank, NULL, p->call->span);
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
    out->v = lower_reshape(p->call->l, out->v, dims, out->n, NULL, p->call->span);
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
    out->v = lower_node2(p->call->l, OP_linear, a->v, b->v, &attrs, NULL, p->call->span);
    return true;
}

/* Nothing is summed: a product with broadcasting. */
static void as_mul(Pattern *p, Operand a, Operand b, const Roles *r, Operand *out)
{
    int64_t dims[TYPE_MAX_RANK];
    int order[TYPE_MAX_RANK], n = append(order, 0, r->batch, r->n_batch);
    Lower *l = p->call->l;
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
    a.v = lower_reshape(l, a.v, dims, n + r->n_a + r->n_b, NULL, p->call->span);
    for (int i = 0; i < r->n_a; i++)
        dims[n + i] = 1;
    for (int i = 0; i < r->n_b; i++)
        dims[n + r->n_a + i] = p->size[r->free_b[i]];
    b.v = lower_reshape(l, b.v, dims, n + r->n_a + r->n_b, NULL, p->call->span);
    out->v = lower_node2(l, OP_mul, a.v, b.v, NULL, NULL, p->call->span);
}

static bool multiply(Pattern *p, Operand a, Operand b, const bool *needed, Operand *out)
{
    Lower *l = p->call->l;
    Roles r = roles_of(&a, &b, needed);
    if (r.n_batch + r.n_a + r.n_b > TYPE_MAX_RANK)
        return fail(p, "E103", "the product needs too many dimensions", NULL);
    if (r.n_summed == 0) {
        as_mul(p, a, b, &r, out);
    } else if (!as_linear(p, &a, &b, &r, out)) {
        bool ta = false, tb = false;
        fold_operand(p, &a, &r, r.free_a, r.n_a, r.summed, r.n_summed, &ta);
        fold_operand(p, &b, &r, r.summed, r.n_summed, r.free_b, r.n_b, &tb);
        AttrList attrs = {.n = 0};
        attrs_int(&attrs, ATTR_ta, ta);
        attrs_int(&attrs, ATTR_tb, tb);
        out->v = lower_node2(l, OP_matmul, a.v, b.v, &attrs, NULL, p->call->span);
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

Val builtin_einsum(Call *c)
{
    Pattern p = {.call = c, .span = c->arg_span[0]};
    Side terms[MAX_TERMS], out;
    int n_terms = 0;
    if (!parse_einsum(&p, c->arg[0].s, terms, &n_terms, &out))
        return val_poison();
    if (n_terms != c->n_rest) {
        lower_error(c->l, c->span, "E206", "the pattern has %d operands, the call %d", n_terms,
                    c->n_rest);
        return val_poison();
    }
    for (int i = 0; i < out.n; i++) {
        if (out.group[i].n != 1) {
            fail(&p, "E105", "einsum takes plain names, no groups and no 1", NULL);
            return val_poison();
        }
    }
    if (out.n > TYPE_MAX_RANK) {
        fail(&p, "E103", "the result has too many dimensions", NULL);
        return val_poison();
    }
    return contract(&p, terms, n_terms, &out);
}
