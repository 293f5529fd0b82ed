/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Long files: as many options, names, blocks, arguments, statements and mistakes as fit take time
 * in proportion.  Where one of them is looked for among all others, this takes longer than a test
 * may. */
#include "check.h"
#include "tests/support/elaborate_text.h"

#include "ir/support/strbuf.h"

#include <string.h>

/* AddressSanitizer makes it ten times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { MANY = 20000 };
#else
enum { MANY = 100000 };
#endif

static const char head[] = "model m(x: f32[4, 8]) {\n  y = 0\n";

/* before; MANY times repeat, where # is the number of the repetition and @ that of the one before;
 * after, where # is MANY. */
static const char *long_text(Pool *pool, const char *before, const char *repeat, const char *after)
{
    StrBuf b = strbuf_new(pool);
    strbuf_put(&b, before);
    for (int i = 1; i <= MANY; i++)
        for (const char *c = repeat; *c; c++)
            if (*c == '#')
                strbuf_printf(&b, "%d", i);
            else if (*c == '@')
                strbuf_printf(&b, "%d", i - 1);
            else
                strbuf_printf(&b, "%c", *c);
    for (const char *c = after; *c; c++)
        if (*c == '#')
            strbuf_printf(&b, "%d", MANY);
        else
            strbuf_printf(&b, "%c", *c);
    return b.text;
}

typedef struct LongCase {
    const char *before, *repeat, *after;
    int errors;
} LongCase;

static const LongCase cases[] = {
    {"model m(x: f32[4, 8]) {\n  return x", "\n  |> relu()", "\n}\n", 0},
    {"model m(x: f32[4, 8]) {\n  return x", " |> relu()", "\n}\n", 0},
    {"option o0 = 1\n", "option o# = o@ + 1\n", "model m(x: f32[4, 8]) { return x * o# }\n", 0},
    {head, "  x = relu(x)\n", "  return x\n}\n", 0},
    {"model m(x: f32[4, 8]) {\n  a0 = x\n", "  a# = a@ + 1\n", "  return a#\n}\n", 0},
    {"block b0(x) { return x }\n", "block b#(x) { return b0(x) }\n",
     "model m(x: f32[4, 8]) { return x |> b#() }\n", 0},
    {"block b(x", ", p# = 0", ") { return x }\nmodel m(x: f32[4, 8]) { return x |> b(p1 = 2) }\n",
     0},
    {head, "  y = y + max([1, #])\n", "  return x\n}\n", 0},
    {"model m(x: f32[4, 8]) {\n  l = [0", ",\n  #", "]\n  return x * l[-1]\n}\n", 0},
    {"model m(x: f32[4, 8]) {\n  s = \"", "{#}, ", "\"\n  return x\n}\n",
     1}, /* too long a string */
    {head, "  a# = nothing#\n", "  return x\n}\n", MANY},
    {head, "  y = x + zeros([3])\n", "  return x\n}\n", MANY},
    {"block b(x) { return x }\n", "block b(x) { return x }\n",
     "model m(x: f32[4, 8]) { return x }\n", MANY},
};

/* b(p1 = 1, p2 = 2, ...) of a block that takes them. */
static void check_named_arguments(void)
{
    Pool *pool = pool_new();
    const char *block = long_text(pool, "block b(x", ", p#", ") { return x * p7 }\n");
    const char *call =
        long_text(pool, "model m(x: f32[4, 8]) { return x |> b(p0 = 0", ", p# = #", ") }\n");
    const char *from = strstr(call, "p0 = 0, ");
    Elaborated r = elaborate_text(
        pool_printf(pool, "%s%.*s%s", block, (int)(from - call), call, from + 8), FRONTEND_INFER);
    CHECK_MSG(r.graph, "%s", r.errors);
    elaborated_free(&r);
    pool_free(pool);
}

/* No function is akin to a name as long as a file. */
static void check_long_name(void)
{
    Pool *pool = pool_new();
    const char *text = long_text(pool, "model m(x: f32[4, 8]) { return ", "layernorm", "(x) }\n");
    Elaborated r = elaborate_text(text, FRONTEND_INFER);
    CHECK(diag_error_count(r.diag) == 1);
    CHECK(strstr(r.errors, "docs/language.md lists the functions") != NULL);
    elaborated_free(&r);
    pool_free(pool);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const LongCase *c = &cases[i];
        Pool *pool = pool_new();
        Elaborated r =
            elaborate_text(long_text(pool, c->before, c->repeat, c->after), FRONTEND_INFER);
        CHECK_MSG(diag_error_count(r.diag) == c->errors, "%s: %d errors, not %d: %.2000s",
                  c->repeat, diag_error_count(r.diag), c->errors, r.errors);
        elaborated_free(&r);
        pool_free(pool);
    }
    check_named_arguments();
    check_long_name();
    return test_result();
}
