/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const optim_names[TRAIN_OPTIM_COUNT] = {
    "sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "lamb", "adafactor", "muon"};
const char *const lr_names[TRAIN_LR_COUNT] = {"constant", "step",         "linear",
                                              "cosine",   "inverse_sqrt", "formula"};

/* clang-format off */
#define FIELD(kind, key, member) {key, TRAIN_##kind, offsetof(TrainSpec, member)}
const TrainField train_fields[TRAIN_FIELD_COUNT] = {
    FIELD(OPTIM,  "optim",        rule.optim),
    FIELD(LR,     "lr",           rule.lr.kind),
    FIELD(DOUBLE, "base",         rule.lr.base),
    FIELD(DOUBLE, "min",          rule.lr.min),
    FIELD(DOUBLE, "warmup",       rule.lr.warmup),
    FIELD(BOOL,   "in_epochs",    rule.lr.in_epochs),
    FIELD(DOUBLE, "every",        rule.lr.every),
    FIELD(DOUBLE, "factor",       rule.lr.factor),
    FIELD(DOUBLE, "start",        rule.lr.start),
    FIELD(DOUBLE, "power",        rule.lr.power),
    FIELD(DOUBLE, "scale",        rule.lr.scale),
    FIELD(TEXT,   "formula",      rule.lr.formula),
    FIELD(DOUBLE, "momentum",     rule.momentum),
    FIELD(DOUBLE, "dampening",    rule.dampening),
    FIELD(BOOL,   "nesterov",     rule.nesterov),
    FIELD(BOOL,   "gradient_free", rule.gradient_free),
    FIELD(DOUBLE, "weight_decay", rule.weight_decay),
    FIELD(BOOL,   "decay_matrices_only", rule.decay_matrices_only),
    FIELD(DOUBLE, "beta1",        rule.beta1),
    FIELD(DOUBLE, "beta2",        rule.beta2),
    FIELD(DOUBLE, "eps",          rule.eps),
    FIELD(DOUBLE, "clip",         rule.clip),
    FIELD(DOUBLE, "clip_value",   rule.clip_value),
    FIELD(DOUBLE, "alpha",        rule.alpha),
    FIELD(BOOL,   "centered",     rule.centered),
    FIELD(DOUBLE, "lr_decay",     rule.lr_decay),
    FIELD(DOUBLE, "initial",      rule.initial),
    FIELD(DOUBLE, "beta2_decay",  rule.beta2_decay),
    FIELD(DOUBLE, "clip_update",  rule.clip_update),
    FIELD(INT,    "ns_steps",     rule.ns_steps),
    FIELD(BOOL,   "match_rms",    rule.match_rms),
    FIELD(GROUPS, "groups",       group),
    FIELD(DOUBLE, "ema",          ema),
    FIELD(INT,    "steps",        steps),
    FIELD(DOUBLE, "epochs",       epochs),
    FIELD(INT,    "accumulate",   accumulate),
    FIELD(DOUBLE, "held_out",     held_out),
    FIELD(BOOL,   "held_out_is_part", held_out_is_part),
    FIELD(INT,    "eval_every",   eval_every),
    FIELD(INT,    "patience",     patience),
    FIELD(UINT,   "seed",         seed),
    FIELD(TEXT,   "precision",    precision),
    FIELD(TEXT,   "data",         data_kind),
    FIELD(TEXT,   "path",         data_path),
    FIELD(INT,    "batch",        data_batch),
    FIELD(INT,    "length",       data_length),
    FIELD(BOOL,   "chars",        data_chars),
    FIELD(INT,    "size",         data_size),
    FIELD(INT,    "resize",       data_resize),
    FIELD(BOOL,   "augment",      data_augment),
    FIELD(DOUBLE, "mean_red",     data_mean[0]),
    FIELD(DOUBLE, "mean_green",   data_mean[1]),
    FIELD(DOUBLE, "mean_blue",    data_mean[2]),
    FIELD(DOUBLE, "std_red",      data_std[0]),
    FIELD(DOUBLE, "std_green",    data_std[1]),
    FIELD(DOUBLE, "std_blue",     data_std[2]),
    FIELD(TEXT,   "budget",       budget_text),
    FIELD(TEXT,   "solver",       solver),
    FIELD(TEXT,   "objective",    objective),
    FIELD(TEXT,   "cost",         cost),
};
/* clang-format on */

bool text_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_.~#/-+@[]", c));
}

static void put_escaped(StrBuf *b, char c)
{
    unsigned char u = (unsigned char)c;
    if (c == '\\')
        strbuf_put(b, "\\\\");
    else if (c == '\n')
        strbuf_put(b, "\\n");
    else if (c == '\t')
        strbuf_put(b, "\\t");
    else if (u < 32 || u == 127)
        strbuf_printf(b, "\\x%02x", u);
    else
        strbuf_putn(b, &c, 1);
}

void text_put_string(StrBuf *b, const char *s)
{
    strbuf_put(b, "\"");
    for (; *s; s++) {
        if (*s == '"')
            strbuf_put(b, "\\\"");
        else
            put_escaped(b, *s);
    }
    strbuf_put(b, "\"");
}

void text_put_rest_of_line(StrBuf *b, const char *s)
{
    if (*s == ' ') /* the reader skips spaces here */
        strbuf_put(b, "\\x20"), s++;
    for (; *s; s++)
        put_escaped(b, *s);
}

void text_put_name(StrBuf *b, const char *s)
{
    const char *c = s;
    while (text_is_name_char(*c))
        c++;
    /* A leading '#' would read as a comment. */
    if (*c || !*s || *s == '#')
        text_put_string(b, s);
    else
        strbuf_put(b, s);
}

void text_put_double(StrBuf *b, double x)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    if (strstr(text, "e+") && fabs(x) < 1e15) /* a whole number */
        snprintf(text, sizeof text, "%.0f", x);
    strbuf_put(b, x != x ? "nan" : text);
}

int text_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}
