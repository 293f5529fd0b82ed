/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the `train` and `remat` sections say, as plain data: filled by the frontend or the IR
 * reader, used by autodiff, the trainer and the rematerialization passes. */
#ifndef SCRIMP_IR_TRAIN_SPEC_H
#define SCRIMP_IR_TRAIN_SPEC_H

#include "ir/support/pool.h"

typedef enum OptimKind {
    OPTIM_SGD,
    OPTIM_ADAM,
    OPTIM_ADAMW,
    OPTIM_RMSPROP,
    OPTIM_ADAGRAD,
    OPTIM_LION,
    OPTIM_LAMB,
    OPTIM_ADAFACTOR,
    OPTIM_MUON
} OptimKind;
typedef enum LrKind {
    LR_CONSTANT,
    LR_STEP,
    LR_LINEAR,
    LR_COSINE,
    LR_INVERSE_SQRT,
    LR_FORMULA
} LrKind;

/* Learning rate at update t of total (both counted in updates, t from 0), see lr_at. */
typedef struct LrSchedule {
    LrKind kind;
    double base, min; /* cosine and linear fall from base to min */
    double warmup;    /* updates of linear warmup from 0; epochs when warmup_epochs */
    bool in_epochs;   /* warmup, every and start are given in epochs (the section has `epochs`) */
    double every, factor; /* step: multiply by factor every `every` updates ... */
    double start;         /* ... that are counted from here */
    double power;         /* linear: of the part that is left; 0 stands for 1 */
    double scale;         /* of the whole; 0 stands for 1 */
    const char *formula;  /* of LR_FORMULA: ir/lr_formula.h; base is the rate after warmup */
} LrSchedule;

/* How a step changes parameters: an optimizer with its settings. */
typedef struct UpdateRule {
    OptimKind optim;
    LrSchedule lr;
    double momentum, dampening, weight_decay, beta1, beta2, eps;
    bool nesterov, decay_matrices_only;
    bool gradient_free; /* momentum SGD that adds gradients to the momentum as they are made */
    double clip;        /* global norm; 0 = off */
    double clip_value;  /* of every element, behind clip; 0 = off */
    double alpha;       /* rmsprop: of the mean of squares */
    bool centered;      /* rmsprop */
    double lr_decay, initial;        /* adagrad */
    double beta2_decay, clip_update; /* adafactor */
    int64_t ns_steps;                /* muon: Newton-Schulz iterations */
    bool match_rms;                  /* muon: moves as large as Adam's */
} UpdateRule;

/* Parameters that have a rule of their own, or none. */
typedef struct ParamGroup {
    const char *pattern; /* of their paths, see train_pattern_fits */
    bool matrices_only;  /* of these those of two dimensions or more, */
    bool vectors_only;   /* or those of fewer */
    bool frozen;         /* they are constants: no gradient, no state; `rule` is all zero */
    bool own_lr;         /* the rate is not that of TrainSpec.rule: an input of its own */
    bool own_clip;       /* clip is the norm of this group alone */
    int64_t goal;        /* of the parameters of this goal */
    UpdateRule rule;
} ParamGroup;

/* One of several losses with optimizers of their own (the operation minimize): what it is for. */
typedef struct TrainGoal {
    const char *loss;    /* the output that is its last value */
    const char *pattern; /* of the paths of the parameters that it moves, and no other goal does */
    int64_t per_step;    /* how often in a step */
} TrainGoal;

/* One of several data sources that are read in step; as the members data_* of TrainSpec. */
typedef struct DataPart {
    const char *kind, *path, *columns, *separator;
    bool no_header, in_order;
} DataPart;

typedef struct TrainSpec {
    bool present;
    UpdateRule rule; /* of parameters in no group */
    const ParamGroup *group;
    int n_groups;
    /* Empty: there is one loss, the output "loss".  Else `rule` is the first goal's, and the last
     * n_goals - 1 groups are those of all parameters of the other goals that are in no group
     * before. */
    const TrainGoal *goal;
    int n_goals;
    double ema;    /* running means of parameters: what stays of one at an update; 0 = none */
    int64_t steps; /* 0 when epochs is given */
    double epochs;
    int64_t accumulate;  /* micro-batches per update, >= 1 */
    bool accumulate_sum; /* their gradients are added up; else the mean is taken */
    double held_out;     /* examples, or a part when held_out_is_part; 0 = none */
    bool held_out_is_part;
    int64_t eval_every; /* updates; 0 = at the end of each epoch, or never */
    int64_t patience;   /* evaluations without a lower loss that end the run; 0 = off */
    uint64_t seed;
    const char *precision; /* "bf16": of activations; "tf32": of what libraries multiply; "" or
                              NULL: f32 */
    bool winograd;         /* 3x3 convolutions that gain by it have Winograd's form */
    /* data source: kind ("mnist", "text", ...), its path(s) separated by '\n', sizes */
    const char *data_kind, *data_path;
    const char
        *data_held_path; /* what is held out instead of a part of data_path, "" or NULL: that */
    int64_t data_batch, data_length;
    bool data_chars; /* text: tokens = chars */
    /* imagefolder: what a picture becomes (runtime/data.h) */
    int64_t data_size, data_resize;
    bool data_augment;
    double data_mean[3], data_std[3];
    int64_t data_rate; /* audiofolder: samples a second */
    /* csv (runtime/data.h) */
    const char *data_columns, *data_separator;
    bool data_no_header, data_in_order;
    const DataPart *data_part; /* zip: its sources; data_path has the paths of all */
    int n_data_parts;
    /* remat section; budget_text is as written ("8GiB", "40%", "min", "" = none) */
    const char *budget_text, *solver, *objective, *cost;
} TrainSpec;

/* Micro-batches of an update; 1 without a train section. */
static inline int64_t train_micro_batches(const TrainSpec *t)
{
    return t->accumulate > 1 ? t->accumulate : 1;
}

/* Source: the same formulas as nanoGPT and PyTorch's LinearLR/CosineAnnealingLR/StepLR:
 * warmup: base*(t+1)/warmup for t < warmup; then with u = (t-warmup)/(total-warmup):
 * cosine min+(base-min)*(1+cos(pi u))/2, linear base+(min-base)*u or min+(base-min)*(1-u)^power,
 * step base*factor^floor((t-start)/every) from start on, inverse_sqrt base*sqrt(warmup/(t+1)), from
 * section 5.3 of Vaswani et al. 2017; times scale.
 */
double lr_at(const LrSchedule *lr, int64_t t, int64_t total, int64_t updates_per_epoch);

/* Whether a parameter's path, as "layer1.0.conv.weight", fits one of the patterns, separated by
 * '\n'.  `*` stands for any text, dots included, `?` for any character. */
bool train_pattern_fits(const char *pattern, const char *path);
/* Whether any update of these parameters counts steps. */
bool train_counts_steps(const UpdateRule *rule);
/* Whether the group's pattern and rank fit a parameter. */
bool train_group_fits(const ParamGroup *group, const char *path, int rank);
/* The first group that a parameter belongs to, or -1. */
int train_group_of(const TrainSpec *t, const char *path, int rank);
/* The goal that a parameter belongs to: the first that fits, or -1 */
int train_goal_of(const TrainSpec *t, const char *path);
/* The group of a goal's parameters that are in no other, or -1: those of the first are in none. */
int train_goal_group(const TrainSpec *t, int goal);
/* The output that `patience` and --keep-best look at: the first goal's loss. */
const char *train_loss(const TrainSpec *t);
/* The group whose rate the input of this role is ("lr.2"), or -1: that of all others ("lr"). */
int train_rate_group(const char *role);
/* Whether an input of this role is a learning rate. */
bool train_is_rate(const char *role);

#endif
