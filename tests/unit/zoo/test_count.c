/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tests/zoo_papers.csv: the example networks have as many vertices, edges and elements as the
 * papers' graphs of them. */
#include "check.h"
#include "passes/paper_graph/paper_graph.h"
#include "tests/support/csv.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/zoo_files.h"

#include <string.h>

static Pool *pool;

static void check_paper(const Csv *papers, const CsvRow *row)
{
    const char *network = csv_get(papers, row, "network"), *defs[MAX_DEFS + 1];
    const CountingRule *rule = counting_rule_find(csv_get(papers, row, "rule"));
    CHECK_MSG(rule, "%s: no such rule", network);
    read_defs(pool, csv_get(papers, row, "options"), defs);
    Elaborated r = elaborate_example_for(csv_get(papers, row, "file"), FRONTEND_TRAIN, true, defs);
    if (r.graph && rule) {
        PaperGraph c = paper_graph(r.pool, r.graph, rule);
        const char *name = pool_printf(pool, "%s (%s)", network, rule->name);
        check_int(name, "vertices", c.n_vertices, csv_int(papers, row, "vertices"));
        check_int(name, "edges", c.n_edges, csv_int(papers, row, "edges"));
        if (*csv_get(papers, row, "elements"))
            check_int(name, "elements", c.elements, csv_int(papers, row, "elements"));
    }
    elaborated_free(&r);
}

/* Every edge goes forward, to a vertex that is read; what is a source reads nothing. */
static void check_graph(const CountingRule *rule)
{
    static const char *const defs[] = {"N=1", NULL};
    Elaborated r = elaborate_example_for("resnet", FRONTEND_TRAIN, true, defs);
    PaperGraph c = paper_graph(r.pool, r.graph, rule);
    int targets = 0, sources = 0;
    for (int i = 0; i < c.n_vertices; i++) {
        const PaperVertex *v = &c.vertex[i];
        for (int k = 0; k < v->n_from; k++)
            CHECK(v->from[k] < i && (k == 0 || v->from[k] > v->from[k - 1]));
        CHECK(v->source ? v->n_from == 0 && v->kind == COUNT_INPUT
                        : v->n_from > 0 || strcmp(rule->name, "kusumoto") == 0);
        CHECK(v->bytes == 4 * v->elements);
        CHECK(v->conv == (strcmp(v->op, "conv") == 0));
        sources += v->source;
        targets += v->target;
    }
    CHECK(targets == 1 && c.vertex[c.n_vertices - 1].target);
    CHECK(sources == (strcmp(rule->name, "kusumoto") != 0));
    elaborated_free(&r);
}

int main(void)
{
    pool = pool_new();
    Csv papers = csv_read(pool, "zoo_papers.csv");
    for (int i = 0; i < papers.n; i++)
        check_paper(&papers, &papers.row[i]);
    for (const CountingRule *rule = counting_rules; rule->name; rule++)
        check_graph(rule);
    pool_free(pool);
    return test_result();
}
