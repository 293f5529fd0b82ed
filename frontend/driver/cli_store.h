/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Plans in the kernel cache: later runs reuse what solvers have found. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_STORE_H
#define SCRIMP_FRONTEND_DRIVER_CLI_STORE_H

#include "frontend/driver/cli.h"
#include "passes/remat/cache/solution_cache.h"

/* The store of verbs that have the kernel cache (files KEY.plans in it); NULL with --no-cache, for
 * other verbs, and when the cache cannot be written: plans do not need it.  At most 64 MiB stay;
 * those that were not used for longest go. */
const SolutionStore *cli_store(Cli *cli);

#endif
