/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each rule of the verifier, provoked by damaging a graph that passes. */
#include "check.h"
#include "ir/verify.h"
#include "tests/support/fused.h"

#include <string.h>

typedef struct Fixture {
    Graph *g;
    ValueId x, w, y, z, updated, group;
} Fixture;

static const Loc NOWHERE = {0};

/* $w is read by %y, viewed by %view, then overwritten by %updated. */
static Fixture make(Pool *pool)
{
    Fixture f = {.g = graph_new(pool, "m")};
    const int64_t dims[2] = {4, 4};
    Type t = type_make(DTYPE_F32, 2, dims);
    f.x = graph_add_source(f.g, OP_input, t, NULL, "%x", NOWHERE);
    f.w = graph_add_source(f.g, OP_param, t, NULL, "$w", NOWHERE);
    ValueId in[2] = {f.x, f.w};
    f.y = graph_add(f.g, OP_matmul, in, 2, NULL, "%y", NOWHERE);
    Graph *body = graph_new(pool, "");
    ValueId inner = graph_add_source(body, OP_input, t, NULL, "%in", NOWHERE);
    graph_add_output(body, "out", graph_add(body, OP_relu, &inner, 1, NULL, "%out", NOWHERE));
    NodeId group = graph_add_fused(f.g, body, &f.y, 1, "%f", NOWHERE);
    f.group = graph_node(f.g, group)->out[0];
    f.z = graph_add(f.g, OP_stop_gradient, &f.w, 1, NULL, "%view", NOWHERE);
    AttrList value = {.n = 0};
    attrs_float(&value, ATTR_value, 0.5);
    ValueId lr = graph_add_source(f.g, OP_const, type_scalar(DTYPE_F32), &value, NULL, NOWHERE);
    ValueId step[4] = {f.w, f.group, lr, lr};
    f.updated = graph_add(f.g, OP_sgd_step, step, 4, NULL, "%updated", NOWHERE);
    graph_value(f.g, f.updated)->writes = f.w;
    graph_add_output(f.g, "y", f.y);
    return f;
}

/* The damages; each names the words its message must hold. */
typedef void Damage(Pool *pool, Fixture *f);

static void none(Pool *pool, Fixture *f)
{
    (void)pool, (void)f;
}
static void twice_in_order(Pool *pool, Fixture *f)
{
    vec_push(pool, &f->g->order, f->g->order.data[0]);
}
static void no_such_node(Pool *pool, Fixture *f)
{
    vec_push(pool, &f->g->order, 1000);
}
static void read_too_early(Pool *pool, Fixture *f)
{
    (void)pool;
    NodeId first = f->g->order.data[0];
    f->g->order.data[0] = f->g->order.data[2];
    f->g->order.data[2] = first;
}
static void input_is_no_value(Pool *pool, Fixture *f)
{
    (void)pool;
    value_node(f->g, f->y)->in[0] = 77;
}
static void wrong_type(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->y)->type.dim[0] = 5;
}
static void wrong_input_type(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->x)->type.dim[1] = 5;
}
static void wrong_definition(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->y)->def = 0;
}
static void wrong_result_index(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->y)->out_index = 1;
}
static void stolen_name(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->y)->name = "%x";
}
static void no_sigil(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->y)->name = "y";
}
static void param_sigil(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->w)->name = "%w";
}
static void unsorted_attrs(Pool *pool, Fixture *f)
{
    Node *n = value_node(f->g, f->y);
    n->attr = POOL_ARRAY(pool, 2, Attr);
    n->attr[0].key = ATTR_tb;
    n->attr[1].key = ATTR_ta;
    n->n_attr = 2;
}
static void textless_attr(Pool *pool, Fixture *f)
{
    Node *n = value_node(f->g, f->y);
    n->attr = POOL_ARRAY(pool, 1, Attr);
    n->attr[0].key = ATTR_dtype;
    n->n_attr = 1;
}
static void undeclared_attr(Pool *pool, Fixture *f)
{
    Node *n = value_node(f->g, f->y);
    n->attr = POOL_ARRAY(pool, 1, Attr);
    n->attr[0] = (Attr){.key = ATTR_in_out, .u.i = 1};
    n->n_attr = 1;
}
static void missing_attr(Pool *pool, Fixture *f)
{
    (void)pool;
    AttrList perm = {.n = 0};
    attrs_ints(&perm, ATTR_perm, (const int64_t[2]){1, 0}, 2);
    ValueId t = graph_add(f->g, OP_transpose, &f->y, 1, &perm, NULL, NOWHERE);
    value_node(f->g, t)->n_attr = 0;
}
static void read_after_write(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_add(f->g, OP_relu, &f->w, 1, NULL, "%late", NOWHERE);
}
static void view_after_write(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_add(f->g, OP_relu, &f->z, 1, NULL, "%late", NOWHERE);
}
static void output_after_write(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_add_output(f->g, "old", f->z);
}
static void second_write(Pool *pool, Fixture *f)
{
    (void)pool;
    ValueId late = graph_add(f->g, OP_relu, &f->y, 1, NULL, "%late", NOWHERE);
    graph_value(f->g, late)->writes = f->w;
}
static void write_of_input(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->updated)->writes = f->x;
}
static void write_of_other_type(Pool *pool, Fixture *f)
{
    (void)pool;
    ValueId s = graph_add(f->g, OP_sumsq, &f->y, 1, NULL, "%s", NOWHERE);
    graph_value(f->g, f->updated)->writes = VALUE_NONE;
    value_node(f->g, f->updated)->op = OP_stop_gradient;
    value_node(f->g, f->updated)->n_in = 1;
    graph_value(f->g, s)->writes = f->w;
}
static void update_without_target(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->updated)->writes = VALUE_NONE;
}
static void repeated_update(Pool *pool, Fixture *f)
{
    (void)pool;
    value_node(f->g, f->updated)->remat_of = graph_value(f->g, f->updated)->def;
}
static void remat_of_other_op(Pool *pool, Fixture *f)
{
    (void)pool;
    value_node(f->g, f->y)->remat_of = graph_value(f->g, f->updated)->def;
}
static void remat_that_writes(Pool *pool, Fixture *f)
{
    (void)pool;
    Node *n = value_node(f->g, f->updated);
    n->op = OP_matmul;
    n->n_in = 2;
    n->remat_of = graph_value(f->g, f->y)->def;
}
static void two_outputs(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_add_output(f->g, "y", f->x);
}
static void missing_output(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_add_output(f->g, "w", 500);
}
static void source_with_inputs(Pool *pool, Fixture *f)
{
    Node *n = value_node(f->g, f->w);
    n->in = POOL_ARRAY(pool, 1, ValueId);
    n->n_in = 1;
}
static void empty_source(Pool *pool, Fixture *f)
{
    (void)pool;
    graph_value(f->g, f->x)->type.dim[0] = 0;
}
static void const_without_value(Pool *pool, Fixture *f)
{
    (void)pool;
    ValueId s = graph_add_source(f->g, OP_const, type_scalar(DTYPE_F32), NULL, NULL, NOWHERE);
    (void)s;
}
static void body_on_relu(Pool *pool, Fixture *f)
{
    (void)pool;
    value_node(f->g, f->y)->body = value_node(f->g, f->group)->body;
}
static void body_reduces(Pool *pool, Fixture *f)
{
    (void)pool;
    Graph *body = value_node(f->g, f->group)->body;
    graph_add(body, OP_softmax, &body->outputs.data[0].value, 1, NULL, NULL, NOWHERE);
}
static void body_of_two_products(Pool *pool, Fixture *f)
{
    (void)pool;
    Graph *body = value_node(f->g, f->group)->body;
    ValueId in[2] = {0, 0};
    graph_add(body, OP_matmul, in, 2, NULL, NULL, NOWHERE);
    graph_add(body, OP_matmul, in, 2, NULL, NULL, NOWHERE);
}
static void body_feeds_its_product(Pool *pool, Fixture *f)
{
    (void)pool;
    Graph *body = value_node(f->g, f->group)->body;
    ValueId in[2] = {0, body->outputs.data[0].value};
    graph_add(body, OP_matmul, in, 2, NULL, NULL, NOWHERE);
}
static void body_with_param(Pool *pool, Fixture *f)
{
    (void)pool;
    Graph *body = value_node(f->g, f->group)->body;
    graph_add_source(body, OP_param, type_scalar(DTYPE_F32), NULL, "$p", NOWHERE);
}
static void nested_groups(Pool *pool, Fixture *f)
{
    Graph *body = value_node(f->g, f->group)->body;
    Fixture inner = make(pool);
    ValueId in = 0;
    graph_add_fused(body, value_node(inner.g, inner.group)->body, &in, 1, NULL, NOWHERE);
}
static void body_input_type(Pool *pool, Fixture *f)
{
    (void)pool;
    Graph *body = value_node(f->g, f->group)->body;
    graph_value(body, 0)->type.dim[0] = 2;
    graph_value(body, 1)->type.dim[0] = 2;
}

static const struct {
    const char *name;
    Damage *damage;
    const char *words; /* NULL: still good */
} damages[] = {
    {"none", none, NULL},
    {"twice in order", twice_in_order, "twice"},
    {"no such node", no_such_node, "does not exist"},
    {"read too early", read_too_early, "before it is computed"},
    {"input is no value", input_is_no_value, "no value"},
    {"wrong type", wrong_type, "the shape rule makes f32[4,4]"},
    {"wrong input type", wrong_input_type, "matmul sums over"},
    {"wrong definition", wrong_definition, "does not know its node"},
    {"wrong result index", wrong_result_index, "does not know its node"},
    {"stolen name", stolen_name, "belongs to another"},
    {"no sigil", no_sigil, "sigil"},
    {"param sigil", param_sigil, "sigil"},
    {"unsorted attributes", unsorted_attrs, "not sorted"},
    {"textless attribute", textless_attr, "no text"},
    {"undeclared attribute", undeclared_attr, "takes no attribute in_out"},
    {"missing attribute", missing_attr, "needs the attribute perm"},
    {"read after write", read_after_write, "after it was overwritten"},
    {"view after write", view_after_write, "after it was overwritten"},
    {"output after write", output_after_write, "before the end"},
    {"second write", second_write, "second time"},
    {"write of input", write_of_input, "no persistent"},
    {"write of other type", write_of_other_type, "another type"},
    {"update without target", update_without_target, "must write"},
    {"repeated update", repeated_update, "run once"},
    {"remat of other op", remat_of_other_op, "another operation"},
    {"remat that writes", remat_that_writes, "must not write"},
    {"two outputs", two_outputs, "two outputs"},
    {"missing output", missing_output, "not computed"},
    {"source with inputs", source_with_inputs, "no inputs"},
    {"empty source", empty_source, "not valid"},
    {"const without value", const_without_value, "attribute value"},
    {"body on relu", body_on_relu, "alone have a body"},
    {"body reduces", body_reduces, "in its body"},
    {"two products", body_of_two_products, "not allowed"},
    {"product of a result", body_feeds_its_product, "its own fused group"},
    {"body with param", body_with_param, "not allowed"},
    {"nested groups", nested_groups, "do not nest"},
    {"body input type", body_input_type, "expected f32[2,4]"},
};

int main(void)
{
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        Pool *pool = pool_new();
        Fixture f = make(pool);
        const char *message = NULL;
        damages[i].damage(pool, &f);
        bool good = graph_verify(f.g, &message);
        if (!damages[i].words)
            CHECK_MSG(good, "%s: %s", damages[i].name, message);
        else
            CHECK_MSG(!good && strstr(message, damages[i].words), "%s: %s", damages[i].name,
                      good ? "passed" : message);
        pool_free(pool);
    }
    return test_result();
}
