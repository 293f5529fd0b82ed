/* summary: what a model is made of. */
#include "frontend/cli.h"

#include "frontend/summary.h"

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

static void print_json(const Summary *s)
{
    json_t *ops = json_object();
    for (int i = 0; i < s->n_ops; i++)
        json_object_set_new(ops, s->ops[i].name, json_integer(s->ops[i].count));
    json_t *o = json_pack("{s:I,s:I,s:I,s:I,s:o,s:I}", "params", (json_int_t)s->params, "buffers",
                          (json_int_t)s->buffers, "macs", (json_int_t)s->macs, "nodes",
                          (json_int_t)s->nodes, "ops", ops, "activation_elements",
                          (json_int_t)s->activation_elements);
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

static void print_text(Pool *pool, const Summary *s)
{
    print_tensors(pool, "parameters", s->parameters, s->n_parameters);
    print_tensors(pool, "buffers", s->buffer_list, s->n_buffers);
    puts("operations");
    for (int i = 0; i < s->n_ops; i++)
        printf("  %-44s %lld\n", s->ops[i].name, (long long)s->ops[i].count);
    printf("\nparameters           %lld (%s)\nbuffers              %lld\n"
           "multiply-adds        %.0f forward\noperations           %lld\n"
           "activation elements  %lld\noutput               %s\n",
           (long long)s->params, cli_bytes_text(pool, s->param_bytes), (long long)s->buffers,
           s->macs, (long long)s->nodes, (long long)s->activation_elements,
           s->output.rank >= 0 ? type_text(pool, &s->output) : "-");
}

ExitCode verb_summary(Cli *cli)
{
    const Ast *ast = cli_parse_model(cli);
    if (!ast)
        return EXIT_USER;
    FrontendOptions o = {
        .defs = cli->defs, .n_defs = cli->n_defs, .mode = FRONTEND_INFER, .model = cli->model};
    const Graph *g = frontend_lower(cli->pool, cli->diag, ast, &o);
    if (!g || diag_error_count(cli->diag))
        return cli_diagnostics(cli);
    Summary s = graph_summary(cli->pool, g);
    if (cli->json)
        print_json(&s);
    else
        print_text(cli->pool, &s);
    return EXIT_OK;
}
