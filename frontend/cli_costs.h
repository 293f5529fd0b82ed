/* The cost model `profile`: seconds of kernels, measured in real steps on random data and kept in
 * the kernel cache for this processor and number of threads. */
#ifndef SCRIMP_FRONTEND_CLI_COSTS_H
#define SCRIMP_FRONTEND_CLI_COSTS_H

#include "frontend/cli.h"

typedef struct KernelCosts KernelCosts;

/* Measures what of the model has not been measured yet: plans it within o->budget with the default
 * costs, compiles it and runs a few steps.  *out stays as it is unless EXIT_OK is returned. */
ExitCode cli_measure_costs(Cli *cli, const Ast *ast, const ProgramOptions *o, KernelCosts **out);
/* MeasuredCost of a graph of that model; user: the KernelCosts. */
double cli_measured_cost(void *user, const Graph *g, NodeId node);

#endif
