/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the scanner, the grammar and the tree builders share while files are being parsed. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_SYNTAX_PARSE_INTERNAL_H
#define SCRIMP_FRONTEND_LANGUAGE_SYNTAX_PARSE_INTERNAL_H

#include "frontend/language/syntax/ast.h"
#include "ir/support/map.h"
#include "ir/support/strbuf.h"
#include "ir/support/vec.h"

/* One run of frontend_parse: the main file and everything it imports. */
typedef struct ParseJob {
    Pool *pool;
    Diag *diag;
    VEC(OptionDecl) options;
    VEC(BlockDecl) blocks;
    VEC(uint32_t) library_files;
    Section *train, *remat;
    Map declared;     /* top-level name -> its Span on the pool */
    Map of_library;   /* the same for files of frontend/std/, whose names the others hide */
    Map files;        /* canonical path -> FileState */
    const char *root; /* canonical: imports stay in this folder and below */
    int import_depth;
    uint64_t source_hash;
} ParseJob;

/* An open bracket: ( [ {, or " for the inside of {...} in a string (span: the whole string's
 * opening quote). */
typedef struct Bracket {
    char open;
    Span span;
    size_t indent; /* of the line it is on */
} Bracket;

/* A token that the scanner owes the parser.  Synthetic ones close what the user left open; errors
 * at them are consequences and are not reported. */
typedef struct PendingToken {
    int token;
    Span span;
    bool synthetic;
} PendingToken;

/* One file being parsed. */
typedef struct ParseState {
    ParseJob *job;
    Pool *pool; /* the job's */
    Diag *diag;
    uint32_t file;
    const char *path; /* imports are looked up beside it */
    const char *text; /* NUL-terminated, holds no NUL */
    size_t length;
    bool is_main;
    bool is_library; /* a file of frontend/std/ */

    /* Scanner.  Owned by scan.l and scan_state.c. */
    void *scanner;
    size_t position; /* of the next byte to scan */
    size_t line_begin, line_indent;
    size_t continued_to; /* newlines before this offset do not end a statement */
    int last_token;      /* the last token delivered; 0 at the start */
    bool synthetic;      /* last_token is a synthetic one */
    VEC(Bracket) brackets;
    VEC(PendingToken) pending;
    size_t next_pending;
    int forgiven_closers;             /* closing brackets whose opening one was given up */
    Span suspect_open, suspect_close; /* braces whose lines are indented differently */
    StrBuf string;                    /* the string piece being read */
    size_t string_begin, piece_begin; /* where its quote, and this piece, start */
    bool string_continues;            /* the piece follows an interpolated expression */

    /* Parser. */
    bool recovering; /* an error was reported and no statement has been completed since */
    bool too_deep;   /* reported once */
} ParseState;

typedef VEC(Expr *) ExprVec;
typedef VEC(Stmt *) StmtVec;
typedef VEC(Name) NameVec;
typedef VEC(Annot) AnnotVec;
typedef VEC(DimExpr) DimVec;
/* A VEC, and the names that were given: name -> index of its argument. */
typedef struct ArgVec {
    Arg *data;
    size_t len, cap;
    Map names;
} ArgVec;
typedef VEC(Index) IndexVec;
typedef VEC(InterpPart) InterpVec;
typedef VEC(MatchArm) MatchArmVec;
typedef VEC(IfArm) IfArmVec;
typedef VEC(ParamDecl) ParamVec;

/* ---- scan_text.c: words, numbers and strings ---- */

int scan_top_word(const char *word); /* its token, or 0 */
int64_t scan_integer(ParseState *ps, Span span, const char *text);
double scan_real(ParseState *ps, Span span, const char *text);  /* a trailing % is dropped */
int64_t scan_size(ParseState *ps, Span span, const char *text); /* bytes */
void scan_malformed_number(ParseState *ps, Span span, const char *text);
AnnotKind scan_annotation(ParseState *ps, Span span, const char *name);
void scan_string_begin(ParseState *ps, Span quote, bool continues);
void scan_escape(ParseState *ps, Span span, char escaped);
/* The text since scan_string_begin; *span grows to cover it from its quote on. */
const char *scan_string_piece(ParseState *ps, Span *span);
/* Reports the string, returns its token. */
int scan_string_unclosed(ParseState *ps, Span *span);
void scan_bad_text(ParseState *ps, Span span, const char *text);

/* ---- scan_state.c: brackets, newlines and owed tokens ---- */

void scan_start(ParseState *ps); /* scan.l */

enum { TOKEN_QUEUED = -1 }; /* a scanner rule queued tokens instead of returning one */

void scan_queue(ParseState *ps, int token, Span span, bool synthetic);
void scan_open(ParseState *ps, char open, Span span);
/* What to do with a closing bracket. */
typedef enum CloseAction {
    CLOSE_MATCHED, /* deliver it */
    CLOSE_SKIP,    /* reported; drop it (a replacement may be queued) */
    CLOSE_AGAIN,   /* closers were queued; scan it again afterwards */
} CloseAction;
CloseAction scan_close(ParseState *ps, char close, Span span);
char scan_innermost(const ParseState *ps); /* 0: none */
bool scan_inside_string(const ParseState *ps);
/* Starts a line; does the newline end a statement? */
bool scan_newline(ParseState *ps);
bool scan_at_top(const ParseState *ps);
/* Whether the token stands right behind an operand, without a space. */
bool scan_follows_operand(const ParseState *ps, Span token);
/* A top-level keyword at the start of a line although brackets are open: a declaration? */
bool scan_is_new_declaration(const ParseState *ps, Span word);
/* Reports the innermost open bracket (unless there is none) and queues closers for all of them. */
void scan_close_all(ParseState *ps, Span before, const char *what);
/* A newline within "...{ }": reports it and queues closers up to the outermost string's end. */
void scan_close_strings(ParseState *ps);
void scan_end_of_file(ParseState *ps, Span span);
/* A syntax error at a line that is not indented deeper than the one with the innermost ( or [: the
 * bracket was never closed.  Reports it, forgets the bracket and returns true. */
bool scan_blame_bracket(ParseState *ps, Span at);
/* Of a token of the current line. */
bool scan_first_on_line(const ParseState *ps, Span token);

/* ---- parse_error.c ---- */

/* E010 for the token at `at`, called `got` by the grammar, where any of `expected` would do.  Says
 * nothing about consequences of an error already reported. */
void report_syntax_error(ParseState *ps, Span at, const char *got, const char *const *expected,
                         int n_expected);

/* ---- ast_build.c: nodes, with their depth ---- */

Expr *build_expr(ParseState *ps, ExprKind kind, Span span); /* a leaf; fill in, no children */
Expr *build_name(ParseState *ps, Span span, const char *name);
Expr *build_interp(ParseState *ps, Span span, const InterpVec *parts);
Expr *build_list(ParseState *ps, Span span, const ExprVec *items);
Expr *build_comp(ParseState *ps, Span span, Expr *element, const NameVec *names, Expr *iterable);
Expr *build_call(ParseState *ps, Span span, Expr *callee, const ArgVec *args);
Expr *build_index(ParseState *ps, Span span, Expr *base, const IndexVec *items);
Expr *build_field(ParseState *ps, Span span, Expr *base, Name name);
Expr *build_seq(ParseState *ps, Span span, Body body);
Expr *build_label(ParseState *ps, Span span, bool shared, Expr *label, Expr *call);
Expr *build_unary(ParseState *ps, Span span, UnaryOp op, Expr *operand);
/* Extends lhs when it is a chain of the same precedence level without parentheses. */
Expr *build_binary(ParseState *ps, Span span, Expr *lhs, BinaryOp op, Span op_span, Expr *rhs);
Expr *build_range(ParseState *ps, Span span, Expr *lo, Expr *hi, bool inclusive);
Expr *build_cond(ParseState *ps, Span span, Expr *then_value, Expr *condition, Expr *else_value);
Expr *build_match(ParseState *ps, Span span, Expr *subject, const MatchArmVec *arms);
/* Extends head when it is a pipe without parentheses. */
Expr *build_pipe(ParseState *ps, Span span, Expr *head, PipeStage stage);
/* A range becomes a slice. */
Index build_index_item(Span span, Expr *e);
void build_add_arg(ParseState *ps, ArgVec *args, Arg arg);

Body build_body(Span span, const StmtVec *stmts);
Stmt *build_assign(ParseState *ps, Span span, const NameVec *targets, Expr *value);
Stmt *build_expr_stmt(ParseState *ps, Span span, Expr *e);
Stmt *build_return(ParseState *ps, Span span, const ExprVec *values);
Stmt *build_for(ParseState *ps, Span span, const NameVec *names, Expr *iterable, Body body);
Stmt *build_if(ParseState *ps, Span span, const IfArmVec *arms, const Body *else_body);
Stmt *build_with(ParseState *ps, Span span, Expr *setting, Body body);
Stmt *build_declare(ParseState *ps, Span span, StmtKind kind, Name name, TypeExpr *type,
                    Expr *init);
Stmt *build_assert(ParseState *ps, Span span, Expr *condition, Expr *message);
Stmt *build_annotated(Stmt *stmt, Span span, const AnnotVec *annots);
TypeExpr *build_type(ParseState *ps, Span span, const char *name, const DimVec *dims);
/* One of the words of "a|b|c". */
TypeExpr *build_words(ParseState *ps, Span span, const char *words);

/* ---- parse.c: declarations and imports ---- */

void declare_option(ParseState *ps, OptionDecl option);
void declare_block(ParseState *ps, BlockDecl block);
void declare_train(ParseState *ps, Section section, Span word);
void declare_remat(ParseState *ps, Section section, Span word);
void parse_import(ParseState *ps, Span span, const char *path);
/* Bison's stacks come from the pool of the job that runs on this thread, so that a jump out of
 * memory leaves nothing behind. */
void *parse_stack_alloc(size_t bytes);
/* The source text of a span, on the pool. */
const char *parse_slice(ParseState *ps, Span span);

#endif
