/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages as text and as JSON. */
#include "check.h"
#include "ir/support/diag.h"

#include <jansson.h>
#include <string.h>

static const char SOURCE[] = "block A() {\n\tx = linear(3)\n  y = h\xc3\xa9(x)\n}\n";

static const char *text_of(const Diag *diag, bool colour, bool json)
{
    static char text[16384];
    memset(text, 0, sizeof text);
    FILE *f = fmemopen(text, sizeof text - 1, "w");
    if (json)
        diag_print_json(diag, f);
    else
        diag_print(diag, f, colour);
    fclose(f);
    return text;
}

static Span span_at(const char *words, uint32_t file)
{
    uint32_t begin = (uint32_t)(strstr(SOURCE, words) - SOURCE);
    return (Span){file, begin, begin + (uint32_t)strlen(words)};
}

static void check_text(Pool *pool)
{
    Diag *diag = diag_new(pool);
    uint32_t file = diag_add_source(diag, "a.scrimp", SOURCE, strlen(SOURCE));
    diag_error(diag, span_at("linear", file), "E201", "layer has parameters but no %s", "label");
    diag_note(diag, span_at("A()", file), "in this block");
    diag_help(diag, "fc: linear(%d)", 3);
    diag_warning(diag, span_at("(x)", file), "W101", "odd");
    diag_error(diag, (Span){0}, "E301", "-D dept=1: no such option");
    CHECK(diag_error_count(diag) == 2);
    const char *expected = "a.scrimp:2:6: error[E201]: layer has parameters but no label\n"
                           "     x = linear(3)\n"
                           "         ^~~~~~\n"
                           "a.scrimp:1:7: note: in this block\n"
                           "    block A() {\n"
                           "          ^~~\n"
                           "    help: fc: linear(3)\n"
                           "a.scrimp:3:10: warning[W101]: odd\n"
                           "      y = h\xc3\xa9(x)\n"
                           "            ^~~\n"
                           "error[E301]: -D dept=1: no such option\n";
    CHECK_MSG(strcmp(text_of(diag, false, false), expected) == 0, "\n%s",
              text_of(diag, false, false));
    CHECK(strstr(text_of(diag, true, false), "\033[1;31m"));
    uint32_t line, column;
    diag_line_column(diag, (Span){file, 100000, 100000}, &line, &column);
    CHECK(line == 5 && column == 1);
    size_t length;
    CHECK(diag_source_text(diag, file, &length) == SOURCE && length == strlen(SOURCE));
    CHECK(!diag_source_name(diag, 9) && !diag_source_text(diag, 0, &length));
}

static json_int_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *string(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "(none)";
}

static void check_json(Pool *pool)
{
    Diag *diag = diag_new(pool);
    uint32_t file = diag_add_source(diag, "b\xff.scrimp", SOURCE, strlen(SOURCE));
    diag_error(diag, span_at("linear", file), "E201", "bad byte \xff \"here\"");
    diag_note(diag, span_at("A()", file), "first used here");
    diag_note(diag, (Span){0}, "nowhere");
    diag_help(diag, "one");
    diag_help(diag, "two");
    diag_warning(diag, (Span){0}, "W1", "w");
    json_t *root = json_loads(text_of(diag, false, true), 0, NULL);
    const json_t *errors = json_object_get(root, "errors"), *e = json_array_get(errors, 0);
    const json_t *notes = json_object_get(e, "notes"), *help = json_object_get(e, "help");
    CHECK(json_array_size(errors) == 2 && json_array_size(notes) == 2 &&
          json_array_size(help) == 2);
    CHECK(strcmp(string(e, "file"), "b?.scrimp") == 0);
    CHECK(strcmp(string(e, "message"), "bad byte ? \"here\"") == 0);
    CHECK(strcmp(string(e, "severity"), "error") == 0 && strcmp(string(e, "code"), "E201") == 0);
    CHECK(number(e, "line") == 2 && number(e, "column") == 6);
    CHECK(number(e, "end_line") == 2 && number(e, "end_column") == 12);
    CHECK(number(json_array_get(notes, 0), "line") == 1);
    CHECK(json_is_null(json_object_get(json_array_get(notes, 1), "file")));
    CHECK(strcmp(json_string_value(json_array_get(help, 1)), "two") == 0);
    CHECK(strcmp(string(json_array_get(errors, 1), "severity"), "warning") == 0);
    json_decref(root);
}

/* Control characters must not reach the terminal; long lines are cut around the caret; spans may
 * lie. */
static void check_hostile(Pool *pool)
{
    char source[1002];
    memset(source, 'a', sizeof source);
    source[495] = '\033';
    source[1001] = '\0';
    Diag *diag = diag_new(pool);
    uint32_t file = diag_add_source(diag, "c", source, 1001);
    diag_error(diag, (Span){file, 500, 4000000000u}, "E1", "long");
    diag_error(diag, (Span){file, 1001, 1001}, "E1", "at the end");
    diag_error(diag, (Span){file, 4000000000u, 1}, "E1", "past the end");
    diag_error(diag, (Span){77, 1, 2}, "E1", "no such file");
    const char *text = text_of(diag, false, false);
    CHECK(!strchr(text, '\033'));
    CHECK(strlen(text) < 1500);
    for (int i = 0; i < 30; i++) {
        diag_error(diag, (Span){0}, "E2", "error %d", i);
        diag_help(diag, "help %d", i);
    }
    text = text_of(diag, false, false);
    CHECK(diag_error_count(diag) == 34);
    CHECK(strstr(text, "help 15") && !strstr(text, "help 16"));
    CHECK(strstr(text, "... and 14 more errors"));
}

int main(void)
{
    Pool *pool = pool_new();
    check_text(pool);
    check_json(pool);
    check_hostile(pool);
    pool_free(pool);
    return test_result();
}
