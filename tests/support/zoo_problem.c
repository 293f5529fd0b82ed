/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/zoo_problem.h"

#include "check.h"
#include "passes/pass.h"
#include "passes/remat/model/step_problem.h"
#include "tests/support/never_beaten.h"

#include <time.h>

RematProblem *zoo_problem(Pool *pool, Elaborated *elaborated, const ZooProblem *z)
{
    *elaborated = elaborate_example_for(z->file, FRONTEND_TRAIN, false, z->defs);
    PassContext c = {.graph = elaborated->graph, .pool = pool};
    if (!c.graph ||
        !passes_run(&c, "fold,cse,dce,layout,fold,autodiff,fold,cse,dce,fuse,order", NULL, NULL)) {
        CHECK_MSG(false, "%s: %s", z->file, c.error.message ? c.error.message : "cannot be read");
        return NULL;
    }
    return remat_problem_from_graph(pool, c.graph, NULL, POOL_NEW(pool, RematMapping));
}

void check_zoo_problem(const ZooProblem *z, bool all_steps)
{
    Pool *pool = pool_new();
    Elaborated elaborated;
    RematProblem *p = zoo_problem(pool, &elaborated, z);
    const char *name = z->file;
    for (int k = 0; z->defs[k]; k++)
        name = pool_printf(pool, "%s %s", name, z->defs[k]);
    clock_t begin = clock();
    if (p)
        check_never_beaten(pool, p, 0, all_steps, name);
    printf("%s: %d nodes, %.1f s\n", name, p ? p->n_nodes : 0,
           (double)(clock() - begin) / CLOCKS_PER_SEC);
    fflush(stdout);
    elaborated_free(&elaborated);
    pool_free(pool);
}
