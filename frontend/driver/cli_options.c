/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the arguments of the program to a verb and its settings. */
#include "frontend/driver/cli_options.h"

#include "ir/support/bug.h"
#include "ir/support/strbuf.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool verb_takes(const Verb *v, const char *option)
{
    size_t n = strlen(option);
    for (const char *p = strstr(v->options, option); p; p = strstr(p + 1, option))
        if ((p == v->options || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

static bool usage_error(ExitCode *code, const char *format, const char *a, const char *b)
{
    fputs("scrimp: error: ", stderr);
    fprintf(stderr, format, a, b);
    fputs("\n", stderr);
    *code = EXIT_USER;
    return false;
}

static bool range_error(ExitCode *code, const OptionRow *o, const char *text, const char *kind,
                        int64_t least)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s: not a number in range (a %s, %lld or more)", text, kind,
             (long long)least);
    return usage_error(code, "--%s %s", o->name, wanted);
}

static bool take_int(Cli *cli, const OptionRow *o, const char *text, ExitCode *code)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10), most = o->kind == FIELD_SEED ? INT64_MAX : INT32_MAX;
    if (end == text || *end || errno || v < o->least || v > most)
        return range_error(code, o, text, "whole number", o->least);
    int64_t value = v;
    memcpy((char *)cli + o->field, &value, sizeof value);
    cli->run.has_seed |= o->kind == FIELD_SEED;
    return true;
}

static bool take_float(Cli *cli, const OptionRow *o, const char *text, ExitCode *code)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < 0)
        return range_error(code, o, text, "number", 0);
    if (o->kind == FIELD_POSITIVE && v == 0)
        return usage_error(code, "--%s %s: not above 0", o->name, text);
    memcpy((char *)cli + o->field, &v, sizeof v);
    return true;
}

static bool take_define(Cli *cli, const char *text, ExitCode *code)
{
    const char *eq = strchr(text, '=');
    if (!eq || eq == text)
        return usage_error(code, "-D %s: write -D name=value%s", text, "");
    if (cli->source.n_defs == CLI_MAX_DEFS)
        return usage_error(code, "too many -D options%s%s", "", "");
    cli->source.defs[cli->source.n_defs++] =
        (OptionDef){pool_strndup(cli->pool, text, (size_t)(eq - text)), eq + 1};
    return true;
}

static bool take_input(Cli *cli, const char *text, ExitCode *code)
{
    if (cli->predict.n_inputs == CLI_MAX_INPUTS)
        return usage_error(code, "too many --input options%s%s", "", "");
    cli->predict.input[cli->predict.n_inputs++] = text;
    return true;
}

static bool take_option(Cli *cli, const OptionRow *o, const char *text, ExitCode *code)
{
    bool yes = true;
    switch (o->kind) {
    case FIELD_FLAG:
        memcpy((char *)cli + o->field, &yes, sizeof yes);
        return true;
    case FIELD_TEXT:
        if ((int64_t)strlen(text) < o->least)
            return usage_error(code, "--%s: its %s is empty", o->name, o->argument);
        memcpy((char *)cli + o->field, &text, sizeof text);
        return true;
    case FIELD_INT:
    case FIELD_SEED:
        return take_int(cli, o, text, code);
    case FIELD_FLOAT:
    case FIELD_POSITIVE:
        return take_float(cli, o, text, code);
    case FIELD_DEFINE:
        return take_define(cli, text, code);
    case FIELD_INPUT:
        return take_input(cli, text, code);
    case FIELD_ERRORS:
        cli->output.json_errors = strcmp(text, "json") == 0;
        return cli->output.json_errors || strcmp(text, "text") == 0 ||
               usage_error(code, "--error-format %s: write text or json%s", text, "");
    }
    return true;
}

static const Verb *find_verb(const char *name)
{
    for (const Verb *v = cli_verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

bool cli_takes(const Cli *cli, const char *option)
{
    return verb_takes(cli->verb, option);
}

static bool unknown_verb(const char *name, ExitCode *code)
{
    const char *names[32];
    size_t n = 0;
    for (const Verb *v = cli_verbs; v->name; v++)
        names[n++] = v->name;
    const char *nearest = nearest_word(name, names, n);
    if (nearest)
        return usage_error(code, "no verb is called '%s'; did you mean `%s`?", name, nearest);
    return usage_error(code, "no verb is called '%s'; `scrimp --help` lists them%s", name, "");
}

/* What getopt answers: a letter, or for a word its row's number from FIRST_ROW on. */
enum { HELP_VALUE = 256, FIRST_ROW };

/* getopt's tables from ours. */
static void fill_getopt(const Verb *v, struct option *longs, char *shorts)
{
    int n = 0;
    char *s = shorts;
    *s++ = ':';
    for (int i = 0; i < cli_n_options; i++) {
        const OptionRow *o = &cli_options[i];
        if (!verb_takes(v, o->name))
            continue;
        bool arg = o->kind != FIELD_FLAG;
        longs[n++] =
            (struct option){o->name, arg ? required_argument : no_argument, NULL, FIRST_ROW + i};
        if (o->letter) {
            *s++ = o->letter;
            if (arg)
                *s++ = ':';
        }
    }
    longs[n++] = (struct option){"help", no_argument, NULL, HELP_VALUE};
    longs[n] = (struct option){NULL, 0, NULL, 0};
    *s++ = 'h';
    *s = '\0';
}

static const OptionRow *row_of(int value)
{
    if (value >= FIRST_ROW)
        return &cli_options[value - FIRST_ROW];
    for (int i = 0; i < cli_n_options; i++)
        if (cli_options[i].letter && cli_options[i].letter == value)
            return &cli_options[i];
    BUG("getopt answers %d, which it was not given", value);
}

/* A word may be shortened as long as no other begins so (getopt_long does it).  "--no-masks,
 * --no-views" for "--no"; NULL: it is no beginning of several. */
static const char *options_that_begin(Pool *pool, const char *word, const Verb *v)
{
    const char *list = "";
    int found = 0;
    size_t n = strcspn(word, "=");
    for (int i = 0; i < cli_n_options && n > 2 && strncmp(word, "--", 2) == 0; i++) {
        const char *name = cli_options[i].name;
        if (strncmp(name, word + 2, n - 2) == 0 && verb_takes(v, name))
            list = pool_printf(pool, "%s%s--%s", list, found++ ? ", " : "", name);
    }
    return found > 1 ? list : NULL;
}

/* getopt has moved past an unknown word, but not past an unknown letter, which it leaves in optopt.
 * There it also leaves the value of a word that takes no argument and was given one. */
static bool unknown_option(Pool *pool, const char *word, const Verb *v, ExitCode *code)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt < HELP_VALUE;
    const char *several = is_letter ? NULL : options_that_begin(pool, word, v);
    if (several)
        return usage_error(code, "%s is short for several: %s", word, several);
    return usage_error(code, "%s: no such option; see `scrimp %s --help`",
                       is_letter ? letter : word, v->name);
}

static bool parse_options(Cli *cli, const Verb *v, int argc, char **argv, ExitCode *code)
{
    struct option longs[CLI_MAX_OPTIONS + 2];
    char shorts[2 * CLI_MAX_OPTIONS + 4];
    fill_getopt(v, longs, shorts);
    opterr = 0;
    optind = 0;
    int value;
    bool help = false;
    while ((value = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
        if (value == HELP_VALUE || value == 'h') {
            help = true;
            continue;
        }
        if (value == ':')
            return usage_error(code, "%s needs a value%s", argv[optind - 1], "");
        if (value == '?')
            return unknown_option(cli->pool, argv[optind - 1], v, code);
        if (!take_option(cli, row_of(value), optarg, code))
            return false;
    }
    cli->file = argv[optind];
    if (cli->source.graph && !cli->file && !help) { /* stands in for the file */
        cli->file = cli->source.graph;
        return true;
    }
    if (help) {
        help_print_verb(v);
        *code = cli->file && verb_takes(v, "define") ? help_print_model_options(cli) : EXIT_OK;
        return false;
    }
    bool may_lack = v->options[0] == '[' && optind == argc;
    if (optind + 1 != argc && !may_lack)
        return usage_error(code,
                           optind == argc ? "%s needs a file; see `scrimp %s --help`"
                                          : "%s takes one file; see `scrimp %s --help`",
                           v->name, v->name);
    return true;
}

/* "help VERB FILE" is "VERB FILE --help". */
static char **as_help_option(Pool *pool, int argc, char **argv)
{
    char **out = POOL_ARRAY(pool, (size_t)argc + 1, char *);
    out[0] = argv[0];
    for (int i = 2; i < argc; i++)
        out[i - 1] = argv[i];
    out[argc - 1] = pool_strdup(pool, "--help");
    return out;
}

/* A line for a shell; the program is called as users call it. */
static const char *join_words(Pool *pool, int argc, char **argv)
{
    StrBuf line = strbuf_new(pool);
    strbuf_put(&line, "scrimp");
    for (int i = 1; i < argc; i++)
        cli_put_word(&line, argv[i]);
    return line.text;
}

bool cli_parse(Cli *cli, int argc, char **argv, ExitCode *code)
{
    cli->generate.temperature = 0.8;
    cli->generate.tokens = 500;
    cli->ask.frontier = 5;
    cli->command = join_words(cli->pool, argc, argv);
    if (argc > 2 && strcmp(argv[1], "help") == 0)
        argv = as_help_option(cli->pool, argc, argv);
    cli->output.colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help_print_usage();
        *code = argc < 2 ? EXIT_USER : EXIT_OK;
        return false;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("scrimp " SCRIMP_VERSION);
        *code = EXIT_OK;
        return false;
    }
    cli->verb = find_verb(argv[1]);
    cli->argc = argc - 1;
    cli->argv = argv + 1;
    return cli->verb ? parse_options(cli, cli->verb, argc - 1, argv + 1, code)
                     : unknown_verb(argv[1], code);
}

/* --- more options --- */

static const char BLANKS[] = " \t\n";

/* The word at *text, unquoted, into room that is large enough; false where a quote does not end. */
static bool take_word(const char **text, char *word)
{
    char quote = 0;
    const char *p = *text;
    for (; *p && (quote || !strchr(BLANKS, *p)); p++) {
        if (quote ? *p == quote : *p == '"' || *p == '\'')
            quote = quote ? 0 : *p;
        else
            *word++ = *p;
    }
    *word = '\0';
    *text = p;
    return !quote;
}

static bool take_words(Pool *pool, const char *text, char **argv, int *argc)
{
    while (*(text += strspn(text, BLANKS))) {
        argv[*argc] = pool_alloc(pool, strlen(text) + 1);
        if (!take_word(&text, argv[(*argc)++]))
            return false;
    }
    return true;
}

Cli *cli_parse_more(const Cli *cli, const char *options, ExitCode *exit_code)
{
    Pool *pool = cli->pool;
    size_t n = (size_t)cli->argc;
    char **argv = POOL_ARRAY(pool, n + strlen(options) + 1, char *);
    Cli *more = POOL_NEW(pool, Cli);
    int argc = cli->argc;
    *more = (Cli){.pool = pool,
                  .diag = cli->diag,
                  .verb = cli->verb,
                  .command = cli->command,
                  .state = POOL_NEW(pool, DriverState),
                  .generate = cli->generate,
                  .output.colour = cli->output.colour};
    memcpy(argv, cli->argv, n * sizeof *argv);
    if (!take_words(pool, options, argv, &argc)) {
        usage_error(exit_code, "%s: a quote does not end%s", options, "");
        return NULL;
    }
    return parse_options(more, more->verb, argc, argv, exit_code) ? more : NULL;
}
