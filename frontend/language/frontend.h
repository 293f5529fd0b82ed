/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Text -> graph.  Called by the command line and the tests. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_FRONTEND_H
#define SCRIMP_FRONTEND_LANGUAGE_FRONTEND_H

#include "ir/graph.h"
#include "ir/support/diag.h"

/* -D name=value, as typed. */
typedef struct OptionDef {
    const char *name, *value;
} OptionDef;

typedef enum FrontendMode {
    FRONTEND_TRAIN,   /* the train section: batch inputs -> loss (+ metrics), dropout on, batch
                         statistics */
    FRONTEND_EVAL,    /* the same in inference form: dropout off, running statistics; outputs loss,
                         accuracy */
    FRONTEND_INFER,   /* the model alone on its declared inputs; output "logits" (`summary`,
                         `generate`) */
    FRONTEND_PREDICT, /* what the train section makes of a batch before it calls the model, and the
                         model, in inference form; outputs as FRONTEND_INFER, which it is where the
                         section does not call the model */
} FrontendMode;

/* Whether what runs the model can run this operation; when not, why, and a way out. */
typedef bool FrontendSupports(const Graph *g, const Node *n, ShapeError *err);

typedef struct FrontendOptions {
    const OptionDef *defs;
    int n_defs;
    FrontendMode mode;
    const char *model; /* which model, when the file has several; NULL = the only one, or the one
                          `train` uses */
    bool count; /* FRONTEND_TRAIN, to be counted and not to be run: what the model returns are
                   outputs too (as in FRONTEND_INFER), and a batch norm may see a single value per
                   channel, so that a network can be described for a batch of one */
    FrontendSupports *supports; /* asked about every operation as it is made: what cannot run is an
                                   error at its place; NULL: everything can */
} FrontendOptions;

typedef struct Ast Ast;

/* Parses a file (and its imports).  NULL after diag_error when nothing could be parsed. */
Ast *frontend_parse(Pool *pool, Diag *diag, const char *path);
/* For tests, fuzzing and editors: parse text under a name; imports are looked up beside `name`. */
Ast *frontend_parse_text(Pool *pool, Diag *diag, const char *name, const char *text, size_t length);
void frontend_print_ast(const Ast *ast, FILE *out); /* `dump --stage=ast` */
/* Elaborates: unrolls everything, checks every shape, names every parameter.  NULL after
 * diag_error. */
Graph *frontend_lower(Pool *pool, Diag *diag, const Ast *ast, const FrontendOptions *options);
/* The declared options, for --help and completion.  type: as declared or as the default looks
 * ("int", "float", "bool", "string", "list", else "any"); domain_text and doc may be NULL. */
typedef struct OptionInfo {
    const char *name, *type, *default_text, *domain_text, *doc;
} OptionInfo;
int frontend_options(Pool *pool, const Ast *ast, const OptionInfo **out);
/* The functions of the language.  signature: parameters as in docs/language.md; owns_parameters: a
 * layer, which wants a label. */
typedef struct FunctionInfo {
    const char *name, *signature, *doc;
    bool owns_parameters;
} FunctionInfo;
int frontend_functions(Pool *pool, const FunctionInfo **out);

#endif
