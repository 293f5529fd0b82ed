/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What docs/graphs.md says, played back naively: no code of scrimp's, quadratic, and easy to read.
 * The graph is the JSON document itself. */
#ifndef SCRIMP_TESTS_SUPPORT_GRAPH_REPLAY_H
#define SCRIMP_TESTS_SUPPORT_GRAPH_REPLAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Played {
    const char *fault; /* NULL = the schedule is valid */
    int64_t peak;
    double time, time_once;
} Played;

int64_t number_at(const json_t *array, size_t i);

/* graph: a valid document; schedule: an array of node numbers. */
Played play_schedule(const json_t *graph, const json_t *schedule);

#endif
