/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/language/elaborate/train_rate.h"
#include "frontend/language/elaborate/train_internal.h"

#include "ir/lr_formula.h"

#include <math.h>
#include <string.h>

/* ---- schedules ---- */

static Val schedule_value(BuiltinCall *c, LrSchedule s)
{
    LrSchedule *p = POOL_NEW(c->l->pool, LrSchedule);
    *p = s;
    return (Val){.kind = VAL_SCHEDULE, .schedule = p};
}

static Val falling(BuiltinCall *c, LrKind kind, double power)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 2, "min", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(c, (LrSchedule){.kind = kind,
                                          .base = arg_float(c, 0),
                                          .warmup = arg_float(c, 1),
                                          .min = arg_float(c, 2),
                                          .power = power});
}

Val builtin_cosine(BuiltinCall *c)
{
    return falling(c, LR_COSINE, 0);
}

Val builtin_linear_decay(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 3, "power", 1e-9, (double)INFINITY))
        return val_poison();
    double power = arg_float(c, 3);
    return falling(c, LR_LINEAR, power == 1 ? 0 : power);
}

Val builtin_constant(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(
        c, (LrSchedule){.kind = LR_CONSTANT, .base = arg_float(c, 0), .warmup = arg_float(c, 1)});
}

Val builtin_step(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "every", 1e-9, (double)INFINITY) ||
        !arg_in_bounds(c, 2, "factor", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 3, "warmup", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 4, "start", 0, (double)INFINITY))
        return val_poison();
    return schedule_value(c, (LrSchedule){.kind = LR_STEP,
                                          .base = arg_float(c, 0),
                                          .every = arg_float(c, 1),
                                          .factor = arg_float(c, 2),
                                          .warmup = arg_float(c, 3),
                                          .start = arg_float(c, 4)});
}

/* The least warmup is far below one update of any data; lr_at counts at least one. */
Val builtin_inverse_sqrt(BuiltinCall *c)
{
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 1e-9, (double)INFINITY))
        return val_poison();
    return schedule_value(
        c,
        (LrSchedule){.kind = LR_INVERSE_SQRT, .base = arg_float(c, 0), .warmup = arg_float(c, 1)});
}

/* ---- formulas ---- */

/* Nested too deep or too long to be evaluated at every step: what a program writes. */
static Val formula_value(Elab *l, const char *text, Span span)
{
    const LrVariables any = {.total = 1, .end = 1};
    double value;
    LrSchedule *s = POOL_NEW(l->pool, LrSchedule);
    *s = (LrSchedule){.kind = LR_FORMULA, .formula = text};
    if (strlen(text) <= ELAB_MAX_TEXT && lr_formula_eval(text, &any, &value))
        return (Val){.kind = VAL_SCHEDULE, .schedule = s};
    elab_error(l, span, "E208", "this formula grows too long");
    return val_poison();
}

void rate_add_names(Elab *l, Scope *names)
{
    static const char *const known[] = {"step", "epoch", "progress"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!scope_find(l->globals, known[i]))
            scope_set(l->pool, names, known[i], formula_value(l, known[i], (Span){0}), (Span){0});
}

/* The text of all that a schedule is; NULL of one with warmup, or of a kind of its own. */
static const char *whole_formula(const LrSchedule *s)
{
    return s->kind == LR_FORMULA && s->warmup == 0 && s->scale == 0 ? s->formula : NULL;
}

/* An operand's text; NULL after a message. */
static const char *formula_text(Elab *l, Val v, Span span)
{
    if (val_is_number(v) && isfinite(val_number(v)))
        return number_text(l->pool, val_number(v));
    if (v.kind == VAL_SCHEDULE && whole_formula(v.schedule))
        return whole_formula(v.schedule);
    if (v.kind == VAL_SCHEDULE && elab_error(l, span, "E205",
                                             "a schedule can be multiplied by a number, and is no "
                                             "part of other formulas"))
        diag_help(l->diag, "step, epoch and progress are the variables of formulas");
    else if (v.kind != VAL_SCHEDULE)
        elab_error(l, span, "E205", "a formula of the step is made of numbers, got %s",
                   val_kind_name(v.kind));
    return NULL;
}

/* cosine(0.1) * 2, or / 2 */
static Val scaled_schedule(Elab *l, const LrSchedule *s, double factor)
{
    LrSchedule *p = POOL_NEW(l->pool, LrSchedule);
    *p = *s;
    p->scale = (s->scale != 0 ? s->scale : 1) * factor;
    return (Val){.kind = VAL_SCHEDULE, .schedule = p};
}

static bool scales(BinaryOp op, Val a, Val b, double *factor)
{
    bool times = op == BINARY_MUL && val_is_number(b), part = op == BINARY_DIV && val_is_number(b);
    *factor = times ? val_number(b) : part ? 1 / val_number(b) : 0;
    return a.kind == VAL_SCHEDULE && !whole_formula(a.schedule) && isfinite(*factor) && *factor > 0;
}

Val rate_binary(Elab *l, BinaryOp op, Val a, Val b, Span span)
{
    static const char *const names[] = {
        [BINARY_ADD] = "add", [BINARY_SUB] = "sub", [BINARY_MUL] = "mul",
        [BINARY_DIV] = "div", [BINARY_POW] = "pow", [BINARY_IDIV] = "floordiv",
        [BINARY_MOD] = "mod", [BINARY_LT] = "lt",   [BINARY_LE] = "le",
        [BINARY_GT] = "gt",   [BINARY_GE] = "ge"};
    double factor;
    const char *name = (size_t)op < sizeof names / sizeof *names ? names[op] : NULL;
    if (scales(op, a, b, &factor))
        return scaled_schedule(l, a.schedule, factor);
    if (op == BINARY_MUL && scales(op, b, a, &factor))
        return scaled_schedule(l, b.schedule, factor);
    if (!name) {
        elab_error(l, span, "E205", "`%s` does not go with a formula of the step",
                   ast_binary_name(op));
        return val_poison();
    }
    const char *x = formula_text(l, a, span), *y = x ? formula_text(l, b, span) : NULL;
    return y ? formula_value(l, pool_printf(l->pool, "%s(%s,%s)", name, x, y), span) : val_poison();
}

/* What formulas call the function, or NULL. */
static const char *formula_function(const Builtin *fn)
{
    static const char *const other[][2] = {
        {"maximum", "max"}, {"minimum", "min"}, {"select", "where"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (strcmp(fn->name, other[i][0]) == 0)
            return other[i][1];
    return lr_formula_arity(fn->name) ? fn->name : NULL;
}

bool rate_takes_call(const BuiltinCall *c)
{
    const char *name = formula_function(c->fn);
    bool found = false;
    for (int i = 0; name && i < lr_formula_arity(name) && i < BUILTIN_MAX_PARAMS; i++)
        found = found || c->arg[i].kind == VAL_SCHEDULE;
    for (int i = 0; name && i < c->n_rest; i++)
        found = found || c->rest[i].kind == VAL_SCHEDULE;
    return found;
}

/* max(a, b, c) is max(max(a, b), c). */
static Val extreme_of_rest(BuiltinCall *c, const char *name)
{
    const char *text = formula_text(c->l, c->arg[0], c->arg_span[0]);
    for (int i = 0; i < c->n_rest && text; i++) {
        const char *next = formula_text(c->l, c->rest[i], c->rest_span[i]);
        text = next ? pool_printf(c->l->pool, "%s(%s,%s)", name, text, next) : NULL;
    }
    return text ? formula_value(c->l, text, c->span) : val_poison();
}

Val rate_call(BuiltinCall *c)
{
    const char *name = formula_function(c->fn), *text = "";
    if (c->n_rest)
        return extreme_of_rest(c, name);
    for (int i = 0; i < lr_formula_arity(name); i++) {
        const char *next = formula_text(c->l, c->arg[i], c->arg_span[i]);
        if (!next)
            return val_poison();
        text = pool_printf(c->l->pool, "%s%s%s", text, i ? "," : "", next);
    }
    return formula_value(c->l, pool_printf(c->l->pool, "%s(%s)", name, text), c->span);
}

/* ---- schedules that are formulas ---- */

static Val formula_schedule(BuiltinCall *c, double base, double warmup, const char *formula)
{
    return schedule_value(
        c, (LrSchedule){.kind = LR_FORMULA, .base = base, .warmup = warmup, .formula = formula});
}

/* "(from - to) weight + to" */
static const char *between(Pool *pool, double from, double to, const char *weight)
{
    return pool_printf(pool, "add(mul(%s,%s),%s)", number_text(pool, from - to), weight,
                       number_text(pool, to));
}

/* Half a cosine from 1 at 0 to 0 at 1. */
static const char *half_cosine(Pool *pool, const char *x)
{
    return pool_printf(pool, "div(add(1,cos(mul(3.141592653589793,%s))),2)", x);
}

/* A length in the section's unit, or a part of all; NULL after a message. */
static const char *length_text(BuiltinCall *c, int arg, const char *name)
{
    const Val v = c->arg[arg];
    double part = v.kind == VAL_PERCENT ? v.f / 100 : val_is_number(v) ? val_number(v) : -1;
    if (part >= 0 && (v.kind != VAL_PERCENT || part <= 1))
        return v.kind == VAL_PERCENT
                   ? pool_printf(c->l->pool, "mul(%s,end)", number_text(c->l->pool, part))
                   : number_text(c->l->pool, part);
    if (elab_error(c->l, c->arg_span[arg], "E205", "`%s` is a length or a part of all", name))
        diag_help(c->l->diag, "%s = 1000, or %s = 10%%", name, name);
    return NULL;
}

/* Hu et al. 2024 (MiniCPM), section 4; the form 1 - sqrt: Haegele et al. 2024. */
Val builtin_wsd(BuiltinCall *c)
{
    Pool *pool = c->l->pool;
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 1, "warmup", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 3, "min", 0, (double)INFINITY))
        return val_poison();
    const char *decay = arg_given(c, 2) ? length_text(c, 2, "decay") : "mul(0.1,end)";
    if (!decay)
        return val_poison();
    const char *left = pool_printf(pool, "min(1,div(sub(end,now),max(%s,1e-9)))", decay);
    const char *done = pool_printf(pool, "sub(1,%s)", left), *weight = left;
    if (call_word_is(c, 4, "cosine"))
        weight = half_cosine(pool, done);
    else if (call_word_is(c, 4, "sqrt"))
        weight = pool_printf(pool, "sub(1,sqrt(%s))", done);
    double lr = arg_float(c, 0);
    return formula_schedule(c, lr, arg_float(c, 1), between(pool, lr, arg_float(c, 3), weight));
}

/* torch.optim.lr_scheduler.OneCycleLR, without its cycle of the momentum: up to step e1 = warmup
 * total - 1, down to step total - 1. */
Val builtin_one_cycle(BuiltinCall *c)
{
    Pool *pool = c->l->pool;
    if (!arg_in_bounds(c, 0, "lr", 0, (double)INFINITY) ||
        !arg_in_bounds(c, 2, "div", 1e-9, (double)INFINITY) ||
        !arg_in_bounds(c, 3, "final_div", 1e-9, (double)INFINITY))
        return val_poison();
    const Val v = c->arg[1];
    double part = v.kind == VAL_PERCENT ? v.f / 100 : v.kind == VAL_NONE ? 0.3 : -1;
    if (part < 0 || part >= 1) {
        if (elab_error(c->l, c->arg_span[1], "E205", "`warmup` is a part of the run below 100%%"))
            diag_help(c->l->diag, "warmup = 30%%");
        return val_poison();
    }
    double lr = arg_float(c, 0), first = lr / arg_float(c, 2), last = first / arg_float(c, 3);
    const char *top = pool_printf(pool, "sub(mul(%s,total),1)", number_text(pool, part));
    const char *up = pool_printf(pool, "div(step,max(%s,1e-9))", top);
    const char *down =
        pool_printf(pool, "div(sub(step,%s),max(sub(sub(total,1),%s),1e-9))", top, top);
    bool linear = call_word_is(c, 4, "linear");
    up = linear ? pool_printf(pool, "sub(1,%s)", up) : half_cosine(pool, up);
    down = linear ? pool_printf(pool, "sub(1,%s)", down) : half_cosine(pool, down);
    return formula_schedule(c, lr, 0,
                            pool_printf(pool, "where(le(step,%s),%s,%s)", top,
                                        between(pool, first, lr, up),
                                        between(pool, lr, last, down)));
}

typedef double Point[2]; /* time, rate */

/* [time, rate], which begins no earlier than `least`. */
static bool read_point(BuiltinCall *c, Val v, double least, Point point)
{
    bool ok = v.kind == VAL_LIST && v.list.len == 2 && val_is_number_list(v, false);
    for (int i = 0; ok && i < 2; i++)
        point[i] = val_number(v.list.data[i]);
    if (ok && point[0] >= least && point[1] >= 0 && isfinite(point[0]) && isfinite(point[1]))
        return true;
    if (elab_error(c->l, c->arg_span[0], "E205",
                   "points are pairs of a time and a rate, in the order of time"))
        diag_help(c->l->diag, "piecewise([[0, 0.1], [30, 0.01], [60, 0.001]])");
    return false;
}

Val builtin_piecewise(BuiltinCall *c)
{
    Pool *pool = c->l->pool;
    const ValList list = c->arg[0].list;
    bool linear = call_word_is(c, 1, "linear");
    Point *point = POOL_ARRAY(pool, (size_t)list.len + 1, Point);
    for (int i = 0; i < list.len; i++)
        if (!read_point(c, list.data[i], i ? point[i - 1][0] : 0, point[i]))
            return val_poison();
    if (!list.len)
        return read_point(c, val_none(), 0, point[0]) ? val_none() : val_poison();
    const char *text = number_text(pool, point[list.len - 1][1]);
    for (int i = list.len - 2; i >= 0; i--) {
        const char *rate = number_text(pool, point[i][1]);
        double length = point[i + 1][0] - point[i][0];
        if (linear && length > 0)
            rate = between(pool, point[i + 1][1], point[i][1],
                           pool_printf(pool, "max(0,div(sub(now,%s),%s))",
                                       number_text(pool, point[i][0]), number_text(pool, length)));
        text = pool_printf(pool, "where(lt(now,%s),%s,%s)", number_text(pool, point[i + 1][0]),
                           rate, text);
    }
    Val v = formula_value(c->l, text, c->span);
    return v.kind == VAL_SCHEDULE ? formula_schedule(c, point[0][1], 0, text) : v;
}
