/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Independent check of a graph's plan: it plays the step and remembers which value each byte of the
 * arena belongs to.  A value that has been written over is noticed at its next read; lives are
 * never computed. */
#include "passes/memplan/memplan.h"

#include "ir/strided_view.h"

#include <string.h>

enum { OWNER_NOBODY = -1 };

/* Bytes [begin, end) hold `owner`: a version number of a value. */
typedef struct Range {
    int64_t begin, end;
    int64_t owner;
} Range;

typedef struct Play {
    const Graph *g;
    const MemPlan *plan;
    Pool *pool;
    const char **fault;
    VEC(Range) ranges; /* sorted, disjoint, covering the arena */
    int64_t *version; /* by ValueId: the owner number that its bytes must carry; 0 = not made yet */
    int64_t n_versions;
} Play;

static bool fail(Play *p, const char *what, ValueId v)
{
    *p->fault = pool_printf(p->pool, "%s: %s", graph_value(p->g, v)->name, what);
    return false;
}

static int64_t bytes_of(const Play *p, ValueId v)
{
    return type_bytes(value_type(p->g, v));
}

static size_t range_at(const Play *p, int64_t offset)
{
    size_t lo = 0, hi = p->ranges.len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->ranges.data[mid].end <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Makes `offset` the beginning of a range. */
static size_t split_at(Play *p, int64_t offset)
{
    size_t k = range_at(p, offset);
    if (k >= p->ranges.len || p->ranges.data[k].begin == offset)
        return k;
    vec_push(p->pool, &p->ranges, (Range){0, 0, 0});
    Range *r = p->ranges.data;
    memmove(r + k + 1, r + k, (p->ranges.len - 1 - k) * sizeof *r);
    r[k].end = r[k + 1].begin = offset;
    return k + 1;
}

static void stamp(Play *p, int64_t offset, int64_t bytes, int64_t owner)
{
    if (bytes == 0)
        return;
    size_t first = split_at(p, offset), after = split_at(p, offset + bytes);
    Range *r = p->ranges.data;
    r[first] = (Range){offset, offset + bytes, owner};
    memmove(r + first + 1, r + after, (p->ranges.len - after) * sizeof *r);
    p->ranges.len -= after - first - 1;
}

static bool holds(const Play *p, int64_t offset, int64_t bytes, int64_t owner)
{
    for (size_t k = range_at(p, offset); k < p->ranges.len; k++) {
        if (p->ranges.data[k].begin >= offset + bytes)
            break;
        if (p->ranges.data[k].owner != owner)
            return false;
    }
    return true;
}

static bool in_arena(const Play *p, int64_t offset, int64_t bytes)
{
    return offset >= 0 && offset % MEMPLAN_ALIGN == 0 && bytes <= p->plan->arena_bytes - offset;
}

static bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* The concatenation, of concatenations, that v is computed into; v itself when it is no part. */
static ValueId whole_of(const Play *p, ValueId v)
{
    while (graph_value(p->g, v)->part_of != VALUE_NONE)
        v = graph_value(p->g, v)->part_of;
    return v;
}

/* The bytes that a reader of v relies on: all of what it is a piece of. */
static ValueId read_range(const Play *p, ValueId v)
{
    return value_is_dense(p->g, v) ? v : value_root(p->g, v);
}

static bool check_read(Play *p, ValueId v)
{
    if (p->version[v] == 0)
        return fail(p, "read before it is made", v);
    if (!holds(p, p->plan->offset[v], bytes_of(p, read_range(p, v)), p->version[v]))
        return fail(p, "its bytes have been written over before a read", v);
    return true;
}

/* Output o may meet an input only where the operation allows it, byte for byte. */
static bool check_against_inputs(Play *p, const Node *n, int o)
{
    ValueId out = n->out[o];
    int64_t offset = p->plan->offset[out], bytes = bytes_of(p, whole_of(p, out));
    for (int i = 0; i < n->n_in; i++) {
        ValueId in = n->in[i], range = read_range(p, in);
        bool siblings = value_root(p->g, in) == whole_of(p, out); /* parts never overlap */
        if (siblings || !overlap(offset, bytes, p->plan->offset[in], bytes_of(p, range)))
            continue;
        bool updates = graph_value(p->g, out)->writes != VALUE_NONE &&
                       value_storage(p->g, in) == graph_value(p->g, out)->writes;
        if (updates || (offset == p->plan->offset[in] && node_may_overwrite(p->g, n, o, i)))
            continue;
        return fail(p, "lies over an input of its operation", out);
    }
    return true;
}

static bool check_output(Play *p, const Node *n, int o)
{
    ValueId out = n->out[o], whole = whole_of(p, out), storage = graph_value(p->g, out)->writes;
    int64_t offset = p->plan->offset[out], bytes = bytes_of(p, whole);
    if (!in_arena(p, offset, bytes))
        return fail(p, "is not inside the arena", out);
    if (storage != VALUE_NONE && offset != p->plan->offset[storage])
        return fail(p, "does not lie where the tensor it updates lies", out);
    if (offset != p->plan->offset[whole])
        return fail(p, "is a part and lies elsewhere", out);
    if (p->version[whole] != 0 && !holds(p, offset, bytes, p->version[whole]))
        return fail(p, "its other parts have been written over", out);
    for (int other = 0; other < o; other++)
        if (whole_of(p, n->out[other]) != whole &&
            overlap(offset, bytes, p->plan->offset[n->out[other]],
                    bytes_of(p, whole_of(p, n->out[other]))))
            return fail(p, "overlaps another output", out);
    return check_against_inputs(p, n, o);
}

static bool check_workspace(Play *p, NodeId id)
{
    const Node *n = graph_node(p->g, id);
    int64_t bytes = node_workspace_bytes(p->g, n), offset = p->plan->workspace_offset[id];
    if (bytes == 0)
        return true;
    if (!in_arena(p, offset, bytes))
        return fail(p, "its workspace is not inside the arena", n->out[0]);
    for (int i = 0; i < n->n_in; i++)
        if (overlap(offset, bytes, p->plan->offset[n->in[i]], bytes_of(p, read_range(p, n->in[i]))))
            return fail(p, "its workspace lies over an input", n->out[0]);
    for (int o = 0; o < n->n_out; o++)
        if (overlap(offset, bytes, p->plan->offset[n->out[o]], bytes_of(p, whole_of(p, n->out[o]))))
            return fail(p, "its workspace lies over an output", n->out[0]);
    stamp(p, offset, bytes, OWNER_NOBODY);
    return true;
}

/* The first of several parts makes the version of them all, and of the whole. */
static void make_value(Play *p, ValueId v)
{
    ValueId whole = whole_of(p, v);
    if (p->version[whole] == 0) {
        p->version[whole] = ++p->n_versions;
        stamp(p, p->plan->offset[v], bytes_of(p, whole), p->version[whole]);
    }
    p->version[v] = p->version[whole];
}

static bool play_node(Play *p, NodeId id)
{
    const Node *n = graph_node(p->g, id);
    if (op_table[n->op].op_class == OP_CLASS_VIEW) {
        p->version[n->out[0]] = p->version[n->in[0]];
        return p->plan->offset[n->out[0]] == p->plan->offset[n->in[0]] ||
               fail(p, "is a view and lies elsewhere", n->out[0]);
    }
    for (int i = 0; i < n->n_in; i++)
        if (!check_read(p, n->in[i]))
            return false;
    for (int o = 0; o < n->n_out; o++)
        if (!check_output(p, n, o))
            return false;
    if (!check_workspace(p, id))
        return false;
    for (int o = 0; o < n->n_out; o++)
        make_value(p, n->out[o]);
    return true;
}

static bool is_given(const Node *n)
{
    return node_is_source(n) && n->op != OP_const;
}

/* What exists before the step: all of it at once, persistent tensors below persistent_bytes. */
static bool place_given(Play *p)
{
    for (size_t k = 0; k < p->g->order.len; k++) {
        const Node *n = graph_node(p->g, p->g->order.data[k]);
        if (!is_given(n))
            continue;
        ValueId v = n->out[0];
        if (!in_arena(p, p->plan->offset[v], bytes_of(p, v)))
            return fail(p, "is not inside the arena", v);
        bool low = p->plan->offset[v] + bytes_of(p, v) <= p->plan->persistent_bytes;
        if (node_is_persistent(n) != low && bytes_of(p, v) > 0)
            return fail(p, "is on the wrong side of the persistent region", v);
        if (!holds(p, p->plan->offset[v], bytes_of(p, v), OWNER_NOBODY))
            return fail(p, "overlaps another tensor that exists before the step", v);
        make_value(p, v);
    }
    return true;
}

/* After the step: results are there, and every persistent tensor holds its last version. */
static bool check_end(Play *p)
{
    ValueId *last = POOL_ARRAY(p->pool, p->g->values.len + 1, ValueId);
    for (size_t k = 0; k < p->g->order.len; k++) {
        const Node *n = graph_node(p->g, p->g->order.data[k]);
        for (int o = 0; o < n->n_out; o++)
            if (value_storage(p->g, n->out[o]) != VALUE_NONE)
                last[value_storage(p->g, n->out[o])] = n->out[o];
    }
    for (size_t k = 0; k < p->g->order.len; k++) {
        const Node *n = graph_node(p->g, p->g->order.data[k]);
        if (node_is_persistent(n) && !check_read(p, last[n->out[0]]))
            return false;
    }
    for (size_t i = 0; i < p->g->outputs.len; i++)
        if (!check_read(p, p->g->outputs.data[i].value))
            return false;
    return true;
}

bool memplan_graph_check(Pool *scratch, const Graph *g, const MemPlan *plan, const char **fault)
{
    Play p = {.g = g, .plan = plan, .pool = scratch, .fault = fault};
    p.version = POOL_ARRAY(scratch, g->values.len + 1, int64_t);
    vec_push(scratch, &p.ranges, (Range){0, plan->arena_bytes, OWNER_NOBODY});
    if (!place_given(&p))
        return false;
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (!is_given(n) && !play_node(&p, g->order.data[k]))
            return false;
    }
    return check_end(&p);
}
