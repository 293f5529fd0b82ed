/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The parser at its limits: deep nesting, damaged texts, no memory. */
#include "check.h"
#include "tests/support/parse_text.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

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
    test_depth();
    test_damaged_texts();
    test_out_of_memory();
    return test_result();
}
