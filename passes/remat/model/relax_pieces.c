/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A plan's bytes are those of its arena, in which a concatenation may lie around its inputs and a
 * slice be a name for a part of its input; a problem has copies.  The relaxed problem has tensors
 * for contents instead: the atoms of pieces.h.  Reading a concatenation is reading the atoms of its
 * inputs, from the latest run that made them.
 *
 * Let S be a schedule of the problem p, G its graph after pass_views, and R the schedule S without
 * the runs that the relaxed problem does not have.  Claims: R is a schedule of the relaxed problem;
 * it takes no more time beyond every node once; and at each of its runs no more bytes are alive
 * than are in memory in G at that run, which its arena is not below.
 *
 * 1. Contents.  Let a run j read an atom of root x, and i be the last run of x's producer before j.
 *    What j reads in S was computed by some run i' <= i of the producer, and copied any number of
 *    times by concatenations and slices, each of which found it in memory.  So that content is in
 *    memory in G throughout i' to j, wherever it lies: also from i to j, as R's atom is.  Pieces
 *    that pass_views lets lie inside of others, and readers that it sends to another piece, change
 *    the places, not this.  What is kept to the end is read then.
 * 2. Counting.  Atoms are different contents, and lie in different bytes.  At a run, its inputs lie
 *    where it reads them, its outputs where it writes them, and what lives on elsewhere; only an
 *    output that is written over an input lies in the same bytes.  Where such a pair is one atom of
 *    equal bytes each, the relaxed node has the pair; else its outputs are taken from its
 *    workspace: an output that may be written over an input is not counted at that run.  Sizes of
 *    atoms are not rounded up to the arena's alignment where they can lie inside of something.
 * 3. Copies that stay.  An input of a concat is never inside of it, and no reader of it is sent to
 *    the result, when it is a source or a view or written over another tensor (views.c,
 *    owns_storage): its piece of the result is a root of its own, made by the concat.  So it is
 *    when its kernel cannot write at a pitch and nobody else who could read at a place reads it.
 *    Then other runs of the same concat may still copy from the result of an earlier run, if that
 *    is still in memory.  R leaves such runs out: what they would make has been in memory since the
 *    earlier run.  All other runs of the concat stay in R, at their cost; a concat whose inputs
 *    can all be inside only reads.
 * 4. Slices.  One that may be a name for a piece is no node.  One whose place is too involved
 *    (other steps than 1, other dims than an earlier reshape, too many cuts) runs and takes no
 *    room.  All others are nodes like any other, but R leaves out their runs that nothing reads: in
 *    G nothing stands in the way of those becoming names.  A concat of too many pieces is such a
 *    node as well: its inputs' contents are in memory when it runs, what it makes takes no room.
 * 5. Versions.  Persistent tensors are read by the same runs as in S, except by those left out:
 *    slices of them are never views, and their pieces of concatenations are copies.
 *
 * Every tensor, node, pair and size that none of this concerns is p's.
 *
 * All this is of RELAX_PROVEN.  RELAX_HEURISTIC has more copies, and claims nothing: what a plan of
 * a schedule takes is found out by placing it. */
#include "passes/remat/model/relax_pieces.h"

#include "ir/strided_view.h"
#include "ir/support/bug.h"
#include "passes/remat/model/pieces.h"
#include "passes/remat/model/step_problem.h"

typedef enum Form { AS_IT_IS, JOINS, NAMES } Form;

/* Of all concatenations: concat(x, x) over and over has twice as many each time. */
enum { MOST_PIECES = 1 << 18 };

typedef struct Relax {
    Pool *pool;
    const Graph *g;
    const RematProblem *p;
    const RematMapping *map;
    int *tensor_of;      /* by ValueId that owns storage; -1 = none */
    bool *read_at_place; /* by ValueId: by someone who is no concat */
    int *joined_by;      /* by ValueId: inputs of concats that it is */
    bool *read_dense;    /* by ValueId: by someone who cannot read at a place */
    NodeId *joins;       /* by ValueId: the first concat it is an input of */
    PiecesKind kind;
    Pieces pieces;
    Layout *layout;   /* by tensor of p */
    Form *form;       /* by node of p */
    AtomList *copies; /* by node of p: roots that a concat makes */
    size_t n_pieces;  /* of concats so far */
    /* by root */
    VEC(bool) exact, empty; /* its bytes are not rounded; it has none */
    AliasedProblem *result;
    RematProblem *out; /* its problem */
    int *seen;         /* by atom: the last node of `out` that reads it, + 1 */
} Relax;

static int tensor_of(const Relax *r, ValueId v)
{
    int t = r->tensor_of[value_root(r->g, v)];
    if (t < 0)
        BUG("%s has no tensor", graph_value(r->g, v)->name);
    return t;
}

static int add_root(Relax *r, const Type *type)
{
    vec_push(r->pool, &r->exact, false);
    vec_push(r->pool, &r->empty, false);
    return pieces_add_root(&r->pieces, type);
}

/* Who may lie where */

static void note_readers(Relax *r)
{
    const Graph *g = r->g;
    r->read_at_place = POOL_ARRAY(r->pool, g->values.len + 1, bool);
    r->joined_by = POOL_ARRAY(r->pool, g->values.len + 1, int);
    r->read_dense = POOL_ARRAY(r->pool, g->values.len + 1, bool);
    r->joins = POOL_ARRAY(r->pool, g->values.len + 1, NodeId);
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        for (int i = 0; i < n->n_in; i++) {
            ValueId v = n->in[i];
            if (n->op == OP_concat && r->joined_by[v]++ == 0)
                r->joins[v] = g->order.data[k];
            else if (n->op != OP_concat && node_reads_strided(g, n, i))
                r->read_at_place[v] = true;
            else if (n->op != OP_concat)
                r->read_dense[v] = true;
        }
    }
    for (size_t i = 0; i < g->outputs.len; i++)
        r->read_dense[g->outputs.data[i].value] = true;
}

/* The piece of a concat that is v is never v's own storage; or, where that is asked for, not
 * likely to be: everybody who reads v has to read it at its place. */
static bool stays_copy(const Relax *r, NodeId concat, ValueId v)
{
    const Node *n = value_node(r->g, v);
    if (node_is_source(n) || node_is_view(n) || value_storage(r->g, v) != VALUE_NONE)
        return true;
    if (r->kind == RELAX_HEURISTIC)
        return !value_is_written_strided(r->g, v) || r->read_dense[v] || r->joins[v] != concat ||
               r->read_dense[graph_node(r->g, concat)->out[0]];
    return !value_is_written_strided(r->g, v) && r->joined_by[v] == 1 && !r->read_at_place[v];
}

static bool joins_any(const Relax *r, NodeId id)
{
    const Node *n = graph_node(r->g, id);
    for (int i = 0; n->op == OP_concat && i < n->n_in; i++)
        if (!stays_copy(r, id, n->in[i]))
            return true;
    return false;
}

static bool may_name(const Relax *r, const Node *n)
{
    return n->op == OP_slice && (r->read_at_place[n->out[0]] || r->joined_by[n->out[0]] > 0) &&
           !(r->kind == RELAX_HEURISTIC && r->read_dense[n->out[0]]) &&
           value_storage(r->g, value_root(r->g, n->in[0])) == VALUE_NONE;
}

/* Layouts */

static void own_layout(Relax *r, int tensor)
{
    int root = add_root(r, value_type(r->g, r->map->value_of[tensor]));
    r->layout[tensor] = pieces_of_root(&r->pieces, root);
}

static Layout input_layout(Relax *r, int node, ValueId v)
{
    if (stays_copy(r, r->map->node_of[node], v)) {
        int root = add_root(r, value_type(r->g, v));
        vec_push(r->pool, &r->copies[node], root);
        r->exact.data[root] = true;
        return pieces_of_root(&r->pieces, root);
    }
    Layout *l = &r->layout[tensor_of(r, v)];
    if (!pieces_reshape(&r->pieces, l, value_type(r->g, v)))
        l->placed = false;
    for (size_t k = 0; k < l->pieces.len; k++)
        r->exact.data[l->pieces.data[k].root] = true;
    return *l;
}

static void own_empty_layout(Relax *r, int tensor)
{
    own_layout(r, tensor);
    r->empty.data[r->layout[tensor].pieces.data[0].root] = true;
}

/* Inputs that are no copies can lie in the result; false: there are too many pieces. */
static bool count_pieces(Relax *r, NodeId id)
{
    const Node *n = graph_node(r->g, id);
    size_t sum = 0;
    for (int i = 0; i < n->n_in; i++)
        sum += stays_copy(r, id, n->in[i]) ? 1 : r->layout[tensor_of(r, n->in[i])].pieces.len;
    if (sum > MOST_PIECES - r->n_pieces)
        return false;
    r->n_pieces += sum;
    return true;
}

/* Its inputs may be parts all the same. */
static void join_too_many(Relax *r, int node)
{
    NodeId id = r->map->node_of[node];
    const Node *n = graph_node(r->g, id);
    for (int i = 0; i < n->n_in; i++) {
        const Layout *l = &r->layout[tensor_of(r, n->in[i])];
        for (size_t k = 0; k < l->pieces.len && !stays_copy(r, id, n->in[i]); k++)
            r->exact.data[l->pieces.data[k].root] = true;
    }
    own_empty_layout(r, r->p->node[node].out[0]);
}

static void join_layout(Relax *r, int node)
{
    const Node *n = graph_node(r->g, r->map->node_of[node]);
    if (!count_pieces(r, r->map->node_of[node])) {
        join_too_many(r, node);
        return;
    }
    Layout *whole = &r->layout[r->p->node[node].out[0]];
    int axis = concat_axis(r->g, n);
    int64_t at = 0;
    *whole = (Layout){.type = *value_type(r->g, n->out[0]), .placed = true};
    for (int i = 0; i < n->n_in; i++) {
        Layout part = input_layout(r, node, n->in[i]);
        pieces_append(&r->pieces, whole, &part, axis, at);
        at += value_type(r->g, n->in[i])->dim[axis];
    }
    r->form[node] = JOINS;
}

static bool slice_layout(Relax *r, const Node *n, Layout *out)
{
    Layout *base = &r->layout[tensor_of(r, n->in[0])];
    const Type *type = value_type(r->g, n->out[0]);
    int64_t start[TYPE_MAX_RANK] = {0};
    for (int d = 0; d < type->rank; d++) {
        start[d] = node_ints_at(n, ATTR_start, d, 0);
        if (node_ints_at(n, ATTR_step, d, 1) != 1)
            return false;
    }
    return pieces_reshape(&r->pieces, base, value_type(r->g, n->in[0])) &&
           pieces_slice(&r->pieces, base, start, type, out);
}

static void name_layout(Relax *r, int node, const Node *n)
{
    int out = r->p->node[node].out[0];
    if (!slice_layout(r, n, &r->layout[out])) {
        own_empty_layout(r, out);
        return;
    }
    const Layout *l = &r->layout[out];
    for (size_t k = 0; k < l->pieces.len; k++)
        r->exact.data[l->pieces.data[k].root] = true;
    r->form[node] = NAMES;
}

/* Whether the relaxed problem is another. */
static bool find_layouts(Relax *r)
{
    bool any = false;
    for (int t = 0; t < r->p->n_tensors; t++)
        if (r->p->tensor[t].producer < 0)
            own_layout(r, t);
    for (int k = 0; k < r->p->n_nodes; k++) {
        const Node *n = graph_node(r->g, r->map->node_of[k]);
        bool joins = joins_any(r, r->map->node_of[k]), names = may_name(r, n);
        if (joins)
            join_layout(r, k);
        else if (names)
            name_layout(r, k, n);
        for (int o = 0; !joins && !names && o < r->p->node[k].n_out; o++)
            own_layout(r, r->p->node[k].out[o]);
        any = any || joins || names;
    }
    return any;
}

/* Tensors */

static int root_of(const Layout *l)
{
    return l->pieces.data[0].root;
}

/* The atoms of a root that is p's tensor, or of a copy (whole < 0) that a concat makes. */
static void add_atoms(Relax *r, int root, int whole, int producer, const char *name)
{
    const Root *x = &r->pieces.root.data[root];
    for (int k = 0; k < x->n_atoms; k++) {
        RematTensor *t = &r->out->tensor[x->first_atom + k];
        *t = whole < 0 ? (RematTensor){0} : r->p->tensor[whole];
        if (r->exact.data[root] || x->n_atoms > 1)
            t->bytes = pieces_atom_elements(x, k) * dtype_bytes(x->type.dtype);
        if (r->empty.data[root])
            t->bytes = 0;
        t->producer = producer;
        t->keep = false; /* by keep_results */
        t->name = x->n_atoms > 1 ? pool_printf(r->pool, "%s.part%d", name, k) : name;
    }
}

static void keep_results(Relax *r)
{
    for (int t = 0; t < r->p->n_tensors; t++) {
        AtomList atoms = {0};
        if (r->p->tensor[t].keep)
            pieces_list_atoms(&r->pieces, &r->layout[t], &atoms);
        for (size_t k = 0; k < atoms.len; k++)
            r->out->tensor[atoms.data[k]].keep = true;
    }
}

/* Nodes */

static void set_inputs(Relax *r, int index, const RematNode *from, RematNode *to)
{
    AtomList all = {0};
    for (int i = 0; i < from->n_in; i++)
        pieces_list_atoms(&r->pieces, &r->layout[from->in[i]], &all);
    to->in = POOL_ARRAY(r->pool, all.len + 1, int);
    to->n_in = 0;
    for (size_t k = 0; k < all.len; k++) {
        if (r->seen[all.data[k]] == index + 1)
            continue;
        r->seen[all.data[k]] = index + 1;
        to->in[to->n_in++] = all.data[k];
    }
}

static void list_outputs(RematNode *to, AtomList *atoms)
{
    to->out = atoms->data;
    to->n_out = (int)atoms->len;
}

static void set_outputs(Relax *r, int index, const RematNode *from, RematNode *to)
{
    AtomList atoms = {0};
    for (int o = 0; o < from->n_out; o++) {
        const Layout *l = &r->layout[from->out[o]];
        add_atoms(r, root_of(l), from->out[o], index, r->p->tensor[from->out[o]].name);
        pieces_list_atoms(&r->pieces, l, &atoms);
    }
    list_outputs(to, &atoms);
}

/* A concat makes the copies that stay. */
static void set_copies(Relax *r, int index, int node, RematNode *to)
{
    AtomList atoms = {0};
    const char *name = r->p->tensor[r->p->node[node].out[0]].name;
    for (size_t k = 0; k < r->copies[node].len; k++) {
        int root = r->copies[node].data[k];
        Layout l = pieces_of_root(&r->pieces, root);
        add_atoms(r, root, -1, index, pool_printf(r->pool, "%s.copy%d", name, (int)k));
        pieces_list_atoms(&r->pieces, &l, &atoms);
    }
    list_outputs(to, &atoms);
    to->n_in_place = 0;
}

static int position_of(const int *list, int n, int item)
{
    for (int k = 0; k < n; k++)
        if (list[k] == item)
            return k;
    BUG("not an operand");
}

/* One atom; -1: several. */
static int only_atom(const Relax *r, int tensor)
{
    AtomList atoms = {0};
    pieces_list_atoms(&r->pieces, &r->layout[tensor], &atoms);
    return atoms.len == 1 ? atoms.data[0] : -1;
}

static bool is_pair(const Relax *r, const RematNode *from, const RematInPlace *pair)
{
    int out = only_atom(r, from->out[pair->out]), in = only_atom(r, from->in[pair->in]);
    return out >= 0 && in >= 0 && r->out->tensor[out].bytes == r->out->tensor[in].bytes;
}

static int64_t layout_bytes(const Relax *r, int tensor)
{
    AtomList atoms = {0};
    int64_t bytes = 0;
    pieces_list_atoms(&r->pieces, &r->layout[tensor], &atoms);
    for (size_t k = 0; k < atoms.len; k++)
        bytes += r->out->tensor[atoms.data[k]].bytes;
    return bytes;
}

static void set_in_place(Relax *r, const RematNode *from, RematNode *to)
{
    bool *free_of_charge = POOL_ARRAY(r->pool, (size_t)from->n_out + 1, bool);
    to->in_place = POOL_ARRAY(r->pool, (size_t)from->n_in_place + 1, RematInPlace);
    to->n_in_place = 0;
    for (int k = 0; k < from->n_in_place; k++) {
        int out = from->in_place[k].out;
        if (is_pair(r, from, &from->in_place[k]) || free_of_charge[out])
            continue;
        free_of_charge[out] = true;
        to->workspace -= layout_bytes(r, from->out[out]);
    }
    for (int k = 0; k < from->n_in_place; k++) {
        RematInPlace pair = from->in_place[k];
        if (free_of_charge[pair.out])
            continue;
        pair.out = position_of(to->out, to->n_out, only_atom(r, from->out[pair.out]));
        pair.in = position_of(to->in, to->n_in, only_atom(r, from->in[pair.in]));
        to->in_place[to->n_in_place++] = pair;
    }
}

static void set_overwrites(Relax *r, const RematNode *from, RematNode *to)
{
    to->overwrites = POOL_ARRAY(r->pool, (size_t)from->n_overwrites + 1, int);
    for (int k = 0; k < from->n_overwrites; k++)
        to->overwrites[k] = only_atom(r, from->overwrites[k]);
}

static void add_node(Relax *r, int node)
{
    const RematNode *from = &r->p->node[node];
    int index = r->out->n_nodes;
    AliasedProblem *x = r->result;
    x->follows[node] = r->form[node] != AS_IT_IS;
    x->index_of[node] = r->form[node] == NAMES ? -1 : index;
    if (r->form[node] == NAMES)
        return;
    x->node_of[index] = node;
    if (node == r->p->loss_node)
        r->out->loss_node = index;
    RematNode *to = &r->out->node[r->out->n_nodes++];
    *to = *from;
    set_inputs(r, index, from, to);
    if (r->form[node] == JOINS) {
        set_copies(r, index, node, to);
    } else {
        set_outputs(r, index, from, to);
        set_in_place(r, from, to);
        set_overwrites(r, from, to);
    }
}

static const AliasedProblem *build(Relax *r)
{
    const RematProblem *p = r->p;
    size_t n_atoms = (size_t)pieces_number(&r->pieces);
    AliasedProblem *x = r->result = POOL_NEW(r->pool, AliasedProblem);
    RematProblem *out = r->out = &x->problem;
    *out = (RematProblem){.pool = r->pool, .n_tensors = (int)n_atoms, .loss_node = -1};
    out->persistent_bytes = p->persistent_bytes;
    out->node = POOL_ARRAY(r->pool, (size_t)p->n_nodes + 1, RematNode);
    out->tensor = POOL_ARRAY(r->pool, n_atoms + 1, RematTensor);
    x->node_of = POOL_ARRAY(r->pool, (size_t)p->n_nodes + 1, int);
    x->index_of = POOL_ARRAY(r->pool, (size_t)p->n_nodes + 1, int);
    x->follows = POOL_ARRAY(r->pool, (size_t)p->n_nodes + 1, bool);
    r->seen = POOL_ARRAY(r->pool, n_atoms + 1, int);
    for (int t = 0; t < p->n_tensors; t++)
        if (p->tensor[t].producer < 0)
            add_atoms(r, root_of(&r->layout[t]), t, -1, p->tensor[t].name);
    for (int n = 0; n < p->n_nodes; n++)
        add_node(r, n);
    keep_results(r);
    return x;
}

const AliasedProblem *relax_pieces(Pool *pool, const Graph *g, const RematProblem *p,
                                   const RematMapping *mapping, PiecesKind kind)
{
    Relax r = {
        .pool = pool, .g = g, .p = p, .map = mapping, .kind = kind, .pieces = {.pool = pool}};
    r.tensor_of = POOL_ARRAY(pool, g->values.len + 1, int);
    for (size_t v = 0; v < g->values.len; v++)
        r.tensor_of[v] = -1;
    for (int t = 0; t < p->n_tensors; t++)
        r.tensor_of[mapping->value_of[t]] = t;
    r.layout = POOL_ARRAY(pool, (size_t)p->n_tensors + 1, Layout);
    r.form = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, Form);
    r.copies = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, AtomList);
    note_readers(&r);
    return find_layouts(&r) ? build(&r) : NULL;
}
