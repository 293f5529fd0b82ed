/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A loop's body is lowered once, as a graph of its own; its calls become calls of the step that
 * walk along the loop's slices and results from step to step. */
#include "codegen/build/kernel.h"

#include "ir/strided_view.h"
#include "ir/support/bug.h"
#include "passes/memplan/loop_plan.h"

#include <string.h>

typedef struct LoopLowering {
    Lowering *outer;
    const Node *loop;
    LoopShape shape;
    const LoopPlan *plan;
    int *result_of; /* by value of the step: result of the loop whose place it is, or -1 */
    int *input_of;  /* by value of the step: input of the loop that it is, or -1 */
} LoopLowering;

/* Element by element from step to step, in the direction of the loop. */
static void walk(const LoopLowering *l, ValueId whole, CallBuf *buf, int64_t *stride)
{
    int64_t each = type_bytes(value_type(l->outer->graph, whole)) / l->shape.steps;
    *stride = l->shape.reverse ? -each : each;
    if (l->shape.reverse)
        buf->offset += (l->shape.steps - 1) * each;
}

/* What a buffer of the step is outside of it. */
static void move_buffer(const LoopLowering *l, const Call *inner, CallBuf *buf, int64_t *stride)
{
    *stride = 0;
    if (buf->value == CALL_NUMBER)
        return;
    if (buf->value == VALUE_NONE) {
        buf->offset += loop_plan_offset(l->plan, l->plan->plan->workspace_offset[inner->node]);
        return;
    }
    ValueId storage = value_storage(l->plan->step, value_root(l->plan->step, buf->value));
    if (storage == VALUE_NONE) {
        buf->offset += loop_plan_offset(l->plan, l->plan->plan->offset[buf->value]);
        buf->value = VALUE_NONE;
        return;
    }
    int result = l->result_of[storage], input = l->input_of[storage];
    if (result >= 0) {
        buf->value = l->loop->out[result];
        if (result >= l->shape.carries)
            walk(l, buf->value, buf, stride);
        return;
    }
    buf->value = l->loop->in[input];
    if (input < l->shape.carries + l->shape.slices)
        walk(l, buf->value, buf, stride);
}

/* first, last: of the loop's calls */
static Call move_call(const LoopLowering *l, const Call *inner, bool first, bool last)
{
    Pool *pool = l->outer->pool;
    Call call = *inner;
    CallLoops *loops = POOL_NEW(pool, CallLoops);
    int before = inner->loops ? inner->loops->depth : 0, depth = before + 1;
    size_t n = (size_t)inner->n_bufs;
    CallBuf *buf = POOL_ARRAY(pool, n + 1, CallBuf);
    int64_t *stride = POOL_ARRAY(pool, (n + 1) * (size_t)depth, int64_t);
    if (depth > CALL_MAX_LOOPS)
        BUG("loops nest %d deep", depth);
    *loops = (CallLoops){.depth = depth, .begins = first, .ends = last, .stride = stride};
    loops->steps[0] = l->shape.steps;
    if (inner->loops) {
        loops->begins += inner->loops->begins;
        loops->ends += inner->loops->ends;
        memcpy(loops->steps + 1, inner->loops->steps, (size_t)before * sizeof *loops->steps);
    }
    for (size_t k = 0; k < n; k++) {
        buf[k] = inner->buf[k];
        move_buffer(l, inner, &buf[k], &stride[k * (size_t)depth]);
        for (int level = 0; level < before; level++)
            stride[k * (size_t)depth + 1 + (size_t)level] =
                inner->loops->stride[k * (size_t)before + (size_t)level];
    }
    call.buf = buf;
    call.loops = loops;
    call.node = l->outer->node;
    return call;
}

static Lowering inner_lowering(const Lowering *outer, const Graph *g)
{
    return (Lowering){.pool = outer->pool,
                      .graph = g,
                      .target = outer->target,
                      .backend = outer->backend,
                      .tuning = outer->tuning};
}

/* A carry's first value goes where the loop has it from step to step. */
static void lower_begin(const LoopLowering *l, int carry)
{
    Lowering *outer = l->outer;
    AttrList attrs = {0};
    const Type t = *value_type(outer->graph, l->loop->in[carry]);
    Graph *g = graph_new(outer->pool, "body");
    ValueId from = graph_add_source(g, OP_input, t, &attrs, NULL, l->loop->loc);
    attrs_ints(&attrs, ATTR_shape, t.dim, t.rank);
    ValueId to = graph_add(g, OP_broadcast, &from, 1, &attrs, NULL, l->loop->loc);
    Lowering copy = inner_lowering(outer, g);
    lower_graph(&copy);
    for (size_t i = 0; i < copy.calls.len; i++) {
        Call call = copy.calls.data[i];
        CallBuf *buf = POOL_ARRAY(outer->pool, (size_t)call.n_bufs + 1, CallBuf);
        for (int k = 0; k < call.n_bufs; k++) {
            buf[k] = call.buf[k];
            if (buf[k].value == from)
                buf[k].value = l->loop->in[carry];
            else if (buf[k].value == to)
                buf[k].value = l->loop->out[carry];
        }
        call.buf = buf;
        call.node = outer->node;
        vec_push(outer->pool, &outer->calls, call);
    }
}

void lower_loop(Lowering *outer, const Node *node)
{
    LoopLowering l = {.outer = outer,
                      .loop = node,
                      .shape = loop_shape(node),
                      .plan = loop_plan(outer->pool, node)};
    const Graph *step = l.plan->step;
    if (l.plan->arena_bytes > node_workspace_bytes(outer->graph, node))
        BUG("a loop needs %lld bytes", (long long)l.plan->arena_bytes);
    l.result_of = POOL_ARRAY(outer->pool, step->values.len + 1, int);
    l.input_of = POOL_ARRAY(outer->pool, step->values.len + 1, int);
    for (size_t v = 0; v < step->values.len; v++)
        l.result_of[v] = l.input_of[v] = -1;
    for (int i = 0; i < node->n_in; i++)
        l.input_of[l.plan->input[i]] = i;
    for (int i = 0; i < node->n_out; i++)
        l.result_of[l.plan->result[i]] = i;
    for (int i = 0; i < l.shape.carries; i++)
        lower_begin(&l, i);
    Lowering inner = inner_lowering(outer, step);
    lower_graph(&inner);
    for (size_t i = 0; i < inner.calls.len; i++)
        vec_push(outer->pool, &outer->calls,
                 move_call(&l, &inner.calls.data[i], i == 0, i + 1 == inner.calls.len));
}
