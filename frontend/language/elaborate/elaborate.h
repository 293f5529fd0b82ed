/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The elaborator: interprets the tree of a model file, with compile-time values and tensors, and
 * builds the graph.  This header is shared by elaborate*.c, builtins*.c, einops.c and
 * train_section.c; everybody else calls frontend_lower (frontend.h).
 *
 * Errors: a faulty expression is reported once and becomes VAL_POISON, which spreads silently, so
 * that the rest of the file is still checked. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_ELABORATE_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_ELABORATE_H

#include "frontend/language/elaborate/value.h"
#include "ir/support/map.h"

/* Bounds on what a file may ask for, so that hostile text ends in a message (E208). */
enum {
    ELAB_MAX_NODES = 500000,
    ELAB_MAX_BLOCK_DEPTH = 1000,
    ELAB_MAX_RANGE = 1 << 20,  /* elements of a range or list */
    ELAB_MAX_STEPS = 20000000, /* statements and expressions evaluated */
    ELAB_MAX_STACK = 4 << 20,  /* bytes of C stack */
    ELAB_MAX_TEXT = 1 << 16,   /* bytes of a built string */
};

/* Where a label was used: E202 unless each use is another invocation of a shared one. */
typedef struct LabelUse {
    Span span;
    int invocation;
} LabelUse;

/* The current value and number of a running seq. */
typedef struct SeqRun {
    Val value;
    int64_t n_stages;
} SeqRun;

/* One activation of a block, a section or a seq body. */
typedef struct Frame {
    Scope *scope;
    SeqRun *seq; /* NULL outside seq */
    bool may_return, returned;
    Val result;
} Frame;

/* running = (1 - momentum) running + momentum scale statistic */
typedef struct RunningUpdate {
    ValueId buffer, statistic;
    double momentum, scale;
    const char *name; /* of the node */
    Span span;
} RunningUpdate;

/* total(x) or average(x) of a metric: over the batches of an evaluation, x is its part of one. */
typedef struct Total {
    ValueId value;
    bool average;
} Total;

typedef struct TrainState TrainState;
typedef struct LoopScope LoopScope; /* elaborate_loop.c */
typedef VEC(Span) SpanVec;

typedef struct Elab {
    Pool *pool;
    Diag *diag;
    const Ast *ast;
    FrontendMode mode;
    bool count;                 /* see FrontendOptions, */
    FrontendSupports *supports; /* likewise */
    Graph *g;                   /* of the model, or of the body of the innermost loop */
    LoopScope *loop;            /* NULL: outside of loops */
    Scope *globals;             /* of the file and what it imports; hides what is in `library` */
    Scope *library;    /* blocks of frontend/std/, which see nothing else; users do not see those
                          whose name begins with `_` */
    Span library_call; /* the user's call of the library that is being elaborated; file 0: none */
    const BlockDecl *unlabelled; /* what it calls, if the call has no label */
    const char *path;            /* enclosing labels joined by '.', "" at the root */
    Map labels;                  /* path -> index into label_uses */
    VEC(LabelUse) label_uses;
    Map failed;                    /* paths of labelled calls that came to nothing */
    bool incomplete;               /* after a mistake that may have cost the model parameters */
    int invocation, n_invocations; /* of the innermost shared label, 0 = none */
    RematHint hint;
    const InitSetting *init;    /* innermost `with init` */
    SpanVec node_spans;         /* by NodeId */
    Map reported;               /* "file:begin:code" of messages given */
    Map constants;              /* "dtype value" -> ValueId */
    Map ordinals;               /* how many streams of random numbers a path has */
    VEC(RunningUpdate) updates; /* of shared layers, see builtin_finish */
    VEC(Total) totals;
    VEC(ValueId) moved; /* pairs: a parameter, what the last `minimize` has made of it */
    ValueId rng;
    ValueId last_logits;        /* first result of the model called last */
    const BlockDecl *predicted; /* FRONTEND_PREDICT: the model whose results are outputs, */
    Val results;                /* and those of its first call in the train section */
    int block_depth;
    int64_t n_steps;
    const char *stack_base;
    bool exhausted;               /* a bound was hit: everything is poison from now on */
    struct Signature *signatures; /* of the builtins, parsed when first called */
    TrainState *train;            /* while the train section runs */
    const char *wanted;           /* a builtin of the only kind that fits here; NULL: any fits */
} Elab;

/* The label that names are made under. */
typedef struct LabelState {
    const char *path;
    int invocation;
} LabelState;

/* How a call came about. */
typedef struct CallSite {
    Span span;
    bool piped; /* input is the first argument */
    Val input;
    Span input_span;
    bool labelled;    /* l->path is this call's own path, */
    LabelState outer; /* and this was the one before */
} CallSite;

/* ---- messages (elaborate.c) ---- */

/* Reports once per place and code.  True when it was new and is kept, so that notes and help may
 * follow: they take long to find where there are many names. */
bool elab_error(Elab *l, Span span, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The place itself or, inside of the library, the user's call of it. */
Span elab_user_span(const Elab *l, Span span);
/* " (in layer1.0, add)" */
const char *elab_where(Elab *l, OpKind op);
/* Counts a step of evaluation.  false once a bound is hit (E208 has been given). */
bool elab_step(Elab *l, Span span);
/* Gives E208 and makes everything that follows poison. */
void elab_exhaust(Elab *l, Span span, const char *what);

/* ---- names that are not there (suggest.c) ---- */

/* Adds to the last message "did you mean `x`?" from the visible names, or what there is instead.
 * wanted: a builtin of the only kind that fits there; NULL: any fits. */
void elab_suggest_name(Elab *l, const Scope *scope, const char *name, const char *wanted);
/* Adds which of n arguments a name may stand for; false: none. */
bool elab_suggest_argument(Elab *l, const char *name, const char *const *names, size_t n);
/* Adds the function to call in place of a tensor's method, or the fields that a tensor has. */
void elab_suggest_method(Elab *l, const char *name);

/* ---- nodes (elaborate_node.c) ---- */

/* Adds a node; reports the shape rule's message at span, with the operand's place.  VALUE_NONE on
 * error.  name: see graph_try_add. */
ValueId elab_node(Elab *l, OpKind op, const ValueId *in, int n_in, const AttrList *attrs,
                  const char *name, Span span);
ValueId elab_node1(Elab *l, OpKind op, ValueId in, const AttrList *attrs, const char *name,
                   Span span);
ValueId elab_node2(Elab *l, OpKind op, ValueId a, ValueId b, const AttrList *attrs,
                   const char *name, Span span);
ValueId elab_source(Elab *l, OpKind op, Type type, const AttrList *attrs, const char *name,
                    Span span);
/* Whether an element type holds the number: E104 when it does not, a warning when f32 makes it 0.
 */
bool elab_number_fits(Elab *l, DType dtype, double value, Span span);
/* A scalar constant of that type, which holds the value; one node for each value. */
ValueId elab_constant(Elab *l, DType dtype, double value, Span span);
/* "%path" for the main node of a labelled call, else NULL (op and ordinal). */
const char *elab_label_name(Elab *l, bool labelled);
/* The parameter or buffer `name` of the current path, made on first use; a shared one must have the
 * same type.  VALUE_NONE on error. */
ValueId elab_parameter(Elab *l, OpKind op, const char *name, Type type, const InitSpec *init,
                       int64_t fan_in, int64_t fan_out, Span span);
/* The persistent tensor of that name, "$fc.weight", or VALUE_NONE; a parameter as it is by now. */
ValueId elab_find(Elab *l, const char *full, Span span);
/* What `minimize` has made of a parameter, or the value itself. */
ValueId elab_newest(const Elab *l, ValueId param);
/* A loop over a body; reports what does not fit.  NODE_NONE on error. */
struct LoopShape;
NodeId elab_loop(Elab *l, const ValueId *in, int n_in, const struct LoopShape *shape, Graph *body,
                 const char *name, Span span);
/* "%rng", the state of the generator of random numbers. */
ValueId elab_rng(Elab *l, Span span);
const Type *elab_type(const Elab *l, ValueId v);
Span elab_value_span(const Elab *l, ValueId v);
ValueId elab_reshape(Elab *l, ValueId x, const int64_t *dims, int rank, const char *name,
                     Span span);
/* No node when perm is the identity. */
ValueId elab_permutation(Elab *l, ValueId x, const int64_t *perm, int rank, const char *name,
                         Span span);

/* ---- expressions (elaborate_expr.c) ---- */

Val eval_expr(Elab *l, Frame *f, const Expr *e);
/* a, b = v: one name takes the value whole, several take a list apart (poison and false if not). */
bool bind_names(Elab *l, Scope *scope, const NameList *names, Val v, Span span);
/* Reports when the value is of another kind; false then, and for poison. */
bool want_tensor(Elab *l, Val v, Span span, const char *what);
bool want_int(Elab *l, Val v, Span span, const char *what, int64_t *out);
bool want_bool(Elab *l, Val v, Span span, const char *what, bool *out);
/* A list; ranges are lists already. */
bool want_list(Elab *l, Val v, Span span, const char *what);
Val eval_binary(Elab *l, BinaryOp op, Val a, Val b, Span a_span, Span b_span, Span span);
Val eval_unary(Elab *l, UnaryOp op, Val a, Span span);
/* x[...] of a tensor or a list. */
Val eval_index(Elab *l, Frame *f, const Expr *e);
/* A tensor, or a number as a constant of that element type, which has to hold it. */
bool elab_operand(Elab *l, Val v, Span span, DType dtype, ValueId *out);
/* Two tensor operands (numbers become constants of the other's type); the broadcasting mismatch is
 * reported as E101. */
Val elab_elementwise(Elab *l, OpKind op, Val a, Val b, Span a_span, Span b_span, Span span);

/* ---- statements (elaborate_stmt.c) ---- */

void exec_body(Elab *l, Frame *f, const Body *body);

/* ---- calls (elaborate_call.c) ---- */

/* A call, label or seq, with the value piped into it (NULL: none). */
Val eval_call(Elab *l, Frame *f, const Expr *e, const Val *piped, Span piped_span);
/* The same for a call whose label has been entered from `outer`. */
Val eval_labelled(Elab *l, Frame *f, const Expr *e, const Val *piped, Span piped_span,
                  const LabelState *outer);
Val eval_stage(Elab *l, Frame *f, const PipeStage *stage, Val input, Span input_span);
/* E210: the body came to its end without a value. */
void elab_no_return(Elab *l, const BlockDecl *block);
/* Runs a block or model on positional values. */
Val call_block(Elab *l, const BlockDecl *block, const Val *args, const Span *arg_spans, int n_args,
               Span span);
/* Enters and leaves a label; false after E202 or a bad label. */
bool label_enter(Elab *l, Frame *f, const LabelPath *path, bool shared, LabelState *saved);
bool label_enter_text(Elab *l, const char *text, Span span, LabelState *saved);
void label_leave(Elab *l, const LabelState *saved);
/* Leaves the label of a call for its arguments, which have the names that they would have before a
 * pipe; returns what label_leave goes back to. */
LabelState label_arguments(Elab *l, const CallSite *site);

/* ---- loops (elaborate_loop.c): in a body, what is of the graph around it ---- */

ValueId loop_outer_parameter(Elab *l, OpKind op, const char *name, Type type, const InitSpec *init,
                             int64_t fan_in, int64_t fan_out, Span span);
ValueId loop_outer_find(Elab *l, const char *full, Span span);
/* The state of random numbers of a step. */
ValueId loop_rng(Elab *l, Span span);

/* ---- layers (builtins_layer.c) ---- */

/* Adds what layers have put off until all their uses are known. */
void builtin_finish(Elab *l);

/* ---- types (elaborate_type.c) ---- */

/* Checks a value against a parameter's declared type and binds the sizes it names in scope.
 * bind: bare names in it are this block's own; otherwise they are looked up first. */
bool bind_type(Elab *l, Frame *f, const TypeExpr *type, Val value, Span value_span,
               const char *param_name, bool bind);
/* A declared tensor type whose sizes must all be known.  false after a message. */
bool eval_type(Elab *l, Frame *f, const TypeExpr *type, Type *out);

/* ---- sections (train_section.c) ---- */

/* Runs the train section: nodes, outputs, l->g->train. */
typedef struct ModelCall {
    bool in_train;          /* the train section calls it */
    const LabelPath *label; /* as this */
} ModelCall;
/* The model asked for, else the one that `train` uses, else the only one; how `train` calls it.
 * NULL after an error. */
const BlockDecl *elab_choose_model(Elab *l, const FrontendOptions *options, ModelCall *call);
void elab_train(Elab *l);
/* What a model returns becomes the outputs `logits`, `out1`, ... */
void elab_results(Elab *l, Val result, Span span);
/* Reports a name without a value where the train section itself tells why; else false. */
bool report_unset(Elab *l, const Expr *name);
/* Notes that a name is read, if it is one of the train section that runs. */
void train_reads(Elab *l, const Binding *name);
/* Reads the remat section into l->g->train. */
void elab_remat(Elab *l);
/* The field of a batch, an input node made on first use. */
Val source_field(Elab *l, DataSource *source, Name field, Span span);

#endif
