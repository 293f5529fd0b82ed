/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Graphs of a few lines of text, for tests. */
#ifndef SCRIMP_TESTS_GRAPH_TEXT_H
#define SCRIMP_TESTS_GRAPH_TEXT_H

#include "ir/graph.h"

/* kind: "step" or "forward"; body: the lines between the braces.  NULL after a message and a failed
 * check. */
Graph *graph_of(Pool *pool, const char *kind, const char *body);

/* How often the text of a graph has `what`. */
int graph_text_count(const Graph *g, const char *what);

/* An output in double, of made-up inputs that bf16 can hold; and the one that is called `out`. */
const double *graph_evaluate_output(Pool *pool, const Graph *g, const char *name);
const double *graph_evaluate_out(Pool *pool, const Graph *g);
/* Whether `out` of both, of such inputs, is the same but for the rounding of double, and not 0. */
bool graph_same_out(Pool *pool, const Graph *g, const Graph *other);

#endif
