/* SPDX-License-Identifier: GPL-3.0-or-later */
/* docs/language.md says what the parser does: its grammar is that of parse.y, its examples are
 * valid, and it lists every builtin and every block of the library with its signature.  What
 * docs/from-pytorch.md says is to be written here compiles, and so do the examples of docs/data.md.
 */
#include "check.h"
#include "frontend/language/elaborate/builtins.h"
#include "frontend/language/syntax/ast.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static char *read_text(const char *name)
{
    const char *root = getenv("SCRIMP_SOURCE");
    char *path = NULL, *text = NULL;
    size_t size = 0;
    if (asprintf(&path, "%s/%s", root ? root : ".", name) < 0)
        abort();
    FILE *in = fopen(path, "r"), *out = open_memstream(&text, &size);
    CHECK_MSG(in, "%s", path);
    for (int c; in && (c = getc(in)) != EOF;)
        putc(c, out);
    if (in)
        fclose(in);
    fclose(out);
    free(path);
    return text;
}

/* ---- parse.y -> BNF ---- */

/* Reads one symbol of the rules; actions and comments are skipped.  NULL at the end. */
static char *next_symbol(const char **at)
{
    const char *p = *at;
    for (;;) {
        p += strspn(p, " \t\n");
        if (!strncmp(p, "/*", 2)) {
            p = strstr(p, "*/") + 2;
        } else if (*p == '{') {
            int depth = 0;
            do
                depth += *p == '{' ? 1 : *p == '}' ? -1 : 0;
            while (*p++ && depth);
        } else {
            break;
        }
    }
    if (!*p || !strncmp(p, "%%", 2))
        return NULL;
    size_t n = *p == '\'' ? 3 : strspn(p, "%_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    n = n ? n : 1;
    *at = p + n;
    return strndup(p, n);
}

/* A terminal in quotes, a class of tokens in capitals, a rule in angle brackets. */
static void put_symbol(const char *grammar, const char *symbol, FILE *out)
{
    if (!strcmp(symbol, "%empty")) {
        fputs("<empty>", out);
    } else if (*symbol == '\'') {
        fprintf(out, "\"%c\"", symbol[1]);
    } else if (islower((unsigned char)*symbol)) {
        fprintf(out, "<%s>", symbol);
    } else {
        char declared[64];
        snprintf(declared, sizeof declared, " %s \"'", symbol);
        const char *alias = strstr(grammar, declared);
        size_t skip = strlen(declared);
        if (alias)
            fprintf(out, "\"%.*s\"", (int)strcspn(alias + skip, "'"), alias + skip);
        else
            fputs(symbol, out);
    }
}

/* Reads alternatives up to ';' and prints those that are not there for recovery. */
static void put_rule(const char *grammar, const char *name, const char **at, FILE *out)
{
    bool first = true, ended = false;
    while (!ended) {
        char *text = NULL;
        size_t size = 0;
        bool recovery = false;
        FILE *alternative = open_memstream(&text, &size);
        for (char *s; (s = next_symbol(at)); free(s)) {
            ended = *s == ';';
            if (ended || *s == '|') {
                free(s);
                break;
            }
            recovery |= !strcmp(s, "error") || !strcmp(s, "broken");
            fputc(' ', alternative);
            put_symbol(grammar, s, alternative);
        }
        fclose(alternative);
        if (!recovery) {
            if (first)
                fprintf(out, "<%s> ::=%s\n", name, text);
            else
                fprintf(out, "    |%s\n", text);
            first = false;
        }
        free(text);
    }
}

static char *bnf_of(const char *grammar)
{
    char *text = NULL, *name;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const char *at = strstr(grammar, "\n%%\n") + 4;
    while ((name = next_symbol(&at))) {
        char *colon = next_symbol(&at);
        CHECK(colon && *colon == ':');
        put_rule(grammar, name, &at, out);
        free(colon);
        free(name);
    }
    fclose(out);
    return text;
}

static void test_grammar(const char *doc)
{
    char *grammar = read_text("frontend/language/syntax/parse.y"), *bnf = bnf_of(grammar);
    CHECK(strstr(bnf, "<pow> ::= <call>\n    | <call> \"**\" <unary>\n"));
    CHECK_MSG(strstr(doc, bnf), "the grammar of parse.y is now\n%s", bnf);
    free(bnf);
    free(grammar);
}

/* ---- builtins ---- */

/* The text with the lines of each entry joined: a line break and the spaces behind it are one
 * space, where no entry or heading begins. */
static char *joined_lines(const char *doc)
{
    char *text = malloc(strlen(doc) + 1), *to = text;
    for (const char *p = doc; *p; p++) {
        size_t indent = *p == '\n' ? strspn(p + 1, " ") : 0;
        *to++ = indent > 0 ? ' ' : *p;
        p += indent;
    }
    *to = '\0';
    return text;
}

static void test_builtins(const char *doc)
{
    char *text = joined_lines(doc);
    CHECK(builtin_count > 50);
    for (int i = 0; i < builtin_count; i++) {
        const Builtin *b = &builtin_table[i];
        char *entry = NULL;
        if (asprintf(&entry, "\n- `%s(%s)`: %s\n", b->name, b->signature, b->doc) < 0)
            abort();
        CHECK_MSG(strstr(text, entry), "not in docs/language.md:%s", entry);
        free(entry);
    }
    free(text);
}

/* ---- the library ---- */

/* The comment right above a declaration, its lines joined. */
static char *comment_above(const char *text, size_t at)
{
    size_t begin = at;
    while (begin > 1) {
        size_t line = begin - 1;
        while (line > 0 && text[line - 1] != '\n')
            line--;
        if (strncmp(text + line, "# ", 2) != 0)
            break;
        begin = line;
    }
    char *comment = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&comment, &size);
    for (const char *p = text + begin; p < text + at; p += strcspn(p, "\n") + 1)
        fprintf(out, "%s%.*s", p == text + begin ? "" : " ", (int)strcspn(p, "\n") - 2, p + 2);
    fclose(out);
    return comment;
}

/* "- `name(parameters)`: comment" of a block. */
static char *library_entry(const Diag *diag, const BlockDecl *b)
{
    size_t length;
    const char *text = diag_source_text(diag, b->span.file, &length);
    const char *name = text + b->name.span.begin, *end = strstr(name, ") {");
    char *comment = comment_above(text, b->span.begin), *entry = NULL;
    if (!end || asprintf(&entry, "\n- `%.*s)`: %s\n", (int)(end - name), name, comment) < 0)
        abort();
    free(comment);
    return entry;
}

static void test_library(const char *doc)
{
    static const char all[] = "import \"std/all\"\n";
    char *text = joined_lines(doc);
    Pool *pool = pool_new();
    Diag *diag = diag_new(pool);
    const Ast *ast = frontend_parse_text(pool, diag, "all", all, strlen(all));
    CHECK(ast && ast->n_blocks > 20 && ast->n_options == 0);
    for (int i = 0; ast && i < ast->n_blocks; i++) {
        char *entry = library_entry(diag, &ast->blocks[i]), *one_line = joined_lines(entry);
        bool exported = *ast->blocks[i].name.text != '_';
        CHECK_MSG(!exported || strstr(text, one_line), "not in docs/language.md:%s", one_line);
        CHECK_MSG(!builtin_find(ast->blocks[i].name.text), "a function is hidden:%s", one_line);
        free(one_line);
        free(entry);
    }
    diag_print(diag, stderr, false);
    pool_free(pool);
    free(text);
}

/* ---- examples ---- */

static bool has_model(const Ast *ast)
{
    for (int i = 0; i < ast->n_blocks; i++)
        if (ast->blocks[i].is_model)
            return true;
    return false;
}

/* It parses, and elaborates when it holds a model. */
static void test_example(const char *page, const char *text, size_t length)
{
    Pool *pool = pool_new();
    Diag *diag = diag_new(pool);
    Ast *ast = frontend_parse_text(pool, diag, page, text, length);
    CHECK(ast);
    if (ast && has_model(ast)) {
        FrontendOptions options = {.mode = ast->train ? FRONTEND_TRAIN : FRONTEND_INFER};
        CHECK(frontend_lower(pool, diag, ast, &options));
    }
    diag_print(diag, stderr, false);
    pool_free(pool);
}

static void test_examples(const char *page, const char *doc, int least)
{
    static const char fence[] = "```scrimp\n";
    int n = 0;
    for (const char *p = doc; (p = strstr(p, fence)); n++) {
        p += strlen(fence);
        const char *end = strstr(p, "```");
        CHECK(end);
        if (!end)
            break;
        test_example(page, p, (size_t)(end - p));
        p = end;
    }
    CHECK(n >= least);
}

/* ---- tables "PyTorch | ..." ---- */

static const char in_model[] =
    "import \"std/all\"\n"
    "model m(x: f32[8, 16, 32, 32], t: f32[8, 32, 16], s: f32[8, 16, 32], v: f32[8, 4, 8, 8, 8],\n"
    "        ids: i32[8, 32], a: f32[8, 16], b: f32[8, 16], y: i32[8], m: bool[8, 16]) {\n"
    "  return %s\n"
    "}\n";
static const char in_section[] =
    "model net(x: f32[8, 16]) {\n"
    "  return x |> backbone: seq { linear(16); relu() } |> head: linear(4)\n"
    "}\n"
    "train {\n"
    "  batch = synthetic(x = f32[8, 16], y = i32[8])\n"
    "  loss = cross_entropy(net(batch.x), batch.y)\n"
    "  held_out = 10%%\n"
    "  optim = sgd(lr = 0.1)\n"
    "  %s\n"
    "  %s\n"
    "}\n";

/* The code of the last cell of a row, "| .. | `code` |", whose bars have backslashes before them;
 * NULL for another row. */
static char *last_cell(const char *row)
{
    char *line = strndup(row, strcspn(row, "\n")), *cell = NULL;
    char *end = strrchr(line, '`'), *begin = NULL;
    if (end && !strcmp(end, "` |")) {
        *end = '\0';
        begin = strrchr(line, '`');
    }
    if (begin) {
        char *to = cell = strdup(begin + 1);
        for (const char *p = begin + 1; *p; p++)
            if (p[0] != '\\' || p[1] != '|')
                *to++ = *p;
        *to = '\0';
    }
    free(line);
    return cell;
}

static void test_cell(const char *cell, bool section)
{
    char *text = NULL;
    bool length = !strncmp(cell, "epochs", 6);
    int n = section ? asprintf(&text, in_section, cell, length ? "" : "epochs = 100")
                    : asprintf(&text, in_model, cell);
    if (n < 0)
        abort();
    test_example(cell, text, strlen(text));
    free(text);
}

/* Every row of the tables with this heading. */
static void test_tables(const char *doc, const char *heading, bool section, int least)
{
    int n = 0;
    for (const char *p = doc; (p = strstr(p, heading));) {
        p += strlen(heading);
        for (; *p == '|'; p += strcspn(p, "\n") + 1, n++) {
            char *cell = last_cell(p);
            CHECK_MSG(cell, "%.60s", p);
            if (cell)
                test_cell(cell, section);
            free(cell);
        }
    }
    CHECK_MSG(n >= least, "%d rows of %s", n, heading);
}

static bool is_block(const Ast *ast, const char *name)
{
    for (int i = 0; i < ast->n_blocks; i++)
        if (strcmp(ast->blocks[i].name.text, name) == 0)
            return true;
    return false;
}

/* A function or block takes an argument of that name. */
static bool is_argument(const Ast *ast, const char *name)
{
    bool taken = false;
    for (int i = 0; i < builtin_count; i++)
        for (const char *at = builtin_table[i].signature; (at = strstr(at, name)); at++)
            taken |= at[strlen(name)] == ':' && (at == builtin_table[i].signature || at[-1] == ' ');
    for (int i = 0; i < ast->n_blocks; i++)
        for (int k = 0; k < ast->blocks[i].n_params; k++)
            taken |= strcmp(ast->blocks[i].params[k].name.text, name) == 0;
    return taken;
}

/* What messages call PyTorch's functions and arguments is there, and no block is called as they
 * are. */
static void test_torch_names(void)
{
#define TORCH_NAME(theirs, ours) {#theirs, #ours},
    static const char *const names[][2] = {
#include "frontend/language/elaborate/torch_names.def"
    };
    static const char *const arguments[][2] = {
#include "frontend/language/elaborate/torch_arguments.def"
    };
#undef TORCH_NAME
    static const char all[] = "import \"std/all\"\n";
    Pool *pool = pool_new();
    const Ast *ast = frontend_parse_text(pool, diag_new(pool), "all", all, strlen(all));
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++)
        CHECK_MSG(is_argument(ast, arguments[i][1]), "no function takes %s", arguments[i][1]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *theirs = names[i][0], *ours = names[i][1];
        CHECK_MSG(builtin_find(ours) || is_block(ast, ours), "no function %s", ours);
        CHECK_MSG(!is_block(ast, theirs), "a block hides %s", theirs);
    }
    pool_free(pool);
}

static void test_from_pytorch(void)
{
    char *doc = read_text("docs/from-pytorch.md");
    test_examples("from-pytorch.md", doc, 1);
    test_tables(doc, "\n| PyTorch | scrimp |\n|---|---|\n", false, 100);
    test_tables(doc, "\n| PyTorch | train section |\n|---|---|\n", true, 20);
    free(doc);
}

int main(void)
{
    char *doc = read_text("docs/language.md");
    test_grammar(doc);
    test_builtins(doc);
    test_library(doc);
    test_examples("language.md", doc, 6);
    free(doc);
    doc = read_text("docs/data.md");
    test_examples("data.md", doc, 1);
    free(doc);
    test_from_pytorch();
    test_torch_names();
    return test_result();
}
