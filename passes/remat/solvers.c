/* The table of solvers. */
#include "passes/remat/solvers.h"

#include <string.h>

const RematSolver remat_solvers[] = {
    /* clang-format off */
    {"scrimp", "greedy drops, restored and improved by large-neighbourhood search", remat_scrimp, true, true},
    {"none", "no recomputation", remat_none, true, false},
    {"chen", "segments at split points (Chen et al. 2016, algorithm 3)", remat_chen, true, false},
    {"kusumoto_approx", "dynamic programming over ancestor sets (Kusumoto et al. 2019, section 4.3)", remat_kusumoto_approx, true, false},
    {"kusumoto_exact", "dynamic programming over all lower sets (Kusumoto et al. 2019, section 4.2)", remat_kusumoto_exact, false, false},
    {"kusumoto_exhaustive", "search of all sequences of lower sets (Kusumoto et al. 2019, section 4.1)", remat_kusumoto_exhaustive, false, false},
    {"feng_linear", "checkpoints of a chain by shortest paths (Feng, Huang 2018, algorithm 1)", remat_feng_linear, false, false},
    {"feng_closeset", "checkpoints in close sets (Feng, Huang 2018, algorithm 6)", remat_feng_closeset, false, false},
    {"feng_acg", "checkpoints in a division tree (Feng, Huang 2021, algorithm 6)", remat_feng_acg, true, false},
    {"random", "the best of 10 random choices (the baseline of Feng, Huang 2021)", remat_random, false, false},
    {"twremat", "divide and conquer over a tree decomposition (Kumar et al. 2019)", remat_twremat, false, false},
    {"xla_greedy", "one walk, over the limit the best block goes (XLA's HloRematerialization)", remat_xla_greedy, false, false},
    {"mincut", "saved or recomputed by minimum cuts (PyTorch's partitioner)", remat_mincut, false, false},
    {"dtr", "evict the least h when memory runs out (Kirisame et al. 2021)", remat_dtr, false, false},
    {"revolve", "binomial checkpointing on the chain (Griewank and Walther 2000)", remat_revolve, false, false},
    {"chain_dp", "dynamic programming on the chain (Beaumont et al. 2019, rotor)", remat_chain_dp, false, false},
    {"checkmate_ilp", "Checkmate's integer program, graphs of up to 40 nodes (Jain et al. 2020)", remat_checkmate_ilp, false, false},
    {"checkmate_lp", "its linear relaxation, rounded, up to 80 nodes (Jain et al. 2020)", remat_checkmate_lp, false, false},
    {NULL, NULL, NULL, false, false},
    /* clang-format on */
};

const RematSolver *remat_solver_find(const char *name)
{
    for (const RematSolver *s = remat_solvers; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}
