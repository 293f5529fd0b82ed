/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the compiler knows of each operation, from ops.def.  Shape rules and cost rules live in ir;
 * passes and codegen paste their own prefix onto the same table. */
#ifndef SCRIMP_IR_OP_H
#define SCRIMP_IR_OP_H

#include "ir/type.h"

typedef enum OpKind {
#define OP(name, ...) OP_##name,
#include "ir/ops.def"
#undef OP
    OP_COUNT
} OpKind;

typedef enum OpClass {
    OP_CLASS_SOURCE,
    OP_CLASS_POINT,
    OP_CLASS_VIEW,
    OP_CLASS_MATRIX,
    OP_CLASS_DATA,
    OP_CLASS_REDUCE,
    OP_CLASS_UPDATE,
    OP_CLASS_REGION
} OpClass;

typedef enum AttrKey {
#define ATTR(name, kind) ATTR_##name,
#include "ir/attrs.def"
#undef ATTR
    ATTR_COUNT
} AttrKey;

typedef enum AttrKind {
    ATTR_KIND_INT,
    ATTR_KIND_INTS,
    ATTR_KIND_FLOAT,
    ATTR_KIND_FLOATS,
    ATTR_KIND_STRING,
    ATTR_KIND_BOOL
} AttrKind;

typedef struct Attr {
    AttrKey key;
    int n; /* INTS, FLOATS: how many */
    union {
        int64_t i; /* INT, BOOL */
        double f;
        const char *s;
        const int64_t *ints;
        const double *floats;
    } u;
} Attr;

struct Graph;
struct Node;

/* Why inputs do not fit an operation; the frontend turns it into a message at the call.
 * code, message and help as in docs/language.md; operand: index of the offending input or -1. */
typedef struct ShapeError {
    const char *code;
    char message[320];
    char help[192];
    int operand;
} ShapeError;

/* Fills out[0..n_out) from the node's inputs and attributes.  May set *n_out (ops with 0 outputs
 * in the table). */
typedef bool ShapeRule(const struct Graph *g, const struct Node *node, Type *out, int *n_out,
                       ShapeError *err);
typedef double FlopsRule(const struct Graph *g, const struct Node *node);

/* What an operation may do to its operands' storage (ir/access.c). */
typedef struct OpAccess {
    /* Input i is read element by element, each where and when that element of the result is
     * written: the result may overwrite it. */
    bool (*in_step)(const struct Graph *g, const struct Node *node, int i);
    /* Input i may lie at strides, inside another value (ir/strided_view.h). */
    bool (*strided)(const struct Graph *g, const struct Node *node, int i);
    /* Result i may be written at strides: at those that it has, or, where it is dense, at some. */
    bool (*writes_strided)(const struct Graph *g, const struct Node *node, int i);
    bool needs_index; /* of an element in the whole tensor: stays out of epilogues */
} OpAccess;

/* Bytes an operation needs only while it runs (ir/workspace.c). */
typedef struct OpWorkspace {
    int64_t (*bytes)(const struct Graph *g, const struct Node *node);
    /* Reductions whose partial results are the workspace (ir/workspace.h): */
    bool (*chunked)(const struct Graph *g, const struct Node *node); /* NULL: never in chunks */
    bool whole_form;       /* it also has code without chunks */
    int64_t partial_bytes; /* of a partial result; 0: an f32 for every result */
} OpWorkspace;

/* An attribute that an operation takes. */
typedef struct OpAttr {
    AttrKey key;
    bool required;
} OpAttr;

typedef struct OpInfo {
    const char *name;
    int min_in, max_in, n_out;
    OpClass op_class;
    ShapeRule *shape;
    FlopsRule *flops;
    const OpAccess *access;
    const OpWorkspace *workspace;
    const OpAttr *attrs; /* ends with key == ATTR_COUNT */
} OpInfo;

extern const OpInfo op_table[OP_COUNT];

const char *op_name(OpKind op);
bool op_from_name(const char *name, OpKind *out);
/* Whether it may say (attribute dtype) the element type of what it makes of its inputs: products,
 * convolutions and the like, whose sums are rounded once. */
bool op_chooses_result(OpKind op);
const char *attr_name(AttrKey key);
AttrKind attr_kind(AttrKey key);
bool attr_from_name(const char *name, AttrKey *out);

#endif
