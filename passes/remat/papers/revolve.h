/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Binomial checkpointing; exposed for its test. */
#ifndef SCRIMP_PASSES_REMAT_PAPERS_REVOLVE_H
#define SCRIMP_PASSES_REMAT_PAPERS_REVOLVE_H

#include <stdint.h>

/* The least number of times that a stage is run only to get to a later one, when a chain of n >= 1
 * equal stages is reversed with c >= 1 snapshots, the initial state among them. */
int64_t revolve_advances(int n, int c);

/* Where the next snapshot goes, 1 <= split < n, for n >= 2 and c >= 2. */
int revolve_split(int n, int c);

#endif
