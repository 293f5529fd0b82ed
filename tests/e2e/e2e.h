/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Running the scrimp program as a user does, from C: no other tool is needed. */
#ifndef SCRIMP_TESTS_E2E_H
#define SCRIMP_TESTS_E2E_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct Result {
    int code;                 /* exit code; -signal when killed */
    char *out, *err;          /* what it printed */
    int64_t max_resident;     /* peak in bytes, of a command that starts with exec */
    double seconds;           /* by the clock: how busy the machine is counts */
    double processor_seconds; /* its own and those of the processes that it waited for */
} Result;

/* Runs a command line with a shell; $SCRIMP, $EXAMPLES and $TMP are set: the program, the examples'
 * folder, and a folder of this test that is empty at first and removed at the end.  $NO_LINKS and
 * $LATE_DISK are libraries for LD_PRELOAD: a file system without links, and a disk so slow that a
 * run that saves is still there when the test comes to it.  With SCRIMP_ON_DEVICE=1 in the
 * environment, verbs that run steps run them on the simulated device; $SCRIMP_HOST does not. */
Result run(const char *format, ...) __attribute__((format(printf, 1, 2)));
void result_free(Result *r);
/* Runs and parses standard output; NULL (and a failed CHECK) when the exit code is not `code` or it
 * is not JSON. */
json_t *run_json(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
double json_get_number(const json_t *o, const char *key);
/* The test's folder. */
const char *e2e_tmp(void);
/* A path there; good for four calls. */
const char *in_tmp(const char *name);
/* Whole file, NUL-terminated; NULL when it cannot be read. */
char *read_text(const char *path, long *length);
/* The last value of a key in a log of one JSON object a line; NaN when there is none. */
double last_in_log(const char *path, const char *key);
/* Writes a small IDX pair (train-images-idx3-ubyte, train-labels-idx1-ubyte) of learnable digits
 * into $TMP/idx. */
void make_digits(int64_t n);
/* Writes n bytes of learnable text. */
void make_text(const char *path, int64_t n);
/* Writes n tokens of 16 bits, all below 300. */
void make_tokens(const char *path, int n);

void e2e_begin(void);
int e2e_end(void); /* main's exit status */
void check_true(bool ok, const char *file, int line, const char *what, const char *detail);
#define EXPECT(cond, detail) check_true((cond), __FILE__, __LINE__, #cond, (detail))

/* Runs a command: it ends with this code, and standard error holds `error` (NULL: anything). */
void expect_run(int code, const char *error, const char *command);
/* The same in the test's folder. */
void expect_there(int code, const char *error, const char *command);
/* The same of either output. */
void expect_said(int code, const char *said, const char *command);
void expect_ok(const char *command);

#endif
