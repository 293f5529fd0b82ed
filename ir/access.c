/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who may write over an input, and who reads and writes inside of other values. */
#include "ir/attention.h"
#include "ir/op_rules.h"
#include "ir/strided_view.h"

static bool none(const Graph *g, const Node *n, int i)
{
    (void)g, (void)n, (void)i;
    return false;
}

static bool any(const Graph *g, const Node *n, int i)
{
    (void)g, (void)n, (void)i;
    return true;
}

static bool first_input(const Graph *g, const Node *n, int i)
{
    (void)g, (void)n;
    return i == 0;
}

static bool third_input(const Graph *g, const Node *n, int i)
{
    (void)g, (void)n;
    return i == 2;
}

/* The second is read word by word: a generator's state, or bits. */
static bool all_but_second(const Graph *g, const Node *n, int i)
{
    (void)g, (void)n;
    return i != 1;
}

/* Reading at strides */

/* Rows of the last dim lie evenly: a matrix with a pitch. */
static bool has_pitch(const Graph *g, ValueId v)
{
    const Type *t = value_type(g, v);
    StridedView p = value_view(g, v);
    for (int d = 0; d + 2 < t->rank; d++)
        if (p.stride[d] != p.stride[d + 1] * t->dim[d + 1])
            return false;
    return t->rank >= 2 && p.stride[t->rank - 1] == 1;
}

/* Statistics of channels that are the last dim. */
static bool reads_rows(const Graph *g, const Node *n, int i)
{
    int images = n->op == OP_bn_stats ? 1 : 2;
    const Type *x = value_type(g, n->in[0]);
    int64_t axis = node_int(n, ATTR_axis, node_flag(n, ATTR_nhwc) ? -1 : 1);
    return i < images && (axis < 0 || axis == x->rank - 1) && has_pitch(g, n->in[i]);
}

/* Bits of 16 elements at a time: as many as any vector has, and half a word. */
static bool reads_runs(const Graph *g, const Node *n, int i)
{
    (void)i;
    const Type *x = value_type(g, n->in[0]);
    return has_pitch(g, n->in[0]) && x->dim[x->rank - 1] % 16 == 0;
}

/* Whole rows of heads. */
static bool reads_heads(const Graph *g, const Node *n, int i)
{
    const char tensor = attention_input(n, i);
    return tensor && attention_takes_strides(g, n, tensor);
}

static bool writes_heads(const Graph *g, const Node *n, int i)
{
    const char tensor = attention_result(n, i);
    return tensor && attention_takes_strides(g, n, tensor);
}

/* Fused groups */

ValueId body_input(const Graph *body, int i)
{
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        if (n->op == OP_input && i-- == 0)
            return n->out[0];
    }
    return VALUE_NONE;
}

enum { BODY_VALUES = 1024 };

/* Everything in the body that depends on v must be element-wise at v's shape: then v's element is
 * read at the one index at which the result's is written.  False for bodies past BODY_VALUES, which
 * no pass makes. */
static bool element_wise_in_body(const Graph *body, ValueId v)
{
    bool depends[BODY_VALUES] = {0};
    if (v == VALUE_NONE || body->values.len > BODY_VALUES)
        return false;
    depends[v] = true;
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        bool reads = false, elsewhere = false;
        for (int i = 0; i < n->n_in; i++) {
            reads |= depends[n->in[i]];
            elsewhere |= depends[n->in[i]] && !op_table[n->op].access->in_step(body, n, i);
        }
        if (!reads)
            continue;
        if (elsewhere || op_table[n->op].op_class != OP_CLASS_POINT ||
            !type_same_shape(value_type(body, n->out[0]), value_type(body, v)))
            return false;
        depends[n->out[0]] = true;
    }
    return true;
}

static bool group_in_step(const Graph *g, const Node *n, int i)
{
    (void)g;
    return n->body && element_wise_in_body(n->body, body_input(n->body, i));
}

static bool group_writes(const Graph *g, const Node *n, int i)
{
    (void)g, (void)i;
    return n->body && !graph_has_matrix(n->body);
}

/* Element-wise groups read through strides what they read at the place of the result; groups with a
 * matrix operation rows of the last dim at a pitch, of what only element-wise operations read. */
static bool group_strided(const Graph *g, const Node *group, int i)
{
    if (!group_writes(g, group, 0) && !has_pitch(g, group->in[i]))
        return false;
    const Graph *body = group->body;
    ValueId v = body_input(body, i);
    for (size_t k = 0; k < body->order.len; k++) {
        const Node *n = graph_node(body, body->order.data[k]);
        for (int in = 0; in < n->n_in; in++)
            if (n->in[in] == v && (op_table[n->op].op_class != OP_CLASS_POINT ||
                                   !op_table[n->op].access->strided(body, n, in)))
                return false;
    }
    return true;
}

const OpAccess access_dense = {none, none, none, false};
const OpAccess access_over_any = {any, none, none, false};
const OpAccess access_over_first = {first_input, none, none, false};
const OpAccess access_over_third = {third_input, none, none, false};
const OpAccess access_point = {any, any, any, false};
const OpAccess access_indexed = {any, any, any, true};
const OpAccess access_seeded = {all_but_second, all_but_second, any, true};
const OpAccess access_drawn = {none, none, any, true};
const OpAccess access_masked = {all_but_second, all_but_second, any, false};
const OpAccess access_moved = {none, any, any, false};
const OpAccess access_subview = {none, any, none, false};
const OpAccess access_rows = {none, reads_rows, none, false};
const OpAccess access_runs = {none, reads_runs, none, false};
const OpAccess access_heads = {none, reads_heads, writes_heads, false};
const OpAccess access_group = {group_in_step, group_strided, group_writes, false};

bool node_reads_strided(const Graph *g, const Node *n, int i)
{
    return op_table[n->op].access->strided(g, n, i);
}

bool value_is_written_strided(const Graph *g, ValueId v)
{
    const Node *n = value_node(g, v);
    int i = 0;
    while (n->out[i] != v)
        i++;
    return op_table[n->op].access->writes_strided(g, n, i);
}

/* Writing over an input */

static bool input_fits(const Graph *g, const Node *n, int out, int in)
{
    const Type *a = value_type(g, n->in[in]), *b = value_type(g, n->out[out]);
    if (!type_same_shape(a, b) || dtype_bytes(a->dtype) != dtype_bytes(b->dtype) ||
        !value_is_dense(g, n->in[in]) || !value_is_dense(g, n->out[out]))
        return false;
    return op_table[n->op].access->in_step(g, n, in);
}

/* Other inputs that are the same memory, directly, through views or as parts, must fit as well. */
bool node_may_overwrite(const Graph *g, const Node *n, int out, int in)
{
    ValueId root = value_root(g, n->in[in]);
    if (!input_fits(g, n, out, in))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (i != in && value_root(g, n->in[i]) == root && !input_fits(g, n, out, i))
            return false;
    return true;
}
