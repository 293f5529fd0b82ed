/* SPDX-License-Identifier: GPL-3.0-or-later */
/* summary: what a model is made of; --count: at a paper's granularity. */
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_program.h"

#include "ir/summary.h"
#include "passes/paper_graph/forward_count.h"
#include "passes/paper_graph/paper_graph.h"

#include <stdio.h>
#include <string.h>

static json_t *shape_json(const Type *t)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++)
        json_array_append_new(shape, json_integer(t->dim[i]));
    return shape;
}

static json_t *tensors_json(const SummaryTensor *list, int n)
{
    json_t *out = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(
            out, json_pack("{s:s,s:o}", "name", list[i].name, "shape", shape_json(&list[i].type)));
    return out;
}

static void print_json(const Summary *s, int64_t activation_elements)
{
    json_t *ops = json_object();
    for (int i = 0; i < s->n_ops; i++)
        json_object_set_new(ops, s->ops[i].name, json_integer(s->ops[i].count));
    json_t *o = json_pack("{s:I,s:I,s:I,s:I,s:o,s:I}", "params", (json_int_t)s->params, "buffers",
                          (json_int_t)s->buffers, "macs", (json_int_t)s->macs, "nodes",
                          (json_int_t)s->nodes, "ops", ops, "activation_elements",
                          (json_int_t)activation_elements);
    json_object_set_new(o, "output_shape", shape_json(&s->output));
    json_object_set_new(o, "parameters", tensors_json(s->parameters, s->n_parameters));
    json_object_set_new(o, "buffer_list", tensors_json(s->buffer_list, s->n_buffers));
    cli_print_json(o);
}

static void print_tensors(Pool *pool, const char *title, const SummaryTensor *list, int n)
{
    if (n)
        printf("%s\n", title);
    for (int i = 0; i < n; i++)
        printf("  %-44s %-20s %12lld\n", list[i].name, type_shape_text(pool, &list[i].type),
               (long long)list[i].elements);
}

static void print_text(Pool *pool, const Summary *s, int64_t activation_elements)
{
    print_tensors(pool, "parameters", s->parameters, s->n_parameters);
    print_tensors(pool, "buffers", s->buffer_list, s->n_buffers);
    puts("operations");
    for (int i = 0; i < s->n_ops; i++)
        printf("  %-44s %lld\n", s->ops[i].name, (long long)s->ops[i].count);
    printf("\nparameters           %lld (%s)\nbuffers              %lld\n"
           "multiply-adds        %.0f forward\noperations           %lld\n"
           "activation elements  %lld\noutput               %s\n",
           (long long)s->params, bytes_text(pool, s->param_bytes), (long long)s->buffers, s->macs,
           (long long)s->nodes, (long long)activation_elements,
           s->output.rank >= 0 ? type_text(pool, &s->output) : "-");
}

static ExitCode summarize(Cli *cli, const Graph *g)
{
    Summary s = graph_summary(cli->pool, g);
    PaperGraph c = paper_graph(cli->pool, g, counting_rule_find("ops"));
    if (cli->output.json)
        print_json(&s, c.activation_elements);
    else
        print_text(cli->pool, &s, c.activation_elements);
    return EXIT_OK;
}

/* ---- --count ---- */

static const char *class_name(PaperClass c)
{
    static const char *const names[] = {
        [COUNT_INPUT] = "input",     [COUNT_ACTIVATION] = "activation",
        [COUNT_DROPOUT] = "dropout", [COUNT_VIEW] = "view",
        [COUNT_LOSS] = "loss",
    };
    return names[c];
}

static json_t *vertex_json(const PaperVertex *v)
{
    json_t *from = json_array();
    for (int i = 0; i < v->n_from; i++)
        json_array_append_new(from, json_integer(v->from[i]));
    return json_pack("{s:s,s:s,s:s,s:b,s:b,s:b,s:I,s:I,s:o}", "name", v->name, "op", v->op, "class",
                     class_name(v->kind), "conv", (int)v->conv, "source", (int)v->source, "target",
                     (int)v->target, "elements", (json_int_t)v->elements, "bytes",
                     (json_int_t)v->bytes, "from", from);
}

static void print_count_json(const PaperGraph *c)
{
    json_t *ops = json_object(), *graph = json_array();
    for (int i = 0; i < c->n_ops; i++)
        json_object_set_new(ops, c->op[i].name,
                            json_pack("{s:i,s:I}", "count", c->op[i].count, "elements",
                                      (json_int_t)c->op[i].elements));
    for (int i = 0; i < c->n_vertices; i++)
        json_array_append_new(graph, vertex_json(&c->vertex[i]));
    cli_print_json(json_pack("{s:s,s:i,s:i,s:I,s:I,s:o,s:o}", "rule", c->rule->name, "vertices",
                             c->n_vertices, "edges", c->n_edges, "elements",
                             (json_int_t)c->elements, "activation_elements",
                             (json_int_t)c->activation_elements, "ops", ops, "graph", graph));
}

static void print_count_text(const PaperGraph *c)
{
    printf("%-24s %8s %16s\n", c->rule->name, "vertices", "elements");
    for (int i = 0; i < c->n_ops; i++)
        printf("  %-22s %8d %16lld\n", c->op[i].name, c->op[i].count, (long long)c->op[i].elements);
    printf("\nvertices             %d\nedges                %d\nelements             %lld\n"
           "activation elements  %lld\n",
           c->n_vertices, c->n_edges, (long long)c->elements, (long long)c->activation_elements);
}

static ExitCode count_by(Cli *cli, const Ast *ast)
{
    const PaperGraph *c = cli_count_graph(cli, ast);
    if (!c)
        return EXIT_USER;
    if (cli->output.out)
        return cli_write_file(cli, cli->output.out,
                              external_write(cli->pool, external_from_count(cli->pool, c)));
    if (cli->output.json)
        print_count_json(c);
    else
        print_count_text(c);
    return EXIT_OK;
}

static ExitCode unknown_rule(Cli *cli)
{
    const char *names[16];
    size_t n = 0;
    for (const CountingRule *r = counting_rules; r->name; r++)
        names[n++] = r->name;
    const char *near = nearest_word(cli->source.count, names, n);
    return cli_error(cli, EXIT_USER, "E408",
                     near ? pool_printf(cli->pool, "did you mean `%s`?", near)
                          : "`scrimp summary --help` lists the rules",
                     "no counting rule is called '%s'", cli->source.count);
}

const PaperGraph *cli_count_graph(Cli *cli, const Ast *ast)
{
    const CountingRule *rule = counting_rule_find(cli->source.count);
    if (!rule) {
        unknown_rule(cli);
        return NULL;
    }
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_TRAIN);
    o.count = true;
    const Graph *g = cli_lower(cli, ast, &o);
    if (!g)
        return NULL;
    PaperGraph *c = POOL_NEW(cli->pool, PaperGraph);
    *c = paper_graph(cli->pool, g, rule);
    return c;
}

ExitCode verb_summary(Cli *cli)
{
    if (cli->output.out && !cli->source.count)
        return cli_error(cli, EXIT_USER, "E407", "add --count RULE, or leave it out",
                         "--out is for the graph of --count");
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    if (cli->source.count)
        return count_by(cli, ast);
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_INFER);
    const Graph *g = cli_lower(cli, ast, &o);
    return g ? summarize(cli, g) : EXIT_USER;
}
