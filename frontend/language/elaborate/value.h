/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compile-time values, scopes and option values: the part of elaboration that needs no graph.  Used
 * by elaborate*.c (which evaluates the tree) and by the builtins. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_VALUE_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_VALUE_H

#include "frontend/language/syntax/ast.h"
#include "ir/graph.h"

typedef enum ValKind {
    VAL_POISON, /* of an expression that was already reported: spreads without further messages */
    VAL_NONE,
    VAL_INT,
    VAL_FLOAT,
    VAL_BOOL,
    VAL_STRING,
    VAL_PERCENT, /* f: 40.0 for 40% */
    VAL_LIST,
    VAL_TYPE, /* f32[N, 3]: a tensor's type as a value */
    VAL_TENSOR,
    VAL_BLOCK,
    VAL_BUILTIN,
    VAL_SEQ,
    VAL_SOURCE,   /* a batch: data source of the train section */
    VAL_INIT,     /* how a parameter starts: normal(0.02) */
    VAL_SETTING,  /* init(weight = ..., bias = ...), for `with` */
    VAL_OPTIM,    /* sgd(...), adam(...), adamw(...) */
    VAL_SCHEDULE, /* cosine(...), ... */
    VAL_GROUP,    /* group(...) */
    VAL_COLUMNS,  /* columns(...) of a table */
} ValKind;

typedef struct Val Val;
typedef struct Scope Scope;
typedef struct Builtin Builtin;
typedef struct DataSource DataSource;
typedef struct ColumnSet ColumnSet;

typedef struct ValList {
    const Val *data;
    int len;
} ValList;

/* A seq body with the names it sees. */
typedef struct SeqClosure {
    const Expr *expr;
    Scope *scope;
} SeqClosure;

typedef enum InitKind {
    INIT_ZEROS,
    INIT_ONES,
    INIT_NORMAL,
    INIT_UNIFORM,
    INIT_FAN_IN,
    INIT_HE,
    INIT_XAVIER
} InitKind;

/* INIT_FAN_IN is PyTorch's default of linear and convolution, kaiming_uniform(a = sqrt 5): uniform
 * within 1/sqrt(fan_in).  It, he and xavier depend on the layer's fans and are resolved when a
 * parameter is made. */
typedef struct InitSpec {
    InitKind kind;
    double a, b;  /* normal: mean 0, a = standard deviation; uniform: a..b; he, xavier: a = gain */
    bool uniform; /* he, xavier: the uniform form */
    bool fan_out; /* he: by outputs */
} InitSpec;

/* NULL: the layer's own default. */
typedef struct InitSetting {
    const InitSpec *weight, *bias;
} InitSetting;

/* What group(...) says of the parameters that fit its patterns. */
typedef struct GroupSpec {
    const char *pattern; /* as in ParamGroup */
    bool matrices_only, vectors_only, frozen;
    const UpdateRule *optim; /* NULL: the section's */
    /* Of that: */
    const LrSchedule *schedule; /* NULL: not given */
    bool has_lr, has_lr_part, has_weight_decay, has_clip, has_clip_value;
    double lr, weight_decay, clip, clip_value; /* lr: of the rate's base, or a part of the rate */
    Span span, pattern_span, lr_span;
} GroupSpec;

struct Val {
    ValKind kind;
    union {
        int64_t i;
        double f;
        bool b;
        const char *s;
        ValList list;
        ValueId tensor;
        const Type *type;
        const BlockDecl *block;
        const Builtin *builtin;
        const SeqClosure *seq;
        DataSource *source;
        const InitSpec *init;
        const InitSetting *setting;
        const UpdateRule *optim;
        const LrSchedule *schedule;
        const GroupSpec *group;
        const ColumnSet *columns;
    };
};

static inline Val val_poison(void)
{
    return (Val){.kind = VAL_POISON};
}
static inline Val val_none(void)
{
    return (Val){.kind = VAL_NONE};
}
static inline Val val_int(int64_t i)
{
    return (Val){.kind = VAL_INT, .i = i};
}
static inline Val val_float(double f)
{
    return (Val){.kind = VAL_FLOAT, .f = f};
}
static inline Val val_bool(bool b)
{
    return (Val){.kind = VAL_BOOL, .b = b};
}
static inline Val val_string(const char *s)
{
    return (Val){.kind = VAL_STRING, .s = s};
}
static inline Val val_list(const Val *data, int len)
{
    return (Val){.kind = VAL_LIST, .list = {data, len}};
}
static inline bool val_is_number(Val v)
{
    return v.kind == VAL_INT || v.kind == VAL_FLOAT;
}
static inline bool val_is_callable(Val v)
{
    return v.kind == VAL_BLOCK || v.kind == VAL_BUILTIN || v.kind == VAL_SEQ;
}
/* A tensor; VALUE_NONE is poison. */
static inline Val val_tensor(ValueId t)
{
    return t == VALUE_NONE ? val_poison() : (Val){.kind = VAL_TENSOR, .tensor = t};
}
static inline double val_number(Val v)
{
    return v.kind == VAL_INT ? (double)v.i : v.f;
}

/* Whether it is one of the words of "mean|sum|none". */
bool val_is_word(Val v, const char *words);
/* A list of numbers, or of ints alone. */
bool val_is_number_list(Val v, bool ints);
/* "an int", "a tensor", ... for messages. */
const char *val_kind_name(ValKind kind);
/* As a user would write it: 3, 0.1, "a", [1, 2]. */
const char *val_text(Pool *pool, Val v);
/* Numbers compare by value whatever their kind; lists element by element.  Tensors never do. */
bool val_equal(Val a, Val b);
/* The shortest text that reads back as the same double. */
const char *number_text(Pool *pool, double f);

/* ---- names ---- */

typedef struct Binding {
    const char *name;
    Val value;
    Span span; /* where it was bound */
} Binding;

struct Scope {
    Scope *parent; /* NULL for the global scope */
    VEC(Binding) items;
    Map index; /* name -> index of items, once there are many */
};

Scope *scope_new(Pool *pool, Scope *parent);
/* Binds in this scope, replacing an older value; "_" is discarded. */
void scope_set(Pool *pool, Scope *scope, const char *name, Val value, Span span);
/* Innermost binding, or NULL. */
const Binding *scope_find(const Scope *scope, const char *name);
/* The binding in this very scope, or NULL. */
const Binding *scope_own(const Scope *scope, const char *name);

/* ---- options ---- */

/* The value of an option from its -D text, converted to the kind of its default (an int fits a
 * float option).  false when the text does not read as one. */
bool option_parse(Pool *pool, const char *text, ValKind kind, Val *out);
/* Whether the value lies in the domain (a list). */
bool option_in_domain(Val value, Val domain);
/* "18, 34, 50" */
const char *option_allowed_text(Pool *pool, Val domain);

#endif
