/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/random_graph.h"

#include "ir/text.h"

#include "tests/support/fused.h"
#include "tests/support/shape_cases.h"

#include <string.h>

double random_double(Random *r)
{
    const double odd[] = {0.0, -0.0, 1e-300, 1.0 / 3, 1e300, 5e-324, -12345.678, 0.1};
    int which = random_below(r, 16);
    if (which < 8)
        return odd[which];
    return ((double)random_next(r) - 9e18) / 3e18;
}

static const char *random_name(Pool *pool, Random *r, char sigil)
{
    const char *const parts[] = {"layer1.0.conv1", "d.x",     "fc~2",  "a b",   "",  "#x",
                                 "q\"uote\\",      "t\nline", "}{,:=", "\x01u", "é", "x"};
    const char *part = parts[random_below(r, 12)];
    return pool_printf(pool, "%c%s%s", sigil, part, random_below(r, 2) ? "" : ".w");
}

static Loc random_loc(Random *r)
{
    const char *const paths[] = {NULL, "h.3.attn", "in", "a b", "#1", "in\nother"};
    if (random_below(r, 2))
        return (Loc){0};
    return (Loc){(uint32_t)random_next(r) | 1, (uint32_t)random_next(r), paths[random_below(r, 6)],
                 random_below(r, 4) ? NULL : "a \"b\".scrimp"};
}

/* A value of this type that may still be read, or a new source. */
static ValueId random_operand(Graph *g, Random *r, Type type, bool fresh_param,
                              const bool *overwritten)
{
    for (ValueId v = 0; !fresh_param && v < g->values.len; v++)
        if (type_equal(value_type(g, v), &type) && !overwritten[v] && random_below(r, 2))
            return v;
    AttrList attrs = {.n = 0};
    bool persistent = fresh_param || random_below(r, 2);
    if (persistent)
        attrs_string(&attrs, ATTR_init, "uniform(-0.1,0.1)");
    else
        attrs_string(&attrs, ATTR_role, "batch.\"x\"\n");
    return graph_add_source(g, persistent ? OP_param : OP_input, type, &attrs,
                            random_name(g->pool, r, persistent ? '$' : '%'), random_loc(r));
}

static Graph *random_body(Pool *pool, Random *r, Type type)
{
    Graph *body = graph_new(pool, "");
    ValueId in[2];
    in[0] = graph_add_source(body, OP_input, type, NULL, random_name(pool, r, '%'), (Loc){0});
    in[1] = graph_add_source(body, OP_input, type, NULL, NULL, (Loc){3, 4, "a.b", NULL});
    ValueId sum = graph_add(body, OP_add, in, 2, NULL, NULL, random_loc(r));
    ValueId y = graph_add(body, OP_neg, &sum, 1, NULL, random_name(pool, r, '%'), (Loc){0});
    graph_add_output(body, "y", y);
    if (random_below(r, 2))
        graph_add_output(body, "and sum", sum);
    return body;
}

static void random_fused(Graph *g, Random *r, ValueId x)
{
    Type t = *value_type(g, x);
    if (t.dtype == DTYPE_BOOL)
        return;
    ValueId in[2] = {x, x};
    graph_add_fused(g, random_body(g->pool, r, t), in, 2, NULL, random_loc(r));
}

/* Any number for the attributes that no shape rule looks at. */
static void random_attrs(Random *r, OpKind op, AttrList *attrs)
{
    for (const OpAttr *a = op_table[op].attrs; a->key != ATTR_COUNT; a++) {
        if (a->key == ATTR_beta1 || a->key == ATTR_momentum || a->key == ATTR_eps)
            attrs_float(attrs, a->key, random_double(r));
        if (a->key == ATTR_ignore_index)
            attrs_int(attrs, a->key, (int64_t)random_next(r));
    }
}

static void random_node(Graph *g, Random *r, bool *overwritten)
{
    const OpCase *c = &op_cases[random_below(r, n_op_cases)];
    if (c->expect[0] == 'E' || strstr(c->inputs, "100000"))
        return;
    bool update = op_table[c->op].op_class == OP_CLASS_UPDATE;
    ValueId in[8];
    int n_in = 0, n_written = c->op == OP_adam_step ? 4 : c->op == OP_sgd_step ? 3 : 1;
    AttrList attrs = {.n = 0};
    const char *word, *rest = c->inputs;
    while ((word = next_word(g->pool, &rest))) {
        bool written = update && (c->op == OP_minimize ? n_in > 0 : n_in != 1 && n_in < n_written);
        in[n_in] = random_operand(g, r, parse_type(g->pool, word), written, overwritten);
        n_in++;
    }
    rest = c->attrs;
    while ((word = next_word(g->pool, &rest)))
        parse_attr(g->pool, word, &attrs);
    random_attrs(r, c->op, &attrs);
    ValueId v = graph_add(g, c->op, in, n_in, &attrs,
                          random_below(r, 2) ? NULL : random_name(g->pool, r, '%'), random_loc(r));
    Node *n = value_node(g, v);
    n->hint = (RematHint)random_below(r, 3);
    if (update) {
        static const int of_optimizer[] = {0, 2, 3}, of_minimize[] = {1, 2, 3};
        const int *target = c->op == OP_minimize ? of_minimize : of_optimizer;
        for (int i = 0; i < n->n_out; i++) {
            graph_value(g, n->out[i])->writes = in[target[i]];
            overwritten[in[target[i]]] = true;
        }
    } else if (random_below(r, 4) == 0) {
        random_fused(g, r, v);
    } else if (random_below(r, 4) == 0) {
        ValueId again = graph_add(g, c->op, in, n_in, &attrs, NULL, (Loc){0});
        value_node(g, again)->remat_of = graph_value(g, v)->def;
        value_node(g, again)->remat_by = random_below(r, 2) ? "chen" : NULL;
    }
}

static UpdateRule random_rule(Random *r)
{
    return (UpdateRule){.optim = (OptimKind)random_below(r, TRAIN_OPTIM_COUNT),
                        .lr = {.kind = (LrKind)random_below(r, TRAIN_LR_COUNT),
                               .base = random_double(r),
                               .in_epochs = random_below(r, 2)},
                        .beta1 = random_double(r),
                        .nesterov = random_below(r, 2)};
}

static void random_groups(Pool *pool, Random *r, TrainSpec *t)
{
    ParamGroup *group = POOL_ARRAY(pool, 3, ParamGroup);
    t->n_groups = (int)random_below(r, 4);
    t->group = group;
    for (int i = 0; i < t->n_groups; i++) {
        bool frozen = random_below(r, 3) == 0;
        group[i] = (ParamGroup){.pattern = random_below(r, 2) ? "*.bias\n\"?\"" : "",
                                .matrices_only = random_below(r, 2),
                                .frozen = frozen};
        if (!frozen) {
            group[i].own_lr = random_below(r, 2);
            group[i].rule = random_rule(r);
        }
    }
}

static void random_train(Graph *g, Random *r)
{
    TrainSpec *t = &g->train;
    t->present = true;
    t->rule = random_rule(r);
    random_groups(g->pool, r, t);
    t->steps = (int64_t)(random_next(r) >> 1);
    t->seed = random_next(r);
    t->accumulate = 1 + random_below(r, 4);
    DataPart *part = POOL_ARRAY(g->pool, 2, DataPart);
    part[0] = (DataPart){.kind = "npz", .path = "d\"\n", .columns = "x\ty"};
    part[1] = (DataPart){.kind = "csv", .path = "", .separator = ";", .in_order = true};
    t->data_part = part;
    t->n_data_parts = (int)random_below(r, 3);
    t->data_kind = "text";
    t->data_path = "a b\nc\"d";
    t->budget_text = random_below(r, 2) ? "" : "40%";
    t->solver = random_below(r, 2) ? NULL : "kusumoto_approx";
}

enum { RANDOM_GRAPH_NODES = 60 };

Graph *random_graph(Pool *pool, Random *r)
{
    Graph *g = graph_new(pool, random_below(r, 2) ? "mlp" : "a model");
    bool overwritten[16 * RANDOM_GRAPH_NODES] = {0};
    g->kind = random_below(r, 2) ? "step" : "forward";
    g->source = "file \"x\".scrimp";
    g->options = random_below(r, 2) ? " N=3  text=a\\b\nc" : "";
    g->source_hash = random_next(r);
    if (random_below(r, 2))
        random_train(g, r);
    for (int i = 0; i < RANDOM_GRAPH_NODES; i++)
        random_node(g, r, overwritten);
    for (ValueId v = 0; v < g->values.len; v++)
        if (!overwritten[v] && random_below(r, 8) == 0 &&
            op_table[value_node(g, v)->op].op_class != OP_CLASS_VIEW)
            graph_add_output(g, pool_printf(pool, v % 2 ? "out %u" : "#%u", v), v);
    return g;
}
