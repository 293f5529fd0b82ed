/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Facts about a model as plain data, for `summary` and the tests.  Made from the graph that
 * frontend_lower builds in FRONTEND_INFER mode, before any pass. */
#ifndef SCRIMP_IR_SUMMARY_H
#define SCRIMP_IR_SUMMARY_H

#include "ir/graph.h"

typedef struct SummaryTensor {
    const char *name; /* path, without sigil */
    Type type;
    int64_t elements;
} SummaryTensor;

typedef struct SummaryOp {
    const char *name;
    int64_t count;
} SummaryOp;

typedef struct Summary {
    int64_t params, param_bytes; /* elements and bytes of all parameters */
    int64_t buffers;             /* elements of the buffers (running statistics) */
    double macs;          /* multiply-adds of convolutions, linear layers and matrix products */
    int64_t nodes;        /* operations, without sources */
    Type output;          /* of "logits"; rank -1 when there is none */
    const SummaryOp *ops; /* by first appearance */
    int n_ops;
    const SummaryTensor *parameters, *buffer_list; /* in order of creation */
    int n_parameters, n_buffers;
} Summary;

Summary graph_summary(Pool *pool, const Graph *g);

#endif
