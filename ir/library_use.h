/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a library of the device's vendor does in the place of scrimp's own kernels: answered by a
 * backend, asked by pass_library, which writes it into the graph. */
#ifndef SCRIMP_IR_LIBRARY_USE_H
#define SCRIMP_IR_LIBRARY_USE_H

#include "ir/graph.h"

typedef struct LibraryUse {
    const char *library; /* its name in the graph: "cublaslt" */
    int64_t workspace;   /* bytes that it may use while it runs */
    DType factors, bias; /* what it reads the first two operands and the third in */
    bool only_factors;   /* it reads the first two alone, in the types that they have: a bias is
                            added by an operation of its own */
    ValueId result;      /* asked about attention's gradient: the result of the forward operation,
                            VALUE_NONE where it is not known, */
    bool by_rows;        /* or that with its second and third dim exchanged */
    bool reads_result;   /* answered: it reads that behind its other inputs */
    const char *missing; /* NULL: it is here; else what is not, and a way out */
} LibraryUse;

/* Whether a library computes this node on all devices of these architectures ("sm_80,sm_90"); *use
 * says which and how, and before what is known of a gradient. */
typedef bool LibraryRule(const Graph *g, const Node *n, const char *archs, LibraryUse *use);

#endif
