/* SPDX-License-Identifier: GPL-3.0-or-later */
/* All schedules of a small graph, by docs/graphs.md alone and without any code of scrimp's: the
 * least time within a budget, the least peak.
 *
 * A state says which nodes have run and which values are in memory.  A step runs a node and then
 * lets some of what it read and made die: a value dies after its last read or right after its run,
 * so those are the only moments, and which of them is the last is tried both ways.  A new run of a
 * node makes all its outputs anew, so the versions before are dead by then.  Persistent values are
 * there for good once their node has run.  Every state keeps the best way to it, and is looked at
 * again whenever a better one is found: no order of the search to get wrong. */
#ifndef SCRIMP_TESTS_SUPPORT_BRUTE_GRAPH_H
#define SCRIMP_TESTS_SUPPORT_BRUTE_GRAPH_H

#include "passes/remat/external/external.h"

enum { BRUTE_NODES = 10, BRUTE_VALUES = 14, BRUTE_BITS = 20 };

/* Sets are bits: of values in the order of their nodes, of nodes. */
typedef struct BruteGraph {
    int n_nodes, n_values;
    double time[BRUTE_NODES];
    bool rerun[BRUTE_NODES];
    int64_t workspace[BRUTE_NODES];
    uint32_t reads[BRUTE_NODES], makes[BRUTE_NODES], overwrites[BRUTE_NODES];
    int64_t bytes[BRUTE_VALUES];
    int maker[BRUTE_VALUES];
    uint32_t persistent, keep;
} BruteGraph;

typedef struct BrutePrice {
    bool reached;
    double time;
    int64_t peak;
} BrutePrice;

/* False: too large for the search. */
bool brute_graph(const ExternalGraph *g, BruteGraph *out);

/* The least time of all schedules with a peak of at most `budget`, or the least peak of those
 * (for_peak); reruns false: of those in which nothing runs twice.  reached is false when there is
 * none. */
BrutePrice brute_best(const BruteGraph *g, int64_t budget, bool for_peak, bool reruns);

#endif
