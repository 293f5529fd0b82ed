/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the gradient rules (grad_rules_*.c) share. */
#ifndef SCRIMP_PASSES_AUTODIFF_GRAD_H
#define SCRIMP_PASSES_AUTODIFF_GRAD_H

#include "ir/graph.h"

/* What a rule is given: it reads node and dout, appends nodes to graph, and sets din[i] for the
 * inputs that are wanted and have a gradient; or refused, where it cannot make one of those. */
typedef struct GradContext {
    Graph *graph;
    const Node *node;    /* copied: adding nodes may move graph->nodes */
    const ValueId *dout; /* by output: its gradient; VALUE_NONE where none flows */
    const bool *wanted;  /* by input: a gradient is needed */
    ValueId *din;        /* by input: VALUE_NONE, or its gradient */
    const ValueId
        *so_far;         /* by input: what its other uses have added up; VALUE_NONE: nothing yet */
    bool *has_so_far;    /* by input, set by the rule: din has so_far in it */
    const char *prefix;  /* of the names of new values: "%d.X" for the node that makes %X */
    const char *refused; /* NULL, or a message for the user */
} GradContext;

/* The rule of an operation is grad_NAME, where NAME is what the column `grad` of ops.def says. */
typedef void GradRule(GradContext *c);

/* grad_none is declared too, and never defined: the table has NULL there. */
#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, ...)                   \
    GradRule grad_##grad;
#include "ir/ops.def"
#undef OP

/* Appends one node at the forward node's location and returns its first output. */
ValueId grad_op(GradContext *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs);
ValueId grad_op1(GradContext *c, OpKind op, ValueId a);
ValueId grad_op2(GradContext *c, OpKind op, ValueId a, ValueId b);
ValueId grad_op3(GradContext *c, OpKind op, ValueId a, ValueId b, ValueId x);
/* Output i of the node that made a value. */
ValueId grad_output(const GradContext *c, ValueId v, int i);

/* A rank-0 f32 constant, and a * constant. */
ValueId grad_number(GradContext *c, double value);
ValueId grad_scale(GradContext *c, ValueId a, double factor);
/* a as elements of another type. */
ValueId grad_cast_to(GradContext *c, ValueId a, DType dtype);
/* Lets an operation say that it makes `dtype`, unless it does anyway: what is computed of a and b
 * is bf16 where one of them is. */
void grad_want_result(const GradContext *c, AttrList *attrs, ValueId a, ValueId b, DType dtype);
/* A tensor of one value; shape of t. */
ValueId grad_filled(GradContext *c, const Type *t, double value);
ValueId grad_reshaped(GradContext *c, ValueId a, const Type *shape);
ValueId grad_transposed(GradContext *c, ValueId a, const int64_t *perm);
ValueId grad_sum_axes(GradContext *c, ValueId a, const int64_t *axes, int n_axes);
/* c->din[i] = v summed to the shape of input i, which numpy broadcasting had spread to v's. */
void grad_set(GradContext *c, int i, ValueId v);

/* The forward node's attributes, all or all but one. */
AttrList grad_attrs(const GradContext *c);
AttrList grad_attrs_without(const GradContext *c, AttrKey key);

static inline ValueId grad_in(const GradContext *c, int i)
{
    return c->node->in[i];
}
static inline ValueId grad_out(const GradContext *c, int i)
{
    return c->node->out[i];
}
/* Copies, because adding nodes moves the graph's values. */
static inline Type grad_type(const GradContext *c, ValueId v)
{
    return *value_type(c->graph, v);
}
static inline Type grad_in_type(const GradContext *c, int i)
{
    return grad_type(c, c->node->in[i]);
}
static inline bool grad_wanted(const GradContext *c, int i)
{
    return i < c->node->n_in && c->wanted[i];
}

#endif
