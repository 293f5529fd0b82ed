/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/lr_formula.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 1000, MAX_ARITY = 3, MAX_NAME = 15 };

/* clang-format off */
#define FUNCTIONS(F)                       \
    F(add, 2, a[0] + a[1])                 \
    F(sub, 2, a[0] - a[1])                 \
    F(mul, 2, a[0] * a[1])                 \
    F(div, 2, a[0] / a[1])                 \
    F(pow, 2, pow(a[0], a[1]))             \
    F(floordiv, 2, floor(a[0] / a[1]))     \
    F(mod, 2, a[0] - a[1] * floor(a[0] / a[1])) \
    F(min, 2, a[0] < a[1] ? a[0] : a[1])   \
    F(max, 2, a[0] > a[1] ? a[0] : a[1])   \
    F(lt, 2, a[0] < a[1])                  \
    F(le, 2, a[0] <= a[1])                 \
    F(gt, 2, a[0] > a[1])                  \
    F(ge, 2, a[0] >= a[1])                 \
    F(where, 3, a[0] != 0 ? a[1] : a[2])   \
    F(neg, 1, -a[0])                       \
    F(abs, 1, fabs(a[0]))                  \
    F(sqrt, 1, sqrt(a[0]))                 \
    F(rsqrt, 1, 1 / sqrt(a[0]))            \
    F(exp, 1, exp(a[0]))                   \
    F(log, 1, log(a[0]))                   \
    F(sin, 1, sin(a[0]))                   \
    F(cos, 1, cos(a[0]))
/* clang-format on */

#define DEFINE(name, arity, value)                                                                 \
    static double call_##name(const double *a)                                                     \
    {                                                                                              \
        return value;                                                                              \
    }
FUNCTIONS(DEFINE)
#undef DEFINE

typedef struct Function {
    const char *name;
    int arity;
    double (*call)(const double *a);
} Function;

static const Function functions[] = {
#define ROW(name, arity, value) {#name, arity, call_##name},
    FUNCTIONS(ROW)
#undef ROW
};

static const struct {
    const char *name;
    size_t offset;
} variables[] = {
    {"step", offsetof(LrVariables, step)},         {"total", offsetof(LrVariables, total)},
    {"progress", offsetof(LrVariables, progress)}, {"epoch", offsetof(LrVariables, epoch)},
    {"now", offsetof(LrVariables, now)},           {"end", offsetof(LrVariables, end)}};

static const Function *find_function(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

int lr_formula_arity(const char *function)
{
    const Function *f = find_function(function);
    return f ? f->arity : 0;
}

typedef struct Parser {
    const char *at;
    const LrVariables *variables;
    int depth;
} Parser;

static bool parse(Parser *p, double *out);

static bool take(Parser *p, char c)
{
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool parse_call(Parser *p, const char *name, double *out)
{
    const Function *f = find_function(name);
    double a[MAX_ARITY] = {0};
    if (!f)
        return false;
    for (int i = 0; i < f->arity; i++)
        if ((i && !take(p, ',')) || !parse(p, &a[i]))
            return false;
    *out = f->call(a);
    return take(p, ')');
}

static bool parse_variable(const Parser *p, const char *name, double *out)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        if (strcmp(variables[i].name, name) != 0)
            continue;
        memcpy(out, (const char *)p->variables + variables[i].offset, sizeof *out);
        return true;
    }
    return false;
}

static bool parse_name(Parser *p, double *out)
{
    char name[MAX_NAME + 1];
    size_t n = 0;
    while (islower((unsigned char)*p->at) && n < MAX_NAME)
        name[n++] = *p->at++;
    name[n] = '\0';
    return take(p, '(') ? parse_call(p, name, out) : parse_variable(p, name, out);
}

static bool parse(Parser *p, double *out)
{
    bool ok = false;
    if (++p->depth > MAX_DEPTH)
        return false;
    if (islower((unsigned char)*p->at)) {
        ok = parse_name(p, out);
    } else if (isdigit((unsigned char)*p->at) || *p->at == '-') {
        char *end;
        *out = strtod(p->at, &end);
        ok = end != p->at;
        p->at = end;
    }
    p->depth--;
    return ok;
}

bool lr_formula_eval(const char *text, const LrVariables *values, double *out)
{
    Parser p = {text, values, 0};
    return parse(&p, out) && !*p.at;
}
