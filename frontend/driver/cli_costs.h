/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The cost model `profile`: seconds of kernels, measured in real steps on random data and kept in
 * the kernel cache for this processor and number of threads. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_COSTS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_COSTS_H

#include "frontend/driver/cli_program.h"

/* MeasureCosts: plans the model within the budget with the default costs, compiles it and runs a
 * few steps. */
MeasureCosts cli_measure_costs;

#endif
