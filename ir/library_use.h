/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a library of the device's vendor does in the place of scrimp's own kernels: answered by a
 * backend, asked by pass_library, which writes it into the graph. */
#ifndef SCRIMP_IR_LIBRARY_USE_H
#define SCRIMP_IR_LIBRARY_USE_H

#include "ir/graph.h"

typedef struct LibraryQuery {
    const char *archs; /* of the devices that the library is to run on: "sm_80,sm_90" */
    ValueId result;    /* attention_grad: what the forward operation gave, VALUE_NONE where that is
                          not known */
} LibraryQuery;

typedef struct LibraryUse {
    const char *library; /* its name in the graph: "cublaslt" */
    int64_t workspace;   /* bytes that it may use while it runs */
    bool as_they_are;    /* it reads operands in the types that they have; else: */
    DType factors, bias; /* what it reads the first two operands and the third in */
    bool bias_apart;     /* a bias is added by an operation of its own */
    bool reads_result;   /* it reads the query's result behind its other inputs */
    const char *missing; /* NULL: it is here; else what is not, and a way out */
} LibraryUse;

/* Whether a library computes this node on all of these devices; *use says which and how. */
typedef bool LibraryRule(const Graph *g, const Node *n, const LibraryQuery *ask, LibraryUse *use);

#endif
