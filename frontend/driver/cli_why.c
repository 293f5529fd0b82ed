/* SPDX-License-Identifier: GPL-3.0-or-later */
/* plan --why: why an operation of a step runs again, or need not. */
#include "frontend/driver/cli_options.h"
#include "frontend/driver/cli_plan.h"
#include "frontend/driver/cli_where.h"
#include "ir/strided_view.h"
#include "ir/support/byte_size.h"
#include "passes/rerun.h"

#include <stdio.h>
#include <string.h>

typedef struct Why {
    Cli *cli;
    Pool *pool;
    const PlanSource *of;
    const PlanRow *row;
    json_t *json; /* what is printed in the place of text, or NULL */
    const Graph *g;
    NodeCosts costs;
    MemLives lives;
    int peak_slot;
    int64_t budget_bytes; /* INT64_MAX: none */
} Why;

/* --- names --- */

static bool in_order(const Graph *g, NodeId id)
{
    for (size_t k = 0; k < g->order.len; k++)
        if (g->order.data[k] == id)
            return true;
    return false;
}

/* The group in whose body this name is. */
static NodeId find_group(const Graph *g, const char *name)
{
    for (size_t k = 0; k < g->order.len; k++) {
        const Node *n = graph_node(g, g->order.data[k]);
        ValueId v = n->body ? graph_find(n->body, name) : VALUE_NONE;
        if (v != VALUE_NONE && value_node(n->body, v)->op != OP_input)
            return g->order.data[k];
    }
    return NODE_NONE;
}

/* With or without its sigil; NODE_NONE: nothing has this name. */
static NodeId find_node(const Why *w, const char *name)
{
    const char *spellings[] = {name, pool_printf(w->pool, "%%%s", name),
                               pool_printf(w->pool, "$%s", name)};
    for (int i = 0; i < 3; i++) {
        ValueId v = graph_find(w->g, spellings[i]);
        if (v != VALUE_NONE && in_order(w->g, graph_value(w->g, v)->def))
            return graph_value(w->g, v)->def;
        NodeId group = find_group(w->g, spellings[i]);
        if (group != NODE_NONE)
            return group;
    }
    return NODE_NONE;
}

static const char *name_of(const Graph *g, NodeId id)
{
    return graph_value(g, graph_node(g, id)->out[0])->name;
}

/* "scrimp plan FILE --budget 60% --why '%conv1~1'" */
static const char *ask_why(const Why *w, NodeId id)
{
    StrBuf line = strbuf_new(w->pool);
    strbuf_put(&line, cli_command_for(w->cli, "plan", "why peak svg arena-csv json"));
    strbuf_put(&line, " --why");
    cli_put_word(&line, name_of(w->g, id));
    return line.text;
}

/* "once", or "3 times: %conv1, %conv1~1, %conv1~2". */
static const char *runs_text(const Why *w, NodeId of, NodeId *last)
{
    enum { MOST_NAMES = 4 };
    const char *names = "";
    int n = 0;
    for (size_t k = 0; k < w->g->order.len; k++) {
        NodeId id = w->g->order.data[k];
        if (id != of && (rerun_before(w->g, id) == NODE_NONE || rerun_first(w->g, id) != of))
            continue;
        *last = id;
        if (n++ < MOST_NAMES)
            names = pool_printf(w->pool, "%s%s%s", names, n > 1 ? ", " : "", name_of(w->g, id));
    }
    return n == 1 ? "once"
                  : pool_printf(w->pool, "%d times: %s%s", n, names, n > MOST_NAMES ? ", ..." : "");
}

/* Of a run more than there are: how many there are. */
static ExitCode unknown_run(const Why *w, const char *name, NodeId of)
{
    NodeId last = of;
    const char *runs = runs_text(w, of, &last);
    return cli_error(
        w->cli, EXIT_USER, "E414", pool_printf(w->pool, "`%s` says why", ask_why(w, last)),
        "nothing in the step is called '%s': %s runs %s", name, name_of(w->g, of), runs);
}

static ExitCode unknown_name(const Why *w, const char *name)
{
    const char *tilde = strrchr(name, '~');
    NodeId of =
        tilde ? find_node(w, pool_strndup(w->pool, name, (size_t)(tilde - name))) : NODE_NONE;
    if (of != NODE_NONE)
        return unknown_run(w, name, of);
    const char **names = POOL_ARRAY(w->pool, w->g->values.len + 1, const char *);
    size_t n = 0;
    for (size_t v = 0; v < w->g->values.len; v++)
        if (in_order(w->g, w->g->values.data[v].def))
            names[n++] = w->g->values.data[v].name;
    const char *near = nearest_word(name, names, n);
    const char *dump = cli_command_for(w->cli, "dump", "json"),
               *help = near ? pool_printf(w->pool, "did you mean `%s`?", near)
                            : pool_printf(w->pool, "`%s --stage=remat` prints the names", dump);
    return cli_error(w->cli, EXIT_USER, "E414", help, "nothing in the step is called '%s'", name);
}

/* Whether what `name` names runs more than once in g. */
static bool runs_again(const Graph *g, const char *name)
{
    ValueId v = graph_find(g, name);
    for (size_t k = 0; v != VALUE_NONE && k < g->order.len; k++) {
        NodeId id = g->order.data[k];
        if (rerun_before(g, id) != NODE_NONE && rerun_first(g, id) == graph_value(g, v)->def)
            return true;
    }
    return false;
}

/* --- words --- */

static const char *size_text(const Why *w, int64_t bytes)
{
    return bytes_text(w->pool, bytes);
}

static const char *cost_text(const Why *w, double cost)
{
    const CostModel *model = w->row->report.cost;
    if (model->in_seconds)
        return pool_printf(w->pool, "%.3f ms", 1e3 * cost);
    if (strcmp(model->name, cost_models->name) == 0)
        return pool_printf(w->pool, "%.3f ms by the cost model", 1e3 * cost);
    return pool_printf(w->pool, "%.6g by the cost model %s", cost, model->name);
}

static int64_t result_bytes(const Graph *g, NodeId id)
{
    int64_t sum = 0;
    for (int o = 0; o < graph_node(g, id)->n_out; o++)
        sum += memplan_value_bytes(g, graph_node(g, id)->out[o]);
    return sum;
}

static void print_operation(const Why *w, NodeId id)
{
    const Node *n = graph_node(w->g, id);
    int slot = w->lives.slot_of[id];
    printf("%s = %s%s\n", name_of(w->g, id), op_name(n->op), place_text(w->pool, w->g, &n->loc));
    if (slot >= 0)
        printf("Operation %d of 0 to %d; it makes %s.\n", slot, w->lives.n_slots - 1,
               size_text(w, result_bytes(w->g, id)));
}

/* --- a recomputation --- */

/* What is known of one. */
typedef struct Answer {
    RerunEffect effect;
    double cost, percent;
    NodeId peak_node;     /* where the peak of the step without it is */
    int64_t enough_bytes; /* the schedule without it fits from here on */
    bool asked;           /* the planner has been asked for a plan within that */
    bool again;           /* it still runs again */
    int reruns;           /* of that plan */
} Answer;

/* The planner within what this schedule needs without the run. */
static ExitCode ask_planner(Why *w, Answer *a)
{
    const Budget enough = {.kind = BUDGET_BYTES, .amount = (double)a->enough_bytes};
    PlanRow row;
    Program p;
    ExitCode code =
        cli_plan_once(w->cli, w->of, &(PlanOverride){.budget = &enough}, true, &row, &p);
    if (code != EXIT_OK)
        return code == EXIT_BUDGET ? EXIT_OK : code;
    a->asked = true;
    a->again = runs_again(p.graph, name_of(w->g, rerun_first(w->g, a->effect.node)));
    a->reruns = row.report.recomputed_ops;
    return EXIT_OK;
}

static ExitCode answer(Why *w, NodeId id, Answer *a)
{
    const Graph *without = rerun_without(w->pool, w->g, id);
    double step = w->row->report.step_cost;
    a->cost = node_cost(&w->costs, w->g, id);
    a->percent = step > 0 ? 100 * a->cost / step : 0;
    const MemPlan *plan = memplan_graph(w->pool, without, MEMPLAN_FINAL, NULL);
    a->enough_bytes = plan->arena_bytes;
    a->peak_node = plan->peak_node;
    return w->budget_bytes < a->enough_bytes ? ask_planner(w, a) : EXIT_OK;
}

static void print_freed(const Why *w, const Answer *a)
{
    const RerunEffect *e = &a->effect;
    printf("\nThe run before it is %s, operation %d. ", name_of(w->g, e->before), e->before_slot);
    if (e->bytes == 0) {
        puts("What that has made is in memory until it runs again: nothing is freed meanwhile.");
        return;
    }
    printf("What that has made, %s, is not in memory\nin operations %d to %d, behind its last use "
           "and before this run; the step's peak (operation %d)\n%s.\n",
           size_text(w, e->bytes), e->from, e->to - 1, w->peak_slot,
           e->spans_peak ? "lies between" : "does not lie between");
}

static void print_instead(const Why *w, const RerunEffect *e)
{
    for (int k = 0; k < e->n_instead; k++) {
        ValueId v = e->instead[k];
        printf("%s%s (%s)", k ? ", " : "\nWithout it, ", graph_value(w->g, v)->name,
               size_text(w, memplan_value_bytes(w->g, v)));
    }
    puts(e->n_instead ? " would live on." : "\nWithout it, nothing would live longer.");
}

static void print_without(const Why *w, const Answer *a)
{
    const RerunEffect *e = &a->effect;
    print_instead(w, e);
    printf("The step's peak would be %s, in operation %d (%s)", size_text(w, e->without_peak_bytes),
           w->lives.slot_of[a->peak_node], name_of(w->g, a->peak_node));
    if (w->budget_bytes == INT64_MAX)
        printf("; no budget is set: an annotation asks for this run.\n");
    else if (e->without_peak_bytes > w->budget_bytes)
        printf(",\n%s over the budget of %s.\n",
               size_text(w, e->without_peak_bytes - w->budget_bytes),
               size_text(w, w->budget_bytes));
    else
        printf(",\nwithin the budget of %s.\n", size_text(w, w->budget_bytes));
}

static void print_enough(const Why *w, const Answer *a)
{
    if (w->budget_bytes == INT64_MAX)
        return;
    if (a->enough_bytes <= w->budget_bytes) {
        printf("\nThe arena of this schedule without it, %s, fits the budget: the search has not "
               "found that.\n",
               size_text(w, a->enough_bytes));
        return;
    }
    printf("\nFrom a budget of %s (%lld bytes) on, this schedule fits without it.",
           size_text(w, a->enough_bytes), (long long)a->enough_bytes);
    if (a->asked && a->reruns == 0)
        printf("\nWithin that, the planner runs nothing again.");
    else if (a->asked)
        printf("\nWithin that, the planner runs %d operation%s again, %s.", a->reruns,
               a->reruns == 1 ? "" : "s", a->again ? "this one too" : "but not this one");
    puts("");
}

static void print_answer(const Why *w, const Answer *a)
{
    print_operation(w, a->effect.node);
    print_freed(w, a);
    printf("\nThis run costs %s, %.2f%% of the step's time.\n", cost_text(w, a->cost), a->percent);
    print_without(w, a);
    print_enough(w, a);
}

/* --- an operation that runs once --- */

/* The first of the runs behind the first one; NODE_NONE: there are none. */
static NodeId next_run(const Why *w, NodeId id)
{
    for (size_t k = 0; k < w->g->order.len; k++)
        if (rerun_before(w->g, w->g->order.data[k]) == id)
            return w->g->order.data[k];
    return NODE_NONE;
}

static const char *why_it_cannot(const Why *w, NodeId id)
{
    const Node *n = graph_node(w->g, id);
    if (node_is_persistent(n))
        return "it is a tensor that is in memory throughout";
    if (node_is_view(n))
        return "it is a name for memory of something else and takes no time";
    if (!node_runs(n))
        return "it is an input";
    if (op_table[n->op].op_class == OP_CLASS_UPDATE)
        return "it writes over a tensor, which can be done only once";
    for (int o = 0; o < n->n_out; o++)
        if (graph_value(w->g, n->out[o])->writes != VALUE_NONE)
            return "it writes over a tensor, which can be done only once";
    return n->hint == REMAT_KEEP ? "the model says @keep" : NULL;
}

static int last_use(const Why *w, NodeId id)
{
    const Node *n = graph_node(w->g, id);
    int last = w->lives.slot_of[id];
    for (int o = 0; o < n->n_out; o++) {
        int end = w->lives.last[value_root(w->g, n->out[o])];
        last = end > last ? end : last;
    }
    return last;
}

static const char *why_it_need_not(const Why *w, NodeId id)
{
    int slot = w->lives.slot_of[id], last = last_use(w, id);
    if (w->budget_bytes == INT64_MAX)
        return "no budget is set, so everything is kept";
    if (last <= slot + 1)
        return "what it makes is not kept: the operation behind it has the last use of that";
    bool at_peak = slot <= w->peak_slot && w->peak_slot <= last;
    return pool_printf(w->pool,
                       "what it makes is in memory in operations %d to %d%s,\n"
                       "and the step fits the budget of %s with that",
                       slot, last, at_peak ? ", the peak among them" : ", which are not the peak",
                       size_text(w, w->budget_bytes));
}

static const char *reason_of(const Why *w, NodeId id)
{
    const char *cannot = why_it_cannot(w, id);
    return cannot ? cannot : why_it_need_not(w, id);
}

/* --- output --- */

static json_t *instead_json(const Why *w, const RerunEffect *e)
{
    json_t *list = json_array();
    for (int k = 0; k < e->n_instead; k++)
        json_array_append_new(
            list, json_pack("{s:s,s:I}", "name", graph_value(w->g, e->instead[k])->name, "bytes",
                            (json_int_t)memplan_value_bytes(w->g, e->instead[k])));
    return list;
}

static json_t *operation_json(const Why *w, NodeId id)
{
    const Loc *loc = &graph_node(w->g, id)->loc;
    json_t *o = json_pack("{s:s,s:s,s:i,s:i,s:i,s:I}", "name", name_of(w->g, id), "op",
                          op_name(graph_node(w->g, id)->op), "slot", w->lives.slot_of[id],
                          "operations", w->lives.n_slots, "peak_slot", w->peak_slot, "result_bytes",
                          (json_int_t)result_bytes(w->g, id));
    place_json(o, loc);
    return o;
}

static json_t *bytes_over(const Why *w, int64_t bytes)
{
    return w->budget_bytes == INT64_MAX ? json_null() : json_integer(bytes - w->budget_bytes);
}

static json_t *answer_json(const Why *w, const Answer *a)
{
    const RerunEffect *e = &a->effect;
    json_t *o = operation_json(w, e->node);
    json_t *more = json_pack(
        "{s:b,s:s,s:i,s:I,s:i,s:i,s:b,s:f,s:f,s:I,s:o,s:o,s:I,s:o,s:o}", "again", 1, "before",
        name_of(w->g, e->before), "before_slot", e->before_slot, "bytes", (json_int_t)e->bytes,
        "from", e->from, "to", e->to, "spans_peak", e->spans_peak, "cost", a->cost, "cost_percent",
        a->percent, "without_peak_bytes", (json_int_t)e->without_peak_bytes, "over_budget_bytes",
        bytes_over(w, e->without_peak_bytes), "instead", instead_json(w, e),
        "unnecessary_from_bytes", (json_int_t)a->enough_bytes, "again_from_there",
        a->asked ? json_boolean(a->again) : json_null(), "recomputed_ops_from_there",
        a->asked ? json_integer(a->reruns) : json_null());
    json_object_set_new(more, "without_peak_slot", json_integer(w->lives.slot_of[a->peak_node]));
    json_object_update(o, more);
    json_decref(more);
    return o;
}

static void tell_once(const Why *w, NodeId id)
{
    NodeId next = next_run(w, id);
    const char *reason = next == NODE_NONE ? reason_of(w, id) : NULL;
    if (w->json) {
        json_t *o = operation_json(w, id);
        json_object_set_new(o, "again", json_false());
        json_object_set_new(o, "reason", reason ? json_string(reason) : json_null());
        json_object_set_new(o, "next_run",
                            next == NODE_NONE ? json_null() : json_string(name_of(w->g, next)));
        json_object_set_new(w->json, "why", o);
        return;
    }
    print_operation(w, id);
    if (reason)
        printf("\nIt is not run again: %s.\n", reason);
    else
        printf("\nIt is the first run; it runs again as %s, operation %d, of which\n%s\nsays "
               "why.\n",
               name_of(w->g, next), w->lives.slot_of[next], ask_why(w, next));
}

static ExitCode explain(Why *w)
{
    Answer a = {0};
    NodeId id = find_node(w, w->cli->ask.why);
    if (id == NODE_NONE)
        return unknown_name(w, w->cli->ask.why);
    if (rerun_before(w->g, id) == NODE_NONE) {
        tell_once(w, id);
        return EXIT_OK;
    }
    a.effect = rerun_effect(w->pool, w->g, id);
    ExitCode code = answer(w, id, &a);
    if (code != EXIT_OK)
        return code;
    if (w->json)
        json_object_set_new(w->json, "why", answer_json(w, &a));
    else
        print_answer(w, &a);
    return EXIT_OK;
}

ExitCode cli_plan_why(Cli *cli, const PlanSource *of, const PlanRow *row, const Graph *g,
                      json_t *json)
{
    Why w = {.cli = cli, .pool = cli->pool, .of = of, .row = row, .json = json, .g = g};
    w.costs = cli_plan_costs(cli, &row->report);
    w.lives = memplan_lives(cli->pool, g);
    w.peak_slot = w.lives.peak_slot;
    w.budget_bytes = row->report.budget_bytes;
    return explain(&w);
}
