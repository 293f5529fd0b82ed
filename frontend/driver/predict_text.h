/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What `predict` says of each example as text: lines of CSV, or of a JSON object. */
#ifndef SCRIMP_FRONTEND_DRIVER_PREDICT_TEXT_H
#define SCRIMP_FRONTEND_DRIVER_PREDICT_TEXT_H

#include "frontend/driver/cli.h"
#include "ir/graph.h"
#include "runtime/dtype.h"
#include "runtime/examples.h"

#include <stdio.h>

/* A result of the model: `width` numbers for an example, or one where it has no dimension. */
typedef struct TextResult {
    const char *name;
    RtDType dtype;
    bool row; /* it has a dimension */
    int64_t width;
    const void *data; /* of the examples to write */
} TextResult;

/* Classes that the first result has logits of. */
typedef struct TextClasses {
    bool present;
    json_t *values; /* what they are called; NULL: by number */
} TextClasses;

/* The classes of a first result of this type: those that the evaluation's accuracy is about.  For a
 * file with a train section. */
TextClasses predict_classes(Cli *cli, const Ast *ast, const Type *type);
void predict_classes_free(TextClasses *c);

typedef struct PredictText {
    Pool *pool; /* for the heading */
    const TextResult *result;
    int n;
    TextClasses classes;
    const Examples *files; /* where each example is a file, what they are; or NULL */
    bool json;
} PredictText;

/* In front of the examples and behind them; `count` of them. */
void predict_text_begin(const PredictText *t, int64_t count, FILE *f);
void predict_text_end(const PredictText *t, FILE *f);
/* Examples first .. first + n, whose data begin at the first. */
void predict_text_examples(const PredictText *t, int64_t first, int64_t n, FILE *f);

#endif
