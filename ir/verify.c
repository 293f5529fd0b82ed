/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/verify.h"

#include "ir/graph_internal.h"
#include "ir/loop.h"
#include "ir/product.h"
#include "ir/prologue.h"
#include "ir/strided_view.h"
#include "ir/support/bitset.h"
#include "ir/winograd.h"

/* One walk over the order, keeping what is defined and which persistent tensors are gone. */
typedef struct Verifier {
    const Graph *g;
    Pool *pool;   /* the graph's; a few bytes a value are spent on it */
    bool in_body; /* of a fused group */
    bool in_loop;
    int depth;          /* in how many bodies */
    Bitset defined;     /* values whose node ran */
    Bitset overwritten; /* values in persistent storage whose contents are gone */
    Bitset read;        /* values that a node has read */
    ValueId *newest;    /* by persistent value that was overwritten: what its storage holds */
    ValueId *root;      /* by value: what it is a view of, itself when it is no view */
    Bitset scheduled;   /* nodes seen in the order */
    const char *message;
} Verifier;

static bool fault(Verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fault(Verifier *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    v->message = pool_vprintf(v->pool, format, args);
    va_end(args);
    return false;
}

static const char *node_label(const Verifier *v, const Node *n)
{
    const char *name = n->n_out ? graph_value(v->g, n->out[0])->name : "(no result)";
    return pool_printf(v->pool, "%s %s", op_name(n->op), name);
}

static bool check_names(Verifier *v, const Node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        const char *name = graph_value(v->g, n->out[i])->name;
        char sigil = node_is_persistent(n) ? '$' : 0;
        if (!name || (name[0] != '%' && name[0] != '$') || (sigil && name[0] != sigil))
            return fault(v, "%s: the name %s lacks its sigil", op_name(n->op),
                         name ? name : "(null)");
        if (graph_find(v->g, name) != n->out[i])
            return fault(v, "%s: the name %s belongs to another value", op_name(n->op), name);
    }
    return true;
}

static bool is_list(AttrKind kind)
{
    return kind == ATTR_KIND_INTS || kind == ATTR_KIND_FLOATS;
}

/* The operation takes the attributes that it has, and has those that it must. */
static bool check_declared(Verifier *v, const Node *n)
{
    const OpAttr *declared = op_table[n->op].attrs;
    for (int i = 0; i < n->n_attr; i++) {
        const OpAttr *d = declared;
        while (d->key != ATTR_COUNT && d->key != n->attr[i].key)
            d++;
        if (d->key == ATTR_COUNT)
            return fault(v, "%s: takes no attribute %s", node_label(v, n),
                         attr_name(n->attr[i].key));
    }
    for (const OpAttr *d = declared; d->key != ATTR_COUNT; d++)
        if (d->required && !node_attr(n, d->key))
            return fault(v, "%s: needs the attribute %s", node_label(v, n), attr_name(d->key));
    return true;
}

/* Kernels of a library take in no other operations, and say what memory they want. */
static bool check_library(Verifier *v, const Node *n)
{
    bool has = node_attr(n, ATTR_library);
    if (has != (node_attr(n, ATTR_workspace) != NULL) || node_int(n, ATTR_workspace, 0) < 0)
        return fault(v, "%s: a library and its workspace go together", node_label(v, n));
    return !has || !v->in_body || fault(v, "%s: not allowed in a fused group", node_label(v, n));
}

/* Kernels have the form for these alone.  Runs when the node's types are known to be right. */
static bool check_winograd(Verifier *v, const Node *n)
{
    const Attr *m = node_attr(n, ATTR_winograd);
    if (!m || (winograd_fits(v->g, n) && (m->u.i == 2 || m->u.i == WINOGRAD_MOST)))
        return true;
    return fault(v, "%s: cannot have Winograd's form by tiles of %lld", node_label(v, n),
                 (long long)m->u.i);
}

/* So have they for products alone. */
static bool check_pairs(Verifier *v, const Node *n)
{
    ProductSides sides;
    if (!node_attr(n, ATTR_pairs) || (product_sides(v->g, n, &sides) && !node_attr(n, ATTR_chain) &&
                                      !node_attr(n, ATTR_library)))
        return true;
    return fault(v, "%s: its sum cannot be added by pairs", node_label(v, n));
}

static bool check_attrs(Verifier *v, const Node *n)
{
    for (int i = 0; i < n->n_attr; i++) {
        const Attr *a = &n->attr[i];
        if ((unsigned)a->key >= ATTR_COUNT || (i && a->key <= n->attr[i - 1].key))
            return fault(v, "%s: attributes are not sorted", node_label(v, n));
        if (attr_kind(a->key) == ATTR_KIND_STRING && !a->u.s)
            return fault(v, "%s: attribute %s has no text", node_label(v, n), attr_name(a->key));
        if (a->n < 0 || (!is_list(attr_kind(a->key)) && a->n != 0))
            return fault(v, "%s: attribute %s has a bad count", node_label(v, n),
                         attr_name(a->key));
    }
    return check_declared(v, n) && check_library(v, n);
}

static bool check_inputs(Verifier *v, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        if (n->in[i] >= v->g->values.len)
            return fault(v, "%s: input %d is no value", node_label(v, n), i);
        const char *name = graph_value(v->g, n->in[i])->name;
        if (!bitset_has(&v->defined, n->in[i]))
            return fault(v, "%s reads %s before it is computed", node_label(v, n), name);
        if (bitset_has(&v->overwritten, v->root[n->in[i]]))
            return fault(v, "%s reads %s after it was overwritten", node_label(v, n), name);
        if (!value_is_dense(v->g, n->in[i]) && !node_reads_strided(v->g, n, i))
            return fault(v, "%s cannot read %s where it lies", node_label(v, n), name);
        bitset_add(&v->read, n->in[i]);
    }
    return true;
}

static bool check_source(Verifier *v, const Node *n)
{
    if (n->n_in || n->n_out != 1)
        return fault(v, "%s: a source has no inputs and one result", node_label(v, n));
    const Type *t = value_type(v->g, n->out[0]);
    if (!type_valid(t) || type_elements(t) == 0)
        return fault(v, "%s: the declared type is not valid", node_label(v, n));
    if ((v->in_body || v->in_loop) && n->op != OP_input && n->op != OP_const)
        return fault(v, "%s: not allowed in a %s", node_label(v, n),
                     v->in_body ? "fused group" : "loop");
    return true;
}

static bool check_types(Verifier *v, const Node *n)
{
    Type few[FEW_RESULTS], *types = few;
    ShapeError err;
    int n_out, room = node_max_results(n);
    if (room > FEW_RESULTS)
        types = POOL_ARRAY(v->pool, (size_t)room, Type);
    if (!node_infer(v->g, n, types, &n_out, &err))
        return fault(v, "%s: %s", node_label(v, n), err.message);
    if (n_out != n->n_out)
        return fault(v, "%s: has %d results, the shape rule makes %d", node_label(v, n), n->n_out,
                     n_out);
    for (int i = 0; i < n_out; i++) {
        const Type *t = value_type(v->g, n->out[i]);
        if (!type_equal(t, &types[i]))
            return fault(v, "%s: result %d is %s, the shape rule makes %s", node_label(v, n), i,
                         type_text(v->pool, t), type_text(v->pool, &types[i]));
    }
    return check_winograd(v, n) && check_pairs(v, n);
}

static bool check_body(Verifier *v, const Node *n);

/* An input of the group, or what a convolution may apply to one as it reads it. */
static bool may_read(const Verifier *v, const Node *matrix, int i)
{
    const Node *n = value_node(v->g, matrix->in[i]);
    if (n->op == OP_input)
        return true;
    return i == 0 && op_table[n->op].op_class == OP_CLASS_POINT &&
           conv_takes_prologue(v->g, matrix);
}

/* A group: POINT operations, constants, and at most one MATRIX operation. */
static bool check_body_node(Verifier *v, const Node *n, int *n_matrix)
{
    OpClass c = op_table[n->op].op_class;
    if (c == OP_CLASS_SOURCE || c == OP_CLASS_POINT || n->op == OP_full)
        return true;
    if (c != OP_CLASS_MATRIX || ++*n_matrix > 1)
        return fault(v, "%s: not allowed in this fused group", node_label(v, n));
    for (int i = 0; i < n->n_in; i++)
        if (!may_read(v, n, i))
            return fault(v, "%s: reads a result of its own fused group", node_label(v, n));
    return true;
}

/* Marks the contents of the tensor as overwritten, once the writer has read them. */
static bool check_write(Verifier *v, const Node *n, ValueId out)
{
    ValueId target = graph_value(v->g, out)->writes;
    if (target == VALUE_NONE) {
        if (op_table[n->op].op_class == OP_CLASS_UPDATE)
            return fault(v, "%s: an update must write a persistent tensor", node_label(v, n));
        return true;
    }
    if (v->in_body || v->in_loop || node_is_source(n))
        return fault(v, "%s: must not write a persistent tensor", node_label(v, n));
    if (target >= v->g->values.len || !node_is_persistent(value_node(v->g, target)) ||
        !bitset_has(&v->defined, target))
        return fault(v, "%s: writes something that is no persistent tensor", node_label(v, n));
    const char *name = graph_value(v->g, target)->name;
    if (!type_equal(value_type(v->g, target), value_type(v->g, out)))
        return fault(v, "%s: writes %s, which has another type", node_label(v, n), name);
    ValueId old = bitset_has(&v->overwritten, target) ? v->newest[target] : target;
    if (old != target && !bitset_has(&v->read, old))
        return fault(v, "%s: %s is overwritten a second time, and nothing has read it since",
                     node_label(v, n), name);
    bitset_add(&v->overwritten, old);
    v->newest[target] = out;
    return true;
}

/* A copied piece may have become one that is read where it lies, and its recomputation not. */
static bool same_operation(OpKind a, OpKind b)
{
    return (a == OP_subview ? OP_slice : a) == (b == OP_subview ? OP_slice : b);
}

static bool check_remat(Verifier *v, const Node *n)
{
    if (n->remat_of == NODE_NONE)
        return true;
    if (n->remat_of >= v->g->nodes.len || !same_operation(graph_node(v->g, n->remat_of)->op, n->op))
        return fault(v, "%s: recomputes another operation", node_label(v, n));
    if (op_table[n->op].op_class == OP_CLASS_UPDATE)
        return fault(v, "%s: an update must run once", node_label(v, n));
    for (int i = 0; i < n->n_out; i++)
        if (graph_value(v->g, n->out[i])->writes != VALUE_NONE)
            return fault(v, "%s: a recomputation must not write a persistent tensor",
                         node_label(v, n));
    return true;
}

static bool check_part(Verifier *v, const Node *concat, int i)
{
    ValueId part = concat->in[i];
    const char *name = graph_value(v->g, part)->name;
    for (int k = 0; k < i; k++)
        if (concat->in[k] == part && concat_has_joined(concat, k))
            return fault(v, "%s: %s is joined twice", node_label(v, concat), name);
    if (graph_value(v->g, part)->part_of != concat->out[0])
        return fault(v, "%s: %s is a part of something else", node_label(v, concat), name);
    if (!value_is_written_strided(v->g, part) || graph_value(v->g, part)->writes != VALUE_NONE)
        return fault(v, "%s: %s cannot be computed in its place", node_label(v, concat), name);
    return true;
}

/* Attribute `joined`: numbers of inputs, ascending. */
static bool check_joined(Verifier *v, const Node *n)
{
    int count;
    const int64_t *joined = node_ints(n, ATTR_joined, &count);
    if (count && (n->op != OP_concat || graph_value(v->g, n->out[0])->writes != VALUE_NONE))
        return fault(v, "%s: cannot have parts", node_label(v, n));
    for (int k = 0; k < count; k++) {
        if (joined[k] < 0 || joined[k] >= n->n_in || (k && joined[k] <= joined[k - 1]))
            return fault(v, "%s: attribute joined names no inputs", node_label(v, n));
        if (!check_part(v, n, (int)joined[k]))
            return false;
    }
    return true;
}

/* What is a part must become one. */
static bool check_parts_end(Verifier *v)
{
    for (size_t k = 0; k < v->g->order.len; k++) {
        const Node *n = graph_node(v->g, v->g->order.data[k]);
        for (int i = 0; i < n->n_out; i++) {
            ValueId whole = graph_value(v->g, n->out[i])->part_of;
            if (whole != VALUE_NONE && !bitset_has(&v->defined, whole))
                return fault(v, "%s: is a part of something that is not computed",
                             node_label(v, n));
        }
    }
    return true;
}

static bool check_results(Verifier *v, NodeId id, const Node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        ValueId out = n->out[i];
        if (out >= v->g->values.len || bitset_has(&v->defined, out))
            return fault(v, "node %u (%s): result %d is no value, or defined twice", id,
                         op_name(n->op), i);
        if (graph_value(v->g, out)->def != id || graph_value(v->g, out)->out_index != i)
            return fault(v, "%s: result %d does not know its node", node_label(v, n), i);
    }
    return true;
}

static bool define_results(Verifier *v, const Node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        bool view = op_table[n->op].op_class == OP_CLASS_VIEW;
        v->root[n->out[i]] = view ? v->root[n->in[0]] : n->out[i];
        if (!check_write(v, n, n->out[i]))
            return false;
    }
    for (int i = 0; i < n->n_out; i++) {
        if (bitset_has(&v->defined, n->out[i]))
            return fault(v, "%s: a result is listed twice", node_label(v, n));
        bitset_add(&v->defined, n->out[i]);
    }
    return true;
}

static bool check_node(Verifier *v, NodeId id, int *n_matrix)
{
    if (id >= v->g->nodes.len || bitset_has(&v->scheduled, id))
        return fault(v, "node %u is in the order twice, or does not exist", id);
    bitset_add(&v->scheduled, id);
    const Node *n = graph_node(v->g, id);
    if ((unsigned)n->op >= OP_COUNT)
        return fault(v, "node %u is no operation", id);
    if (!check_results(v, id, n) || !check_names(v, n) || !check_attrs(v, n) || !check_inputs(v, n))
        return false;
    if (!n->body != (op_table[n->op].op_class != OP_CLASS_REGION))
        return fault(v, "%s: fused groups and loops alone have a body", node_label(v, n));
    if (n->body && (v->in_body ? !fault(v, "fused groups do not nest") : !check_body(v, n)))
        return false;
    if (v->in_body && !check_body_node(v, n, n_matrix))
        return false;
    if (node_is_source(n) ? !check_source(v, n) : !check_types(v, n))
        return false;
    return check_remat(v, n) && check_joined(v, n) && define_results(v, n);
}

static bool check_outputs(Verifier *v)
{
    Map names = map_new(v->pool);
    for (size_t i = 0; i < v->g->outputs.len; i++) {
        Output o = v->g->outputs.data[i];
        if (o.value >= v->g->values.len || !bitset_has(&v->defined, o.value))
            return fault(v, "output %s is not computed", o.name);
        if (bitset_has(&v->overwritten, v->root[o.value]))
            return fault(v, "output %s is overwritten before the end", o.name);
        if (!value_is_dense(v->g, o.value))
            return fault(v, "output %s lies inside another value", o.name);
        if (map_find(&names, o.name))
            return fault(v, "two outputs are called %s", o.name);
        map_set(&names, o.name, i);
    }
    return true;
}

static bool verify(Verifier *v)
{
    int n_matrix = 0;
    v->defined = bitset_new(v->pool, v->g->values.len + 1);
    v->overwritten = bitset_new(v->pool, v->g->values.len + 1);
    v->read = bitset_new(v->pool, v->g->values.len + 1);
    v->scheduled = bitset_new(v->pool, v->g->nodes.len + 1);
    v->newest = POOL_ARRAY(v->pool, v->g->values.len + 1, ValueId);
    v->root = POOL_ARRAY(v->pool, v->g->values.len + 1, ValueId);
    for (size_t i = 0; i < v->g->order.len; i++)
        if (!check_node(v, v->g->order.data[i], &n_matrix))
            return false;
    return check_outputs(v) && check_parts_end(v);
}

static bool check_body(Verifier *v, const Node *n)
{
    bool loop = node_is_loop(n);
    Verifier inner = {.g = n->body,
                      .pool = v->pool,
                      .in_body = !loop,
                      .in_loop = loop || v->in_loop,
                      .depth = v->depth + 1};
    if (inner.depth > LOOP_MAX_LEVELS + 1)
        return fault(v, "%s: loops nested more than %d deep", node_label(v, n), LOOP_MAX_LEVELS);
    if (verify(&inner))
        return true;
    return fault(v, "%s: in its body: %s", node_label(v, n), inner.message);
}

bool graph_verify(const Graph *g, const char **message)
{
    Verifier v = {.g = g, .pool = g->pool};
    bool good = verify(&v);
    *message = v.message;
    return good;
}
