/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Scanner of the IR reader: skips space and comments, reads one lexical thing at a time, reports
 * the first mistake and is then `failed`, after which every function returns false. */
#ifndef SCRIMP_IR_READ_SCAN_H
#define SCRIMP_IR_READ_SCAN_H

#include "ir/support/diag.h"

typedef struct Scanner {
    Pool *pool;
    Diag *diag;
    uint32_t file;
    const char *text;
    size_t length, at;
    size_t token; /* where the last thing read began */
    bool failed;
} Scanner;

/* Reports the first failure at text[begin..at) and returns false. */
bool scan_fail(Scanner *s, size_t begin, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds "did you mean ...?" to the failure just reported, when a candidate is near. */
void scan_suggest(Scanner *s, const char *word, const char *const *candidates, size_t n);

/* The next character after space and comments, '\0' at the end (or at a NUL, which nothing
 * accepts). */
char scan_peek(Scanner *s);
bool scan_at_end(Scanner *s);
/* Takes the punctuation when it comes next. */
bool scan_take(Scanner *s, const char *punctuation);
bool scan_expect(Scanner *s, const char *punctuation);
/* An identifier: letters, digits, '_'. */
bool scan_word(Scanner *s, const char **word);
/* Takes the word when it comes next. */
bool scan_take_word(Scanner *s, const char *word);
/* Name characters, or a quoted string. */
bool scan_name(Scanner *s, const char **name);
/* '%' or '$' and a name. */
bool scan_value_name(Scanner *s, const char **name);
bool scan_string(Scanner *s, const char **text);
bool scan_int(Scanner *s, int64_t *value);
bool scan_uint(Scanner *s, uint64_t *value, int base);
bool scan_double(Scanner *s, double *value);
bool scan_bool(Scanner *s, bool *value);
/* The rest of the line without surrounding spaces, unescaped. */
bool scan_rest_of_line(Scanner *s, const char **text);

#endif
