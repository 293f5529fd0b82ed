/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/read_train.h"

#include "ir/support/vec.h"
#include "ir/text.h"

#include <string.h>

static bool read_enum(Scanner *s, const char *const *names, int n, int *value)
{
    const char *word;
    if (!scan_word(s, &word))
        return false;
    for (*value = 0; *value < n; ++*value)
        if (strcmp(names[*value], word) == 0)
            return true;
    scan_fail(s, s->token, "E701", "'%s' is not known here", word);
    scan_suggest(s, word, names, (size_t)n);
    return false;
}

static bool read_groups(Scanner *s, TrainSpec *train);
static bool read_goals(Scanner *s, TrainSpec *train);
static bool read_parts(Scanner *s, TrainSpec *train);

static bool read_train_value(Scanner *s, const TrainField *field, void *spec)
{
    void *at = (char *)spec + field->offset;
    int choice = 0;
    switch (field->kind) {
    case TRAIN_BOOL:
        return scan_bool(s, at);
    case TRAIN_DOUBLE:
        return scan_double(s, at);
    case TRAIN_INT:
        return scan_int(s, at) &&
               (*(int64_t *)at >= 0 || scan_fail(s, s->token, "E707", "must not be negative"));
    case TRAIN_UINT:
        return scan_uint(s, at, 10);
    case TRAIN_TEXT:
        return scan_string(s, at);
    case TRAIN_OPTIM:
        if (!read_enum(s, optim_names, TRAIN_OPTIM_COUNT, &choice))
            return false;
        *(OptimKind *)at = (OptimKind)choice;
        return true;
    case TRAIN_LR:
        if (!read_enum(s, lr_names, TRAIN_LR_COUNT, &choice))
            return false;
        *(LrKind *)at = (LrKind)choice;
        return true;
    case TRAIN_GROUPS:
        return read_groups(s, spec);
    case TRAIN_GOALS:
        return read_goals(s, spec);
    case TRAIN_PARTS:
        return read_parts(s, spec);
    }
    return false;
}

/* One of n fields of `spec`. */
static bool read_field(Scanner *s, const TrainField *fields, int n, void *spec, bool *seen)
{
    const char *word, **all = POOL_ARRAY(s->pool, (size_t)n, const char *);
    if (!scan_word(s, &word))
        return false;
    for (int i = 0; i < n; i++) {
        all[i] = fields[i].key;
        if (strcmp(all[i], word) != 0)
            continue;
        if (seen[i])
            return scan_fail(s, s->token, "E705", "%s given twice", word);
        seen[i] = true;
        return scan_expect(s, "=") && read_train_value(s, &fields[i], spec);
    }
    scan_fail(s, s->token, "E703", "unknown field '%s'", word);
    scan_suggest(s, word, all, (size_t)n);
    return false;
}

/* "{key=value, ..}" */
static bool read_fields(Scanner *s, const TrainField *fields, int n, void *spec)
{
    bool *seen = POOL_ARRAY(s->pool, (size_t)n, bool), first = true;
    if (!scan_expect(s, "{"))
        return false;
    while (!scan_take(s, "}")) {
        if ((!first && !scan_expect(s, ",")) || !read_field(s, fields, n, spec, seen))
            return false;
        first = false;
    }
    return true;
}

/* "[{pattern=.., ..}, ..]" */
static bool read_groups(Scanner *s, TrainSpec *train)
{
    VEC(ParamGroup) groups = {0};
    if (!scan_expect(s, "["))
        return false;
    while (!scan_take(s, "]")) {
        ParamGroup group = {.pattern = ""};
        if ((groups.len && !scan_expect(s, ",")) ||
            !read_fields(s, train_group_fields, TRAIN_GROUP_FIELD_COUNT, &group))
            return false;
        vec_push(s->pool, &groups, group);
    }
    train->group = groups.data;
    train->n_groups = (int)groups.len;
    return true;
}

/* "[{loss=.., ..}, ..]" */
static bool read_goals(Scanner *s, TrainSpec *train)
{
    VEC(TrainGoal) goals = {0};
    if (!scan_expect(s, "["))
        return false;
    while (!scan_take(s, "]")) {
        TrainGoal goal = {.loss = "", .pattern = ""};
        if ((goals.len && !scan_expect(s, ",")) ||
            !read_fields(s, train_goal_fields, TRAIN_GOAL_FIELD_COUNT, &goal))
            return false;
        vec_push(s->pool, &goals, goal);
    }
    train->goal = goals.data;
    train->n_goals = (int)goals.len;
    return true;
}

/* "[{data=.., ..}, ..]" */
static bool read_parts(Scanner *s, TrainSpec *train)
{
    VEC(DataPart) parts = {0};
    if (!scan_expect(s, "["))
        return false;
    while (!scan_take(s, "]")) {
        DataPart part = {.kind = "", .path = ""};
        if ((parts.len && !scan_expect(s, ",")) ||
            !read_fields(s, train_part_fields, TRAIN_PART_FIELD_COUNT, &part))
            return false;
        vec_push(s->pool, &parts, part);
    }
    train->data_part = parts.data;
    train->n_data_parts = (int)parts.len;
    return true;
}

bool read_train(Scanner *s, TrainSpec *train)
{
    train->present = true;
    return read_fields(s, train_fields, TRAIN_FIELD_COUNT, train);
}
