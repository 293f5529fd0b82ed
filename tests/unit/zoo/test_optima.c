/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tests/zoo_optima.csv: the algorithms of Feng and Huang find the optima of their published solver
 * on its graphs of the example networks. */
#include "check.h"
#include "passes/paper_graph/forward_count.h"
#include "passes/remat/papers/feng.h"
#include "tests/support/csv.h"
#include "tests/support/elaborate_text.h"
#include "tests/support/zoo_files.h"

#include <math.h>
#include <stdlib.h>

static Pool *pool;

enum { MAX_STEPS = 1000000000 };

static FengAnswer plan(Pool *on, const ForwardGraph *g, FengDivision division)
{
    FengAnswer a = feng_plan(on, g, division, MAX_STEPS, NULL, NULL);
    CHECK(!a.limited && a.cost == a.kept + a.largest);
    return a;
}

static void check_optimum(const Csv *optima, const CsvRow *row)
{
    const char *network = csv_get(optima, row, "network"), *defs[MAX_DEFS + 1];
    const char *ratio = csv_get(optima, row, "ratio");
    const CountingRule *rule = counting_rule_find(csv_get(optima, row, "rule"));
    read_defs(pool, csv_get(optima, row, "options"), defs);
    Elaborated r = elaborate_example_for(csv_get(optima, row, "file"), FRONTEND_TRAIN, true, defs);
    CHECK_MSG(rule && r.graph, "%s: cannot be read", network);
    if (rule && r.graph) {
        PaperGraph c = paper_graph(r.pool, r.graph, rule);
        ForwardGraph g = forward_graph_of_count(r.pool, &c);
        FengAnswer acg = plan(r.pool, &g, FENG_STRIPPED);
        const char *name = pool_printf(pool, "%s (%s)", network, rule->name);
        if (*csv_get(optima, row, "best"))
            check_int(name, "bytes", acg.cost - g.bytes[0] - g.bytes[g.n - 1],
                      4 * csv_int(optima, row, "best"));
        double ours = (double)acg.cost / (4 * (double)c.elements);
        CHECK_MSG(!*ratio || fabs(ours - strtod(ratio, NULL)) < 0.5e-4 + 1e-9,
                  "%s: ratio %.5f, printed %s", name, ours, ratio);
        check_int(name, "bytes in close sets", plan(r.pool, &g, FENG_CLOSED).cost, acg.cost);
        CHECK(plan(r.pool, &g, FENG_SPLIT).cost >= acg.cost);
    }
    elaborated_free(&r);
}

int main(void)
{
    pool = pool_new();
    Csv optima = csv_read(pool, "zoo_optima.csv");
    for (int i = 0; i < optima.n; i++)
        check_optimum(&optima, &optima.row[i]);
    pool_free(pool);
    return test_result();
}
