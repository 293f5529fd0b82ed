/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ir/train_fields.h"

const char *const optim_names[TRAIN_OPTIM_COUNT] = {
    "sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "lamb", "adafactor", "muon"};
const char *const lr_names[TRAIN_LR_COUNT] = {"constant", "step",         "linear",
                                              "cosine",   "inverse_sqrt", "formula"};

/* clang-format off */
#define FIELD(type, kind, key, member) {key, TRAIN_##kind, offsetof(type, member)}
#define RULE_FIELDS(type) \
    FIELD(type, OPTIM,  "optim",                rule.optim),               \
    FIELD(type, LR,     "lr",                   rule.lr.kind),             \
    FIELD(type, DOUBLE, "base",                 rule.lr.base),             \
    FIELD(type, DOUBLE, "min",                  rule.lr.min),              \
    FIELD(type, DOUBLE, "warmup",               rule.lr.warmup),           \
    FIELD(type, BOOL,   "in_epochs",            rule.lr.in_epochs),        \
    FIELD(type, DOUBLE, "every",                rule.lr.every),            \
    FIELD(type, DOUBLE, "factor",               rule.lr.factor),           \
    FIELD(type, DOUBLE, "start",                rule.lr.start),            \
    FIELD(type, DOUBLE, "power",                rule.lr.power),            \
    FIELD(type, DOUBLE, "scale",                rule.lr.scale),            \
    FIELD(type, TEXT,   "formula",              rule.lr.formula),          \
    FIELD(type, DOUBLE, "momentum",             rule.momentum),            \
    FIELD(type, DOUBLE, "dampening",            rule.dampening),           \
    FIELD(type, BOOL,   "nesterov",             rule.nesterov),            \
    FIELD(type, BOOL,   "gradient_free",        rule.gradient_free),       \
    FIELD(type, DOUBLE, "weight_decay",         rule.weight_decay),        \
    FIELD(type, BOOL,   "decay_matrices_only",  rule.decay_matrices_only), \
    FIELD(type, DOUBLE, "beta1",                rule.beta1),               \
    FIELD(type, DOUBLE, "beta2",                rule.beta2),               \
    FIELD(type, DOUBLE, "eps",                  rule.eps),                 \
    FIELD(type, DOUBLE, "clip",                 rule.clip),                \
    FIELD(type, DOUBLE, "clip_value",           rule.clip_value),          \
    FIELD(type, DOUBLE, "alpha",                rule.alpha),               \
    FIELD(type, BOOL,   "centered",             rule.centered),            \
    FIELD(type, DOUBLE, "lr_decay",             rule.lr_decay),            \
    FIELD(type, DOUBLE, "initial",              rule.initial),             \
    FIELD(type, DOUBLE, "beta2_decay",          rule.beta2_decay),         \
    FIELD(type, DOUBLE, "clip_update",          rule.clip_update),         \
    FIELD(type, INT,    "ns_steps",             rule.ns_steps),            \
    FIELD(type, BOOL,   "match_rms",            rule.match_rms)

const TrainField train_fields[TRAIN_FIELD_COUNT] = {
    RULE_FIELDS(TrainSpec),
    FIELD(TrainSpec, GROUPS, "groups",               group),
    FIELD(TrainSpec, GOALS,  "goals",                goal),
    FIELD(TrainSpec, DOUBLE, "ema",                  ema),
    FIELD(TrainSpec, INT,    "steps",                steps),
    FIELD(TrainSpec, DOUBLE, "epochs",               epochs),
    FIELD(TrainSpec, INT,    "accumulate",           accumulate),
    FIELD(TrainSpec, BOOL,   "accumulate_sum",       accumulate_sum),
    FIELD(TrainSpec, DOUBLE, "held_out",             held_out),
    FIELD(TrainSpec, BOOL,   "held_out_is_part",     held_out_is_part),
    FIELD(TrainSpec, TEXT,   "held_path",            data_held_path),
    FIELD(TrainSpec, INT,    "eval_every",           eval_every),
    FIELD(TrainSpec, INT,    "patience",             patience),
    FIELD(TrainSpec, UINT,   "seed",                 seed),
    FIELD(TrainSpec, TEXT,   "precision",            precision),
    FIELD(TrainSpec, BOOL,   "winograd",             winograd),
    FIELD(TrainSpec, TEXT,   "data",                 data_kind),
    FIELD(TrainSpec, TEXT,   "path",                 data_path),
    FIELD(TrainSpec, INT,    "batch",                data_batch),
    FIELD(TrainSpec, INT,    "length",               data_length),
    FIELD(TrainSpec, BOOL,   "chars",                data_chars),
    FIELD(TrainSpec, INT,    "size",                 data_size),
    FIELD(TrainSpec, INT,    "resize",               data_resize),
    FIELD(TrainSpec, BOOL,   "augment",              data_augment),
    FIELD(TrainSpec, DOUBLE, "mean_red",             data_mean[0]),
    FIELD(TrainSpec, DOUBLE, "mean_green",           data_mean[1]),
    FIELD(TrainSpec, DOUBLE, "mean_blue",            data_mean[2]),
    FIELD(TrainSpec, DOUBLE, "std_red",              data_std[0]),
    FIELD(TrainSpec, DOUBLE, "std_green",            data_std[1]),
    FIELD(TrainSpec, DOUBLE, "std_blue",             data_std[2]),
    FIELD(TrainSpec, INT,    "rate",                 data_rate),
    FIELD(TrainSpec, TEXT,   "columns",              data_columns),
    FIELD(TrainSpec, TEXT,   "separator",            data_separator),
    FIELD(TrainSpec, BOOL,   "no_header",            data_no_header),
    FIELD(TrainSpec, BOOL,   "in_order",             data_in_order),
    FIELD(TrainSpec, PARTS,  "parts",                data_part),
    FIELD(TrainSpec, TEXT,   "budget",               budget_text),
    FIELD(TrainSpec, TEXT,   "solver",               solver),
    FIELD(TrainSpec, TEXT,   "objective",            objective),
    FIELD(TrainSpec, TEXT,   "cost",                 cost),
};

const TrainField train_group_fields[TRAIN_GROUP_FIELD_COUNT] = {
    FIELD(ParamGroup, TEXT,   "pattern",              pattern),
    FIELD(ParamGroup, BOOL,   "matrices_only",        matrices_only),
    FIELD(ParamGroup, BOOL,   "vectors_only",         vectors_only),
    FIELD(ParamGroup, BOOL,   "own_lr",               own_lr),
    FIELD(ParamGroup, BOOL,   "own_clip",             own_clip),
    FIELD(ParamGroup, BOOL,   "frozen",               frozen),
    FIELD(ParamGroup, INT,    "goal",                 goal),
    RULE_FIELDS(ParamGroup),
};

const TrainField train_goal_fields[TRAIN_GOAL_FIELD_COUNT] = {
    FIELD(TrainGoal, TEXT,   "loss",                  loss),
    FIELD(TrainGoal, TEXT,   "pattern",               pattern),
    FIELD(TrainGoal, INT,    "per_step",              per_step),
};

const TrainField train_part_fields[TRAIN_PART_FIELD_COUNT] = {
    FIELD(DataPart, TEXT,    "data",                  kind),
    FIELD(DataPart, TEXT,    "path",                  path),
    FIELD(DataPart, TEXT,    "columns",               columns),
    FIELD(DataPart, TEXT,    "separator",             separator),
    FIELD(DataPart, BOOL,    "no_header",             no_header),
    FIELD(DataPart, BOOL,    "in_order",              in_order),
};
/* clang-format on */

static void copy_texts(Pool *pool, const TrainField *fields, int n, void *spec)
{
    for (int i = 0; i < n; i++) {
        const char **text = (const char **)((char *)spec + fields[i].offset);
        if (fields[i].kind == TRAIN_TEXT && *text)
            *text = pool_strdup(pool, *text);
    }
}

TrainSpec train_spec_copy(Pool *pool, const TrainSpec *train)
{
    TrainSpec copy = *train;
    ParamGroup *group = POOL_ARRAY(pool, (size_t)train->n_groups + 1, ParamGroup);
    copy_texts(pool, train_fields, TRAIN_FIELD_COUNT, &copy);
    for (int i = 0; i < train->n_groups; i++) {
        group[i] = train->group[i];
        copy_texts(pool, train_group_fields, TRAIN_GROUP_FIELD_COUNT, &group[i]);
    }
    copy.group = group;
    TrainGoal *goal = POOL_ARRAY(pool, (size_t)train->n_goals + 1, TrainGoal);
    for (int i = 0; i < train->n_goals; i++) {
        goal[i] = train->goal[i];
        copy_texts(pool, train_goal_fields, TRAIN_GOAL_FIELD_COUNT, &goal[i]);
    }
    copy.goal = goal;
    DataPart *part = POOL_ARRAY(pool, (size_t)train->n_data_parts + 1, DataPart);
    for (int i = 0; i < train->n_data_parts; i++) {
        part[i] = train->data_part[i];
        copy_texts(pool, train_part_fields, TRAIN_PART_FIELD_COUNT, &part[i]);
    }
    copy.data_part = part;
    return copy;
}
