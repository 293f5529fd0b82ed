/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of passes, from passes.def, and the driver: run, verify, time, observe. */
#include "ir/loop.h"
#include "ir/print.h"
#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const Pass pass_table[] = {
#define PASS(name, graph, pieces, bodies, request, pipelines, doc)                                 \
    {#name, doc, pass_##name, graph, pieces, bodies, request},
#define AGAIN(name, pipelines)
#include "passes/passes.def"
#undef PASS
#undef AGAIN
    {NULL, NULL, NULL, NULL, false, false, false}};

/* Each name has a comma in front; the pipelines begin behind the first. */
#define PASS(name, graph, pieces, bodies, request, pipelines, doc) pipelines(name)
#define AGAIN(name, pipelines)                                     pipelines(name)
#define ALWAYS(name)                                               "," #name
#define ASKED(name)                                                ""
#define TRAINING(name)                                             "," #name
static const char train_names[] =
#include "passes/passes.def"
    ;
#undef TRAINING
#define TRAINING(name) ""
static const char infer_names[] =
#include "passes/passes.def"
    ;
#undef TRAINING
#undef ASKED
#undef ALWAYS
#undef AGAIN
#undef PASS
const char *const pipeline_train = train_names + 1;
const char *const pipeline_infer = infer_names + 1;

const char *pipeline_before(Pool *pool, const char *pass)
{
    const char *at = pipeline_train;
    size_t length = strlen(pass);
    for (; *at; at += *at == ',') {
        size_t name = strcspn(at, ",");
        if (name == length && memcmp(at, pass, name) == 0)
            break;
        at += name;
    }
    size_t before = (size_t)(at - pipeline_train);
    return pool_strndup(pool, pipeline_train, before ? before - (*at != '\0') : 0);
}

static const Pass *pass_find(const char *name, size_t length)
{
    for (const Pass *p = pass_table; p->name; p++)
        if (strlen(p->name) == length && memcmp(p->name, name, length) == 0)
            return p;
    return NULL;
}

static bool pipeline_error(PassContext *ctx, const char *message, const char *help)
{
    return pass_fail(ctx, "E601", message, help);
}

static bool unknown_pass(PassContext *ctx, const char *name, size_t length)
{
    const char *names[64];
    size_t n = 0;
    for (const Pass *p = pass_table; p->name; p++)
        names[n++] = p->name;
    char *word = pool_strndup(ctx->pool, name, length);
    const char *nearest = nearest_word(word, names, n);
    return pipeline_error(ctx, pool_printf(ctx->pool, "no pass is called '%s'", word),
                          nearest ? pool_printf(ctx->pool, "did you mean `%s`?", nearest)
                                  : "`scrimp opt --help` lists the passes");
}

/* A word of the pipeline. */
typedef struct Step {
    const Pass *pass;
    PlanRequest request; /* of a pass with a request of its own; else the context's */
} Step;

typedef VEC(Step) Steps;

/* How an argument becomes a setting; false: no value of this kind. */
typedef bool TakeArgument(PlanSettings *out, const char *value);

#define TEXT_ARGUMENT(name)                                                                        \
    static bool take_##name(PlanSettings *out, const char *value)                                  \
    {                                                                                              \
        out->name = value;                                                                         \
        return true;                                                                               \
    }
TEXT_ARGUMENT(budget)
TEXT_ARGUMENT(solver)
TEXT_ARGUMENT(objective)
TEXT_ARGUMENT(cost)

static bool take_effort(PlanSettings *out, const char *value)
{
    char *end;
    out->effort = strtod(value, &end);
    return *value && !*end && isfinite(out->effort) && out->effort > 0;
}

/* The plan counts on pass views, or does not. */
static bool take_views(PlanSettings *out, const char *value)
{
    out->no_views = strcmp(value, "no") == 0;
    return out->no_views || strcmp(value, "yes") == 0;
}

typedef struct Argument {
    const char *name, *values;
    TakeArgument *take;
} Argument;

static const Argument arguments[] = {{"budget", NULL, take_budget},
                                     {"solver", NULL, take_solver},
                                     {"objective", NULL, take_objective},
                                     {"cost", NULL, take_cost},
                                     {"effort", "a number above 0", take_effort},
                                     {"views", "yes or no", take_views}};
static const char TAKEN[] = "remat takes budget, solver, objective, cost, effort and views";

static bool take_argument(PassContext *ctx, PlanSettings *out, const char *name, const char *value)
{
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (strcmp(arguments[i].name, name) == 0)
            return arguments[i].take(out, value) ||
                   pipeline_error(
                       ctx,
                       pool_printf(ctx->pool, "%s=%s is not %s", name, value, arguments[i].values),
                       NULL);
    return pipeline_error(ctx, pool_printf(ctx->pool, "no pass takes an argument '%s'", name),
                          TAKEN);
}

/* "budget=40%,solver=chen" */
static bool read_arguments(PassContext *ctx, const Pass *pass, char *text, PlanSettings *out)
{
    if (*text && !pass->has_request)
        return pipeline_error(ctx, pool_printf(ctx->pool, "pass %s takes no arguments", pass->name),
                              TAKEN);
    for (char *arg = strtok_r(text, ",", &text); arg; arg = strtok_r(NULL, ",", &text)) {
        char *eq = strchr(arg, '=');
        if (!eq)
            return pipeline_error(ctx,
                                  pool_printf(ctx->pool, "pass argument '%s' has no value", arg),
                                  "write key=value");
        *eq = '\0';
        if (!take_argument(ctx, out, arg, eq + 1))
            return false;
    }
    return true;
}

/* The driver's, else what the remat section of the graph and the arguments say. */
static bool read_request(PassContext *ctx, const PlanSettings *given, PlanRequest *out)
{
    *out = ctx->request;
    if (!out->costs.model) {
        PlanSettings section = remat_section(&ctx->graph->train);
        PlanSettings settings = plan_settings_merge(given, &section);
        if (!plan_request_read(ctx->pool, &settings, out, &ctx->error))
            return false;
    }
    return plan_request_has_costs(out, &ctx->error);
}

/* "remat(budget=40%),": *text moves behind it. */
static bool read_step(PassContext *ctx, const char **text, Steps *steps)
{
    const char *word = *text;
    size_t name = strcspn(word, ",(");
    Step step = {.pass = pass_find(word, name)};
    PlanSettings given = {0};
    if (!step.pass)
        return unknown_pass(ctx, word, name);
    word += name;
    if (*word == '(') {
        const char *close = strchr(word, ')');
        if (!close)
            return pipeline_error(ctx, "a pass argument list is not closed", "add `)`");
        char *inside = pool_strndup(ctx->pool, word + 1, (size_t)(close - word - 1));
        if (!read_arguments(ctx, step.pass, inside, &given))
            return false;
        word = close + 1;
    }
    if (*word && *word != ',')
        return pipeline_error(ctx, "passes are separated by commas", NULL);
    *text = word + (*word == ',');
    step.request = ctx->request;
    if (step.pass->has_request && !read_request(ctx, &given, &step.request))
        return false;
    vec_push(ctx->pool, steps, step);
    return true;
}

static void verify_or_die(const Graph *g, const char *after)
{
    const char *message;
    if (graph_verify(g, &message))
        return;
    StrBuf text = strbuf_new(g->pool);
    graph_print(g, (PrintOptions){0}, &text);
    fputs(text.text, stderr);
    BUG("the graph is malformed after %s: %s", after, message);
}

/* Values inside of others (ir/strided_view.h), of which most passes know nothing. */
static bool has_pieces_in_place(const Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (n->op == OP_subview || (n->op == OP_concat && node_attr(n, ATTR_joined)))
            return true;
    }
    return false;
}

static const char *passes_for_pieces(Pool *pool)
{
    const char *names = NULL;
    for (const Pass *p = pass_table; p->name; p++)
        if (p->pieces)
            names = names ? pool_printf(pool, "%s, %s", names, p->name) : p->name;
    return names;
}

/* From the innermost loop out, as what a pass makes of a body may change what the body gives. */
static bool run_on_bodies(PassContext *ctx, const Pass *pass)
{
    Graph *g = ctx->graph;
    for (size_t k = 0; pass->bodies && k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        PassContext inner = {.graph = n->body, .pool = ctx->pool, .supports = ctx->supports};
        if (!node_is_loop(n))
            continue;
        bool ok = run_on_bodies(&inner, pass) && pass->run(&inner);
        ctx->error = inner.error;
        if (!ok)
            return false;
    }
    return true;
}

static bool run_on_graph(PassContext *ctx, const Pass *pass)
{
    const Graph *without_masks = ctx->without_masks;
    if (!run_on_bodies(ctx, pass) || !pass->run(ctx))
        return false;
    if (ctx->without_masks == without_masks)
        ctx->without_masks = NULL; /* what this pass did was not done there */
    verify_or_die(ctx->graph, pass->name);
    return true;
}

/* On a step that goes on beside that of ctx; NULL: there is none. */
static bool run_beside(PassContext *ctx, PassContext *other, const Pass *pass)
{
    if (!other || run_on_graph(other, pass))
        return true;
    ctx->error = other->error;
    return false;
}

static bool run_one(PassContext *ctx, const Pass *pass, PassObserver *observer, void *user)
{
    if (strcmp(pass->needs, "any") != 0 && strcmp(pass->needs, ctx->graph->kind) != 0)
        return pipeline_error(
            ctx,
            pool_printf(ctx->pool, "pass %s works on a %s graph, this is a %s graph", pass->name,
                        pass->needs, ctx->graph->kind),
            strcmp(pass->needs, "step") == 0 ? "run autodiff first" : "it has been run already");
    if (!pass->pieces && has_pieces_in_place(ctx->graph))
        return pipeline_error(
            ctx, pool_printf(ctx->pool, "pass %s cannot follow pass views", pass->name),
            pool_printf(ctx->pool, "only %s can", passes_for_pieces(ctx->pool)));
    PassContext *again = ctx->again, *plain = ctx->plain; /* as they were before they are made */
    double begin = clock_seconds();
    if (!run_on_graph(ctx, pass))
        return false;
    if (!run_beside(ctx, ctx->again ? again : NULL, pass) ||
        !run_beside(ctx, ctx->plain ? plain : NULL, pass))
        return false;
    if (observer)
        observer(user, pass, ctx->graph, clock_seconds() - begin);
    return true;
}

/* What cannot be run is refused before anything is. */
bool passes_run(PassContext *ctx, const char *pipeline, PassObserver *observer, void *user)
{
    Steps steps = {0};
    const PlanRequest own = ctx->request;
    bool ok = true;
    while (*pipeline)
        if (!read_step(ctx, &pipeline, &steps))
            return false;
    for (size_t i = 0; i < steps.len && ok; i++) {
        ctx->request = steps.data[i].request;
        ok = run_one(ctx, steps.data[i].pass, observer, user);
    }
    ctx->request = own;
    return ok;
}

bool pipeline_has(const char *pipeline, const char *pass)
{
    size_t n = strlen(pass);
    while (*pipeline) {
        if (strcspn(pipeline, ",(") == n && memcmp(pipeline, pass, n) == 0)
            return true;
        pipeline += strcspn(pipeline, ",");
        pipeline += *pipeline == ',';
    }
    return false;
}

bool pass_fail(PassContext *ctx, const char *code, const char *message, const char *help)
{
    ctx->error = (RematError){code, message, help};
    return false;
}
