/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From settings back to a command line. */
#include "frontend/driver/cli_options.h"

#include "ir/text.h"

#include <string.h>

static bool needs_quotes(const char *word)
{
    return !*word || word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_-+=.,:/@%")];
}

void cli_put_word(StrBuf *line, const char *word)
{
    bool quoted = needs_quotes(word);
    strbuf_put(line, quoted ? " '" : " ");
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            strbuf_put(line, "'\\''");
        else
            strbuf_putn(line, c, 1);
    strbuf_put(line, quoted ? "'" : "");
}

static const void *field_of(const Cli *cli, const OptionRow *o)
{
    return (const char *)cli + o->field;
}

static const char *text_of(const Cli *cli, const OptionRow *o)
{
    return *(const char *const *)field_of(cli, o);
}

static int64_t int_of(const Cli *cli, const OptionRow *o)
{
    return *(const int64_t *)field_of(cli, o);
}

static double float_of(const Cli *cli, const OptionRow *o)
{
    return *(const double *)field_of(cli, o);
}

static bool is_set(const Cli *cli, const OptionRow *o)
{
    switch (o->kind) {
    case FIELD_FLAG:
        return *(const bool *)field_of(cli, o);
    case FIELD_TEXT:
        return text_of(cli, o) != NULL;
    case FIELD_INT:
        return int_of(cli, o) != 0;
    case FIELD_SEED:
        return cli->run.has_seed;
    case FIELD_FLOAT:
    case FIELD_POSITIVE:
        return float_of(cli, o) != 0;
    case FIELD_DEFINE:
        return cli->source.n_defs > 0;
    case FIELD_INPUT:
        return cli->predict.n_inputs > 0;
    case FIELD_ERRORS:
        return cli->output.json_errors;
    }
    return false;
}

bool cli_is_set(const Cli *cli, const char *option)
{
    for (int i = 0; i < cli_n_options; i++)
        if (strcmp(cli_options[i].name, option) == 0)
            return is_set(cli, &cli_options[i]);
    return false;
}

static const char *value_of(const Cli *cli, const OptionRow *o)
{
    StrBuf number = strbuf_new(cli->pool);
    switch (o->kind) {
    case FIELD_TEXT:
        return text_of(cli, o);
    case FIELD_INT:
    case FIELD_SEED:
        return pool_printf(cli->pool, "%lld", (long long)int_of(cli, o));
    case FIELD_FLOAT:
    case FIELD_POSITIVE:
        text_put_double(&number, float_of(cli, o));
        return number.text;
    case FIELD_ERRORS:
        return "json";
    case FIELD_FLAG:
    case FIELD_DEFINE:
    case FIELD_INPUT:
        break;
    }
    return "";
}

static void put_defines(const Cli *cli, StrBuf *line)
{
    for (int i = 0; i < cli->source.n_defs; i++) {
        const OptionDef *d = &cli->source.defs[i];
        strbuf_put(line, " -D");
        cli_put_word(line, pool_printf(cli->pool, "%s=%s", d->name, d->value));
    }
}

static void put_inputs(const Cli *cli, StrBuf *line)
{
    for (int i = 0; i < cli->predict.n_inputs; i++) {
        strbuf_put(line, " --input");
        cli_put_word(line, cli->predict.input[i]);
    }
}

static bool is_among(const char *word, const char *words)
{
    const Verb list = {.options = words};
    return verb_takes(&list, word);
}

const char *cli_command_for(const Cli *cli, const char *verb, const char *without)
{
    const Verb *v = cli_verbs;
    StrBuf line = strbuf_new(cli->pool);
    while (v->name && strcmp(v->name, verb) != 0)
        v++;
    strbuf_printf(&line, "scrimp %s", verb);
    cli_put_word(&line, cli->file);
    for (int i = 0; i < cli_n_options; i++) {
        const OptionRow *o = &cli_options[i];
        if (!verb_takes(v, o->name) || is_among(o->name, without) || !is_set(cli, o))
            continue;
        if (o->kind == FIELD_DEFINE) {
            put_defines(cli, &line);
            continue;
        }
        if (o->kind == FIELD_INPUT) {
            put_inputs(cli, &line);
            continue;
        }
        strbuf_printf(&line, " --%s", o->name);
        if (o->kind != FIELD_FLAG)
            cli_put_word(&line, value_of(cli, o));
    }
    return line.text;
}
