/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Models have queries, keys and values by rows, [batch, rows, heads, width], often as pieces of one
 * tensor [batch, rows, 3 * heads * width], and transpose them for attention.  Libraries and the
 * CPU's kernels read and write heads anywhere, so the transpositions go: the node reads and writes
 * by rows (attribute `by_rows`).  Pieces of what is [.., 3 * heads * width] become pieces of the
 * same memory as [.., 3 * heads, width], and so do the pieces that their gradients are joined of:
 * passes/views.c then lets them lie where the whole lies.  What was transposed stays in memory, in
 * place of its copy. */
#include "passes/heads.h"

#include "ir/attention.h"
#include "ir/support/vec.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

typedef VEC(ValueId) ValueMap; /* by value; VALUE_NONE = nothing */

typedef struct Rows {
    Graph *g;
    Pool *scratch;
    Rewrite r;
    bool library;
    bool *turned;                 /* by value of the old graph: a transposition reads it */
    ValueMap other, piece, split; /* a value's transposition; the same as a piece of a tensor of
                                     heads; the same memory as heads */
} Rows;

static ValueId mapped(const ValueMap *m, ValueId v)
{
    return v < m->len ? m->data[v] : VALUE_NONE;
}

static void map(Rows *x, ValueMap *m, ValueId v, ValueId to)
{
    while (m->len <= v)
        vec_push(x->scratch, m, VALUE_NONE);
    if (m->data[v] == VALUE_NONE)
        m->data[v] = to;
}

/* --- transpositions --- */

static bool is_turn(const Node *n)
{
    int dims = 0;
    const int64_t *perm = n->op == OP_transpose ? node_ints(n, ATTR_perm, &dims) : NULL;
    return dims == 4 && n->hint == REMAT_AUTO &&
           memcmp(perm, attention_by_rows, sizeof attention_by_rows) == 0;
}

static void visit_turn(Rows *x, NodeId id)
{
    const Node *n = graph_node(x->g, id);
    const ValueId from = n->in[0], to = n->out[0], known = mapped(&x->other, from);
    if (known != VALUE_NONE) {
        rewrite_replace(&x->r, to, known);
        return;
    }
    rewrite_keep(&x->r, id);
    map(x, &x->other, from, to);
    map(x, &x->other, to, from);
}

/* --- pieces --- */

static ValueId reshape(Rows *x, ValueId v, const Type *to, Loc loc)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, to->dim, to->rank);
    return graph_add(x->g, OP_reshape, &v, 1, &attrs, NULL, loc);
}

/* The last dim, of several heads, becomes two. */
static ValueId as_heads(Rows *x, ValueId v, int64_t width, Loc loc)
{
    ValueId known = mapped(&x->split, v);
    Type t = *value_type(x->g, v);
    if (known != VALUE_NONE && value_type(x->g, known)->dim[3] == width)
        return known;
    t.dim[3] = width;
    t.dim[2] /= width;
    t.rank = 4;
    known = reshape(x, v, &t, loc);
    map(x, &x->split, v, known);
    return known;
}

/* v[b,t,h,d] as a reshape of [b,t,h*d]. */
static bool splits_heads(const Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    if (n->op != OP_reshape || n->hint != REMAT_AUTO)
        return false;
    const Type *to = value_type(g, v), *from = value_type(g, n->in[0]);
    return to->rank == 4 && from->rank == 3 && to->dim[0] == from->dim[0] &&
           to->dim[1] == from->dim[1];
}

/* A slice along the last of three dims, of whole heads. */
static bool cuts_heads(const Graph *g, const Node *n, int64_t width)
{
    if (n->op != OP_slice || n->hint != REMAT_AUTO)
        return false;
    const Type *from = value_type(g, n->in[0]);
    for (int d = 0; d < from->rank; d++)
        if (node_ints_at(n, ATTR_step, d, 1) != 1)
            return false;
    const Type *to = value_type(g, n->out[0]);
    const int64_t first = node_ints_at(n, ATTR_start, 2, 0);
    return from->dim[0] == to->dim[0] && from->dim[1] == to->dim[1] && from->dim[2] % width == 0 &&
           first % width == 0;
}

static ValueId slice_heads(Rows *x, ValueId whole, const Type *piece, int64_t first, Loc loc)
{
    int64_t start[] = {0, 0, first, 0}, limit[4];
    AttrList attrs = {0};
    for (int d = 0; d < 4; d++)
        limit[d] = start[d] + piece->dim[d];
    attrs_ints(&attrs, ATTR_start, start, 4);
    attrs_ints(&attrs, ATTR_limit, limit, 4);
    return graph_add(x->g, OP_slice, &whole, 1, &attrs, NULL, loc);
}

/* v, or the same as a piece of a tensor of heads. */
static ValueId as_piece(Rows *x, ValueId v)
{
    const ValueId known = mapped(&x->piece, v);
    if (known != VALUE_NONE || !splits_heads(x->g, v))
        return known != VALUE_NONE ? known : v;
    const Type t = *value_type(x->g, v);
    const Node cut = *value_node(x->g, value_node(x->g, v)->in[0]);
    if (!cuts_heads(x->g, &cut, t.dim[3]))
        return v;
    const int64_t first = node_ints_at(&cut, ATTR_start, 2, 0) / t.dim[3];
    const ValueId whole = as_heads(x, cut.in[0], t.dim[3], cut.loc);
    const ValueId piece = slice_heads(x, whole, &t, first, cut.loc);
    map(x, &x->piece, v, piece);
    return piece;
}

static bool is_gradient(const Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    return n->op == OP_attention_grad && node_attr(n, ATTR_by_rows);
}

/* [b,t,h*d] as a reshape of [b,t,h,d]; VALUE_NONE. */
static ValueId heads_of(const Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    if (n->op != OP_reshape || n->hint != REMAT_AUTO || value_type(g, n->in[0])->rank != 4)
        return VALUE_NONE;
    const Type *from = value_type(g, n->in[0]), *to = value_type(g, v);
    bool fits = to->rank == 3 && to->dim[0] == from->dim[0] && to->dim[1] == from->dim[1];
    return fits ? n->in[0] : VALUE_NONE;
}

/* Joins gradients as heads. */
static bool joins_gradients(const Rows *x, const Node *n, ValueId *heads)
{
    const int64_t axis = node_int(n, ATTR_axis, 0);
    bool any = false;
    if (n->op != OP_concat || n->hint != REMAT_AUTO || (axis != 2 && axis != -1))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        heads[i] = heads_of(x->g, n->in[i]);
        if (heads[i] == VALUE_NONE ||
            value_type(x->g, heads[i])->dim[3] != value_type(x->g, heads[0])->dim[3])
            return false;
        any = any || is_gradient(x->g, heads[i]);
    }
    return any;
}

static void visit_concat(Rows *x, NodeId id)
{
    const Node n = *graph_node(x->g, id);
    ValueId *heads = POOL_ARRAY(x->scratch, (size_t)n.n_in + 1, ValueId);
    if (!joins_gradients(x, &n, heads)) {
        rewrite_keep(&x->r, id);
        return;
    }
    const Type to = *value_type(x->g, n.out[0]);
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 2);
    const ValueId joined = graph_add(x->g, OP_concat, heads, n.n_in, &attrs, NULL, n.loc);
    rewrite_replace(&x->r, n.out[0], reshape(x, joined, &to, n.loc));
}

/* --- attention --- */

static bool is_wanted(const Rows *x, const Node *n)
{
    return (n->op == OP_attention || n->op == OP_attention_grad) &&
           (node_attr(n, ATTR_library) != NULL) == x->library;
}

/* Which tensors lie by rows, in the order of all letters; in: what the node is to read. */
static const char *choose(Rows *x, NodeId id, ValueId *in)
{
    static const char all[] = "qkvogQKV";
    char chosen[128] = {0}, letters[sizeof all];
    size_t n_letters = 0;
    const Node n = *graph_node(x->g, id);
    memcpy(in, n.in, (size_t)n.n_in * sizeof *in);
    for (int i = 0; i < n.n_in; i++) {
        const char letter = attention_input(&n, i);
        const ValueId rows = letter ? mapped(&x->other, in[i]) : VALUE_NONE;
        if (rows != VALUE_NONE)
            in[i] = as_piece(x, rows), chosen[(int)letter] = 1;
    }
    for (int i = 0; i < n.n_out; i++)
        if (attention_result(&n, i) && x->turned[n.out[i]])
            chosen[(int)attention_result(&n, i)] = 1;
    for (const char *letter = all; *letter; letter++)
        if (chosen[(int)*letter])
            letters[n_letters++] = *letter;
    return pool_strndup(x->g->pool, letters, n_letters);
}

/* What reads a result by heads reads a transposition, which goes where nobody does. */
static void replace_results(Rows *x, const Node *old, const Node *by)
{
    for (int i = 0; i < old->n_out; i++) {
        ValueId v = by->out[i];
        if (attention_lies_by_rows(by, attention_result(by, i))) {
            AttrList attrs = {0};
            attrs_ints(&attrs, ATTR_perm, attention_by_rows, 4);
            const ValueId turned =
                graph_add(x->g, OP_transpose, &by->out[i], 1, &attrs, NULL, by->loc);
            map(x, &x->other, turned, v);
            map(x, &x->other, v, turned);
            v = turned;
        }
        rewrite_replace(&x->r, old->out[i], v);
    }
}

static void visit_attention(Rows *x, NodeId id)
{
    const Node old = *graph_node(x->g, id);
    ValueId *in = POOL_ARRAY(x->scratch, (size_t)old.n_in, ValueId);
    const char *letters = choose(x, id, in);
    if (!letters[0]) {
        rewrite_keep(&x->r, id);
        return;
    }
    AttrList attrs = {.n = old.n_attr};
    memcpy(attrs.items, old.attr, (size_t)old.n_attr * sizeof *old.attr);
    attrs_string(&attrs, ATTR_by_rows, letters);
    const ValueId first = graph_add(x->g, old.op, in, old.n_in, &attrs, NULL, old.loc);
    value_node(x->g, first)->hint = old.hint;
    const Node made = *value_node(x->g, first);
    replace_results(x, &old, &made);
}

/* --- all of it --- */

static void note_turned(Rows *x)
{
    for (size_t i = 0; i < x->g->order.len; i++) {
        const Node *n = graph_node(x->g, x->g->order.data[i]);
        if (is_turn(n))
            x->turned[n->in[0]] = true;
    }
}

void heads_by_rows(Graph *g, Pool *scratch, bool library)
{
    Rows x = {.g = g, .scratch = scratch, .library = library};
    x.turned = POOL_ARRAY(scratch, g->values.len + 1, bool);
    note_turned(&x);
    x.r = rewrite_begin(g, scratch);
    for (size_t i = 0; i < x.r.n_old; i++) {
        const NodeId id = x.r.old_order[i];
        rewrite_inputs(&x.r, id);
        const Node *n = graph_node(g, id);
        if (is_turn(n))
            visit_turn(&x, id);
        else if (is_wanted(&x, n))
            visit_attention(&x, id);
        else if (n->op == OP_concat)
            visit_concat(&x, id);
        else
            rewrite_keep(&x.r, id);
    }
    rewrite_end(&x.r);
}

bool pass_heads(PassContext *ctx)
{
    if (ctx->for_device)
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    heads_by_rows(ctx->graph, scratch, false);
    pool_free(scratch);
    return pass_dce(ctx);
}
