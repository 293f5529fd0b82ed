/* The table of passes, and the driver: run, verify, time, observe. */
#include "ir/print.h"
#include "ir/support/bug.h"
#include "ir/support/clock.h"
#include "ir/verify.h"
#include "passes/pass.h"

#include <string.h>

const Pass pass_table[] = {
    {"fold", "simplify identities, constants, compositions of views", pass_fold, "any"},
    {"cse", "compute equal operations once, nest concatenations that begin alike", pass_cse, "any"},
    {"dce", "drop what nothing needs", pass_dce, "any"},
    {"layout", "images channels-last inside", pass_layout, "forward"},
    {"autodiff", "forward graph -> whole training step", pass_autodiff, "forward"},
    {"fuse", "element-wise trees and epilogues become one kernel", pass_fuse, "any"},
    {"order", "order of operations with the smallest peak", pass_order, "any"},
    {"masks", "save bits or indices for ReLU's and max pooling's gradients where the peak falls",
     pass_masks, "step"},
    {"remat", "recompute within the budget, drop masks (budget=, solver=, objective=, cost=)",
     pass_remat, "step"},
    {"views", "pieces of concatenations and slices lie where the whole lies", pass_views, "any"},
    {"plan", "an offset in one arena for every tensor", pass_plan, "any"},
    {NULL, NULL, NULL, NULL}};

#define BEFORE_REMAT "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order,masks"
const char *const pipeline_before_remat = BEFORE_REMAT;
const char *const pipeline_train = BEFORE_REMAT ",remat,views,plan";
const char *const pipeline_infer = "fold,cse,dce,layout,fold,cse,dce,fuse,order,views,plan";

static const Pass *pass_find(const char *name, size_t length)
{
    for (const Pass *p = pass_table; p->name; p++)
        if (strlen(p->name) == length && memcmp(p->name, name, length) == 0)
            return p;
    return NULL;
}

static bool pipeline_error(PassContext *ctx, const char *message, const char *help)
{
    ctx->error_code = "E601";
    ctx->error = message;
    ctx->error_help = help;
    return false;
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

/* "budget=40%,solver=chen" into the context. */
static bool pass_arguments(PassContext *ctx, char *text)
{
    for (char *arg = strtok_r(text, ",", &text); arg; arg = strtok_r(NULL, ",", &text)) {
        char *eq = strchr(arg, '=');
        if (!eq)
            return pipeline_error(ctx,
                                  pool_printf(ctx->pool, "pass argument '%s' has no value", arg),
                                  "write key=value");
        *eq = '\0';
        if (strcmp(arg, "budget") == 0)
            ctx->budget = eq + 1;
        else if (strcmp(arg, "solver") == 0)
            ctx->solver = eq + 1;
        else if (strcmp(arg, "objective") == 0)
            ctx->objective = eq + 1;
        else if (strcmp(arg, "cost") == 0)
            ctx->cost = eq + 1;
        else
            return pipeline_error(ctx,
                                  pool_printf(ctx->pool, "no pass takes an argument '%s'", arg),
                                  "remat takes budget, solver, objective and cost");
    }
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

/* The other passes know nothing of values inside of others (ir/place.h). */
static bool has_pieces_in_place(const Graph *g)
{
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        if (n->op == OP_subview || (n->op == OP_concat && node_attr(n, ATTR_joined)))
            return true;
    }
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
    if (pass->run != pass_plan && has_pieces_in_place(ctx->graph))
        return pipeline_error(
            ctx, pool_printf(ctx->pool, "pass %s cannot follow pass views", pass->name),
            "only plan can");
    if (pass->run != pass_remat)
        ctx->without_masks = NULL; /* what this pass does would not be done there */
    double begin = clock_seconds();
    if (!pass->run(ctx))
        return false;
    double seconds = clock_seconds() - begin;
    verify_or_die(ctx->graph, pass->name);
    if (observer)
        observer(user, pass, ctx->graph, seconds);
    return true;
}

bool passes_run(PassContext *ctx, const char *pipeline, PassObserver *observer, void *user)
{
    const char *p = pipeline;
    while (*p) {
        size_t name = strcspn(p, ",(");
        const Pass *pass = pass_find(p, name);
        if (!pass)
            return unknown_pass(ctx, p, name);
        p += name;
        if (*p == '(') {
            const char *close = strchr(p, ')');
            if (!close)
                return pipeline_error(ctx, "a pass argument list is not closed", "add `)`");
            if (!pass_arguments(ctx, pool_strndup(ctx->pool, p + 1, (size_t)(close - p - 1))))
                return false;
            p = close + 1;
        }
        if (*p && *p != ',')
            return pipeline_error(ctx, "passes are separated by commas", NULL);
        p += *p == ',';
        if (!run_one(ctx, pass, observer, user))
            return false;
    }
    return true;
}
