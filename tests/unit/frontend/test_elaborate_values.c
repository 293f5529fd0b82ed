/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compile-time values: the language checks itself with `assert`. */
#include "check.h"
#include "tests/support/elaborate_text.h"

#include <stdlib.h>
#include <string.h>

static const char facts[] =
    "option N = 4, list = [1, 2, 3], name = \"abc\", concat = \"layer\"\n"
    "block Twice(x, f) { return x |> f() |> f() }\n"
    "block Depth(x, n) {\n"
    "  if n == 0 { return x } else { return Depth(x + 1, n - 1) }\n"
    "}\n"
    "block Pair(x) { return x, x * 2 }\n"
    "model m(x: f32[N, 8]) {\n"
    /* Python's integers and floats */
    "  assert 7 // 2 == 3 and -7 // 2 == -4 and 7 mod 3 == 1 and -7 mod 3 == 2 and 7 mod -3 == -2\n"
    "  assert 1 / 4 == 0.25 and 2**10 == 1024 and 2**-1 == 0.5 and -2**2 == -4 and 7.5 // 2 == "
    "3.0\n"
    "  assert 1e3 == 1000 and not (1 == 2) and 3 != 4 and 1 <= 1 and 2 > 1.5\n"
    "  assert floor(-2.7) == -3 and ceil(-2.7) == -2 and ceil(2.1) == 3 and floor(4) == 4\n"
    "  assert sum([1, 2][0..0]) == 0\n"
    "  assert int(-2.7) == -2 and round(2.6) == 3 and float(2) == 2.0 and int(true) == 1\n"
    "  assert min(3, 1, 2) == 1 and max([4, 9, 2]) == 9 and sum([1, 2, 3]) == 6 and abs(-3) == 3\n"
    "  assert sqrt(16) == 4.0 and maximum(2, 3) == 3 and minimum(2, 3) == 2\n"
    /* lists, ranges, strings */
    "  assert list ++ [4] == [1, 2, 3, 4] and len(0..5) == 5 and len(1..=5) == 5 and len(5..0) == "
    "0\n"
    "  assert [i * i for i in 0..4] == [0, 1, 4, 9] and [a + b for a, b in zip([1, 2], [3, 4])] == "
    "[4, 6]\n"
    "  assert list[-1] == 3 and list[1..] == [2, 3] and list[..-1] == [1, 2] and list[0..=1] == "
    "[1, 2]\n"
    "  assert reversed(list) == [3, 2, 1] and enumerate([\"a\"]) == [[0, \"a\"]]\n"
    "  assert range(3) == [0, 1, 2] and range(5, 0, step = -2) == [5, 3, 1] and range(2, 4) == [2, "
    "3]\n"
    "  assert \"layer{1 + 1}.{name}\" == \"layer2.abc\" and len(name) == 3 and \"a\" ++ \"b\" == "
    "\"ab\"\n"
    /* control */
    "  n = 0\n"
    "  for i, v in enumerate([10, 20]) { n = n + i * v }\n"
    "  assert n == 20\n"
    "  if n > 100 { n = 1 } else if n == 20 { n = 2 } else { n = 3 }\n"
    "  assert n == 2 and (5 if n == 2 else 6) == 5\n"
    "  assert (match n { 1, 2 => \"low\"; _ => \"high\" }) == \"low\"\n"
    "  assert false and 1 // 0 == 1 or true\n"
    /* a plain value does not hide a function of the same name where it is called */
    "  silu = silu(x)\n"
    "  assert concat == \"layer\" and concat([silu(silu), x], axis = 0).shape == [8, 8]\n"
    /* tensors are known to the compile-time world by their shape */
    "  assert x.shape == [4, 8] and x.rank == 2 and len(x) == 4 and x.dtype == \"f32\"\n"
    "  y = Twice(x, relu)\n"
    "  assert Depth(y, 5).shape == x.shape\n"
    "  a, b = Pair(x)\n"
    "  assert x[0].shape == [8] and x[.., 2..6].shape == [4, 4] and x[-1, 3..].shape == [5]\n"
    "  assert stack([a, b]).shape == [2, 4, 8] and stack([a, b], axis = -1).shape == [4, 8, 2]\n"
    "  assert [t.shape for t in split(x, [3, 5])] == [[4, 3], [4, 5]] and len(split(x, 4)) == 4\n"
    "  assert transpose(x, 0, 1).shape == [8, 4] and reshape(x, [2, -1]).shape == [2, 16]\n"
    "  assert sum(x).shape == [] and mean(x, axis = 1).shape == [4] and max(x, axis = [0], "
    "keepdims = true).shape == [1, 8]\n"
    "  assert (x > 0).dtype == \"bool\" and (x[.., 0] == 1).shape == [4] and argmax(x).shape == "
    "[4]\n"
    "  assert pad(x, [0, 1], [2, 0]).shape == [6, 9] and zeros([2, 3], dtype = i32).dtype == "
    "\"i32\"\n"
    "  assert clamp(3, lo = 5) == 5 and clamp(3, hi = 2) == 2 and clamp(iota(3), 1, 2).dtype == "
    "\"i32\"\n"
    "  assert clamp(leaky_relu(elu(x, 2), slope = 0.2), -1).shape == relu6(softplus(x)).shape\n"
    "  assert prod(x).shape == [] and prod(x, axis = [0, 1], keepdims = true).shape == [1, 1]\n"
    "  assert prod(x, axis = 0).shape == [8] and cumsum(x > 0, -1, reverse = true).dtype == "
    "\"i32\"\n"
    "  assert cumprod(cast(x, u8), 1).dtype == \"i32\" and prod(x > 0).dtype == \"i32\"\n"
    "  values, index = topk(x, 3)\n"
    "  assert values.shape == [4, 3] and index.dtype == \"i32\" and sort(x).dtype == \"f32\"\n"
    "  assert argsort(x, descending = true).shape == [4, 8]\n"
    "  assert gather(x, index, -1).shape == [4, 3] and gather(x, slice(index, 0, 2), 1).shape == "
    "[2, "
    "3]\n"
    "  assert scatter_add(x, index, values, 1).shape == [4, 8]\n"
    "  assert scatter_add(x, index[0..2], values, 1).shape == [4, 8]\n"
    "  assert index_select(x, iota(2), 0).shape == [2, 8] and index_select(x, iota(2), 1).shape == "
    "[4, 2]\n"
    "  assert index_select(stack([x, x]), iota(3), 1).shape == [2, 3, 8]\n"
    "  return a + b\n"
    "}\n";

static void check_facts(void)
{
    Elaborated r = elaborate_text(facts, FRONTEND_INFER);
    CHECK_MSG(r.graph != NULL, "%s", r.errors);
    elaborated_free(&r);
}

/* expr in the middle of a model must give this code (and only once). */
static void check_error(const char *expr, const char *code)
{
    char text[1024];
    snprintf(text, sizeof text,
             "option N = 4\nblock B(x: [_, C], k = 1) { return x }\nmodel m(x: f32[N, 8]) {\n  y = "
             "%s\n  return x\n}\n",
             expr);
    Elaborated r = elaborate_text(text, FRONTEND_INFER);
    CHECK_MSG(r.graph == NULL && strstr(r.errors, code), "%s: wanted %s, got %s", expr, code,
              r.errors);
    CHECK_MSG(diag_error_count(r.diag) == 1, "%s: %d errors: %s", expr, diag_error_count(r.diag),
              r.errors);
    elaborated_free(&r);
}

static const struct {
    const char *expr, *code;
} mistakes[] = {
    {"1 // 0", "E209"},
    {"1 / 0", "E209"},
    {"9223372036854775807 + 1", "E209"},
    {"2 ** 64", "E209"},
    {"int(1e30)", "E209"},
    {"[1, 2][2]", "E105"},
    {"[1, 2][1..4]", "E105"},
    {"x[.., 3..9]", "E105"},
    {"x[4]", "E105"},
    {"x[0, 0, 0]", "E105"},
    {"1 + \"a\"", "E205"},
    {"not 3", "E205"},
    {"5 if 1 else 6", "E205"},
    {"match 3 { 1 => 2 }", "E205"},
    {"[i for i in 3]", "E205"},
    {"3(4)", "E205"},
    {"x |> 5", "E205"},
    {"x.size", "E203"},
    {"$nothing.weight", "E203"},
    {"0..99999999999", "E208"},
    {"range(9999999999)", "E208"},
    {"range(1, 5, step = 0)", "E209"},
    {"sum(x, axis = 2)", "E105"},
    {"softmax(x, axis = -3)", "E105"},
    {"x |> fc: linear()", "E206"},
    {"x |> fc: linear(4, true, out_in, none, 8)", "E206"},
    {"x |> fc: linear(0)", "E105"},
    {"x |> fc: linear(4, layout = sideways)", "E205"},
    {"x |> fc: linear(4, init = \"big\")", "E205"},
    {"x |> fc: linear(4, bais = false)", "E206"},
    {"x |> c: conv(4, 3)", "E103"},
    {"affine(x)", "E206"},
    {"affine(x, x[.., 1..])", "E101"},
    {"affine(x, x, x)", "E101"},
    {"affine(x, x[0])", "E103"},
    {"x |> dropout(1.5)", "E105"},
    {"gather(x, iota(3), 0)", "E101"},
    {"gather(x, x, 0)", "E104"},
    {"scatter_add(x, iota(3), iota(3), 0)", "E101"},
    {"scatter_add(x, cast(x, i32), x[0..1], 0)", "E101"},
    {"index_select(x, cast(x, i32), 0)", "E103"},
    {"index_select(x, iota(3), 2)", "E105"},
    {"sort(x, axis = 0)", "E105"},
    {"argsort(x > 0)", "E104"},
    {"topk(x, 9)", "E105"},
    {"topk(x, 0)", "E105"},
    {"prod(x, axis = 2)", "E105"},
    {"cumsum(x, 2)", "E105"},
    {"cumsum(x)", "E206"},
    {"randn([4, 0])", "E108"},
    {"randn(2.5)", "E205"},
    {"randint([4], 0)", "E105"},
    {"randint([4], 3, 3)", "E105"},
    {"randint([4], 2147483649)", "E105"},
    {"randint([4], -2147483649, 5)", "E105"},
    {"bernoulli(1.5, [4])", "E105"},
    {"bernoulli(0.5)", "E206"},
    {"bernoulli(x, [3])", "E101"},
    {"bernoulli(x, [4])", "E101"},
    {"bernoulli(iota(3))", "E104"},
    {"clamp(x)", "E105"},
    {"clamp(iota(3), 0.5)", "E104"},
    {"elu(x, alpha = -1)", "E105"},
    {"softplus(x, beta = 0)", "E105"},
    {"x |> reshape([5, 5])", "E107"},
    {"x |> transpose([0, 0])", "E105"},
    {"split(x, 3)", "E105"},
    {"concat([x, x[0]], axis = 0)", "E102"},
    {"concat([], axis = 0)", "E206"},
    {"x ++ x", "E205"},
    {"x mod 2", "E205"},
    {"x + relu", "E204"},
    {"cast(x, f33)", "E205"},
    {"rearrange(x, \"a b -> a c\")", "E105"},
    {"rearrange(x, \"a (b c) -> a b c\")", "E105"},
    {"rearrange(x, \"a (b c) -> a b c\", b = 3)", "E101"},
    {"rearrange(x, \"a b\")", "E105"},
    {"rearrange(x, \"a b -> (a b\")", "E105"},
    {"rearrange(x, \"a b -> b a\", q = 2)", "E206"},
    {"einsum(\"i j, j k -> i k\", x, x)", "E101"},
    {"einsum(\"i j -> i k\", x)", "E105"},
    {"einsum(\"i j, j k -> i k\", x)", "E206"},
    {"einsum(\"i i -> i\", x)", "E105"},
    {"einsum(\"i j k -> i\", x)", "E103"},
    {"B(x, z = 2)", "E206"},
    {"B()", "E206"},
    {"B(x, 1, 2)", "E206"},
    {"B(5)", "E205"},
    {"B(x[0])", "E103"},
    {"mnist(\"data\", batch = N)", "E210"},
    {"\"{x}\"", "E205"},
    {"h[-1]: relu(x)", "E205"},
    {"\"a b\": relu(x)", "E205"},
    {"lower(1)", "E203"},
    {"zeros([0])", "E108"},
    {"full([99999999999, 99999999999], 1)", "E108"},
    {"accuracy(x, zeros([3], dtype = i32))", "E101"},
    {"x |> seq { fc: linear(3); return 2 }", "E210"},
};

static void check_limits(void)
{
    Elaborated r = elaborate_text(
        "block F(x, n) { return F(x, n + 1) }\nmodel m(x: f32[4]) { return F(x, 0) }\n",
        FRONTEND_INFER);
    CHECK_MSG(strstr(r.errors, "E208") && diag_error_count(r.diag) == 1, "%s", r.errors);
    elaborated_free(&r);
    r = elaborate_text(
        "model m(x: f32[4]) {\n  for i in 0..10000 { for j in 0..10000 { x = x + 1 } "
        "}\n  return x\n}\n",
        FRONTEND_INFER);
    CHECK_MSG(strstr(r.errors, "E208") && diag_error_count(r.diag) == 1, "%s", r.errors);
    elaborated_free(&r);
    r = elaborate_text(
        "model m(x: f32[4]) {\n  a = [1]\n  for i in 0..100 { a = a ++ a }\n  return x\n}\n",
        FRONTEND_INFER);
    CHECK_MSG(strstr(r.errors, "E208") && diag_error_count(r.diag) == 1, "%s", r.errors);
    elaborated_free(&r);
    r = elaborate_text(
        "model m(x: f32[4]) {\n  a = \"a\"\n  for i in 0..100 { a = \"{a}{a}\" }\n  return x\n}\n",
        FRONTEND_INFER);
    CHECK_MSG(strstr(r.errors, "E208") && diag_error_count(r.diag) == 1, "%s", r.errors);
    elaborated_free(&r);
}

int main(void)
{
    check_facts();
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        check_error(mistakes[i].expr, mistakes[i].code);
    check_limits();
    return test_result();
}
