/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of options (cli_tables.c), from which cli_options.c parses and cli_help.c prints. */
#ifndef SCRIMP_FRONTEND_DRIVER_CLI_OPTIONS_H
#define SCRIMP_FRONTEND_DRIVER_CLI_OPTIONS_H

#include "frontend/driver/cli.h"
#include "ir/support/strbuf.h"

typedef enum FieldKind {
    FIELD_FLAG,
    FIELD_TEXT,
    FIELD_INT,
    FIELD_SEED, /* an integer up to 2^63 - 1, and that there is one */
    FIELD_FLOAT,
    FIELD_POSITIVE, /* a float above 0 */
    FIELD_DEFINE,
    FIELD_INPUT, /* may be given several times */
    FIELD_ERRORS
} FieldKind;

typedef struct OptionRow {
    const char *name; /* behind "--" */
    char letter;      /* behind "-", or 0 */
    FieldKind kind;
    size_t field; /* offset in Cli */
    const char *argument, *doc;
    int64_t least; /* FIELD_INT; FIELD_TEXT: the least length */
} OptionRow;

enum { CLI_MAX_OPTIONS = 96 };
extern const OptionRow cli_options[];
extern const int cli_n_options;

bool verb_takes(const Verb *v, const char *option);
/* A space and a word of a line for a shell. */
void cli_put_word(StrBuf *line, const char *word);

/* On standard output. */
void help_print_usage(void);
void help_print_verb(const Verb *v);
/* What -D can set in cli->file. */
ExitCode help_print_model_options(Cli *cli);

#endif
