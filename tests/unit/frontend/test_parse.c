/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scanner, parser and tree: what is accepted, what it becomes, and where and how errors are said.
 */
#include "check.h"
#include "tests/support/parse_text.h"

#include <stdlib.h>
#include <string.h>

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
        {"block b(x) {\n  x += 1\n  y = = 2\n}\n", "E010@2:5 E010@3:7"},
        {"block b(x) {\n  x **= 2; x[0] -= 1\n}\n", "E010@2:5 E010@2:17"},
        {"block b(x) {\n  y = f(x + = 1)\n}\n", "E010@2:13"},
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
    expect_message("block b(x) {\n  for i in 0..3 { x += f(i) }\n}\n",
                   "t.scrimp:2:21: error[E010]: there is no '+='");
    expect_message("block b(x) {\n  for i in 0..3 { x += f(i) }\n}\n", "`x = x + ...` binds");
    expect_message("train {\n  a = 1;b2*=2\n}\n", "`b2 = b2 * ...` binds");
    expect_message("block b(x) {\n  xs ++= [1]\n}\n", "`xs = xs ++ ...` binds");
    expect_message("block b(x) {\n  x //= 2\n}\n", "there is no '//='");
    expect_message("block b(x) {\n  x[0] -= 2\n}\n", "`x = x - ...` binds");
    expect_message("block b(x) {\n  y = x + = 2\n}\n", "expected an expression, got '='");
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
    return test_result();
}
