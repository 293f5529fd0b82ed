/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Small models of one call each, drawn from the table of the language's functions: its signature
 * says what the arguments may be, so that a new function or option is drawn without being named
 * here.  Operators and indexing have rows of their own.  Most drawn calls are refused by the
 * frontend; the caller draws again. */
#ifndef SCRIMP_TESTS_SWEEP_MODEL_H
#define SCRIMP_TESTS_SWEEP_MODEL_H

#include "frontend/language/frontend.h"
#include "ir/support/strbuf.h"
#include "tests/support/random_step.h"

#include <string.h>

/* Operators, with x, y (may broadcast with x), k (integers of x's shape) and n (a number). */
static const char *const sweep_operators[] = {
    "x + y",
    "y - x",
    "x * y",
    "x / y",
    "x ** y",
    "x + @",
    "@ - x",
    "x * @",
    "@ / x",
    "x ** @",
    "-x",
    "x == y",
    "x != @",
    "x < y",
    "@ <= x",
    "x > @",
    "x >= y",
    "not (x > @)",
    "x > @ and y > @",
    "x > @ or y < @",
    "x[#]",
    "x[#..]",
    "x[.., #]",
    "x[.., #..]",
    "x[#..#]",
    "x[.., ..-1, #]",
    "x[..=#]",
    "relu(x) + x * y - @",
    "x * sigmoid(x) |> to_f32() |> softmax()",
    "x + (x > @ |> cast(\"~\"))",
};

typedef struct SweepDraw {
    Pool *pool;
    Random random;
    StrBuf text;
    DType dtype;  /* of x */
    Type x, y, k; /* x has `prefix` done to it */
} SweepDraw;

#define SWEEP_PICK(d, ...)                                                                         \
    sweep_pick(d, (const char *const[]){__VA_ARGS__},                                              \
               (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

static inline const char *sweep_pick(SweepDraw *d, const char *const *words, int n)
{
    return words[random_below(&d->random, n)];
}

static inline bool sweep_chance(SweepDraw *d, int one_in)
{
    return random_below(&d->random, one_in) == 0;
}

/* --- rows --- */

enum { SWEEP_OPERATORS = sizeof sweep_operators / sizeof *sweep_operators };

/* Functions of compile-time values, data and optimizers, and statements of training, make no
 * tensor; what takes a block is not drawn. */
static inline bool sweep_makes_no_tensor(const char *name)
{
    static const char *const names[] = {
        "len",    "range",       "zip",          "enumerate",   "reversed",      "int",
        "float",  "round",       "floor",        "ceil",        "ntuple",        "init",
        "normal", "uniform",     "he_normal",    "he_uniform",  "xavier_normal", "xavier_uniform",
        "mnist",  "cifar10",     "text",         "tokens",      "npy",           "csv",
        "npz",    "safetensors", "columns",      "imagefolder", "audiofolder",   "synthetic",
        "sgd",    "adam",        "adamw",        "group",       "constant",      "linear_decay",
        "step",   "cosine",      "inverse_sqrt", "wsd",         "one_cycle",     "piecewise",
        "scan",   "rmsprop",     "adagrad",      "lion",        "lamb",          "adafactor",
        "muon",   "minimize"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* First the functions, then the operators. */
typedef struct SweepTable {
    const FunctionInfo *function;
    int n_functions, n_rows;
} SweepTable;

static inline SweepTable sweep_table(Pool *pool)
{
    SweepTable t = {.n_functions = 0};
    const FunctionInfo *all;
    int n = frontend_functions(pool, &all);
    FunctionInfo *tensor = POOL_ARRAY(pool, (size_t)n, FunctionInfo);
    for (int i = 0; i < n; i++)
        if (!sweep_makes_no_tensor(all[i].name))
            tensor[t.n_functions++] = all[i];
    t.function = tensor;
    t.n_rows = t.n_functions + SWEEP_OPERATORS;
    return t;
}

static inline const char *sweep_row_name(const SweepTable *t, int row)
{
    return row < t->n_functions ? t->function[row].name : sweep_operators[row - t->n_functions];
}

/* --- shapes --- */

static inline int64_t sweep_dim(SweepDraw *d)
{
    static const int64_t dims[] = {1, 2, 2, 3, 4, 5, 8, 9, 17};
    return dims[random_below(&d->random, (int)(sizeof dims / sizeof *dims))];
}

static inline Type sweep_shape(SweepDraw *d)
{
    static const int ranks[] = {0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 4, 5, 6, 8};
    Type t = {.dtype = d->dtype,
              .rank = ranks[random_below(&d->random, (int)(sizeof ranks / sizeof *ranks))]};
    int64_t room = 600;
    for (int i = 0; i < t.rank; i++) {
        t.dim[i] = sweep_dim(d);
        if (t.dim[i] > room)
            t.dim[i] = 1;
        room /= t.dim[i];
    }
    return t;
}

/* What functions of images seldom draw by chance. */
static inline void sweep_image(SweepDraw *d)
{
    d->dtype = DTYPE_F32;
    d->x = type_make(DTYPE_F32, 4,
                     (const int64_t[]){1 + random_below(&d->random, 3), sweep_dim(d),
                                       2 + random_below(&d->random, 8),
                                       2 + random_below(&d->random, 8)});
}

/* x's shape, one that broadcasts with it, or another. */
static inline Type sweep_partner(SweepDraw *d, Type x)
{
    if (sweep_chance(d, 8))
        return sweep_shape(d);
    int drop = sweep_chance(d, 3) ? random_below(&d->random, x.rank + 1) : 0;
    memmove(x.dim, x.dim + drop, (size_t)(x.rank - drop) * sizeof *x.dim);
    x.rank -= drop;
    for (int i = 0; i < x.rank; i++)
        if (sweep_chance(d, 4))
            x.dim[i] = 1;
    return x;
}

/* Labels for logits x: without the last axis, or without axis 1. */
static inline Type sweep_labels(SweepDraw *d, Type x)
{
    static const DType types[] = {DTYPE_I32, DTYPE_I32, DTYPE_U8, DTYPE_I64};
    int axis = sweep_chance(d, 2) ? 1 : x.rank - 1;
    for (int i = axis; i + 1 < x.rank && axis >= 0; i++)
        x.dim[i] = x.dim[i + 1];
    x.rank -= x.rank > 0;
    x.dtype = types[random_below(&d->random, 4)];
    return x;
}

/* --- arguments --- */

static inline const char *sweep_int(SweepDraw *d)
{
    return SWEEP_PICK(d, "0", "1", "1", "2", "2", "3", "-1", "-2", "4", "5", "8", "12");
}

static inline const char *sweep_float(SweepDraw *d)
{
    return SWEEP_PICK(d, "0", "1", "0.5", "0.1", "2", "-1", "1e-5", "3", "1000", "-0.25");
}

/* A list of n numbers, or of a plausible meaning: the sizes of x in some order, a permutation. */
static inline const char *sweep_list(SweepDraw *d)
{
    StrBuf b = strbuf_new(d->pool);
    int n = sweep_chance(d, 2) ? d->x.rank : 1 + random_below(&d->random, 4);
    int form = random_below(&d->random, 4), from = random_below(&d->random, n + 1);
    strbuf_put(&b, "[");
    for (int i = 0; i < n; i++) {
        int at = n ? (i + from) % n : 0;
        strbuf_put(&b, i ? ", " : "");
        if (form == 0 && at < d->x.rank)
            strbuf_printf(&b, "%lld", (long long)d->x.dim[at]);
        else if (form == 1)
            strbuf_printf(&b, "%d", at);
        else if (form == 2)
            strbuf_put(&b, SWEEP_PICK(d, "0", "1", "2"));
        else
            strbuf_put(&b, sweep_int(d));
    }
    strbuf_put(&b, "]");
    return b.text;
}

static inline const char *sweep_word(SweepDraw *d, const char *words)
{
    int n = 1;
    for (const char *c = words; *c; c++)
        n += *c == '|';
    for (int k = random_below(&d->random, n); k > 0; k--)
        words = strchr(words, '|') + 1;
    return pool_printf(d->pool, "\"%.*s\"", (int)strcspn(words, "|"), words);
}

static inline const char *sweep_any_dtype(SweepDraw *d)
{
    return SWEEP_PICK(d, "f32", "f16", "bf16", "i32", "i64", "u8", "bool");
}

/* A pattern for x, dimension by dimension, with some joined or reordered. */
static inline const char *sweep_rearrange(SweepDraw *d)
{
    StrBuf b = strbuf_new(d->pool);
    int n = d->x.rank, from = random_below(&d->random, n + 1), join = random_below(&d->random, 3);
    for (int i = 0; i < n; i++)
        strbuf_printf(&b, "%s%c", i ? " " : "", 'a' + i);
    strbuf_put(&b, " -> ");
    if (join == 2)
        strbuf_put(&b, "1 ");
    for (int i = 0; i < n; i++)
        strbuf_printf(&b, "%s%s%c%s", i ? " " : "", join == 1 && n > 1 && i == n - 2 ? "(" : "",
                      'a' + (n ? (i + from) % n : 0), join == 1 && n > 1 && i == n - 1 ? ")" : "");
    return b.text;
}

/* x with y, which has x's shape here: contracted over some dimensions. */
static inline const char *sweep_einsum(SweepDraw *d)
{
    StrBuf b = strbuf_new(d->pool);
    int n = d->x.rank, which = random_below(&d->random, 4);
    strbuf_put(&b, "einsum(\"");
    for (int i = 0; i < n; i++)
        strbuf_printf(&b, "%s%c", i ? " " : "", 'a' + i);
    if (which < 3) {
        strbuf_put(&b, ", ");
        for (int i = 0; i < n; i++)
            strbuf_printf(&b, "%s%c", i ? " " : "", (which == 1 && i == n - 1 ? 'p' : 'a') + i);
    }
    strbuf_put(&b, " -> ");
    for (int i = 0; i < n; i++)
        if (sweep_chance(d, 2))
            strbuf_printf(&b, "%c ", 'a' + i);
    if (which == 1 && n)
        strbuf_printf(&b, "%c", 'p' + n - 1);
    strbuf_printf(&b, "\", x%s)", which < 3 ? ", z" : "");
    return b.text;
}

static inline const char *sweep_tensor(SweepDraw *d, const char *name, int position)
{
    if (strcmp(name, "labels") == 0 || strcmp(name, "ids") == 0)
        return "k";
    if (strcmp(name, "condition") == 0)
        return SWEEP_PICK(d, "(y > 0)", "(z > 0)", "(z == 1)");
    if (strcmp(name, "weight") == 0 && d->x.rank == 4 && sweep_chance(d, 2)) /* of a convolution */
        return pool_printf(d->pool, "full([3, %lld, %s, 2], 0.5)", (long long)d->x.dim[1],
                           SWEEP_PICK(d, "1", "2"));
    if (strcmp(name, "weight") == 0)
        return pool_printf(d->pool, "full([%s, %lld], 0.5)", SWEEP_PICK(d, "1", "3", "8"),
                           (long long)(d->x.rank ? d->x.dim[d->x.rank - 1] : 1));
    if (strcmp(name, "bias") == 0)
        return "ones([3])";
    return position == 0 ? "x" : SWEEP_PICK(d, "y", "y", "z", "x");
}

static inline const char *sweep_argument(SweepDraw *d, const char *name, const char *kind,
                                         int position)
{
    if (strcmp(kind, "tensor") == 0)
        return sweep_tensor(d, name, position);
    if (strcmp(kind, "operand") == 0)
        return sweep_chance(d, 3) && position ? sweep_float(d) : sweep_tensor(d, name, position);
    if (strcmp(kind, "any") == 0)
        return strcmp(name, "weight") == 0 ? SWEEP_PICK(d, "[1, 2]", "[0.5, 1, 2]", "none")
                                           : SWEEP_PICK(d, "x", "x", "x", "[x, y]", "z");
    if (strcmp(kind, "int") == 0)
        return sweep_int(d);
    if (strcmp(kind, "float") == 0)
        return sweep_float(d);
    if (strcmp(kind, "bool") == 0)
        return SWEEP_PICK(d, "true", "false");
    if (strcmp(kind, "ints") == 0)
        return sweep_chance(d, 2) ? sweep_int(d) : sweep_list(d);
    if (strcmp(kind, "floats") == 0)
        return SWEEP_PICK(d, "[1]", "[0.5, 2, 1]", "[-1, 1e-3, 7, 0]");
    if (strcmp(kind, "list") == 0)
        return SWEEP_PICK(d, "[x, z]", "[x]", "[x, y]", "[x, z, x, z]", "[z, x, y]");
    if (strcmp(kind, "init") == 0)
        return SWEEP_PICK(d, "normal(0.5)", "zeros", "he_normal()", "uniform(-1, 1)",
                          "xavier_uniform()");
    if (strstr(kind, "f32|f16"))
        return pool_printf(d->pool, "\"%s\"", sweep_any_dtype(d));
    return strchr(kind, '|') ? sweep_word(d, kind) : "x";
}

/* --- calls --- */

static inline void sweep_call(SweepDraw *d, const FunctionInfo *fn)
{
    if (strcmp(fn->name, "rearrange") == 0) {
        strbuf_printf(&d->text, "rearrange(x, \"%s\")", sweep_rearrange(d));
        return;
    }
    if (strcmp(fn->name, "einsum") == 0) {
        strbuf_put(&d->text, sweep_einsum(d));
        return;
    }
    strbuf_printf(&d->text, "%s%s(", fn->owns_parameters ? "part: " : "", fn->name);
    char *at = pool_strdup(d->pool, fn->signature);
    for (int i = 0; at; i++) {
        char *end = strstr(at, ", "), *colon = strstr(at, ": ");
        if (end)
            *end = '\0';
        char *fallback = strstr(colon, " = ");
        if (fallback)
            *fallback = '\0';
        *colon = '\0';
        if (strcmp(colon + 2, "rest") != 0 && strcmp(colon + 2, "named") != 0 &&
            (!fallback || sweep_chance(d, 2)))
            strbuf_printf(&d->text, "%s%s = %s", i ? ", " : "", at,
                          sweep_argument(d, at, colon + 2, i));
        at = end ? end + 2 : NULL;
    }
    strbuf_put(&d->text, ")");
}

/* @ is a number, # an index, ~ an element type. */
static inline void sweep_operator(SweepDraw *d, const char *form)
{
    for (; *form; form++)
        if (*form == '@')
            strbuf_put(&d->text, sweep_chance(d, 2) ? sweep_int(d) : sweep_float(d));
        else if (*form == '#')
            strbuf_put(&d->text, sweep_int(d));
        else if (*form == '~')
            strbuf_put(&d->text, sweep_any_dtype(d));
        else
            strbuf_printf(&d->text, "%c", *form);
}

/* --- the model --- */

static inline void sweep_inputs(SweepDraw *d, const char *separator)
{
    const Type z = d->x;
    strbuf_printf(&d->text, "x%s %s, y%s %s, z%s %s, k%s %s", separator, type_text(d->pool, &d->x),
                  separator, type_text(d->pool, &d->y), separator, type_text(d->pool, &z),
                  separator, type_text(d->pool, &d->k));
}

/* Floats come from trained parameters, so that gradients flow; or from pieces of others, so that
 * views and strides are met. */
static inline void sweep_prepare(SweepDraw *d)
{
    const char *shape = type_text(d->pool, &d->x);
    strbuf_printf(&d->text, "  param w: f32%s = normal(1)\n", strchr(shape, '['));
    if (d->dtype == DTYPE_F32)
        strbuf_put(&d->text, "  x = x * w\n");
    if (d->x.rank > 0 && sweep_chance(d, 5))
        strbuf_put(&d->text, "  x = concat([z, x], axis = 0)[-x.shape[0]..]\n");
    else if (d->dtype == DTYPE_F32 && sweep_chance(d, 5))
        strbuf_put(&d->text, "  x = tanh(x)\n");
}

static inline const char *sweep_optimizer(SweepDraw *d)
{
    return SWEEP_PICK(d, "sgd(lr = 1)", "sgd(lr = 1)", "sgd(lr = 1, momentum = 0.9)",
                      "sgd(lr = 1, momentum = 0.9, nesterov = true, clip = 1)",
                      "sgd(lr = 1, momentum = 0.9, gradient_free = true)", "adam(lr = 0.01)",
                      "adamw(lr = 0.01, weight_decay = 0.1)");
}

/* A model whose only call of interest is of this row.  The loss takes all results; the weights that
 * it does not reach through them it reaches by their squares. */
static inline const char *sweep_model(Pool *pool, const SweepTable *table, int row, uint64_t seed)
{
    static const DType types[] = {DTYPE_F32,  DTYPE_F32, DTYPE_F32,  DTYPE_F32,
                                  DTYPE_I32,  DTYPE_I32, DTYPE_U8,   DTYPE_U8,
                                  DTYPE_BOOL, DTYPE_I64, DTYPE_BF16, DTYPE_F32};
    SweepDraw d = {.pool = pool, .text = strbuf_new(pool)};
    d.random.state = seed * 2654435761u + (uint64_t)row;
    for (int i = 0; i < 3; i++)
        random_next(&d.random);
    d.dtype = types[random_below(&d.random, (int)(sizeof types / sizeof *types))];
    d.x = sweep_shape(&d);
    if (row < table->n_functions && strstr(table->function[row].doc, "[N,C,") &&
        !sweep_chance(&d, 4))
        sweep_image(&d);
    d.y = sweep_partner(&d, d.x);
    d.k = sweep_labels(&d, d.x);
    strbuf_put(&d.text, "model m(");
    sweep_inputs(&d, ":");
    strbuf_put(&d.text, ") {\n");
    sweep_prepare(&d);
    strbuf_put(&d.text, "  r = ");
    if (row < table->n_functions)
        sweep_call(&d, &table->function[row]);
    else
        sweep_operator(&d, sweep_operators[row - table->n_functions]);
    const char *name = sweep_row_name(table, row);
    bool list = strcmp(name, "split") == 0 || strcmp(name, "topk") == 0;
    strbuf_printf(&d.text, "\n  %s\n  return %s\n}\ntrain {\n  batch = synthetic(",
                  list ? "" : "r = [r]",
                  "sum([mse(to_f32(t), 0.3, reduction = sum) for t in r]) + 0.01 * sum(w * w)");
    sweep_inputs(&d, " =");
    strbuf_printf(&d.text,
                  ")\n  loss = m(batch.x, batch.y, batch.z, batch.k)\n  optim = %s\n"
                  "  steps = 1\n%s}\n",
                  sweep_optimizer(&d), sweep_chance(&d, 8) ? "  accumulate = 2\n" : "");
    return d.text.text;
}

#endif
