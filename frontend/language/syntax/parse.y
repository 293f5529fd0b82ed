/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The grammar of model files; docs/language.md prints it in BNF.  LALR(1) without conflicts: labels
 * parse as `postfix : postfix` and are checked when the node is built (ast_build.c). */
%define api.prefix {scrimp_}
%define api.pure full
%define api.token.prefix {TOK_}
%define api.location.type {Span}
%define parse.lac full
%define parse.error custom
%locations
%expect 0
%param {ParseState *ps}

%code requires {
#include "frontend/language/syntax/parse_internal.h"
}

%code provides {
/* The scanner's next token; scrimp_lex also delivers what is owed. */
#define YY_DECL int scrimp_scan_token(SCRIMP_STYPE *value, Span *span, void *yyscanner)
int scrimp_scan_token(SCRIMP_STYPE *value, Span *span, void *yyscanner);
int scrimp_lex(SCRIMP_STYPE *value, Span *span, ParseState *ps);
}

%union {
    const char *text;
    int64_t integer;
    double number;
    AnnotKind annot;
    BinaryOp binary_op;
    bool flag;
    Expr *expr;
    Stmt *stmt;
    TypeExpr *type;
    Name name;
    Body body;
    DimExpr dim;
    Index index;
    Arg arg;
    MatchArm arm;
    ParamDecl param;
    PipeStage stage;
    ExprVec *exprs;
    StmtVec *stmts;
    NameVec *names;
    AnnotVec *annots;
    DimVec *dims;
    IndexVec *indices;
    ArgVec *args;
    InterpVec *pieces;
    MatchArmVec *arms;
    IfArmVec *ifs;
    ParamVec *params;
}

%code {
#include <string.h>

#define YYLLOC_DEFAULT(current, rhs, n)                                                            \
    do {                                                                                           \
        (current).file = ps->file;                                                                 \
        (current).begin = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end;                     \
        (current).end = YYRHSLOC(rhs, n).end;                                                      \
    } while (0)
#define YYMALLOC    parse_stack_alloc
#define YYFREE(p)   ((void)(p))
#define YYMAXDEPTH  10000
#define NEW_VEC(T)  POOL_NEW(ps->pool, T)
#define PUSH(v, ...) vec_push(ps->pool, (v), __VA_ARGS__)

static void scrimp_error(const Span *span, ParseState *ps, const char *message);
}

%initial-action { @$ = (Span){ps->file, 0, 0}; }

%token <text>    ID "a name" STRING "a string" STRING_HEAD "a string with {...}"
%token <text>    STRING_MID "more of the string" STRING_TAIL "the end of the string" PATH "a $path"
%token <integer> INT "an integer" SIZE "a size"
%token <number>  FLOAT "a number" PERCENT "a percentage"
%token <annot>   ANNOT "an annotation"
%token END 0 "the end of the file" NL "the end of the line"
%token OPTION "'option'" BLOCK "'block'" MODEL "'model'" TRAIN "'train'" REMAT "'remat'" IMPORT "'import'"
%token FOR "'for'" IN "'in'" IF "'if'" ELSE "'else'" RETURN "'return'" MATCH "'match'" WITH "'with'"
%token PARAM "'param'" BUFFER "'buffer'" ASSERT "'assert'" SEQ "'seq'" SHARED "'shared'"
%token AND "'and'" OR "'or'" NOT "'not'" MOD "'mod'" TRUE "'true'" FALSE "'false'" UNDERSCORE "'_'"
%token PIPE "'|>'" RANGE "'..'" RANGE_INCLUSIVE "'..='" ARROW "'=>'" EQ "'=='" NE "'!='" LE "'<='"
%token GE "'>='" POW "'**'" CONCAT "'++'" IDIV "'//'"

%type <expr> expr tern or and negation cmp add mul unary pow call postfix prim default_opt domain_opt
%type <stmt> stmt plain_stmt annotated
%type <type> type type_opt
%type <text> doc_opt words
%type <name> name target
%type <body> body
%type <dim> dim
%type <index> index
%type <arg> arg
%type <arm> arm
%type <param> param
%type <stage> stage
%type <exprs> exprs exprs_opt
%type <stmts> stmts
%type <names> targets
%type <annots> annots
%type <dims> dims
%type <indices> indices
%type <args> args args_opt
%type <pieces> interp
%type <arms> arms
%type <ifs> ifs
%type <params> params params_opt
%type <flag> block_word range_op
%type <binary_op> cmp_op add_op mul_op

%%

file: %empty { ps->recovering = false; }
    | file top NL { ps->recovering = false; }
    | file broken NL { ps->recovering = false; yyerrok; }
    ;

/* A piece that does not parse: skipped to the end of its line, but braces in it are read as bodies,
 * so that further errors within them are found. */
broken: error
    | broken body { ps->recovering = true; }
    | broken error
    ;

top: OPTION options
    | block_word name '(' params_opt ')' body
        {
            declare_block(ps, (BlockDecl){.span = @$, .name = $2, .is_model = $1, .params = $4->data,
                                          .n_params = (int)$4->len, .body = $6});
        }
    | TRAIN body { declare_train(ps, (Section){@$, $2}, @1); }
    | REMAT body { declare_remat(ps, (Section){@$, $2}, @1); }
    | IMPORT STRING { parse_import(ps, @$, $2); }
    ;

block_word: BLOCK { $$ = false; } | MODEL { $$ = true; } ;

options: option | options ',' option ;

option: name type_opt '=' tern domain_opt doc_opt
        {
            declare_option(ps, (OptionDecl){.span = @$, .name = $1, .type = $2, .default_value = $4,
                                            .domain = $5, .doc = $6,
                                            .default_text = parse_slice(ps, @4),
                                            .domain_text = $5 ? parse_slice(ps, $5->span) : NULL});
        }
    ;

domain_opt: %empty { $$ = NULL; } | IN tern { $$ = $2; } ;
doc_opt: %empty { $$ = NULL; } | STRING ;

params_opt: %empty { $$ = NEW_VEC(ParamVec); } | params | params ',' | error { $$ = NEW_VEC(ParamVec); } ;

params: param { $$ = NEW_VEC(ParamVec); PUSH($$, $1); }
    | params ',' param { $$ = $1; PUSH($$, $3); }
    ;

param: name type_opt default_opt
        { $$ = (ParamDecl){.span = @$, .name = $1, .type = $2, .default_value = $3}; }
    ;

default_opt: %empty { $$ = NULL; } | '=' expr { $$ = $2; } ;

type_opt: %empty { $$ = NULL; } | ':' type { $$ = $2; } ;

type: ID { $$ = build_type(ps, @$, $1, NULL); }
    | ID '[' dims ']' { $$ = build_type(ps, @$, $1, $3); }
    | '[' dims ']' { $$ = build_type(ps, @$, NULL, $2); }
    | ID '[' ']' { $$ = build_type(ps, @$, $1, NEW_VEC(DimVec)); }
    | '[' ']' { $$ = build_type(ps, @$, NULL, NEW_VEC(DimVec)); }
    | words { $$ = build_words(ps, @$, $1); }
    ;

words: ID '|' ID { $$ = pool_printf(ps->pool, "%s|%s", $1, $3); }
    | words '|' ID { $$ = pool_printf(ps->pool, "%s|%s", $1, $3); }
    ;

dims: dim { $$ = NEW_VEC(DimVec); PUSH($$, $1); }
    | dims ',' dim { $$ = $1; PUSH($$, $3); }
    ;

dim: tern { $$ = (DimExpr){@$, DIM_EXPR, $1}; }
    | UNDERSCORE { $$ = (DimExpr){@$, DIM_ANY, NULL}; }
    | RANGE { $$ = (DimExpr){@$, DIM_REST, NULL}; }
    ;

body: '{' stmts '}' { $$ = build_body(@$, $2); } ;

stmts: %empty { $$ = NEW_VEC(StmtVec); ps->recovering = false; }
    | stmts stmt { $$ = $1; PUSH($$, $2); ps->recovering = false; }
    | stmts broken NL { $$ = $1; ps->recovering = false; yyerrok; }
    ;

stmt: annotated NL
    | annots annotated NL { $$ = build_annotated($2, ast_span_join(@1, @2), $1); }
    | plain_stmt NL
    ;

annotated: targets '=' expr { $$ = build_assign(ps, @$, $1, $3); }
    | expr { $$ = build_expr_stmt(ps, @$, $1); }
    ;

plain_stmt: RETURN exprs { $$ = build_return(ps, @$, $2); }
    | FOR targets IN expr body { $$ = build_for(ps, @$, $2, $4, $5); }
    | ifs { $$ = build_if(ps, @$, $1, NULL); }
    | ifs ELSE body { $$ = build_if(ps, @$, $1, &$3); }
    | WITH expr body { $$ = build_with(ps, @$, $2, $3); }
    | PARAM name ':' type default_opt { $$ = build_declare(ps, @$, STMT_PARAM, $2, $4, $5); }
    | BUFFER name ':' type '=' expr { $$ = build_declare(ps, @$, STMT_BUFFER, $2, $4, $6); }
    | ASSERT expr { $$ = build_assert(ps, @$, $2, NULL); }
    | ASSERT expr ',' expr { $$ = build_assert(ps, @$, $2, $4); }
    ;

ifs: IF expr body { $$ = NEW_VEC(IfArmVec); PUSH($$, (IfArm){$2, $3}); }
    | ifs ELSE IF expr body { $$ = $1; PUSH($$, (IfArm){$4, $5}); }
    ;

annots: ANNOT { $$ = NEW_VEC(AnnotVec); PUSH($$, (Annot){@1, $1}); }
    | annots ANNOT { $$ = $1; PUSH($$, (Annot){@2, $2}); }
    ;

targets: target { $$ = NEW_VEC(NameVec); PUSH($$, $1); }
    | targets ',' target { $$ = $1; PUSH($$, $3); }
    ;

target: ID { $$ = (Name){@1, $1}; } | UNDERSCORE { $$ = (Name){@1, "_"}; } ;

name: ID { $$ = (Name){@1, $1}; } ;

exprs: expr { $$ = NEW_VEC(ExprVec); PUSH($$, $1); }
    | exprs ',' expr { $$ = $1; PUSH($$, $3); }
    ;

exprs_opt: %empty { $$ = NEW_VEC(ExprVec); } | exprs | exprs ',' ;

expr: tern
    | expr PIPE stage { $$ = build_pipe(ps, @$, $1, $3); }
    ;

stage: call { $$ = (PipeStage){.span = @$, .call = $1}; }
    | annots call
        { $$ = (PipeStage){.span = @$, .annots = {$1->data, (int)$1->len}, .call = $2}; }
    ;

tern: or
    | or IF or ELSE tern { $$ = build_cond(ps, @$, $1, $3, $5); }
    | MATCH or '{' arms '}' { $$ = build_match(ps, @$, $2, $4); }
    ;

arms: arm NL { $$ = NEW_VEC(MatchArmVec); PUSH($$, $1); }
    | arms arm NL { $$ = $1; PUSH($$, $2); }
    | error NL { $$ = NEW_VEC(MatchArmVec); ps->recovering = false; yyerrok; }
    | arms error NL { $$ = $1; ps->recovering = false; yyerrok; }
    ;

arm: exprs ARROW expr { $$ = (MatchArm){@$, {$1->data, (int)$1->len}, $3}; }
    | UNDERSCORE ARROW expr { $$ = (MatchArm){.span = @$, .result = $3}; }
    ;

or: and | or OR and { $$ = build_binary(ps, @$, $1, BINARY_OR, @2, $3); } ;

and: negation | and AND negation { $$ = build_binary(ps, @$, $1, BINARY_AND, @2, $3); } ;

negation: cmp | NOT negation { $$ = build_unary(ps, @$, UNARY_NOT, $2); } ;

cmp: add
    | add cmp_op add { $$ = build_binary(ps, @$, $1, $2, @2, $3); }
    | add range_op add { $$ = build_range(ps, @$, $1, $3, $2); }
    ;

cmp_op: EQ { $$ = BINARY_EQ; }
    | NE { $$ = BINARY_NE; }
    | '<' { $$ = BINARY_LT; }
    | '>' { $$ = BINARY_GT; }
    | LE { $$ = BINARY_LE; }
    | GE { $$ = BINARY_GE; }
    ;

range_op: RANGE { $$ = false; } | RANGE_INCLUSIVE { $$ = true; } ;

add: mul | add add_op mul { $$ = build_binary(ps, @$, $1, $2, @2, $3); } ;

add_op: '+' { $$ = BINARY_ADD; } | '-' { $$ = BINARY_SUB; } | CONCAT { $$ = BINARY_CONCAT; } ;

mul: unary | mul mul_op unary { $$ = build_binary(ps, @$, $1, $2, @2, $3); } ;

mul_op: '*' { $$ = BINARY_MUL; }
    | '/' { $$ = BINARY_DIV; }
    | IDIV { $$ = BINARY_IDIV; }
    | MOD { $$ = BINARY_MOD; }
    | '@' { $$ = BINARY_MATMUL; }
    ;

unary: pow
    | '-' unary { $$ = build_unary(ps, @$, UNARY_NEG, $2); }
    ;

pow: call | call POW unary { $$ = build_binary(ps, @$, $1, BINARY_POW, @2, $3); } ;

call: postfix
    | postfix ':' postfix { $$ = build_label(ps, @$, false, $1, $3); }
    | SHARED postfix ':' postfix { $$ = build_label(ps, @$, true, $2, $4); }
    ;

postfix: prim
    | postfix '(' args_opt ')' { $$ = build_call(ps, @$, $1, $3); }
    | postfix '[' indices ']' { $$ = build_index(ps, @$, $1, $3); }
    | postfix '.' name { $$ = build_field(ps, @$, $1, $3); }
    | SEQ body { $$ = build_seq(ps, @$, $2); }
    ;

indices: index { $$ = NEW_VEC(IndexVec); PUSH($$, $1); }
    | indices ',' index { $$ = $1; PUSH($$, $3); }
    ;

index: expr { $$ = build_index_item(@$, $1); }
    | RANGE { $$ = (Index){.span = @$, .kind = INDEX_SLICE}; }
    | add RANGE { $$ = (Index){.span = @$, .kind = INDEX_SLICE, .lo = $1}; }
    | range_op add { $$ = (Index){.span = @$, .kind = INDEX_SLICE, .hi = $2, .inclusive = $1}; }
    ;

args_opt: %empty { $$ = NEW_VEC(ArgVec); } | args | args ',' ;

args: arg { $$ = NEW_VEC(ArgVec); build_add_arg(ps, $$, $1); }
    | args ',' arg { $$ = $1; build_add_arg(ps, $$, $3); }
    ;

arg: expr { $$ = (Arg){.span = @$, .value = $1}; }
    | ID '=' expr { $$ = (Arg){.span = @$, .name = $1, .name_span = @1, .value = $3}; }
    ;

prim: ID { $$ = build_name(ps, @$, $1); }
    | INT { $$ = build_expr(ps, EXPR_INT, @$); $$->int_value = $1; }
    | FLOAT { $$ = build_expr(ps, EXPR_FLOAT, @$); $$->float_value = $1; }
    | STRING { $$ = build_expr(ps, EXPR_STRING, @$); $$->string.text = $1; }
    | interp STRING_TAIL
        {
            if (*$2)
                PUSH($1, (InterpPart){$2, NULL});
            $$ = build_interp(ps, @$, $1);
        }
    | PERCENT { $$ = build_expr(ps, EXPR_PERCENT, @$); $$->float_value = $1; }
    | SIZE { $$ = build_expr(ps, EXPR_SIZE, @$); $$->int_value = $1; }
    | PATH { $$ = build_expr(ps, EXPR_PARAM, @$); $$->name = $1; }
    | TRUE { $$ = build_expr(ps, EXPR_BOOL, @$); $$->bool_value = true; }
    | FALSE { $$ = build_expr(ps, EXPR_BOOL, @$); }
    | '(' expr ')' { $$ = $2; $$->parens = true; }
    | '[' exprs_opt ']' { $$ = build_list(ps, @$, $2); }
    | '[' expr FOR targets IN expr ']' { $$ = build_comp(ps, @$, $2, $4, $6); }
    ;

interp: STRING_HEAD expr
        {
            $$ = NEW_VEC(InterpVec);
            if (*$1)
                PUSH($$, (InterpPart){$1, NULL});
            PUSH($$, (InterpPart){NULL, $2});
        }
    | interp STRING_MID expr
        {
            $$ = $1;
            if (*$2)
                PUSH($$, (InterpPart){$2, NULL});
            PUSH($$, (InterpPart){NULL, $3});
        }
    ;

%%

/* ---- messages ---- */

static void scrimp_error(const Span *span, ParseState *ps, const char *message)
{
    (void)message; /* bison has only one of its own: its stack reached YYMAXDEPTH */
    diag_error(ps->diag, *span, "E013", "nested too deep to parse");
}

static int yyreport_syntax_error(const yypcontext_t *context, ParseState *ps)
{
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *expected[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++)
        expected[i] = yysymbol_name(kinds[i]);
    yysymbol_kind_t got = yypcontext_token(context);
    report_syntax_error(ps, *yypcontext_location(context), yysymbol_name(got), expected, n);
    return 0;
}
