/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Learning rates against values worked out from PyTorch's and nanoGPT's formulas. */
#include "check.h"
#include "ir/graph.h"
#include "ir/lr_formula.h"
#include "ir/train_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void near(double got, double expected)
{
    CHECK_MSG(fabs(got - expected) <= 1e-12 * (1 + fabs(expected)), "%.17g, expected %.17g", got,
              expected);
}

static void check_patterns(void)
{
    static const struct {
        const char *pattern, *path;
        bool fits;
    } cases[] = {
        {"fc.bias", "fc.bias", true},
        {"fc.bias", "fc.bias2", false},
        {"*.bias", "a.b.bias", true},
        {"*.bias", "bias", false},
        {"*", "", true},
        {"", "", true},
        {"", "x", false},
        {"a*b*c", "a.b.b.xc", true},
        {"a*b*c", "a.b.b.xd", false},
        {"layer?.0.*", "layer1.0.conv.weight", true},
        {"layer?.0.*", "layer.0", false},
        {"**a", "ba", true},
        {"x\n*.bias\ny", "a.bias", true},
        {"x\n*.bias\ny", "y", true},
        {"x\n*.bias\ny", "z", false},
        {"*ab", "aab", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_MSG(train_pattern_fits(cases[i].pattern, cases[i].path) == cases[i].fits, "%s on %s",
                  cases[i].pattern, cases[i].path);
    const ParamGroup group[2] = {{.pattern = "a.*", .matrices_only = true}, {.pattern = "*"}};
    const TrainSpec t = {.group = group, .n_groups = 2};
    CHECK(train_group_of(&t, "a.w", 2) == 0 && train_group_of(&t, "a.w", 1) == 1);
    CHECK(train_group_of(&(TrainSpec){0}, "a.w", 2) == -1);
    CHECK(train_is_rate("lr") && train_is_rate("lr.0") && !train_is_rate("lrx"));
    CHECK(train_rate_group("lr") == -1 && train_rate_group("lr.12") == 12);
}

static double formula(const char *text)
{
    const LrVariables v = {
        .step = 30, .total = 120, .progress = 0.25, .epoch = 1.5, .now = 3, .end = 12};
    double x = 0;
    CHECK_MSG(lr_formula_eval(text, &v, &x), "%s", text);
    return x;
}

static void check_formulas(void)
{
    near(formula("mul(0.1,sub(1,progress))"), 0.075);
    near(formula("where(lt(step,31),neg(epoch),total)"), -1.5);
    near(formula("max(min(now,end),-2.5e-1)"), 3);
    near(formula("add(sqrt(16),div(pow(2,3),exp(0)))"), 12);
    near(formula("add(mod(-7,4),floordiv(-7,4))"), -1);
    near(formula("mul(abs(-2),add(cos(0),add(sin(0),add(log(1),rsqrt(0.25)))))"), 6);
    near(formula("add(ge(1,1),mul(10,add(gt(1,1),le(1,1))))"), 11);
    static const char *const wrong[] = {"",          "1 ",       "step(1)", "add(1)", "add(1,2",
                                        "add(1,2))", "nan",      "inf",     "x",      "add",
                                        "0x",        "neg(1,2)", "-"};
    const LrVariables none = {0};
    double x;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_MSG(!lr_formula_eval(wrong[i], &none, &x), "%s", wrong[i]);
    enum { DEEP = 100000 };
    char *deep = calloc(DEEP, 5);
    for (int i = 0; deep && i < DEEP; i++)
        memcpy(deep + 4 * i, "neg(", 4);
    CHECK(deep && !lr_formula_eval(deep, &none, &x));
    free(deep);
    LrSchedule lr = {.kind = LR_FORMULA,
                     .base = 2,
                     .warmup = 1,
                     .in_epochs = true,
                     .formula = "add(now,mul(100,end))",
                     .scale = 0.5};
    near(lr_at(&lr, 4, 100, 10), 0.5);
    near(lr_at(&lr, 25, 100, 10), 501.25);
    CHECK(isnan(lr_at(&(LrSchedule){.kind = LR_FORMULA, .formula = "x"}, 0, 1, 1)));
}

static size_t field_size(TrainFieldKind kind)
{
    static const size_t size[] = {
        [TRAIN_BOOL] = sizeof(bool),         [TRAIN_DOUBLE] = sizeof(double),
        [TRAIN_INT] = sizeof(int64_t),       [TRAIN_UINT] = sizeof(uint64_t),
        [TRAIN_TEXT] = sizeof(char *),       [TRAIN_OPTIM] = sizeof(OptimKind),
        [TRAIN_LR] = sizeof(LrKind),         [TRAIN_GROUPS] = sizeof(ParamGroup *),
        [TRAIN_GOALS] = sizeof(TrainGoal *), [TRAIN_PARTS] = sizeof(DataPart *),
    };
    return size[kind];
}

/* A member that is in no table would be neither printed nor read nor copied.  Every 8 bytes of the
 * struct hold some field, but for those at `others`. */
static void check_table(const TrainField *fields, int n, size_t bytes, const size_t *others,
                        int n_others)
{
    unsigned char filled[1000] = {0};
    CHECK(bytes <= sizeof filled);
    for (int i = 0; i < n; i++) {
        CHECK(fields[i].key && fields[i].offset + field_size(fields[i].kind) <= bytes);
        memset(filled + fields[i].offset, 1, field_size(fields[i].kind));
    }
    for (int i = 0; i < n_others; i++)
        filled[others[i]] = 1;
    for (size_t at = 0; at < bytes; at += 8)
        CHECK_MSG(memchr(filled + at, 1, 8), "no field at %zu of %zu bytes", at, bytes);
}

/* Every text becomes its key. */
static void set_texts(const TrainField *fields, int n, void *spec, Pool *pool)
{
    for (int i = 0; i < n; i++)
        if (fields[i].kind == TRAIN_TEXT)
            *(const char **)((char *)spec + fields[i].offset) = pool_strdup(pool, fields[i].key);
}

static void check_texts(const TrainField *fields, int n, const void *spec)
{
    for (int i = 0; i < n; i++)
        if (fields[i].kind == TRAIN_TEXT) {
            const char *text = *(const char *const *)((const char *)spec + fields[i].offset);
            CHECK_MSG(strcmp(text, fields[i].key) == 0, "%s", fields[i].key);
        }
}

/* Nothing of a copy lies in the pool that the graph was made in. */
static void check_copy(void)
{
    Pool *first = pool_new(), *second = pool_new();
    Graph *g = graph_new(first, "m");
    ParamGroup *group = POOL_ARRAY(first, 2, ParamGroup);
    for (int i = 0; i < 2; i++)
        set_texts(train_group_fields, TRAIN_GROUP_FIELD_COUNT, &group[i], first);
    TrainGoal *goal = POOL_ARRAY(first, 1, TrainGoal);
    set_texts(train_goal_fields, TRAIN_GOAL_FIELD_COUNT, goal, first);
    DataPart *part = POOL_ARRAY(first, 1, DataPart);
    set_texts(train_part_fields, TRAIN_PART_FIELD_COUNT, part, first);
    g->train = (TrainSpec){.present = true,
                           .group = group,
                           .n_groups = 2,
                           .goal = goal,
                           .n_goals = 1,
                           .data_part = part,
                           .n_data_parts = 1,
                           .seed = 7};
    set_texts(train_fields, TRAIN_FIELD_COUNT, &g->train, first);
    const TrainSpec before = g->train;
    const TrainSpec copy = graph_copy(second, g)->train;
    CHECK(copy.n_groups == 2 && copy.seed == 7 && copy.group != group);
    CHECK(copy.n_goals == 1 && copy.goal != goal);
    CHECK(copy.n_data_parts == 1 && copy.data_part != part);
    for (int i = 0; i < TRAIN_FIELD_COUNT; i++) {
        size_t at = train_fields[i].offset;
        bool apart = memcmp((const char *)&before + at, (const char *)&copy + at, sizeof at) != 0;
        CHECK_MSG(apart || train_fields[i].kind != TRAIN_TEXT, "%s", train_fields[i].key);
    }
    pool_free(first);
    check_texts(train_fields, TRAIN_FIELD_COUNT, &copy);
    for (int i = 0; i < copy.n_groups; i++)
        check_texts(train_group_fields, TRAIN_GROUP_FIELD_COUNT, &copy.group[i]);
    check_texts(train_goal_fields, TRAIN_GOAL_FIELD_COUNT, copy.goal);
    check_texts(train_part_fields, TRAIN_PART_FIELD_COUNT, copy.data_part);
    pool_free(second);
}

static void check_rates(void)
{
    LrSchedule constant = {.kind = LR_CONSTANT, .base = 0.1};
    near(lr_at(&constant, 0, 10, 1), 0.1);
    near(lr_at(&constant, 99, 10, 1), 0.1);

    /* nanoGPT: 6e-4 -> 6e-5 over 600,000 updates with 2,000 of warmup */
    LrSchedule gpt = {.kind = LR_COSINE, .base = 6e-4, .min = 6e-5, .warmup = 2000};
    near(lr_at(&gpt, 0, 600000, 1), 6e-4 / 2000);
    near(lr_at(&gpt, 999, 600000, 1), 3e-4);
    near(lr_at(&gpt, 1999, 600000, 1), 6e-4);
    near(lr_at(&gpt, 2000, 600000, 1), 6e-4);
    near(lr_at(&gpt, 301000, 600000, 1), 3.3e-4);
    near(lr_at(&gpt, 151500, 600000, 1), 6e-5 + 5.4e-4 * (1 + 0.70710678118654752) / 2);
    near(lr_at(&gpt, 600000, 600000, 1), 6e-5);
    near(lr_at(&gpt, 700000, 600000, 1), 6e-5);

    LrSchedule linear = {.kind = LR_LINEAR, .base = 1, .min = 0.5};
    near(lr_at(&linear, 0, 4, 1), 1);
    near(lr_at(&linear, 1, 4, 1), 0.875);
    near(lr_at(&linear, 4, 4, 1), 0.5);

    /* Zhao et al. 2017: (1 - iter/maxiter)^0.9 */
    LrSchedule poly = {.kind = LR_LINEAR, .base = 0.01, .power = 0.9};
    near(lr_at(&poly, 0, 100, 1), 0.01);
    near(lr_at(&poly, 50, 100, 1), 0.01 * pow(0.5, 0.9));
    near(lr_at(&poly, 99, 100, 1), 0.01 * pow(0.01, 0.9));
    near(lr_at(&poly, 100, 100, 1), 0);
    poly.min = 0.001;
    near(lr_at(&poly, 50, 100, 1), 0.001 + 0.009 * pow(0.5, 0.9));

    LrSchedule step = {.kind = LR_STEP, .base = 0.1, .every = 30, .factor = 0.1, .in_epochs = true};
    near(lr_at(&step, 299, 900, 10), 0.1);
    near(lr_at(&step, 300, 900, 10), 0.01);
    near(lr_at(&step, 600, 900, 10), 0.001);

    /* Zaremba et al. 2014, small: 1 in epochs 1 to 4, then halved after every epoch. */
    LrSchedule late = step;
    late.base = 1, late.every = 1, late.factor = 0.5, late.start = 3;
    near(lr_at(&late, 0, 900, 10), 1);
    near(lr_at(&late, 39, 900, 10), 1);
    near(lr_at(&late, 40, 900, 10), 0.5);
    near(lr_at(&late, 50, 900, 10), 0.25);
}

static void check_warmup(void)
{
    /* Five epochs of warmup at ten updates each; half an update rounds to a whole one. */
    LrSchedule epochs = {.kind = LR_COSINE, .base = 1, .warmup = 5, .in_epochs = true};
    near(lr_at(&epochs, 24, 100, 10), 0.5);
    near(lr_at(&epochs, 75, 100, 10), 0.5);
    LrSchedule half = {.kind = LR_CONSTANT, .base = 1, .warmup = 0.15, .in_epochs = true};
    near(lr_at(&half, 0, 100, 10), 0.5);
    near(lr_at(&half, 1, 100, 10), 1);

    /* Vaswani et al. 2017: 512^-0.5 min(n^-0.5, n 4000^-1.5) at update n = t + 1. */
    LrSchedule vaswani = {.kind = LR_INVERSE_SQRT, .base = pow(512.0 * 4000, -0.5), .warmup = 4000};
    near(lr_at(&vaswani, 0, 100000, 1), 0.044194173824159216 * pow(4000, -1.5));
    near(lr_at(&vaswani, 1999, 100000, 1), 0.044194173824159216 * 2000 * pow(4000, -1.5));
    near(lr_at(&vaswani, 3999, 100000, 1), 0.044194173824159216 * pow(4000, -0.5));
    near(lr_at(&vaswani, 4000, 100000, 1), 0.044194173824159216 * pow(4001, -0.5));
    near(lr_at(&vaswani, 99999, 100000, 1), 0.044194173824159216 * pow(100000, -0.5));
    near(lr_at(&vaswani, 200000, 100000, 1), 0.044194173824159216 * pow(200001, -0.5));
    LrSchedule sudden = {.kind = LR_INVERSE_SQRT, .base = 1, .warmup = 0.01, .in_epochs = true};
    near(lr_at(&sudden, 0, 100, 10), 1);
    near(lr_at(&sudden, 3, 100, 10), 0.5);

    /* Shorter than its warmup: it never divides by zero. */
    near(lr_at(&epochs, 50, 50, 10), 0);
    LrSchedule degenerate = {.kind = LR_STEP, .base = 0.1};
    near(lr_at(&degenerate, 5, 0, 0), 0.1);

    LrSchedule scaled = {.kind = LR_COSINE, .base = 1, .min = 0.5, .scale = 0.1};
    near(lr_at(&scaled, 50, 100, 10), 0.075);
}

int main(void)
{
    static const size_t others[] = {offsetof(TrainSpec, present), offsetof(TrainSpec, n_groups),
                                    offsetof(TrainSpec, n_goals),
                                    offsetof(TrainSpec, n_data_parts)};
    check_table(train_fields, TRAIN_FIELD_COUNT, sizeof(TrainSpec), others, 4);
    check_table(train_group_fields, TRAIN_GROUP_FIELD_COUNT, sizeof(ParamGroup), NULL, 0);
    check_table(train_part_fields, TRAIN_PART_FIELD_COUNT, sizeof(DataPart), NULL, 0);
    check_table(train_goal_fields, TRAIN_GOAL_FIELD_COUNT, sizeof(TrainGoal), NULL, 0);
    check_copy();
    check_rates();
    check_warmup();
    check_patterns();
    check_formulas();
    return test_result();
}
