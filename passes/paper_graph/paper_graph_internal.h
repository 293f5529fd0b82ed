/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the rules (counting_rules.c) and the counting (paper_graph.c) share. */
#ifndef SCRIMP_PASSES_PAPER_GRAPH_PAPER_GRAPH_INTERNAL_H
#define SCRIMP_PASSES_PAPER_GRAPH_PAPER_GRAPH_INTERNAL_H

#include "passes/paper_graph/paper_graph.h"

/* How a rule treats an operation. */
typedef enum CountHow {
    COUNT_NONE,        /* no vertex: who reads it reads what it reads */
    COUNT_OWN,         /* a vertex */
    COUNT_IN_PLACE,    /* runs in its operand's vertex when it alone reads it, else a vertex */
    COUNT_CHAIN,       /* the same behind another view only: a chain of views is one vertex */
    COUNT_INTO_ADD,    /* no vertex when an addition alone reads it */
    COUNT_INTO_LINEAR, /* no vertex when a linear layer alone reads it */
    COUNT_WINDOW       /* no vertex when its windows are single elements */
} CountHow;

/* What an operation is to the rules. */
typedef enum CountKind {
#define COUNT_OP(name, ...) COUNT_OP_##name,
#include "passes/paper_graph/counting_ops.def"
#undef COUNT_OP
    COUNT_N_KINDS
} CountKind;

typedef struct CountKindInfo {
    const char *name; /* NULL: that of the operation */
    PaperClass kind;
} CountKindInfo;
extern const CountKindInfo count_kinds[COUNT_N_KINDS];

/* The facts about a graph that the kinds depend on. */
typedef struct CountFacts {
    const Graph *g;
    bool *varies;   /* value: depends on a parameter or an input */
    bool *trained;  /* value: depends on a parameter */
    bool *of_model; /* value: the model's results depend on it */
    bool *needed;   /* node: the rule's targets depend on it */
    int *readers;   /* value: how many nodes that are needed read it */
    NodeId *reader; /* value: the last of them */
} CountFacts;

CountKind count_kind(const CountFacts *facts, const Node *n);
CountHow count_how(const CountingRule *rule, CountKind kind);

#endif
