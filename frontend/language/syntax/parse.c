/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files in, Ast out: reading, imports, the top-level declarations. */
#include "frontend/language/syntax/library.h"
#include "frontend/language/syntax/parse_internal.h"
#include "parse.tab.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE_BYTES = 16 << 20, MAX_IMPORT_DEPTH = 32 };

/* What is known about a file by its canonical path. */
typedef enum FileState { FILE_BEING_PARSED = 1, FILE_PARSED } FileState;

static _Thread_local Pool *stack_pool;

void *parse_stack_alloc(size_t bytes)
{
    return pool_alloc(stack_pool, bytes);
}

const char *parse_slice(ParseState *ps, Span span)
{
    return pool_strndup(ps->pool, ps->text + span.begin, span.end - span.begin);
}

/* ---- declarations ---- */

/* False, and an error, when the name is taken. */
static bool declare_name(ParseState *ps, Name name)
{
    Map *names = ps->is_library ? &ps->job->of_library : &ps->job->declared;
    const uint64_t *taken = map_find(names, name.text);
    if (taken) {
        diag_error(ps->diag, name.span, "E016", "'%.60s' is already declared", name.text);
        diag_note(ps->diag, *(const Span *)(uintptr_t)*taken, "first here");
        return false;
    }
    Span *span = POOL_NEW(ps->pool, Span);
    *span = name.span;
    map_set(names, name.text, (uint64_t)(uintptr_t)span);
    return true;
}

void declare_option(ParseState *ps, OptionDecl option)
{
    if (declare_name(ps, option.name))
        vec_push(ps->pool, &ps->job->options, option);
}

void declare_block(ParseState *ps, BlockDecl block)
{
    block.param_index = map_new(ps->pool);
    for (int i = 0; i < block.n_params; i++) {
        Name name = block.params[i].name;
        if (map_find(&block.param_index, name.text))
            diag_error(ps->diag, name.span, "E016", "parameter '%.60s' is already declared",
                       name.text);
        else
            map_set(&block.param_index, name.text, (uint64_t)i);
    }
    block.imported = !ps->is_main;
    block.library = ps->is_library;
    if (declare_name(ps, block.name))
        vec_push(ps->pool, &ps->job->blocks, block);
}

/* The sections of an imported file are for when it is compiled itself. */
static void declare_section(ParseState *ps, Section **slot, Section section, Span word)
{
    if (!ps->is_main)
        return;
    if (*slot) {
        diag_error(ps->diag, word, "E016", "a file has one '%s' section", parse_slice(ps, word));
        diag_note(ps->diag, (*slot)->span, "first here");
        return;
    }
    *slot = POOL_NEW(ps->pool, Section);
    **slot = section;
}

void declare_train(ParseState *ps, Section section, Span word)
{
    declare_section(ps, &ps->job->train, section, word);
}

void declare_remat(ParseState *ps, Section section, Span word)
{
    declare_section(ps, &ps->job->remat, section, word);
}

/* ---- files ---- */

/* The text of a regular file, or NULL with the reason. */
static char *read_file(Pool *pool, const char *path, size_t *length, const char **reason)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        *reason = strerror(errno);
        return NULL;
    }
    if (!S_ISREG(info.st_mode) || info.st_size > MAX_FILE_BYTES) {
        *reason = S_ISREG(info.st_mode) ? "larger than 16MiB" : "not a regular file";
        return NULL;
    }
    char *text = pool_alloc(pool, (size_t)info.st_size + 1);
    FILE *in = fopen(path, "rb");
    if (!in) {
        *reason = strerror(errno);
        return NULL;
    }
    *length = fread(text, 1, (size_t)info.st_size, in);
    *reason = ferror(in) ? strerror(EIO) : NULL;
    fclose(in);
    return *reason ? NULL : text;
}

/* Where a text comes from. */
typedef enum Origin { MAIN_FILE, IMPORTED_FILE, LIBRARY_FILE } Origin;

static void run_parser(ParseJob *job, const char *path, uint32_t file, const char *text,
                       size_t length, Origin origin)
{
    ParseState ps = {.job = job,
                     .pool = job->pool,
                     .diag = job->diag,
                     .file = file,
                     .path = path,
                     .text = text,
                     .length = length,
                     .is_main = origin == MAIN_FILE,
                     .is_library = origin == LIBRARY_FILE};
    scan_start(&ps);
    scrimp_parse(&ps);
}

/* Another of scrimp's texts, as its first word tells. */
static bool refuse_other_text(ParseJob *job, uint32_t file, const char *text, size_t length)
{
    static const struct {
        const char *word, *is, *way_out;
    } others[] = {{"scrimp.ir ", "IR", "`scrimp opt FILE -p PASSES` reads it"},
                  {"{", "JSON", "`scrimp plan --graph FILE` reads a graph"}};
    size_t at = 0;
    while (at < length && strchr(" \t\r\n", text[at]))
        at++;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t n = strlen(others[i].word);
        if (length - at < n || memcmp(text + at, others[i].word, n) != 0)
            continue;
        diag_error(job->diag, (Span){file, (uint32_t)at, (uint32_t)(at + n)}, "E001",
                   "this is %s, not a model", others[i].is);
        diag_help(job->diag, "%s", others[i].way_out);
        return true;
    }
    return false;
}

/* Returns the file's index in the job's Diag. */
static uint32_t parse_source(ParseJob *job, const char *path, const char *text, size_t length,
                             Origin origin)
{
    uint32_t file = diag_add_source(job->diag, path, text, length);
    job->source_hash = hash_bytes(text, length, job->source_hash);
    if (origin == LIBRARY_FILE)
        vec_push(job->pool, &job->library_files, file);
    const char *nul = memchr(text, 0, length);
    if (nul) {
        Span at = {file, (uint32_t)(nul - text), (uint32_t)(nul - text) + 1};
        diag_error(job->diag, at, "E001", "a NUL byte: this is not a text file");
        return file;
    }
    if (!refuse_other_text(job, file, text, length))
        run_parser(job, path, file, text, length, origin);
    return file;
}

/* Two spellings of one file have one canonical path; a text without a file has its name. */
static const char *canonical(Pool *pool, const char *path)
{
    char resolved[PATH_MAX];
    return pool_strdup(pool, realpath(path, resolved) ? resolved : path);
}

static const char *beside(Pool *pool, const char *importer, const char *path)
{
    const char *slash = strrchr(importer, '/');
    if (*path == '/' || !slash)
        return path;
    return pool_printf(pool, "%.*s%s", (int)(slash + 1 - importer), importer, path);
}

/* The folder of a file, canonical; of a text without a file, the current one. */
static const char *folder_of(Pool *pool, const char *path)
{
    const char *slash = strrchr(path, '/');
    return canonical(pool, slash ? pool_strndup(pool, path, (size_t)(slash + 1 - path)) : ".");
}

static bool is_below(const char *key, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(key, folder, n) == 0 && (key[n] == '/' || (n && folder[n - 1] == '/'));
}

/* A model from elsewhere cannot have the contents of any file put into a message or a dump: imports
 * stay where the main file is, or in the installed examples. */
static bool may_import(ParseState *ps, Span span, const char *name, const char *key)
{
    bool missing = *key != '/'; /* which reading it will say */
    if (missing || is_below(key, ps->job->root) ||
        is_below(key, canonical(ps->pool, SCRIMP_EXAMPLES)))
        return true;
    diag_error(ps->diag, span, "E020", "'%.200s' is not below the folder of the main file", name);
    diag_help(ps->diag, "put the main file into a folder that holds both, or copy what it imports");
    return false;
}

static void parse_imported(ParseJob *job, const char *path, const char *key, const char *text,
                           size_t length, Origin origin)
{
    map_set(&job->files, key, FILE_BEING_PARSED);
    job->import_depth++;
    parse_source(job, path, text, length, origin);
    job->import_depth--;
    map_set(&job->files, key, FILE_PARSED);
}

static void import_file(ParseState *ps, Span span, const char *path, const char *key)
{
    const char *reason;
    size_t length;
    char *text = read_file(ps->pool, path, &length, &reason);
    if (!text) {
        diag_error(ps->diag, span, "E020", "cannot read '%.200s': %s", path, reason);
        diag_help(ps->diag, "imports are looked up beside the file that has them");
        return;
    }
    parse_imported(ps->job, path, key, text, length, IMPORTED_FILE);
}

static void import_library(ParseState *ps, Span span, const char *name)
{
    const char *text = library_text(name);
    if (text) {
        parse_imported(ps->job, pool_printf(ps->pool, "%s.scrimp", name), name, text, strlen(text),
                       LIBRARY_FILE);
        return;
    }
    diag_error(ps->diag, span, "E020", "there is no library '%.200s'", name);
    diag_help(ps->diag, "%s", library_suggestion(ps->pool, name));
}

void parse_import(ParseState *ps, Span span, const char *name)
{
    bool library = library_is_name(name);
    const char *path = library ? name : beside(ps->pool, ps->path, name);
    const char *key = library ? name : canonical(ps->pool, path);
    const uint64_t *state = map_find(&ps->job->files, key);
    if (state && *state == FILE_BEING_PARSED)
        diag_error(ps->diag, span, "E021", "'%.200s' imports itself, directly or through others",
                   name);
    else if (ps->job->import_depth >= MAX_IMPORT_DEPTH)
        diag_error(ps->diag, span, "E021", "imports nested more than %d deep", MAX_IMPORT_DEPTH);
    else if (!state && library)
        import_library(ps, span, name);
    else if (!state && may_import(ps, span, name, key))
        import_file(ps, span, path, key);
}

/* ---- entry points ---- */

static Ast *job_result(ParseJob *job, const char *name, uint32_t file)
{
    Ast *ast = POOL_NEW(job->pool, Ast);
    *ast = (Ast){.name = name,
                 .file = file,
                 .source_hash = job->source_hash,
                 .options = job->options.data,
                 .n_options = (int)job->options.len,
                 .blocks = job->blocks.data,
                 .n_blocks = (int)job->blocks.len,
                 .train = job->train,
                 .remat = job->remat,
                 .library_files = job->library_files.data,
                 .n_library_files = (int)job->library_files.len,
                 .option_index = map_new(job->pool),
                 .block_index = map_new(job->pool)};
    for (int i = 0; i < ast->n_options; i++)
        map_set(&ast->option_index, ast->options[i].name.text, (uint64_t)i);
    for (int i = 0; i < ast->n_blocks; i++)
        if (!ast->blocks[i].library)
            map_set(&ast->block_index, ast->blocks[i].name.text, (uint64_t)i);
    return ast;
}

/* Parses the main file; NULL when anything was reported. */
static Ast *run_job(Pool *pool, Diag *diag, const char *name, const char *text, size_t length)
{
    ParseJob job = {.pool = pool,
                    .diag = diag,
                    .declared = map_new(pool),
                    .of_library = map_new(pool),
                    .files = map_new(pool),
                    .root = folder_of(pool, name)};
    Pool *outer = stack_pool;
    int errors = diag_error_count(diag);
    stack_pool = pool;
    map_set(&job.files, canonical(pool, name), FILE_BEING_PARSED);
    uint32_t file = parse_source(&job, name, text, length, MAIN_FILE);
    stack_pool = outer;
    return diag_error_count(diag) == errors ? job_result(&job, name, file) : NULL;
}

Ast *frontend_parse(Pool *pool, Diag *diag, const char *path)
{
    const char *reason;
    size_t length;
    char *text = read_file(pool, path, &length, &reason);
    if (text)
        return run_job(pool, diag, pool_strdup(pool, path), text, length);
    diag_error(diag, (Span){0}, "E020", "cannot read '%.200s': %s", path, reason);
    return NULL;
}

Ast *frontend_parse_text(Pool *pool, Diag *diag, const char *name, const char *text, size_t length)
{
    if (length > MAX_FILE_BYTES) {
        diag_error(diag, (Span){0}, "E020", "cannot read '%.200s': larger than 16MiB", name);
        return NULL;
    }
    char *copy = pool_alloc(pool, length + 1);
    if (length)
        memcpy(copy, text, length);
    return run_job(pool, diag, pool_strdup(pool, name), copy, length);
}

/* ---- options, for --help ---- */

static const char *value_type_of(const Expr *e);

static const char *binary_type(const Expr *e)
{
    const char *type = value_type_of(e->binary.first);
    for (int i = 0; i < e->binary.len; i++) {
        BinaryOp op = e->binary.links[i].op;
        if (op <= BINARY_GE)
            return "bool";
        if (op == BINARY_DIV || !strcmp(value_type_of(e->binary.links[i].rhs), "float"))
            type = "float";
    }
    return type;
}

/* What the default value looks like, without evaluating it. */
static const char *value_type_of(const Expr *e)
{
    switch ((int)e->kind) {
    case EXPR_INT:
    case EXPR_SIZE:
        return "int";
    case EXPR_FLOAT:
        return "float";
    case EXPR_BOOL:
        return "bool";
    case EXPR_STRING:
    case EXPR_INTERP:
        return "string";
    case EXPR_LIST:
    case EXPR_COMP:
    case EXPR_RANGE:
        return "list";
    case EXPR_UNARY:
        return e->unary.op == UNARY_NOT ? "bool" : value_type_of(e->unary.operand);
    case EXPR_BINARY:
        return binary_type(e);
    case EXPR_COND:
        return value_type_of(e->cond.then_value);
    case EXPR_MATCH:
        return value_type_of(e->match.arms[0].result);
    default:
        return "any";
    }
}

int frontend_options(Pool *pool, const Ast *ast, const OptionInfo **out)
{
    OptionInfo *infos = POOL_ARRAY(pool, (size_t)ast->n_options, OptionInfo);
    for (int i = 0; i < ast->n_options; i++) {
        const OptionDecl *o = &ast->options[i];
        infos[i] = (OptionInfo){.name = o->name.text,
                                .type = o->type && o->type->name ? o->type->name
                                                                 : value_type_of(o->default_value),
                                .default_text = o->default_text,
                                .domain_text = o->domain_text,
                                .doc = o->doc};
    }
    *out = infos;
    return ast->n_options;
}
