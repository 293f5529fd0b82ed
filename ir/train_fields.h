/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The fields of the train section: what prints, reads, compares or copies one goes over these
 * tables. */
#ifndef SCRIMP_IR_TRAIN_FIELDS_H
#define SCRIMP_IR_TRAIN_FIELDS_H

#include "ir/train_spec.h"

#include <stddef.h>

typedef enum TrainFieldKind {
    TRAIN_BOOL,
    TRAIN_DOUBLE,
    TRAIN_INT,
    TRAIN_UINT,
    TRAIN_TEXT,
    TRAIN_OPTIM,
    TRAIN_LR,
    TRAIN_GROUPS, /* with n_groups */
    TRAIN_GOALS,  /* with n_goals */
    TRAIN_PARTS   /* with n_data_parts */
} TrainFieldKind;

typedef struct TrainField {
    const char *key;
    TrainFieldKind kind;
    size_t offset; /* in TrainSpec, ParamGroup, TrainGoal or DataPart */
} TrainField;

enum {
    TRAIN_OPTIM_COUNT = 9,
    TRAIN_LR_COUNT = 6,
    TRAIN_FIELD_COUNT = 70,
    TRAIN_GROUP_FIELD_COUNT = 38,
    TRAIN_GOAL_FIELD_COUNT = 3,
    TRAIN_PART_FIELD_COUNT = 6
};
extern const TrainField train_fields[TRAIN_FIELD_COUNT];
/* Those of `rule` come last. */
extern const TrainField train_group_fields[TRAIN_GROUP_FIELD_COUNT];
extern const TrainField train_goal_fields[TRAIN_GOAL_FIELD_COUNT];
extern const TrainField train_part_fields[TRAIN_PART_FIELD_COUNT];
extern const char *const optim_names[TRAIN_OPTIM_COUNT]; /* by OptimKind */
extern const char *const lr_names[TRAIN_LR_COUNT];       /* by LrKind */

/* With texts, groups, goals and parts of its own, in the pool. */
TrainSpec train_spec_copy(Pool *pool, const TrainSpec *train);

#endif
