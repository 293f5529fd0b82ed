/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every network of tests/zoo_golden.csv against its example file, as tests/zoo.csv assigns them:
 * parameters, buffers, multiply-adds, result, and all operations with their elements (zoo_ops.csv).
 * An operation that our file has in another form stands in the column `differs` with our numbers,
 * and the note says why. */
#include "check.h"
#include "ir/summary.h"
#include "passes/paper_graph/paper_graph.h"
#include "tests/support/csv.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/zoo_files.h"

#include <string.h>

static Pool *pool;

static Csv zoo, golden, golden_ops;

/* ---- one network against its golden row ---- */

/* "1x3x224": dimensions of one left out, of which a batch of one has more or fewer. */
static const char *dims_text(const Type *t)
{
    const char *text = "";
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            text = pool_printf(pool, "%sx%lld", text, (long long)t->dim[i]);
    return text;
}

static const char *without_ones(const char *dims)
{
    const char *text = "";
    char *save = NULL, *copy = pool_strdup(pool, dims);
    for (char *d = strtok_r(copy, "x", &save); d; d = strtok_r(NULL, "x", &save))
        if (strcmp(d, "1") != 0)
            text = pool_printf(pool, "%sx%s", text, d);
    return text;
}

static void check_layers(const char *file, const char *const *defs, const CsvRow *want)
{
    const char *name = csv_get(&golden, want, "network");
    Elaborated r = elaborate_example(file, FRONTEND_INFER, defs);
    if (r.graph) {
        Summary s = graph_summary(r.pool, r.graph);
        check_int(name, "parameters", s.params, csv_int(&golden, want, "parameters"));
        check_int(name, "buffers", s.buffers, csv_int(&golden, want, "buffers"));
        check_int(name, "multiply-adds", (long long)s.macs, csv_int(&golden, want, "macs"));
        const char *ours = dims_text(&s.output),
                   *wanted = without_ones(csv_get(&golden, want, "output"));
        CHECK_MSG(strcmp(ours, wanted) == 0, "%s ends with %s, not %s", name, ours, wanted);
    }
    elaborated_free(&r);
}

typedef struct OpTotal {
    long long count, elements;
} OpTotal;

static OpTotal our_total(const PaperGraph *c, const char *op)
{
    for (int i = 0; i < c->n_ops; i++)
        if (strcmp(c->op[i].name, op) == 0)
            return (OpTotal){c->op[i].count, c->op[i].elements};
    return (OpTotal){0, 0};
}

static OpTotal golden_total(const char *network, const char *op)
{
    for (int i = 0; i < golden_ops.n; i++) {
        const CsvRow *row = &golden_ops.row[i];
        if (strcmp(csv_get(&golden_ops, row, "network"), network) == 0 &&
            strcmp(csv_get(&golden_ops, row, "op"), op) == 0)
            return (OpTotal){csv_int(&golden_ops, row, "count"),
                             csv_int(&golden_ops, row, "elements")};
    }
    return (OpTotal){0, 0};
}

/* The entry "op=count/elements" of `differs`, or what the golden table says. */
static OpTotal wanted_total(const char *differs, const char *network, const char *op)
{
    size_t n = strlen(op);
    for (const char *at = differs; *at; at += strcspn(at, " ")) {
        at += *at == ' ';
        OpTotal t;
        if (strncmp(at, op, n) == 0 && at[n] == '=' &&
            sscanf(at + n + 1, "%lld/%lld", &t.count, &t.elements) == 2)
            return t;
    }
    return golden_total(network, op);
}

static bool is_activation(const char *op)
{
    static const char *const others[] = {"input", "dropout", "reshape", "split", "loss"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(op, others[i]) == 0)
            return false;
    return true;
}

typedef struct Sums {
    long long activation, dropout, ops;
} Sums;

static void check_op(const PaperGraph *c, const char *network, const char *differs, const char *op,
                     Sums *moved)
{
    OpTotal ours = our_total(c, op), want = wanted_total(differs, network, op),
            theirs = golden_total(network, op);
    CHECK_MSG(ours.count == want.count && ours.elements == want.elements,
              "%s: %lld %s of %lld elements, not %lld of %lld", network, ours.count, op,
              ours.elements, want.count, want.elements);
    if (is_activation(op)) {
        moved->activation += want.elements - theirs.elements;
        moved->ops += want.count - theirs.count;
    } else if (strcmp(op, "dropout") == 0) {
        moved->dropout += want.elements - theirs.elements;
    }
}

/* Every operation that we or the table have; but no losses where the table ends with the logits. */
static Sums check_each_op(const PaperGraph *c, const char *network, const char *differs)
{
    Sums moved = {0, 0, 0};
    for (int i = 0; i < golden_ops.n; i++)
        if (strcmp(csv_get(&golden_ops, &golden_ops.row[i], "network"), network) == 0)
            check_op(c, network, differs, csv_get(&golden_ops, &golden_ops.row[i], "op"), &moved);
    for (int i = 0; i < c->n_ops; i++)
        if (golden_total(network, c->op[i].name).count == 0 && strcmp(c->op[i].name, "loss") != 0)
            check_op(c, network, differs, c->op[i].name, &moved);
    return moved;
}

static int activation_ops(const PaperGraph *c)
{
    int n = 0;
    for (int i = 0; i < c->n_vertices; i++)
        n += c->vertex[i].kind == COUNT_ACTIVATION;
    return n;
}

static void check_activations(const char *file, const char *const *defs, const CsvRow *want,
                              const char *differs)
{
    const char *name = csv_get(&golden, want, "network");
    Elaborated r = elaborate_example_for(file, FRONTEND_TRAIN, true, defs);
    if (r.graph) {
        PaperGraph c = paper_graph(r.pool, r.graph, counting_rule_find("ops"));
        Sums moved = check_each_op(&c, name, differs);
        long long activations = csv_int(&golden, want, "activation_elements") + moved.activation;
        check_int(name, "activation elements", c.activation_elements, activations);
        check_int(name, "activation and dropout elements",
                  c.activation_elements + our_total(&c, "dropout").elements,
                  csv_int(&golden, want, "with_dropout") + moved.activation + moved.dropout);
        check_int(name, "operations", activation_ops(&c),
                  csv_int(&golden, want, "core_ops") + moved.ops);
    }
    elaborated_free(&r);
}

static const CsvRow *zoo_row(const char *network)
{
    for (int i = 0; i < zoo.n; i++)
        if (strcmp(csv_get(&zoo, &zoo.row[i], "network"), network) == 0)
            return &zoo.row[i];
    return NULL;
}

static void check_network(const CsvRow *want)
{
    const char *network = csv_get(&golden, want, "network"), *defs[MAX_DEFS + 1];
    const CsvRow *row = zoo_row(network);
    CHECK_MSG(row, "no example for %s", network);
    if (!row)
        return;
    const char *differs = csv_get(&zoo, row, "differs"), *file = csv_get(&zoo, row, "file");
    CHECK_MSG(!*differs || *csv_get(&zoo, row, "note"), "%s differs without a reason", network);
    read_defs(pool, csv_get(&zoo, row, "options"), defs);
    check_layers(file, defs, want);
    check_activations(file, defs, want, differs);
}

int main(void)
{
    pool = pool_new();
    zoo = csv_read(pool, "zoo.csv");
    golden = csv_read(pool, "zoo_golden.csv");
    golden_ops = csv_read(pool, "zoo_ops.csv");
    for (int i = 0; i < golden.n; i++)
        check_network(&golden.row[i]);
    pool_free(pool);
    return test_result();
}
