/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/read_train.h"

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

static bool read_train_value(Scanner *s, const TrainField *field, TrainSpec *train)
{
    void *at = (char *)train + field->offset;
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
    }
    return false;
}

static bool read_train_field(Scanner *s, TrainSpec *train, bool *seen)
{
    const char *word, *all[TRAIN_FIELD_COUNT];
    if (!scan_word(s, &word))
        return false;
    for (int i = 0; i < TRAIN_FIELD_COUNT; i++) {
        all[i] = train_fields[i].key;
        if (strcmp(all[i], word) != 0)
            continue;
        if (seen[i])
            return scan_fail(s, s->token, "E705", "%s given twice", word);
        seen[i] = true;
        return scan_expect(s, "=") && read_train_value(s, &train_fields[i], train);
    }
    scan_fail(s, s->token, "E703", "unknown field '%s'", word);
    scan_suggest(s, word, all, TRAIN_FIELD_COUNT);
    return false;
}

bool read_train(Scanner *s, TrainSpec *train)
{
    bool seen[TRAIN_FIELD_COUNT] = {0}, first = true;
    train->present = true;
    if (!scan_expect(s, "{"))
        return false;
    while (!scan_take(s, "}")) {
        if ((!first && !scan_expect(s, ",")) || !read_train_field(s, train, seen))
            return false;
        first = false;
    }
    return true;
}
