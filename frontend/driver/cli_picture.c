/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --svg: from a plan to the data of its picture. */
#include "frontend/driver/cli_build.h"
#include "frontend/driver/cli_file.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/plan_svg.h"
#include "frontend/driver/report/step_facts.h"
#include "ir/support/bug.h"
#include "passes/remat/model/schedule.h"

#include <string.h>

const char *cli_plan_title(const Cli *cli)
{
    StrBuf title = strbuf_new(cli->pool);
    const char *file = cli->source.graph ? cli->source.graph : cli->file,
               *slash = strrchr(file, '/');
    if (slash && slash[1])
        file = slash + 1;
    strbuf_put(&title, cli_is_standard_output(file) ? "standard input" : file);
    for (int i = 0; i < cli->source.n_defs; i++)
        strbuf_printf(&title, " -D %s=%s", cli->source.defs[i].name, cli->source.defs[i].value);
    return title.text;
}

static ExitCode draw(Cli *cli, PlanPicture *picture, const PlanRow *row)
{
    StrBuf text = strbuf_new(cli->pool);
    picture->title = cli_plan_title(cli);
    picture->persistent_bytes = row->report.persistent_bytes;
    picture->arena_bytes = row->arena_bytes;
    picture->budget_bytes = row->report.budget_bytes;
    picture->overhead_percent = row->report.overhead_percent;
    plan_svg_write(picture, &text);
    return cli_write_file(cli, cli->ask.svg, text.text);
}

/* Of a model */

ExitCode cli_build_kept(Cli *cli, const Ast *ast, Program *out)
{
    ProgramOptions o = {.mode = FRONTEND_TRAIN,
                        .pipeline = pipeline_before(cli->pool, "remat"),
                        .plan.masks = MASKS_NEVER,
                        .plan.no_norms = true};
    return cli_build(cli, ast, &o, out);
}

static BufferKind kind_of(TensorKind kind)
{
    switch (kind) {
    case TENSOR_WORKSPACE:
        return BUFFER_WORKSPACE;
    case TENSOR_RECOMPUTED:
        return BUFFER_AGAIN;
    case TENSOR_GRADIENT:
        return BUFFER_BACKWARD;
    case TENSOR_INPUT:
    case TENSOR_ACTIVATION:
        return BUFFER_FORWARD;
    case TENSOR_WEIGHTS:
    case TENSOR_STATISTICS:
    case TENSOR_OPTIMIZER:
    case N_TENSOR_KINDS:
        break;
    }
    BUG("a persistent tensor is no rectangle of its own");
}

static PictureBuffer picture_buffer(Pool *pool, const StepFacts *f, const BufferFact *b)
{
    const char *name = graph_value(f->graph, b->value)->name;
    return (PictureBuffer){
        .first = b->first,
        .end = b->end,
        .offset = b->offset,
        .bytes = b->bytes,
        .name = b->kind == TENSOR_WORKSPACE ? pool_printf(pool, "workspace of %s", name) : name,
        .kind = kind_of(b->kind)};
}

static void list_buffers(Pool *pool, const StepFacts *f, PlanPicture *picture)
{
    PictureBuffer *list = POOL_ARRAY(pool, (size_t)f->n_buffers + 1, PictureBuffer);
    for (int b = f->n_persistent; b < f->n_buffers; b++)
        list[picture->n_buffers++] = picture_buffer(pool, f, &f->buffer[b]);
    picture->buffer = list;
}

static ExitCode draw_model(Cli *cli, const Ast *ast, const Program *p, const PlanRow *row)
{
    Program before;
    ExitCode code = cli_build_kept(cli, ast, &before);
    if (code != EXIT_OK)
        return code;
    const NodeCosts costs = cli_plan_costs(cli, &row->report);
    const StepFacts planned = step_facts(cli->pool, p->graph, p->plan, &costs),
                    kept = step_facts(cli->pool, before.graph, NULL, &costs);
    PlanPicture picture = {.planned = {planned.n_operations, planned.load},
                           .kept = {kept.n_operations, kept.load},
                           .forward_end = planned.forward_end};
    list_buffers(cli->pool, &planned, &picture);
    return draw(cli, &picture, row);
}

/* Of a graph from elsewhere */

static PictureLoad load_of_buffers(Pool *pool, const MemBuffer *b, int n, int n_runs,
                                   int64_t persistent_bytes)
{
    int64_t *load = POOL_ARRAY(pool, (size_t)n_runs + 1, int64_t), alive = persistent_bytes;
    for (int i = 0; i < n; i++) {
        load[b[i].lower] += b[i].size;
        load[b[i].upper] -= b[i].size;
    }
    for (int t = 0; t < n_runs; t++)
        load[t] = alive += load[t];
    return (PictureLoad){n_runs, load};
}

/* Buffers come run by run, outputs first (external_buffers). */
static void name_buffers(Pool *pool, const RematProblem *p, const RematSchedule *s,
                         PictureBuffer *list)
{
    bool *ran = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    for (int run = 0; run < s->len; run++) {
        const RematNode *node = &p->node[s->node[run]];
        BufferKind kind = ran[s->node[run]] ? BUFFER_AGAIN
                          : node->forward   ? BUFFER_FORWARD
                                            : BUFFER_BACKWARD;
        for (int k = 0; k < node->n_out; k++, list++) {
            list->name = node->name;
            list->kind = kind;
        }
        if (node->workspace > 0) {
            list->name = pool_printf(pool, "workspace of %.80s", node->name);
            list++->kind = BUFFER_WORKSPACE;
        }
        ran[s->node[run]] = true;
    }
}

/* A graph does not say where its forward part ends, and a schedule may run parts of it late: where
 * the fewest first runs are on the wrong side. */
static int forward_end_of_schedule(Pool *pool, const RematProblem *p, const RematSchedule *s)
{
    bool *ran = POOL_ARRAY(pool, (size_t)p->n_nodes + 1, bool);
    int end = 0, ahead = 0, most_ahead = 0;
    for (int run = 0; run < s->len; run++) {
        int node = s->node[run];
        if (!ran[node])
            ahead += p->node[node].forward ? 1 : -1;
        if (ahead > most_ahead) {
            most_ahead = ahead;
            end = run + 1;
        }
        ran[node] = true;
    }
    return end;
}

static ExitCode draw_graph(Cli *cli, const ExternalGraph *g, const PlanRow *row)
{
    Pool *pool = cli->pool;
    RematError error;
    const RematSchedule *s = &row->external->schedule;
    const RematProblem *p = external_problem(pool, g, &error); /* it was one already */
    RematSchedule given = remat_base_schedule(pool, p);
    int n, n_given;
    const MemBuffer *before = external_buffers(pool, p, &given, &n_given);
    const MemBuffer *b = external_buffers(pool, p, s, &n);
    MemLayout layout = external_layout(pool, b, n, row->external->hurried);
    PictureBuffer *list = POOL_ARRAY(pool, (size_t)n + 1, PictureBuffer);
    for (int i = 0; i < n; i++)
        list[i] = (PictureBuffer){.first = b[i].lower,
                                  .end = b[i].upper,
                                  .offset = p->persistent_bytes + layout.offset[i],
                                  .bytes = b[i].size};
    name_buffers(pool, p, s, list);
    PlanPicture picture = {
        .kept = load_of_buffers(pool, before, n_given, given.len, p->persistent_bytes),
        .planned = load_of_buffers(pool, b, n, s->len, p->persistent_bytes),
        .forward_end = forward_end_of_schedule(pool, p, s),
        .n_buffers = n,
        .buffer = list};
    return draw(cli, &picture, row);
}

ExitCode cli_write_picture(Cli *cli, const PlanSource *of, const Program *program,
                           const PlanRow *row)
{
    return of->graph ? draw_graph(cli, of->graph, row) : draw_model(cli, of->ast, program, row);
}
