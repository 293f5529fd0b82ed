/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The functions of the language.  One table (builtins.def) gives each its name, its parameters with
 * their defaults, its documentation and the function that does the work. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_BUILTINS_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_BUILTINS_H

#include "frontend/language/elaborate/elaborate.h"

enum { BUILTIN_MAX_PARAMS = 12 };

typedef enum ArgKind {
    ARG_ANY,
    ARG_TENSOR,
    ARG_OPERAND, /* tensor or number */
    ARG_INT,
    ARG_FLOAT,
    ARG_BOOL,
    ARG_STRING,
    ARG_INTS,   /* a list of ints, or one */
    ARG_FLOATS, /* a list of numbers */
    ARG_LIST,
    ARG_INIT, /* normal(0.02), zeros, ... */
    ARG_WORD, /* one of the words after '(' in the signature, bare or quoted */
    ARG_RATE, /* a number or a schedule */
    ARG_REST, /* any number of further positional arguments */
    ARG_NAMED /* any further named arguments */
} ArgKind;

typedef struct BuiltinParam {
    const char *name;
    ArgKind kind;
    const char *words; /* ARG_WORD: "out_in|in_out" */
    bool required;
    Val fallback;
} BuiltinParam;

typedef struct NamedArg {
    const char *name;
    Val value;
    Span span;
} NamedArg;

/* A call with its arguments bound, checked and converted: an ARG_INT is a VAL_INT and so on;
 * an absent argument whose default is `none` is VAL_NONE. */
typedef struct BuiltinCall {
    Elab *l;
    const Builtin *fn;
    Span span;
    bool labelled;
    Val arg[BUILTIN_MAX_PARAMS];
    Span arg_span[BUILTIN_MAX_PARAMS];
    const Val *rest;
    const Span *rest_span;
    int n_rest;
    const NamedArg *named;
    int n_named;
} BuiltinCall;

typedef Val BuiltinFn(BuiltinCall *c);

struct Builtin {
    const char *name;
    const char *signature; /* "x: tensor, out: int, bias: bool = true" */
    const char *doc;
    BuiltinFn *run;
    bool layer; /* owns parameters: wants a label */
    /* Element-wise functions of one tensor: */
    OpKind op;                /* OP_COUNT: the function is none */
    double (*number)(double); /* of a number, which stays one; NULL: takes tensors only */
};

extern const Builtin builtin_table[];
extern const int builtin_count;

typedef struct BuiltinPart {
    int first; /* row of the table; the part ends where the next begins */
    const char *title;
} BuiltinPart;
extern const BuiltinPart builtin_parts[]; /* ends with title == NULL */

/* NULL when there is none. */
const Builtin *builtin_find(const char *name);
/* The part of the table that holds the function `member`, in words, "optimizers: sgd, adam, adamw";
 * NULL: there is none of that name. */
const char *builtin_part(Pool *pool, const char *member);
/* A builtin's parameters, parsed from its signature. */
typedef struct Signature {
    BuiltinParam *params; /* NULL: not parsed yet */
    int n_params;
} Signature;
/* Calls a builtin from the tree. */
Val builtin_call(Elab *l, Frame *f, const Builtin *fn, const Expr *call, const CallSite *site);
/* An initial value given as normal(...), zeros, a bare name of such a function, or a number. */
bool builtin_as_init(Elab *l, Val v, Span span, const InitSpec **out);

/* ---- helpers for the functions ---- */

static inline ValueId arg_tensor(const BuiltinCall *c, int i)
{
    return c->arg[i].tensor;
}
static inline bool arg_given(const BuiltinCall *c, int i)
{
    return c->arg[i].kind != VAL_NONE;
}
static inline int64_t arg_int(const BuiltinCall *c, int i)
{
    return c->arg[i].i;
}
static inline double arg_float(const BuiltinCall *c, int i)
{
    return val_number(c->arg[i]);
}
static inline bool arg_bool(const BuiltinCall *c, int i)
{
    return c->arg[i].b;
}
/* -1 counts from the end; reports and returns false when out of range. */
bool call_axis(BuiltinCall *c, int arg, int rank, int *axis);
/* The numbers of a list (ARG_FLOATS) as f32[n]; VALUE_NONE after a message. */
ValueId call_literal(BuiltinCall *c, int arg);
/* The ints of argument i (one or a list); the count. */
int call_ints(BuiltinCall *c, int arg, int64_t *out, int max);
/* An int or [h, w], into out[2]; false after a message when below `least`. */
bool call_pair(BuiltinCall *c, int arg, int64_t least, int64_t out[2]);
bool call_word_is(const BuiltinCall *c, int arg, const char *word);
/* Adds the call's main node, named by its label. */
Val call_node(BuiltinCall *c, OpKind op, const ValueId *in, int n_in, const AttrList *attrs);
/* E201 when the call has no label. */
bool call_needs_label(BuiltinCall *c);

#endif
