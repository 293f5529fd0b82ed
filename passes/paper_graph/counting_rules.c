/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules and what an operation is to them. */
#include "passes/paper_graph/paper_graph_internal.h"

#include <string.h>

const CountingRule counting_rules[] = {
    {"kusumoto",
     "every operation, reshapes and losses included, with one output tensor each; no\n"
     "inputs. Kusumoto et al. 2019, whose vertices are the function nodes of Chainer from\n"
     "the loss on: 176 in ResNet-50, 568 in DenseNet-161. Their GoogLeNet has 134, ours\n"
     "135: without the factor of the auxiliary losses, or without the dropout, it is 134;\n"
     "they do not say."},
    {"feng2021",
     "tensors from the input to the logits. ReLU runs in place, a batch norm in front of a\n"
     "residual sum and a dropout in front of a linear layer are part of these; no reshapes\n"
     "and no losses. Feng and Huang 2021, as their published code parses these networks."},
    {"feng2018", "the same, but every batch norm is a vertex and a pool whose windows are single\n"
                 "elements is none. Feng and Huang 2018; found from the ratios that they print."},
    {"feng2021_nas",
     "feng2021 as their code has the networks of architecture search: no ReLU runs in\n"
     "place, each batch norm, and each identity(), is a vertex; dropout is switched off."},
    {"ops", "every operation its own tensor, nothing in place; a chain of reshapes,\n"
            "transpositions and slices is one. Activation elements are those without inputs,\n"
            "dropout, these chains and losses."},
    {NULL, NULL}};
enum { N_RULES = sizeof counting_rules / sizeof counting_rules[0] - 1 };

const CountingRule *counting_rule_find(const char *name)
{
    for (const CountingRule *r = counting_rules; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r;
    return NULL;
}

const CountKindInfo count_kinds[COUNT_N_KINDS] = {
#define COUNT_OP(name, class, ...) {#name, COUNT_##class},
#include "passes/paper_graph/counting_ops.def"
#undef COUNT_OP
};

CountHow count_how(const CountingRule *rule, CountKind kind)
{
    static const CountHow how[COUNT_N_KINDS][N_RULES] = {
#define COUNT_OP(name, class, kusumoto, feng2021, feng2018, feng2021_nas, ops)                     \
    {COUNT_##kusumoto, COUNT_##feng2021, COUNT_##feng2018, COUNT_##feng2021_nas, COUNT_##ops},
#include "passes/paper_graph/counting_ops.def"
#undef COUNT_OP
    };
    return how[kind][rule - counting_rules];
}

/* By the operation alone; those that are not here are COUNT_OP_other. */
static const struct {
    OpKind op;
    CountKind kind;
} kind_of[] = {{OP_conv2d, COUNT_OP_conv},
               {OP_deconv2d, COUNT_OP_deconv},
               {OP_lrn, COUNT_OP_lrn},
               {OP_linear, COUNT_OP_linear},

               {OP_matmul, COUNT_OP_matmul},
               {OP_embedding, COUNT_OP_embed},
               {OP_bn_stats, COUNT_OP_inside},
               {OP_bn_apply, COUNT_OP_bn},
               {OP_layernorm, COUNT_OP_ln},
               {OP_relu, COUNT_OP_relu},
               {OP_add, COUNT_OP_add},
               {OP_sub, COUNT_OP_add},
               {OP_causal_mask, COUNT_OP_add},
               {OP_maxpool, COUNT_OP_maxpool},
               {OP_adaptive_avgpool, COUNT_OP_avgpool},
               {OP_resize, COUNT_OP_resize},
               {OP_avgpool, COUNT_OP_avgpool},
               {OP_concat, COUNT_OP_concat},
               {OP_dropout, COUNT_OP_dropout},
               {OP_reshape, COUNT_OP_reshape},
               {OP_transpose, COUNT_OP_reshape},
               {OP_broadcast, COUNT_OP_reshape},
               {OP_slice, COUNT_OP_split},
               {OP_cast, COUNT_OP_inside},
               {OP_stop_gradient, COUNT_OP_inside}};

/* A factor that is not learned: a number, or something of the data that is broadcast, as a mask is.
 */
static bool is_factor(const CountFacts *f, const Node *n, int i)
{
    int64_t size = type_elements(value_type(f->g, n->in[i]));
    return !f->trained[n->in[i]] &&
           (size == 1 || size < type_elements(value_type(f->g, n->out[0])));
}

static bool is_scaling(const CountFacts *f, const Node *n)
{
    return (n->op == OP_mul && (is_factor(f, n, 0) || is_factor(f, n, 1))) ||
           (n->op == OP_div && is_factor(f, n, 1));
}

static bool is_of_model(const CountFacts *f, const Node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (f->of_model[n->out[i]])
            return true;
    return false;
}

CountKind count_kind(const CountFacts *f, const Node *n)
{
    ValueId out = n->out[0];
    if (n->op == OP_input)
        return COUNT_OP_input;
    if (!is_of_model(f, n))
        return COUNT_OP_loss;
    if (is_scaling(f, n))
        return COUNT_OP_scale;
    if (n->op == OP_reshape && type_same_shape(value_type(f->g, out), value_type(f->g, n->in[0])))
        return COUNT_OP_identity;
    if (n->op == OP_slice && node_flag(n, ATTR_crop))
        return COUNT_OP_crop;
    for (size_t i = 0; i < sizeof kind_of / sizeof kind_of[0]; i++)
        if (kind_of[i].op == n->op)
            return kind_of[i].kind;
    return COUNT_OP_other;
}
