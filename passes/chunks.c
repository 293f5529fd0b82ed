/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The loss of many rows of logits is made some rows at a time.
 *
 * The logits of a language model, a row of as many numbers as there are words for every token, are
 * often its largest tensor, and their gradient takes their place.  Here the last layer and the loss
 * work on a few rows of what the layer reads, then on the next: with these rows' part of the loss
 * comes their gradient, which goes into the gradients of the layer before the next rows need the
 * memory (Hsu et al. 2024, "Liger Kernel", FusedLinearCrossEntropy).  The order of operations sees
 * to that (passes/remat/order).
 *
 * The gradient of the layer's weights is the sum of as many products as there are chunks, added one
 * after another; every addition reads and writes all of it. */
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

/* Least rows of a chunk.  In f32 the products take as long with 256 rows as with all (bench
 * examples/gpt2.scrimp -D layers=2 -D N=4 --budget 100% --against '--no-chunks').  Matrix registers
 * multiply bf16 ten times as fast, and memory is no faster for it: sums of the gradient of the
 * weights would take a part of the time that shows. */
enum { LEAST_ROWS = 256, LEAST_ROWS_BF16 = 2048 };

/* With 8, GPT-2 takes 9.4% more time instead of 8.8%; with 64 8.4%, which is found in five times
 * the time (plan examples/gpt2.scrimp -D N=32 --budget 8GiB). */
enum { MOST_CHUNKS = 16 };

/* Logits of fewer numbers, compared with what the layer reads, are no large tensor of a model: its
 * layers make more. */
enum { WIDER = 4 };

/* A layer whose logits are made in chunks. */
typedef struct Head {
    NodeId layer;
    int64_t rows, width, classes;
    int chunks;
    ValueId x;     /* what the layer reads, as a matrix; VALUE_NONE: not made yet, like these: */
    ValueId *part; /* by chunk: its logits */
} Head;

typedef struct Chunks {
    Graph *g;
    Pool *scratch;
    Rewrite r;
    UseList *uses;
    bool *is_output;
    Places places;
    Head **head_of; /* by value that was there: whose logits it is */
} Chunks;

/* --- which --- */

/* Labels are i32, or become it. */
static bool reads_rows(const Graph *g, const Use *use)
{
    const Node *n = graph_node(g, use->node);
    if ((n->op != OP_cross_entropy && n->op != OP_accuracy) || use->input != 0 || n->n_in != 2 ||
        n->hint != REMAT_AUTO)
        return false;
    int last = value_type(g, n->in[0])->rank - 1;
    DType labels = value_type(g, n->in[1])->dtype;
    return strcmp(node_string(n, ATTR_reduction, "mean"), "none") != 0 &&
           node_int(n, ATTR_axis, last) == last && (labels == DTYPE_I32 || labels == DTYPE_U8);
}

/* What the layer reads is still there: the layer moves to this reader. */
static bool may_move(const Chunks *s, const Node *layer, const Use *use)
{
    bool may = true;
    for (int i = 0; i < layer->n_in; i++)
        may = may && read_survives(s->g, &s->places, layer->in[i], s->places.position[use->node]);
    return may;
}

/* A loss reads them, and nothing that needs all at once. */
static bool are_read_by_rows(const Chunks *s, const Node *layer, ValueId logits)
{
    bool loss = false, all = !s->is_output[logits];
    for (size_t i = 0; i < s->uses[logits].len; i++) {
        const Use *use = &s->uses[logits].data[i];
        all = all && reads_rows(s->g, use) && may_move(s, layer, use);
        loss |= graph_node(s->g, use->node)->op == OP_cross_entropy;
    }
    return all && loss;
}

/* The rows in another shape, if that is all that reads them. */
static ValueId follow_reshape(const Chunks *s, ValueId v)
{
    const UseList *uses = &s->uses[v];
    if (uses->len != 1 || s->is_output[v])
        return v;
    const Node *n = graph_node(s->g, uses->data[0].node);
    const Type *from = value_type(s->g, v), *to = value_type(s->g, n->out[0]);
    bool rows = n->op == OP_reshape && n->hint == REMAT_AUTO && to->rank > 0 &&
                to->dim[to->rank - 1] == from->dim[from->rank - 1];
    return rows ? n->out[0] : v;
}

static void find_head(Chunks *s, NodeId layer)
{
    const Node *n = graph_node(s->g, layer);
    ValueId result = n->op == OP_linear ? follow_reshape(s, n->out[0]) : VALUE_NONE;
    if (result == VALUE_NONE || n->hint != REMAT_AUTO || !are_read_by_rows(s, n, result))
        return;
    const Type *x = value_type(s->g, n->in[0]), *logits = value_type(s->g, result);
    Head h = {.layer = layer,
              .width = x->dim[x->rank - 1],
              .classes = logits->dim[logits->rank - 1],
              .x = VALUE_NONE};
    h.rows = type_elements(logits) / h.classes;
    int64_t most = h.rows / (x->dtype == DTYPE_BF16 ? LEAST_ROWS_BF16 : LEAST_ROWS);
    h.chunks = (int)(most < MOST_CHUNKS ? most : MOST_CHUNKS);
    if (h.chunks < 2 || h.classes / WIDER < h.width)
        return;
    h.part = POOL_ARRAY(s->scratch, (size_t)h.chunks, ValueId);
    for (int k = 0; k < h.chunks; k++)
        h.part[k] = VALUE_NONE;
    s->head_of[result] = POOL_NEW(s->scratch, Head);
    *s->head_of[result] = h;
}

/* --- how --- */

typedef struct Maker {
    Graph *g;
    Loc loc;
} Maker;

static ValueId add(const Maker *m, OpKind op, ValueId a, ValueId b, const AttrList *attrs)
{
    const ValueId in[] = {a, b};
    return graph_add(m->g, op, in, b == VALUE_NONE ? 1 : 2, attrs, NULL, m->loc);
}

static ValueId reshaped(const Maker *m, ValueId v, const int64_t *dims, int rank)
{
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_shape, dims, rank);
    return add(m, OP_reshape, v, VALUE_NONE, &attrs);
}

/* Rows [first, end) of a matrix or a vector. */
static ValueId rows_of(const Maker *m, ValueId v, int64_t first, int64_t end)
{
    const Type *t = value_type(m->g, v);
    const int64_t start[2] = {first, 0}, limit[2] = {end, t->dim[1]};
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_start, start, t->rank);
    attrs_ints(&attrs, ATTR_limit, limit, t->rank);
    return add(m, OP_slice, v, VALUE_NONE, &attrs);
}

static ValueId cast(const Maker *m, ValueId v, DType to)
{
    return value_type(m->g, v)->dtype == to ? v : graph_add_cast(m->g, v, to, REMAT_AUTO);
}

/* 1 where labels compare so with a number, else 0. */
static ValueId compared(const Maker *m, OpKind op, ValueId labels, int64_t with)
{
    ValueId number = graph_add_const(m->g, (double)with, DTYPE_I32);
    return cast(m, add(m, op, labels, number, NULL), DTYPE_F32);
}

/* How many labels take part, at least 1: the loss of none is 0. */
static ValueId count_labels(const Maker *m, const Node *reader, ValueId labels, int64_t classes)
{
    const int64_t axis = 0;
    AttrList attrs = {0};
    attrs_ints(&attrs, ATTR_axes, &axis, 1);
    ValueId all = cast(m, labels, DTYPE_I32), part = compared(m, OP_ge, all, 0);
    int64_t ignored = node_int(reader, ATTR_ignore_index, -100);
    part = add(m, OP_mul, part, compared(m, OP_lt, all, classes), NULL);
    if (ignored >= 0 && ignored < classes)
        part = add(m, OP_mul, part, compared(m, OP_ne, all, ignored), NULL);
    ValueId count = add(m, OP_sum, part, VALUE_NONE, &attrs);
    return add(m, OP_maximum, count, graph_add_const(m->g, 1, DTYPE_F32), NULL);
}

static int64_t first_row(const Head *h, int k)
{
    return h->rows * k / h->chunks;
}

/* "%head.chunk2" */
static const char *chunk_name(const Graph *g, const Node *whole, int k)
{
    return pool_printf(g->pool, "%s.chunk%d", graph_value(g, whole->out[0])->name, k + 1);
}

static ValueId logits_of(const Maker *m, Head *h, int k)
{
    const Node layer = *graph_node(m->g, h->layer);
    if (h->x == VALUE_NONE)
        h->x = reshaped(m, layer.in[0], (const int64_t[]){h->rows, h->width}, 2);
    if (h->part[k] == VALUE_NONE) {
        ValueId in[3] = {rows_of(m, h->x, first_row(h, k), first_row(h, k + 1))};
        for (int i = 1; i < layer.n_in; i++)
            in[i] = layer.in[i];
        h->part[k] = graph_add_like(m->g, &layer, in, NULL, chunk_name(m->g, &layer, k));
    }
    return h->part[k];
}

/* What a loss, or an accuracy, is of some rows. */
static AttrList chunk_attrs(const Node *reader)
{
    AttrList attrs = {0};
    attrs_int(&attrs, ATTR_axis, 1);
    attrs_int(&attrs, ATTR_ignore_index, node_int(reader, ATTR_ignore_index, -100));
    attrs_string(&attrs, ATTR_reduction, "sum");
    if (node_attr(reader, ATTR_smoothing))
        attrs_float(&attrs, ATTR_smoothing, node_float(reader, ATTR_smoothing, 0));
    return attrs;
}

/* And of all rows. */
static ValueId add_chunks(const Maker *m, Head *h, NodeId reader)
{
    const Node n = *graph_node(m->g, reader);
    const AttrList attrs = chunk_attrs(&n);
    ValueId labels = reshaped(m, n.in[1], &h->rows, 1), sum = VALUE_NONE;
    for (int k = 0; k < h->chunks; k++) {
        const ValueId in[] = {logits_of(m, h, k),
                              rows_of(m, labels, first_row(h, k), first_row(h, k + 1))};
        ValueId part = graph_add(m->g, n.op, in, 2, &attrs, chunk_name(m->g, &n, k), m->loc);
        sum = sum == VALUE_NONE ? part : add(m, OP_add, sum, part, NULL);
    }
    if (strcmp(node_string(&n, ATTR_reduction, "mean"), "sum") == 0)
        return sum;
    return add(m, OP_div, sum, count_labels(m, &n, labels, h->classes), NULL);
}

/* On a device chunks would have to be larger: it computes faster, compared with its memory.  Where
 * gradients go into the momentum as they are made, a sum of them would be one tensor more. */
static bool is_wanted(const PassContext *ctx)
{
    return !ctx->request.no_chunks && !ctx->graph->train.rule.gradient_free &&
           (ctx->exact || !ctx->for_device);
}

bool pass_chunks(PassContext *ctx)
{
    Graph *g = ctx->graph;
    if (!is_wanted(ctx))
        return true;
    Pool *scratch = pool_new_child(ctx->pool);
    Chunks s = {.g = g,
                .scratch = scratch,
                .uses = list_uses(g, scratch, 0),
                .is_output = mark_outputs(g, scratch),
                .places = note_places(g, scratch),
                .head_of = POOL_ARRAY(scratch, g->values.len, Head *)};
    for (size_t i = 0; i < g->order.len; i++)
        find_head(&s, g->order.data[i]);
    s.r = rewrite_begin(g, scratch);
    for (size_t i = 0; i < s.r.n_old; i++) {
        NodeId id = s.r.old_order[i];
        const Node *n = graph_node(g, id);
        Head *head = n->n_in ? s.head_of[n->in[0]] : NULL;
        rewrite_inputs(&s.r, id);
        if (head) {
            const Maker m = {g, n->loc};
            ValueId whole = n->out[0];
            ctx->chunks = head->chunks > ctx->chunks ? head->chunks : ctx->chunks;
            rewrite_replace(&s.r, whole, add_chunks(&m, head, id));
        } else {
            rewrite_keep(&s.r, id);
        }
    }
    rewrite_end(&s.r);
    pool_free(scratch);
    return pass_dce(ctx);
}
