/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of a model file, as written.  Built by parse.y, read by the elaborator (sema, elaborate)
 * and by the printer.  Everything lives on one Pool and is never changed after parsing.
 *
 * What the parser already guarantees (frontend_parse returns NULL otherwise):
 *  - top-level names (options, blocks, models) are unique, imported files included;
 *  - at most one `train` and one `remat` section (those of imported files are dropped);
 *  - a label's left side is a well-formed LabelPath, named arguments follow positional ones and are
 *    named once, annotations are known ones;
 *  - expressions and statements nest at most AST_MAX_DEPTH deep: long chains of pipes, of binary
 *    operators of one precedence level and of `else if` are arrays, so walking the tree by plain
 *    recursion is safe.
 * What it does not check: names, types, shapes, where `return`, `param` or annotations make sense,
 * whether a label or a pipe stage is really a call of a block. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_SYNTAX_AST_H
#define SCRIMP_FRONTEND_LANGUAGE_SYNTAX_AST_H

#include "frontend/language/frontend.h"
#include "ir/support/diag.h"

enum { AST_MAX_DEPTH = 500 };

typedef struct Expr Expr;
typedef struct Stmt Stmt;

/* An identifier where it stands.  "_" as a target means "discard". */
typedef struct Name {
    Span span;
    const char *text;
} Name;

typedef struct NameList {
    const Name *data;
    int len;
} NameList;

typedef struct ExprList {
    Expr *const *data;
    int len;
} ExprList;

/* `{ ... }`; span covers the braces. */
typedef struct Body {
    Span span;
    Stmt *const *stmts;
    int len;
} Body;

typedef enum AnnotKind {
    ANNOT_KEEP,      /* @keep: never recompute */
    ANNOT_RECOMPUTE, /* @recompute: never keep */
} AnnotKind;

typedef struct Annot {
    Span span;
    AnnotKind kind;
} Annot;

typedef struct AnnotList {
    const Annot *data;
    int len;
} AnnotList;

/* ---- types: f32   f32[N, 3, _]   [B, T, C]   f32[.., C] ---- */

typedef enum DimKind {
    DIM_EXPR, /* a size; a bare name in a block's parameter binds that name (or must agree) */
    DIM_ANY,  /* _  */
    DIM_REST, /* .. any number of dimensions */
} DimKind;

typedef struct DimExpr {
    Span span;
    DimKind kind;
    Expr *expr; /* DIM_EXPR only */
} DimExpr;

typedef struct TypeExpr {
    Span span;
    const char *name; /* "f32", "int", ..., or with words "mean|sum"; NULL: any element type */
    bool words;       /* a string that is one of those in the name */
    bool has_dims;    /* false: no brackets were written (a scalar or a compile-time type) */
    const DimExpr *dims;
    int n_dims;
} TypeExpr;

/* ---- expressions ---- */

typedef enum UnaryOp { UNARY_NEG, UNARY_NOT } UnaryOp;

typedef enum BinaryOp {
    BINARY_OR,
    BINARY_AND,
    BINARY_EQ,
    BINARY_NE,
    BINARY_LT,
    BINARY_GT,
    BINARY_LE,
    BINARY_GE,
    BINARY_ADD,
    BINARY_SUB,
    BINARY_CONCAT, /* ++ : lists */
    BINARY_MUL,
    BINARY_MATMUL,
    BINARY_DIV,
    BINARY_IDIV, /* // : floor division */
    BINARY_MOD,  /* mod */
    BINARY_POW,  /* ** */
} BinaryOp;

typedef enum ExprKind {
    EXPR_INT,     /* 600_000            int_value */
    EXPR_FLOAT,   /* 1e-4               float_value */
    EXPR_BOOL,    /* true               bool_value */
    EXPR_STRING,  /* "tanh"             string */
    EXPR_INTERP,  /* "layer{i+1}"       interp */
    EXPR_PERCENT, /* 40%                float_value = 40.0 */
    EXPR_SIZE,    /* 8GiB               int_value = bytes */
    EXPR_NAME,    /* depth              name */
    EXPR_PARAM,   /* $wte.weight        name = "wte.weight" */
    EXPR_LIST,    /* [a, b]             list */
    EXPR_COMP,    /* [e for a, b in xs] comp */
    EXPR_CALL,    /* f(a, k = b)        call */
    EXPR_INDEX,   /* x[0, .., 1..n]     index */
    EXPR_FIELD,   /* batch.image        field */
    EXPR_SEQ,     /* seq { ... }        seq: each expression statement is a stage */
    EXPR_LABEL,   /* h[i]: Layer(H)     label */
    EXPR_UNARY,   /* -x, not x          unary */
    EXPR_BINARY,  /* a + b - c          binary */
    EXPR_RANGE,   /* 0..n, 1..=n        range */
    EXPR_COND,    /* a if c else b      cond */
    EXPR_MATCH,   /* match d { ... }    match */
    EXPR_PIPE,    /* x |> f() |> g()    pipe */
} ExprKind;

/* One piece of an interpolated string: literal text (expr NULL) or a value to print. */
typedef struct InterpPart {
    const char *text;
    Expr *expr;
} InterpPart;

typedef struct Arg {
    Span span;
    const char *name; /* NULL: positional */
    Span name_span;
    Expr *value;
} Arg;

typedef enum IndexKind {
    INDEX_AT,    /* x[e]: removes the dimension */
    INDEX_SLICE, /* x[a..b], x[a..], x[..b], x[..], x[a..=b] */
} IndexKind;

typedef struct Index {
    Span span;
    IndexKind kind;
    Expr *at;       /* INDEX_AT */
    Expr *lo, *hi;  /* INDEX_SLICE: NULL = from the start, to the end */
    bool inclusive; /* ..= */
} Index;

/* a op0 b op1 c ...: left-associative, all operators of one precedence level.  Comparisons and `**`
 * always have one link.  Evaluate first, then fold the links from left to right; `and` / `or` may
 * stop early. */
typedef struct BinaryLink {
    BinaryOp op;
    Span op_span;
    Expr *rhs;
} BinaryLink;

typedef struct MatchArm {
    Span span;
    ExprList values; /* any of them; len 0: `_` */
    Expr *result;
} MatchArm;

typedef struct PipeStage {
    Span span; /* annotations included */
    AnnotList annots;
    Expr *call; /* EXPR_CALL, EXPR_LABEL, EXPR_SEQ; anything else is the elaborator's E204 */
} PipeStage;

/* h[i].attn  ->  "h", i, "attn".  A path is the parts joined by '.'. */
typedef struct LabelPart {
    Span span;
    const char *name; /* a fixed name, or NULL */
    Expr
        *expr; /* EXPR_INTERP (a piece of name) or any other expression: an index (int) or string */
} LabelPart;

typedef struct LabelPath {
    Span span;
    const LabelPart *parts;
    int len;
} LabelPath;

struct Expr {
    ExprKind kind;
    uint16_t depth; /* height of the subtree */
    bool parens;    /* written in parentheses */
    Span span;
    union {
        int64_t int_value; /* EXPR_INT, EXPR_SIZE; never negative */
        double float_value;
        bool bool_value;
        const char *name;
        struct {
            const char *text; /* escapes resolved; NUL-terminated, holds no NUL */
        } string;
        struct {
            const InterpPart *parts;
            int len;
        } interp;
        ExprList list;
        struct {
            Expr *element;
            NameList names;
            Expr *iterable;
        } comp;
        struct {
            Expr *callee;
            const Arg *args; /* positional ones first */
            int n_args;
        } call;
        struct {
            Expr *base;
            const Index *items;
            int len;
        } index;
        struct {
            Expr *base;
            Name name;
        } field;
        struct {
            Body body;
        } seq;
        struct {
            bool shared;
            LabelPath path;
            Expr *call; /* like PipeStage.call, never itself a label */
        } label;
        struct {
            UnaryOp op;
            Expr *operand;
        } unary;
        struct {
            Expr *first;
            BinaryLink *links; /* len >= 1 */
            int len;
        } binary;
        struct {
            Expr *lo, *hi;
            bool inclusive;
        } range;
        struct {
            Expr *then_value, *condition, *else_value;
        } cond;
        struct {
            Expr *subject;
            const MatchArm *arms;
            int len;
        } match;
        struct {
            Expr *head;
            PipeStage *stages; /* len >= 1 */
            int len;
        } pipe;
    };
};

/* ---- statements ---- */

typedef enum StmtKind {
    STMT_ASSIGN, /* a, b = e */
    STMT_EXPR,   /* e: a stage inside seq */
    STMT_RETURN, /* return a, b */
    STMT_FOR,    /* for c, n in e { ... } */
    STMT_IF,     /* if a { } else if b { } else { } */
    STMT_WITH,   /* with init(weight = ...) { ... } */
    STMT_PARAM,  /* param w: f32[C] = ones */
    STMT_BUFFER, /* buffer n: f32[C] = zeros */
    STMT_ASSERT, /* assert e, "message" */
} StmtKind;

typedef struct IfArm {
    Expr *condition;
    Body body;
} IfArm;

struct Stmt {
    StmtKind kind;
    uint16_t depth;
    Span span;
    AnnotList annots; /* STMT_ASSIGN and STMT_EXPR only */
    union {
        struct {
            NameList targets;
            Expr *value;
        } assign;
        Expr *expr;
        ExprList returned;
        struct {
            NameList names;
            Expr *iterable;
            Body body;
        } loop;
        struct {
            const IfArm *arms; /* len >= 1 */
            int len;
            bool has_else;
            Body else_body;
        } branch;
        struct {
            Expr *setting;
            Body body;
        } with;
        struct {
            Name name;
            TypeExpr *type;
            Expr *init; /* STMT_PARAM: NULL = the default; STMT_BUFFER: always there */
        } declare;
        struct {
            Expr *condition;
            Expr *message; /* or NULL; EXPR_STRING or EXPR_INTERP */
        } assertion;
    };
};

/* ---- the file ---- */

/* option depth: int = 50 in [18, 34, 50]  "number of layers" */
typedef struct OptionDecl {
    Span span;
    Name name;
    TypeExpr *type; /* or NULL: the default's type */
    Expr *default_value;
    Expr *domain;             /* a list or a range, or NULL */
    const char *doc;          /* or NULL */
    const char *default_text; /* as written */
    const char *domain_text;  /* as written, or NULL */
} OptionDecl;

typedef struct ParamDecl {
    Span span;
    Name name;
    TypeExpr *type;      /* or NULL */
    Expr *default_value; /* or NULL */
} ParamDecl;

/* `block` or `model`. */
typedef struct BlockDecl {
    Span span; /* the whole declaration */
    Name name;
    bool is_model;
    bool imported;
    bool library; /* of a file of frontend/std/ */
    const ParamDecl *params;
    int n_params;
    Map param_index; /* name -> index of params */
    Body body;
} BlockDecl;

/* `train { }` or `remat { }`: assignments (and, in train, any statement of a block). */
typedef struct Section {
    Span span;
    Body body;
} Section;

struct Ast {
    const char *name;          /* the main file, as given */
    uint32_t file;             /* its index in Diag */
    uint64_t source_hash;      /* of the texts of all files, in order of reading */
    const OptionDecl *options; /* declaration order; an imported file's come where it is imported */
    int n_options;
    const BlockDecl *blocks;
    int n_blocks;
    const Section *train;          /* or NULL */
    const Section *remat;          /* or NULL */
    const uint32_t *library_files; /* of frontend/std/: indices in Diag */
    int n_library_files;
    Map option_index, block_index; /* name -> index of options, of blocks (none of the library's) */
};

/* The declaration of that name, or NULL. */
const OptionDecl *ast_find_option(const Ast *ast, const char *name);
const BlockDecl *ast_find_block(const Ast *ast, const char *name);
/* Whether this is a place in a file of frontend/std/. */
bool ast_in_library(const Ast *ast, Span span);

/* Spellings for messages: "+", "mod", "not", ... */
const char *ast_binary_name(BinaryOp op);
const char *ast_unary_name(UnaryOp op);

/* The smallest span that covers both (of the same file; a wins when the files differ). */
Span ast_span_join(Span a, Span b);

/* Calls visit on each direct subexpression of e in source order; those in the statements of a seq
 * body are not included.  Stops and returns false as soon as visit does. */
bool ast_each_child(const Expr *e, bool (*visit)(void *context, Expr *child), void *context);

#endif
