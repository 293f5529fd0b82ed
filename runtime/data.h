/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Training and evaluation data, put straight into the step's tensors.  A data set has fields
 * (`image` and `label`, `x` and `y`, ...), knows how to fill them for any training step and any
 * evaluation batch, and keeps no position: batches depend on (seed, step) only, so that a run
 * resumes anywhere. Nothing is allocated after dataset_open.  Formats: docs/data.md.  Called by the
 * trainer. */
#ifndef SCRIMP_RUNTIME_DATA_H
#define SCRIMP_RUNTIME_DATA_H

#include "runtime/dtype.h"
#include "runtime/vocab.h"

enum { DATA_MAX_FIELDS = 8, DATA_IGNORE = -100 };

typedef struct DataField {
    char name[64];
    RtDType dtype;
    int rank; /* of one example: dim does not include the batch */
    int64_t dim[RT_MAX_RANK];
    bool label;      /* integer targets: padding is `ignored` */
    int32_t ignored; /* the label that the loss leaves out: DATA_IGNORE, or as the spec says */
    int64_t max_id;  /* largest value of an integer field, for the check against classes or
                        vocabulary; -1 when it is not an index */
    int64_t min_id;  /* smallest value, DATA_IGNORE in labels not counted */
} DataField;

typedef struct DataSpec {
    const char *kind;      /* "mnist", "cifar10", "text", "tokens", "npy", "npz",
                              "safetensors", "imagefolder", "audiofolder", "csv", "zip", "synthetic" */
    const char *path;      /* files, folders or globs, '\n' between them; unused by synthetic */
    int64_t batch;         /* examples per batch */
    int64_t length;        /* tokens per example of text and tokens, samples of audiofolder */
    bool chars;            /* text: characters, not bytes */
    double held_out;       /* examples (text: tokens) taken from the end, or a part in [0, 1] */
    const char *held_path; /* in its place: other files of the same kind are held out, or their test
                              part if they have one; "" or NULL: a part of path is */
    bool held_out_is_part;
    uint64_t seed;
    /* The value of label field `ignored_field` that the loss leaves out, when that is not
     * DATA_IGNORE; "" = there is none. */
    char ignored_field[64];
    int64_t ignored;
    /* imagefolder only: height and width of what the network sees, the shorter side before the
     * middle is cut out for evaluation, random crops and flips in training, and per channel what
     * is taken off and divided by (of pixels in 0..1). */
    int64_t size, resize;
    bool augment;
    double mean[3], std[3];
    /* audiofolder only: samples a second of what the network hears.  `augment`: a random part of a
     * longer sound in training, else the middle. */
    int64_t rate;
    /* imagefolder and audiofolder: files that the run left out before it was continued, by their
     * paths below the folder.  They keep their numbers, whether they are there or not. */
    const char *const *left_out;
    int64_t n_left_out;
    /* npz and safetensors: columns has a line for each field, with a tab between its name and its
     * array's.  The rest is for csv only.  columns: a line for each field, with tabs between its
     * name, number|integer| category|one_hot, error|mean|own|drop, 1 when it is standardized (else
     * 0), how many columns it has (0: one without a dimension of its own), the classes of one_hot
     * with commas between them, and the columns' names.  separator: one character, "" or NULL as
     * the file's name says. learned: what a checkpoint has (dataset_learned), NULL to learn it from
     * the data. every_row: what `drop` would leave out is refused. */
    const char *columns, *separator;
    bool no_header, in_order, every_row;
    const struct json_t *learned;
    /* text of characters: the tokens of another data set; NULL: those of its own characters. */
    const Vocab *vocab;
    /* synthetic only: name, dtype, rank, dim, label of every field; max_id + 1 classes (max_id < 1
     * counts as 2); examples in all, 0 = 10,000. */
    int n_fields;
    DataField field[DATA_MAX_FIELDS];
    int64_t examples;
    /* zip only: kind, path and what is of the kind; the rest is as here. */
    const struct DataSpec *part;
    int n_parts;
} DataSpec;

typedef struct Dataset Dataset;

/* What sets a kind apart before its data are opened. */
typedef struct DataTraits {
    bool made_up;             /* it reads no files, and has the fields that the spec names */
    bool file_per_example;    /* which example has which number depends on the files there are */
    const char *field_suffix; /* a field is an array of NumPy's in the file of its name with this
                                 suffix; NULL: fields have no files of their own */
    bool several;             /* it reads what other sources are */
    bool named_arrays;        /* a field is an array that DataSpec.columns names */
    const char *counted;      /* what their number is counted in; NULL: in examples.  Tokens are as
                                 many as there are in all examples. */
    const char *other_dims;   /* a way out for examples of other dims; NULL: they may have any */
} DataTraits;

/* All false and NULL when there is no such kind. */
const DataTraits *data_traits(const char *kind);

/* Whether there is something for every entry of a '\n'-separated list of files, folders and globs.
 */
bool data_paths_exist(const char *list);

/* NULL with a message when the files are missing or damaged, or hold neither a training nor an
 * evaluation batch. */
Dataset *dataset_open(const DataSpec *spec, RtError *err);
void dataset_close(Dataset *ds);

int dataset_n_fields(const Dataset *ds);
const DataField *dataset_field(const Dataset *ds, int i);
/* Index of a field, or -1. */
int dataset_find_field(const Dataset *ds, const char *name);
/* Examples (sequence data: tokens) to train on and held out. */
int64_t dataset_train_size(const Dataset *ds);
int64_t dataset_held_out_size(const Dataset *ds);
/* Examples in a batch. */
int64_t dataset_batch_size(const Dataset *ds);
/* Bytes of data this process holds (read and mapped files). */
int64_t dataset_loaded_bytes(const Dataset *ds);
/* One line for the log: "mnist: 9,000 to train on, 1,000 held out". */
const char *dataset_description(const Dataset *ds);
/* What is allowed and hardly ever meant, such as a class without a held-out picture; "" = nothing.
 */
const char *dataset_warning(const Dataset *ds);
/* Examples that cannot be read and are left out, so far: those of the spec, then those that were
 * found.  When more than dataset_left_out_limit are found, the data set fails. */
int64_t dataset_left_out(const Dataset *ds);
int64_t dataset_left_out_limit(const Dataset *ds);
const char *dataset_left_out_name(const Dataset *ds, int64_t i);
/* The next one that was found and not told yet: its number among those above, and why; false when
 * there is none. */
bool dataset_tell_left_out(const Dataset *ds, int64_t *i, const char **why);
/* The vocabulary of text; NULL for other kinds. */
const Vocab *dataset_vocab(const Dataset *ds);

/* What is part of a trained model, such as the mean and deviation of a column, for its checkpoint;
 * NULL when there is nothing.  The data set's. */
struct json_t *dataset_learned(const Dataset *ds);

/* Training batches in an epoch: whole batches only, the last incomplete one is dropped (another
 * epoch's shuffle drops other examples).  Sequence data: train tokens / (batch * length), at
 * least 1. */
int64_t dataset_batches_per_epoch(const Dataset *ds);
/* Fills dst[field] (batch * one example, dense; NULL = not wanted) with training batch `step`,
 * counted in micro-batches from 0.  Image sets walk a new permutation each epoch; sequences start
 * at random offsets of (seed, step).  False when the training part is smaller than
 * one batch (sequence data: one window). */
bool dataset_train_batch(const Dataset *ds, int64_t step, void *const *dst, RtError *err);

/* Which example, numbered in the order of the files from 0, stands at place b of training batch or
 * evaluation batch `number`; -1 for padding and for sequence data. */
int64_t dataset_example(const Dataset *ds, bool training, int64_t number, int64_t b);

/* Evaluation goes once over the held-out part in order.  Sequence data: windows of length tokens,
 * every held-out token a target once (the first is predicted from the token before it).  The last
 * batch is padded: labels DATA_IGNORE, the rest zeros.  A set without labels leaves its last
 * incomplete batch out.  0 when nothing is held out. */
int64_t dataset_eval_batches(const Dataset *ds);
/* Examples that are held out and in none of these batches: of a set without labels those of the
 * last incomplete one. */
int64_t dataset_eval_unread(const Dataset *ds);
/* *counted: how many labels of the batch are not DATA_IGNORE (examples, in a set without labels);
 * the weight of this batch's mean loss. */
bool dataset_eval_batch(const Dataset *ds, int64_t i, void *const *dst, int64_t *counted,
                        RtError *err);

#endif
