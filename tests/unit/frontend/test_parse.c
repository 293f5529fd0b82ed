/* Scanner, parser and tree: what is accepted, what it becomes, and where and how errors are said.
 */
#include "check.h"
#include "frontend/ast.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Parsed {
    Pool *pool;
    Diag *diag;
    Ast *ast;
} Parsed;

static Parsed parse_named(const char *name, const char *text, size_t length)
{
    Parsed p = {.pool = pool_new()};
    p.diag = diag_new(p.pool);
    p.ast = frontend_parse_text(p.pool, p.diag, name, text, length);
    return p;
}

static Parsed parse(const char *text)
{
    return parse_named("t.scrimp", text, strlen(text));
}

static char *printed(const Ast *ast)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    frontend_print_ast(ast, out);
    fclose(out);
    return text;
}

static void show_errors(const Parsed *p, const char *text)
{
    fprintf(stderr, "in <<<%.200s>>>\n", text);
    diag_print(p->diag, stderr, false);
}

static void expect_print(const char *text, const char *expected)
{
    Parsed p = parse(text);
    CHECK(p.ast);
    if (p.ast) {
        char *got = printed(p.ast);
        CHECK_MSG(!strcmp(got, expected), "got\n%s\nfor <<<%s>>>", got, text);
        free(got);
    } else {
        show_errors(&p, text);
    }
    pool_free(p.pool);
}

/* The printed form of one expression. */
static void expect_expr(const char *expr, const char *expected)
{
    char text[2000], whole[2000];
    snprintf(text, sizeof text, "block b() {\n  v = %s\n}\n", expr);
    snprintf(whole, sizeof whole, "(block b\n  (let (v) %s))\n", expected);
    expect_print(text, whole);
}

/* ---- errors ---- */

/* "E010@2:5 E011@3:1": code, line and column of every error, in order. */
static char *errors_of(const Parsed *p)
{
    char *json = NULL, *list = NULL;
    size_t size;
    FILE *out = open_memstream(&json, &size);
    diag_print_json(p->diag, out);
    fclose(out);
    json_t *root = json_loads(json, 0, NULL), *error;
    size_t i;
    out = open_memstream(&list, &size);
    json_array_foreach(json_object_get(root, "errors"), i, error)
    {
        fprintf(out, "%s%s@%d:%d", i ? " " : "", json_string_value(json_object_get(error, "code")),
                (int)json_integer_value(json_object_get(error, "line")),
                (int)json_integer_value(json_object_get(error, "column")));
    }
    fclose(out);
    json_decref(root);
    free(json);
    return list;
}

static void expect_errors(const char *text, const char *expected)
{
    Parsed p = parse(text);
    char *got = errors_of(&p);
    CHECK(!p.ast);
    CHECK_MSG(!strcmp(got, expected), "got %s, expected %s", got, expected);
    if (strcmp(got, expected) != 0)
        show_errors(&p, text);
    free(got);
    pool_free(p.pool);
}

static bool messages_contain(const Parsed *p, const char *part)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    diag_print(p->diag, out, false);
    fclose(out);
    bool found = strstr(text, part) != NULL;
    free(text);
    return found;
}

static void expect_message(const char *text, const char *part)
{
    Parsed p = parse(text);
    CHECK_MSG(messages_contain(&p, part), "no '%s' for <<<%s>>>", part, text);
    if (!messages_contain(&p, part))
        show_errors(&p, text);
    pool_free(p.pool);
}

static void test_errors(void)
{
    static const struct {
        const char *text, *errors;
    } cases[] = {
        {"x = 3\n", "E010@1:1"},
        {"blok b(x) {\n  return x\n}\n", "E010@1:1"},
        {"block b(x y) {\n  return x\n}\n", "E010@1:11"},
        {"block b(x) {\n  y = x +\n}\n", "E010@3:1"},
        {"block b(x) {\n  y = = 3\n  z = 4 5\n  return\n}\n", "E010@2:7 E010@3:9 E010@4:9"},
        {"block b(x) {\n  for i 0..4 {\n    y = * 2\n  }\n}\n", "E010@2:9 E010@3:9"},
        {"block b(x) {\n  y = f(x, 3\n  z = g(y)\n}\n", "E011@2:8"},
        {"block b(x) {\n  y = [1,\n    2\n  return y\n}\n", "E011@2:7"},
        {"block b(x) {\n  y = f(g(x)\n}\nblock c(x) {\n  y = = 2\n}\n", "E011@2:8 E010@5:7"},
        {"block b(x) {\n  if x {\n    y = 1\n  return x\n}\nblock c(x) {\n}\n", "E011@2:8"},
        {"block b(x) {\n  return x\n", "E011@1:12"},
        {"block b(x) {\n  return x)\n}\n", "E012@2:11"},
        {"block b(x) {\n  return [x)\n}\n}\n", "E012@2:12 E012@4:1"},
        {"block b(x) {\n  y = \"abc\n  z = \"a{i\n}\n", "E003@2:7 E003@3:7"},
        {"block b(x) {\n  y = \"a\\qb\"\n}\n", "E004@2:9"},
        {"option a = 12ab, b = 8Gib\n", "E005@1:12 E005@1:22"},
        {"option a = 9223372036854775808, b = 1e999, c = 9999999999GiB\n",
         "E006@1:12 E006@1:37 E006@1:48"},
        {"block b(x) {\n  @kep\n  y = x\n}\n", "E007@2:3"},
        {"block b(x) {\n  y = x % 2\n  z = !x\n  w = x && y\n}\n", "E002@2:9 E002@3:7 E002@4:9"},
        {"block b(x) {\n  f(x): g()\n  h[1..2]: g()\n  a: (b: c())\n}\n",
         "E014@2:3 E014@3:5 E014@4:7"},
        {"block b(x) {\n  y = f(a = 1, 2)\n  z = f(a = 1, a = 2)\n}\n", "E015@2:16 E015@3:16"},
        {"option a = 1\nblock a() { }\nblock c(x, x) { }\n", "E016@2:7 E016@3:12"},
        {"train { a = 1 }\ntrain { a = 2 }\n", "E016@2:1"},
        {"import \"no/such/file.scrimp\"\n", "E020@1:1"},
        {"import \"/dev/null\"\n", "E020@1:1"},
        {"option a = 3 \"doc {a}\"\n", "E010@1:14"},
        {"block b(x) {\n  y = match x {\n    1 -> 2\n    2 => 3\n    4\n  }\n  z = = 1\n}\n",
         "E010@3:8 E010@5:6 E010@7:7"},
        {"block b(x) {\n  y = 1..2..3\n  z = a < b < c\n  w = a if b\n}\n",
         "E010@2:11 E010@3:13 E010@4:13"},
        {"remat { budget = 40 % }\n", "E002@1:21"},
        {"block for(x) { }\n", "E010@1:7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_errors(cases[i].text, cases[i].errors);
}

static void test_messages(void)
{
    expect_message("blok b(x) { }\n", "did you mean `block`?");
    expect_message("block b(x) {\n  y = f(1 3)\n}\n", "expected ')' or ',', got '3'");
    expect_message("block b(x) {\n  y = f(x, 3\n  z = 1\n}\n",
                   "t.scrimp:3:3: note: a ')' is missing before this line");
    expect_message("block b(x) {\n  y = 5 % 2\n}\n", "`a mod b`");
    expect_message("block b(x) {\n  @recomputed\n  y = x\n}\n", "did you mean `@recompute`?");
    expect_message("block b(x) {\n  if x = 1 { }\n}\n", "equality is written `==`");
    expect_message("block b(x) {\n  y = x +\n}\n", "expected an expression, got '}'");
    expect_message("block b(x) {\n  return x", "this '{' is never closed");
    expect_message("block in(x) { }\n", "'in' is a reserved word");
}

static void test_nul_byte(void)
{
    static const char text[] = "block b(x) {\n\0}\n";
    Parsed p = parse_named("t.scrimp", text, sizeof text - 1);
    char *got = errors_of(&p);
    CHECK_MSG(!strcmp(got, "E001@2:1"), "got %s", got);
    CHECK(!p.ast);
    free(got);
    pool_free(p.pool);
}

/* ---- accepted texts ---- */

static void test_expressions(void)
{
    expect_expr("1 + 2 * 3 ** -x ** 2", "(+ 1 (* 2 (** 3 (- (** x 2)))))");
    expect_expr("a - b + c - d", "(infix a - b + c - d)");
    expect_expr("a - (b + c) - d", "(- a (+ b c) d)");
    expect_expr("(a + b) + c", "(+ (+ a b) c)");
    expect_expr("-a ** 2", "(- (** a 2))");
    expect_expr("not a == b and c or d", "(or (and (not (== a b)) c) d)");
    expect_expr("a // 2 mod 3 / 4", "(infix a // 2 mod 3 / 4)");
    expect_expr("a if b else c if d else e", "(if b a (if d c e))");
    expect_expr("0..n + 1", "(.. 0 (+ n 1))");
    expect_expr("1..=n", "(..= 1 n)");
    expect_expr("xs ++ [a, b,] ++ []", "(++ xs (list a b) (list))");
    expect_expr("[2 * t for t, _ in zip(a, b)]", "(for (t _) (call zip a b) (* 2 t))");
    expect_expr(
        "x[0, .., 1.., ..2, 3..4, ..=5, (0..2)]",
        "(index x 0 (slice _ _) (slice 1 _) (slice _ 2) (slice 3 4) (slice= _ 5) (.. 0 2))");
    expect_expr("f(a, k = 1, in_ = 2,)(b).c[0]",
                "(index (field (call (call f a k=1 in_=2) b) c) 0)");
    expect_expr("x |> f() |> @keep g(1)", "(pipe x\n    (call f)\n    @keep (call g 1))");
    expect_expr("(x |> f()) |> g()", "(pipe (pipe x\n      (call f))\n    (call g))");
    expect_expr("h[i].attn[j, 2]: f(x)", "(label (\"h\" i \"attn\" j 2) (call f x))");
    expect_expr("shared \"layer{i+1}\"[j]: f(x)",
                "(shared ((interp \"layer\" (+ i 1)) j) (call f x))");
    expect_expr("\"a{x}b{f(\"}\", [1])}\"", "(interp \"a\" x \"b\" (call f \"\\}\" (list 1)))");
    expect_expr("\"q\\\"\\\\\\n\\t\\{x\\}}\"", "\"q\\\"\\\\\\n\\t\\{x\\}\\}\"");
    expect_expr("$h.0.attn.weight + $w", "(+ $h.0.attn.weight $w)");
    expect_expr("[600_000, 0.5, 1e-4, 2.5e+3, true, false]",
                "(list 600000 0.5 0.0001 2500.0 true false)");
    expect_expr("[40%, 12.5%, 8GiB, 1.5KiB, 2MB, 7B, 1TiB]",
                "(list (percent 40.0) (percent 12.5) (bytes 8589934592) (bytes 1536) "
                "(bytes 2000000) (bytes 7) (bytes 1099511627776))");
    expect_expr("9223372036854775807", "9223372036854775807");
    expect_expr("match d { 1, 2 => [a]; _ => b if c else d }",
                "(match d\n    (case 1 2 => (list a))\n    (default => (if c b d)))");
    expect_expr("x |> seq { conv(3); bn: bn() }",
                "(pipe x\n    (seq\n      (call conv 3)\n      (label (\"bn\") (call bn))))");
}

static void test_statements(void)
{
    expect_print("block b(x: f32[N, _, ..], y: [], k: int = 3, z) {\n"
                 "  a, _ = f(x) # comment\n"
                 "  @keep @recompute\n"
                 "  a = b; c(a)\n"
                 "  for i, j in xs { f(i) }\n"
                 "  if a { f() } else if b { } \n"
                 "  # between\n"
                 "  else { g() }\n"
                 "  with init(weight = zeros) { h() }\n"
                 "  param w: f32[k, 2 * k] = ones\n"
                 "  param v: f32\n"
                 "  buffer n: i32[1] = zeros\n"
                 "  assert k > 2, \"k is {k}\"\n"
                 "  return a, b\n"
                 "}\n",
                 "(block b\n"
                 "  (arg x (type f32 [N _ ..]))\n"
                 "  (arg y (type any []))\n"
                 "  (arg k (type int) = 3)\n"
                 "  (arg z)\n"
                 "  (let (a _) (call f x))\n"
                 "  @keep @recompute (let (a) b)\n"
                 "  (call c a)\n"
                 "  (for (i j) xs\n"
                 "    (call f i))\n"
                 "  (if\n"
                 "    (when a\n"
                 "      (call f))\n"
                 "    (when b)\n"
                 "    (else\n"
                 "      (call g)))\n"
                 "  (with (call init weight=zeros)\n"
                 "    (call h))\n"
                 "  (param w (type f32 [k (* 2 k)]) ones)\n"
                 "  (param v (type f32))\n"
                 "  (buffer n (type i32 [1]) zeros)\n"
                 "  (assert (> k 2) (interp \"k is \" k))\n"
                 "  (return a b))\n");
}

static void test_newlines(void)
{
    expect_print("option a = 1,\n       b = [1,\n 2]\noption c: float = 2 in 0..3 \"doc\"",
                 "(option a 1)\n(option b (list 1 2))\n"
                 "(option c (type float) 2 in (.. 0 3) \"doc\")\n");
    expect_print(
        "block b(\n  x,\n)\n{\n  y = x\n\n # c\n    |> f()\n |> g(\n 1 \n)\n  z = 1 +\n 2\n}\r\n",
        "(block b\n  (arg x)\n  (let (y) (pipe x\n    (call f)\n    (call g 1)))\n"
        "  (let (z) (+ 1 2)))\n");
    expect_print("", "");
    expect_print("# only a comment", "");
    expect_print(";\n;;train{};\n;remat{}\n;", "(train)\n(remat)\n");
}

/* Words of the top level are ordinary names elsewhere. */
static void test_contextual_words(void)
{
    expect_print("model model(train, block = 1) {\n"
                 "  import = f(train = true, weight = block, option = 2)\n"
                 "  model = remat\n"
                 "  train\n"
                 "  block.model |> import()\n"
                 "}\n"
                 "train {\n"
                 "model = train\n"
                 "}\n",
                 "(model model\n"
                 "  (arg train)\n"
                 "  (arg block = 1)\n"
                 "  (let (import) (call f train=true weight=block option=2))\n"
                 "  (let (model) remat)\n"
                 "  train\n"
                 "  (pipe (field block model)\n"
                 "    (call import)))\n"
                 "(train\n"
                 "  (let (model) train))\n");
}

static void test_spans(void)
{
    static const char text[] = "block b(x) {\n  y = f(x + 1) |> h[i]: g(k = \"s{x}\")\n}\n";
    Parsed p = parse(text);
    CHECK(p.ast);
    const Expr *pipe = p.ast->blocks[0].body.stmts[0]->assign.value;
    const Expr *label = pipe->pipe.stages[0].call;
    const Arg *arg = &label->label.call->call.args[0];
    const struct {
        Span span;
        const char *slice;
    } cases[] = {
        {pipe->span, "f(x + 1) |> h[i]: g(k = \"s{x}\")"},
        {pipe->pipe.head->span, "f(x + 1)"},
        {pipe->pipe.head->call.args[0].value->binary.links[0].op_span, "+"},
        {label->span, "h[i]: g(k = \"s{x}\")"},
        {label->label.path.span, "h[i]"},
        {label->label.path.parts[1].span, "i"},
        {arg->span, "k = \"s{x}\""},
        {arg->name_span, "k"},
        {arg->value->span, "\"s{x}\""},
        {arg->value->interp.parts[1].expr->span, "x"},
        {p.ast->blocks[0].name.span, "b"},
        {p.ast->blocks[0].body.stmts[0]->assign.targets.data[0].span, "y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Span s = cases[i].span;
        CHECK_MSG(s.end - s.begin == strlen(cases[i].slice) &&
                      !memcmp(text + s.begin, cases[i].slice, s.end - s.begin),
                  "span %zu is '%.*s'", i, (int)(s.end - s.begin), text + s.begin);
    }
    pool_free(p.pool);
}

static void test_options(void)
{
    Parsed p = parse("option depth = 50 in [18, 34] \"layers\"\noption p: float = 1 / 2\n"
                     "option s = \"base\", m = -3, f = 4 * n - 2 / 3\n");
    const OptionInfo *o = NULL;
    CHECK(p.ast && frontend_options(p.pool, p.ast, &o) == 5);
    CHECK(!strcmp(o[0].type, "int") && !strcmp(o[0].default_text, "50"));
    CHECK(!strcmp(o[0].domain_text, "[18, 34]") && !strcmp(o[0].doc, "layers"));
    CHECK(!strcmp(o[1].type, "float") && !strcmp(o[1].default_text, "1 / 2") && !o[1].doc);
    CHECK(!strcmp(o[2].type, "string") && !strcmp(o[3].type, "int") && !strcmp(o[4].type, "float"));
    CHECK(ast_find_option(p.ast, "m") == &p.ast->options[3] && !ast_find_option(p.ast, "none"));
    pool_free(p.pool);
}

/* ---- depth ---- */

/* "block b(x) {\n v = " head (unit * n) tail (close * n) "\n}\n" */
static Parsed parse_repeated(const char *head, const char *unit, const char *tail,
                             const char *close, int n)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "block b(x) {\n v = %s", head);
    for (int i = 0; i < n; i++)
        fputs(unit, out);
    fputs(tail, out);
    for (int i = 0; i < n; i++)
        fputs(close, out);
    fputs("\n}\n", out);
    fclose(out);
    Parsed p = parse_named("t.scrimp", text, strlen(text));
    free(text);
    return p;
}

static void check_repeated(const char *head, const char *unit, const char *tail, const char *close,
                           int n, bool accepted)
{
    Parsed p = parse_repeated(head, unit, tail, close, n);
    CHECK_MSG((p.ast != NULL) == accepted, "%s%s... %d times", head, unit, n);
    if (p.ast) {
        char *text = printed(p.ast);
        CHECK(strlen(text) > 0);
        free(text);
    } else {
        CHECK(messages_contain(&p, "E013"));
        CHECK_MSG(diag_error_count(p.diag) == 1, "%d errors", diag_error_count(p.diag));
    }
    pool_free(p.pool);
}

static void test_depth(void)
{
    check_repeated("x", " |> f()", "", "", 20000, true);
    check_repeated("x", "\n |> f()", "", "", 20000, true);
    check_repeated("1", " + 2 - 3", "", "", 20000, true);
    check_repeated("1", " * 2 // 3", "", "", 20000, true);
    check_repeated("a", " and b or c", "", "", 20000, true);
    check_repeated("1\n if x { }", " else if y { f() }", "", "", 5000, true);
    check_repeated("[", "1, ", "]", "", 50000, true);
    check_repeated("", "(", "x", ")", 2000, true);
    check_repeated("", "[", "x", "]", 498, true);
    check_repeated("", "[", "x", "]", 501, false);
    check_repeated("", "-", "x", "", 600, false);
    check_repeated("x", "()", "", "", 600, false);
    check_repeated("x", "[0].y", "", "", 100000, false);
    check_repeated("x", " ** 2", "", "", 600, false);
    check_repeated("", "a if b else ", "c", "", 600, false);
    check_repeated("", "seq { ", "", "}", 600, false);
    check_repeated("1\n", "if x { ", "", "}", 600, false);
    check_repeated("", "f(k = ", "1", ")", 600, false);
    check_repeated("", "\"{", "1", "}\"", 600, false);
    check_repeated("", "(", "x", ")", 30000, false); /* the parser's own stack */
}

/* ---- files ---- */

static char folder[] = "/tmp/scrimp-parse-XXXXXX";

static char *write_file(const char *name, const char *text)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        abort();
    FILE *out = fopen(path, "w");
    CHECK(out);
    if (out) {
        fputs(text, out);
        fclose(out);
    }
    return path;
}

static Parsed parse_path(const char *path)
{
    Parsed p = {.pool = pool_new()};
    p.diag = diag_new(p.pool);
    p.ast = frontend_parse(p.pool, p.diag, path);
    return p;
}

static void check_imported(const char *main_path)
{
    Parsed p = parse_path(main_path);
    CHECK(p.ast);
    if (!p.ast) {
        diag_print(p.diag, stderr, false);
    } else {
        CHECK(p.ast->n_blocks == 3 && p.ast->n_options == 1);
        CHECK(!strcmp(p.ast->blocks[0].name.text, "c") && p.ast->blocks[0].imported);
        CHECK(!strcmp(p.ast->blocks[1].name.text, "b") && p.ast->blocks[1].imported);
        CHECK(!strcmp(p.ast->blocks[2].name.text, "m") && !p.ast->blocks[2].imported);
        CHECK(p.ast->train && p.ast->train->body.stmts[0]->assign.value->int_value == 1);
        CHECK(!p.ast->remat);
    }
    pool_free(p.pool);
}

static void check_path_errors(const char *path, const char *expected)
{
    Parsed p = parse_path(path);
    char *got = errors_of(&p);
    CHECK_MSG(!p.ast && !strcmp(got, expected), "got %s, expected %s", got, expected);
    free(got);
    pool_free(p.pool);
}

static void test_imports(void)
{
    char *sub = NULL;
    CHECK(mkdtemp(folder));
    if (asprintf(&sub, "%s/sub", folder) < 0)
        abort();
    CHECK(mkdir(sub, 0700) == 0);
    char *files[] = {
        write_file("main.scrimp", "import \"sub/b.scrimp\"\nimport \"c.scrimp\"\n"
                                  "model m(x) { }\ntrain { steps = 1 }\n"),
        write_file("sub/b.scrimp", "import \"../c.scrimp\"\nblock b(x) { }\ntrain { steps = 2 }\n"
                                   "remat { budget = 1% }\n"),
        write_file("c.scrimp", "option o = 1\nblock c(x) { }\n"),
        write_file("loop.scrimp", "\n  import \"sub/loop2.scrimp\"\n"),
        write_file("sub/loop2.scrimp", "import \"../sub/../loop.scrimp\"\n"),
        write_file("missing.scrimp", "block b(x) { }\nimport \"sub/none.scrimp\"\n"),
        write_file("twice.scrimp", "import \"c.scrimp\"\nblock c(y) { }\n"),
        write_file("self.scrimp", "import \"self.scrimp\"\n"),
    };
    check_imported(files[0]);
    check_path_errors(files[3], "E021@1:1");
    check_path_errors(files[5], "E020@2:1");
    check_path_errors(files[6], "E016@2:7");
    check_path_errors(files[7], "E021@1:1");
    check_path_errors(sub, "E020@0:0");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        unlink(files[i]);
        free(files[i]);
    }
    rmdir(sub);
    rmdir(folder);
    free(sub);
}

/* ---- robustness ---- */

static const char sample[] = "option depth = 50 in [18, 34] \"number {of\\}\"\n"
                             "block B(x: [_, C, ..], width, stride = 1) {\n"
                             "  y = x |> conv1: conv(width, 3, bias = false) # c\n"
                             "        |> \"layer{i+1}\"[j]: seq { bn(); relu() }\n"
                             "  if stride != 1 { x = f(x[.., 1..]) } else { }\n"
                             "  z = match d { 1, 2 => [a]; _ => 40% }\n"
                             "  @keep\n"
                             "  return [t for t in q], $w.0.x ** -0.5\n"
                             "}\n"
                             "train { steps = 600_000; b = 8GiB }\n";

/* A tree or an error, never both and never neither. */
static void check_consistent(const char *text, size_t length)
{
    Parsed p = parse_named("t.scrimp", text, length);
    CHECK_MSG((p.ast != NULL) == (diag_error_count(p.diag) == 0), "<<<%.*s>>>", (int)length, text);
    pool_free(p.pool);
}

static void test_damaged_texts(void)
{
    size_t n = strlen(sample);
    char text[sizeof sample + 1];
    for (size_t i = 0; i <= n; i++) {
        check_consistent(sample, i);
        memcpy(text, sample, i);
        memcpy(text + i, sample + i + 1, n - i);
        if (i < n)
            check_consistent(text, n - 1);
        for (const char *c = "{}()[]\"\n"; *c; c++) {
            memcpy(text, sample, i);
            text[i] = *c;
            memcpy(text + i + 1, sample + i, n - i);
            check_consistent(text, n + 1);
        }
    }
}

/* Parses with the n-th allocation failing; false when that many were not made. */
static bool parse_without_memory(uint64_t n, const char *text)
{
    static jmp_buf recover;
    Pool *volatile pool = pool_new();
    bool failed = true;
    if (!setjmp(recover)) {
        pool_on_oom(pool, &recover);
        Diag *diag = diag_new(pool);
        pool_fail_at(n);
        frontend_parse_text(pool, diag, "t.scrimp", text, strlen(text));
        failed = false;
    }
    pool_fail_at(0);
    pool_free(pool);
    return failed;
}

/* Every failing allocation comes back through the pool, and (under LeakSanitizer) leaks nothing,
 * also when the parser's stacks have grown. */
static void test_out_of_memory(void)
{
    char deep[2048] = "option a = ";
    memset(deep + strlen(deep), '(', 1000);
    const char *const texts[] = {"option depth = \"a{1}\"\nblock B(x, y = 1) { z = f(x) +\n}\n",
                                 deep};
    for (int i = 0; i < 2; i++) {
        uint64_t n = 1;
        while (parse_without_memory(n, texts[i]))
            n++;
        CHECK(n > 1);
    }
}

int main(void)
{
    test_errors();
    test_messages();
    test_nul_byte();
    test_expressions();
    test_statements();
    test_newlines();
    test_contextual_words();
    test_spans();
    test_options();
    test_depth();
    test_imports();
    test_damaged_texts();
    test_out_of_memory();
    return test_result();
}
