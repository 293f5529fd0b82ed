/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of runtime/data*.c share: a data set is a table of functions for one kind and two
 * families, examples by index (images, arrays) or one long run of tokens (text). */
#ifndef SCRIMP_RUNTIME_DATA_INTERNAL_H
#define SCRIMP_RUNTIME_DATA_INTERNAL_H

#include "runtime/data.h"
#include "runtime/file.h"
#include "runtime/left_out.h"

typedef struct DataKind {
    const char *name;
    DataTraits traits;
    bool sequence;
    /* Fills field, total, test, loaded_bytes, state.  On failure close is called too. */
    bool (*open)(Dataset *ds, RtError *err);
    /* May be NULL.  After open, when it is known which examples are trained on. */
    bool (*prepare)(Dataset *ds, RtError *err);
    void (*close)(Dataset *ds);
    /* Examples: field f of example i. */
    void (*example)(const Dataset *ds, int64_t i, int f, void *dst);
    /* In place of `example`, for what can fail or takes long: a whole batch (data_batch_example),
     * training batch or evaluation batch `number`. */
    bool (*batch)(const Dataset *ds, bool training, int64_t number, void *const *dst, RtError *err);
    /* For what can be damaged in places: examples that are left out, and what an example is called.
     */
    LeftOutList *(*left_out)(const Dataset *ds);
    const char *(*example_name)(const Dataset *ds, int64_t i);
    /* Sequences: tokens [start, start + n). */
    void (*tokens)(const Dataset *ds, int64_t start, int64_t n, int32_t *dst);
} DataKind;

extern const DataKind data_mnist, data_cifar10, data_text, data_tokens, data_npy, data_npz,
    data_safetensors, data_imagefolder, data_audiofolder, data_csv, data_zip, data_synthetic;

/* NULL when there is none of this name. */
const DataKind *data_find_kind(const char *name);

struct Dataset {
    const DataKind *kind;
    DataSpec spec;
    int n_fields;
    DataField field[DATA_MAX_FIELDS];
    int64_t field_bytes[DATA_MAX_FIELDS]; /* of one example */
    int label_field;                      /* the first with labels, or -1 */
    /* In the order they are numbered: examples (tokens) to train on, then those held out.
     * test > 0: the files themselves say that the last `test` are held out. */
    int64_t total, test, n_train, n_held;
    int64_t loaded_bytes;
    char description[256], warning[400];
    Vocab vocab;
    bool has_vocab;
    struct json_t *learned; /* dataset_learned */
    Dataset *held;          /* of held_path; NULL: what is held out is a part of this one */
    void *state;            /* of the kind */
};

/* Adds a field; max_id and min_id start as "no index". */
DataField *data_add_field(Dataset *ds, const char *name, RtDType dtype, int rank,
                          const int64_t *dims);
/* The fields x and y of sequence data. */
void data_add_sequence_fields(Dataset *ds, int64_t min_id, int64_t max_id);

/* Which example stands at place b of a training or evaluation batch; -1 past the last one. */
int64_t data_batch_example(const Dataset *ds, bool training, int64_t number, int64_t b);

/* Files named by a '\n'-separated list of files, folders (all files below, hidden ones left out, or
 * only those that end in suffix) and globs; each entry's files sorted by name. */
typedef struct PathList {
    char **path;
    int64_t n, cap;
} PathList;
bool paths_expand(const char *list, const char *suffix, PathList *out, RtError *err);
void paths_free(PathList *list);
/* The part after the last '/'. */
const char *path_base(const char *path);

/* Data larger than this is refused: more than any machine scrimp is for. */
#define DATA_MAX_BYTES ((int64_t)1 << 40)

/* IDX (MNIST): unsigned bytes of any rank up to 4. */
typedef struct IdxArray {
    int rank;
    int64_t dims[4];
    const unsigned char *data;
} IdxArray;
bool idx_parse(const unsigned char *bytes, int64_t n, IdxArray *out, RtError *err);
/* A file, gzip or not, of an array of this rank: the header first, then exactly what it promises.
 * What array points into is *file's, which is the caller's also after a failure. */
bool idx_read(const char *path, int rank, FileBytes *file, IdxArray *array, RtError *err);

#endif
