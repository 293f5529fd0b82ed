/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/model/pieces.h"

#include <string.h>

/* Of a root: what is cut finer is not cut at all. */
enum { MAX_ATOMS = 1024 };

int pieces_add_root(Pieces *p, const Type *type)
{
    Root r = {.type = *type};
    vec_push(p->pool, &p->root, r);
    return (int)p->root.len - 1;
}

Layout pieces_of_root(const Pieces *p, int root)
{
    Layout l = {.type = p->root.data[root].type, .placed = true};
    Piece whole = {.root = root};
    memcpy(whole.hi, l.type.dim, sizeof whole.hi);
    vec_push(p->pool, &l.pieces, whole);
    return l;
}

/* A root of which nothing has a place yet can have any dims. */
bool pieces_reshape(Pieces *p, Layout *l, const Type *type)
{
    if (!l->placed || type_same_shape(&l->type, type))
        return l->placed;
    Root *r = &p->root.data[l->pieces.data[0].root];
    if (l->pieces.len != 1 || r->fixed || !type_same_shape(&r->type, &l->type))
        return false;
    r->type = *type;
    *l = pieces_of_root(p, l->pieces.data[0].root);
    return true;
}

/* Cuts */

static int count_below(const CutList *cuts, int64_t at)
{
    int n = 0;
    while (n < (int)cuts->len && cuts->data[n] < at)
        n++;
    return n;
}

static bool is_cut(const CutList *cuts, int64_t at)
{
    int n = count_below(cuts, at);
    return n < (int)cuts->len && cuts->data[n] == at;
}

static void cut_at(Pool *pool, CutList *cuts, int64_t at)
{
    if (is_cut(cuts, at))
        return;
    vec_push(pool, cuts, at);
    size_t k = cuts->len - 1;
    for (; k > 0 && cuts->data[k - 1] > at; k--)
        cuts->data[k] = cuts->data[k - 1];
    cuts->data[k] = at;
}

static bool is_inside(const Root *r, int d, int64_t at)
{
    return at > 0 && at < r->type.dim[d];
}

static bool cut_out(Pieces *p, const Piece *x)
{
    Root *r = &p->root.data[x->root];
    int64_t atoms = 1;
    for (int d = 0; d < r->type.rank; d++) {
        int64_t more = (is_inside(r, d, x->lo[d]) && !is_cut(&r->cut[d], x->lo[d])) +
                       (is_inside(r, d, x->hi[d]) && !is_cut(&r->cut[d], x->hi[d]));
        atoms *= (int64_t)r->cut[d].len + 1 + more;
        if (atoms > MAX_ATOMS)
            return false;
    }
    for (int d = 0; d < r->type.rank; d++) {
        if (is_inside(r, d, x->lo[d]))
            cut_at(p->pool, &r->cut[d], x->lo[d]);
        if (is_inside(r, d, x->hi[d]))
            cut_at(p->pool, &r->cut[d], x->hi[d]);
    }
    return r->fixed = true;
}

/* What of a piece lies within the slice; false: nothing. */
static bool intersect(Piece *x, const int64_t *start, const Type *type)
{
    for (int d = 0; d < type->rank; d++) {
        int64_t begin = x->at[d] > start[d] ? x->at[d] : start[d];
        int64_t end = x->at[d] + x->hi[d] - x->lo[d], limit = start[d] + type->dim[d];
        end = end < limit ? end : limit;
        if (begin >= end)
            return false;
        x->hi[d] = x->lo[d] + end - x->at[d];
        x->lo[d] += begin - x->at[d];
        x->at[d] = begin - start[d];
    }
    return true;
}

bool pieces_slice(Pieces *p, const Layout *from, const int64_t *start, const Type *type,
                  Layout *out)
{
    *out = (Layout){.type = *type, .placed = true};
    if (!from->placed || from->type.rank != type->rank)
        return false;
    for (size_t k = 0; k < from->pieces.len; k++) {
        Piece x = from->pieces.data[k];
        if (!intersect(&x, start, type))
            continue;
        if (!cut_out(p, &x))
            return false;
        vec_push(p->pool, &out->pieces, x);
    }
    return true;
}

void pieces_append(Pieces *p, Layout *whole, const Layout *part, int axis, int64_t at)
{
    for (size_t k = 0; k < part->pieces.len; k++) {
        Piece x = part->pieces.data[k];
        x.at[axis] += at;
        p->root.data[x.root].fixed = true;
        vec_push(p->pool, &whole->pieces, x);
    }
    whole->placed = whole->placed && part->placed;
}

/* Atoms */

int pieces_number(Pieces *p)
{
    int n = 0;
    for (size_t k = 0; k < p->root.len; k++) {
        Root *r = &p->root.data[k];
        r->first_atom = n;
        r->n_atoms = 1;
        for (int d = 0; d < r->type.rank; d++)
            r->n_atoms *= (int)r->cut[d].len + 1;
        n += r->n_atoms;
    }
    return n;
}

int64_t pieces_atom_elements(const Root *r, int k)
{
    int64_t elements = 1;
    for (int d = r->type.rank - 1; d >= 0; d--) {
        const CutList *cuts = &r->cut[d];
        int n = (int)cuts->len + 1, at = k % n;
        int64_t lo = at > 0 ? cuts->data[at - 1] : 0;
        elements *= (at < n - 1 ? cuts->data[at] : r->type.dim[d]) - lo;
        k /= n;
    }
    return elements;
}

/* Atoms of x along the dims from d on, in those of the dims before that `index` counts. */
static void list_from(const Pieces *p, const Piece *x, int d, int index, AtomList *out)
{
    const Root *r = &p->root.data[x->root];
    if (d == r->type.rank) {
        vec_push(p->pool, out, r->first_atom + index);
        return;
    }
    const CutList *cuts = &r->cut[d];
    int first = count_below(cuts, x->lo[d] + 1), end = count_below(cuts, x->hi[d]) + 1;
    for (int k = first; k < end; k++)
        list_from(p, x, d + 1, index * ((int)cuts->len + 1) + k, out);
}

void pieces_list_atoms(const Pieces *p, const Layout *l, AtomList *out)
{
    for (size_t k = 0; k < l->pieces.len; k++)
        list_from(p, &l->pieces.data[k], 0, 0, out);
}
