/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "runtime/data_internal.h"

#include "runtime/rng.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const DataKind *const kinds[] = {&data_mnist,       &data_cifar10,     &data_text,
                                        &data_tokens,      &data_npy,         &data_npz,
                                        &data_safetensors, &data_imagefolder, &data_audiofolder,
                                        &data_csv,         &data_zip,         &data_synthetic};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

DataField *data_add_field(Dataset *ds, const char *name, RtDType dtype, int rank,
                          const int64_t *dims)
{
    DataField *f = &ds->field[ds->n_fields++];
    *f = (DataField){.dtype = dtype, .rank = rank, .max_id = -1, .min_id = -1};
    snprintf(f->name, sizeof f->name, "%s", name);
    f->ignored = strcmp(name, ds->spec.ignored_field) == 0 && ds->spec.ignored_field[0]
                     ? (int32_t)ds->spec.ignored
                     : DATA_IGNORE;
    for (int i = 0; i < rank; i++)
        f->dim[i] = dims[i];
    return f;
}

void data_add_sequence_fields(Dataset *ds, int64_t min_id, int64_t max_id)
{
    DataField *x = data_add_field(ds, "x", RT_I32, 1, &ds->spec.length);
    DataField *y = data_add_field(ds, "y", RT_I32, 1, &ds->spec.length);
    x->min_id = y->min_id = min_id;
    x->max_id = y->max_id = max_id;
    y->label = true;
}

/* ---- opening ---- */

const DataKind *data_find_kind(const char *name)
{
    for (int i = 0; i < N_KINDS; i++)
        if (name && strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

const DataTraits *data_traits(const char *kind)
{
    static const DataTraits none = {0};
    const DataKind *k = data_find_kind(kind);
    return k ? &k->traits : &none;
}

static void unknown_kind(const char *name, RtError *err)
{
    rt_error(err,
             "there is no reader for '%s' data: there are mnist, cifar10, text, tokens, npy, npz, "
             "safetensors, imagefolder, audiofolder, csv, zip and synthetic",
             name ? name : "");
}

static bool check_spec(const DataSpec *spec, bool sequence, RtError *err)
{
    if (spec->batch < 1 || spec->batch > INT32_MAX)
        return rt_error(err, "batch = %lld: give a number from 1 to %d", (long long)spec->batch,
                        INT32_MAX);
    if (sequence && (spec->length < 1 || spec->length > INT32_MAX))
        return rt_error(err, "length = %lld: give a number of tokens from 1 to %d",
                        (long long)spec->length, INT32_MAX);
    double most = spec->held_out_is_part ? 1 : 0x1p62;
    if (!(spec->held_out >= 0 && spec->held_out <= most))
        return rt_error(err,
                        "held_out = %g: give a number of examples, or a part from 0%% to 100%%",
                        spec->held_out);
    return true;
}

/* Parts round so that the training part is floor((1 - part) * total), as int(0.9 * n) does in the
 * scripts people compare with; the margin absorbs the rounding of 1 - part. */
static bool split(Dataset *ds, RtError *err)
{
    const DataSpec *spec = &ds->spec;
    if (spec->held_path) { /* the files' own test part is not looked at */
        ds->n_held = 0;
        ds->n_train = ds->total - ds->test;
        return true;
    }
    if (ds->test > 0)
        ds->n_held = ds->test;
    else if (spec->held_out_is_part)
        ds->n_held = ds->total - (int64_t)floor((1 - spec->held_out) * (double)ds->total + 1e-6);
    else
        ds->n_held = (int64_t)spec->held_out;
    if (ds->n_held > ds->total)
        return rt_error(err, "held_out = %lld, but there are only %lld", (long long)ds->n_held,
                        (long long)ds->total);
    ds->n_train = ds->total - ds->n_held;
    return true;
}

static bool measure_fields(Dataset *ds, RtError *err)
{
    ds->label_field = -1;
    for (int f = 0; f < ds->n_fields; f++) {
        const DataField *field = &ds->field[f];
        int64_t n, bytes;
        if (!rt_elements(field->rank, field->dim, &n) ||
            !rt_mul(n, rt_dtype_bytes(field->dtype), &ds->field_bytes[f]) ||
            !rt_mul(ds->field_bytes[f], ds->spec.batch, &bytes))
            return rt_error(err, "a batch of field %s does not fit the address space", field->name);
        if (field->label && ds->label_field < 0)
            ds->label_field = f;
    }
    return true;
}

static bool too_small(const Dataset *ds, RtError *err)
{
    const char *unit = ds->kind->sequence ? "tokens" : "examples";
    int64_t need = ds->kind->sequence ? ds->spec.length + 1 : ds->spec.batch;
    if (ds->total == 0)
        return rt_error(err, "%s: there are no %s", ds->kind->name, unit);
    return rt_error(
        err,
        "%s: %lld %s to train on and %lld held out, but %s needs %lld; lower %s or give "
        "more data",
        ds->kind->name, (long long)ds->n_train, unit, (long long)ds->n_held,
        ds->kind->sequence ? "a window" : "a batch", (long long)need,
        ds->kind->sequence ? "the length" : "the batch size");
}

static bool same_field(const DataField *a, const DataField *b)
{
    return strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

/* The field of what is held out that belongs to field f; indices of both are within its range. */
static bool join_field(Dataset *ds, int f, RtError *err)
{
    DataField *own = &ds->field[f];
    const DataField *held = f < ds->held->n_fields ? &ds->held->field[f] : NULL;
    char have[128], other[128] = "";
    if (held && same_field(own, held)) {
        own->max_id = held->max_id > own->max_id ? held->max_id : own->max_id;
        own->min_id = held->min_id < own->min_id ? held->min_id : own->min_id;
        return true;
    }
    rt_shape_text(own->rank, own->dim, have, sizeof have);
    if (held)
        rt_shape_text(held->rank, held->dim, other, sizeof other);
    return rt_error(err, "held_out: an example has the field %s, %s%s, those to train on %s, %s%s",
                    held ? held->name : "(none)", held ? rt_dtype_name(held->dtype) : "", other,
                    own->name, rt_dtype_name(own->dtype), have);
}

/* Other files of the same kind, as what was learned of those to train on says. */
static bool open_held(Dataset *ds, RtError *err)
{
    DataSpec spec = ds->spec;
    if (ds->kind->traits.made_up)
        return rt_error(err, "held_out = PATH: %s reads no files", ds->kind->name);
    if (ds->kind->traits.several)
        return rt_error(err, "held_out = PATH: %s reads several sources; give a part of them",
                        ds->kind->name);
    if (ds->kind->left_out)
        return rt_error(err, "held_out = PATH: for %s put them into its folder `val`",
                        ds->kind->name);
    spec.path = ds->spec.held_path;
    spec.held_path = NULL;
    spec.held_out = 1;
    spec.held_out_is_part = true;
    spec.learned = ds->learned;
    spec.vocab = ds->spec.chars ? &ds->vocab : NULL;
    ds->held = dataset_open(&spec, err);
    if (!ds->held)
        return rt_error_prefix(err, "held_out");
    bool ok = ds->held->n_fields == ds->n_fields ||
              rt_error(err, "held_out: %d fields, those to train on have %d", ds->held->n_fields,
                       ds->n_fields);
    for (int f = 0; ok && f < ds->n_fields; f++)
        ok = join_field(ds, f, err);
    ds->loaded_bytes += ds->held->loaded_bytes;
    return ok;
}

static bool open_kind(Dataset *ds, RtError *err)
{
    if (!check_spec(&ds->spec, ds->kind->sequence, err) || !ds->kind->open(ds, err) ||
        !split(ds, err) || !measure_fields(ds, err))
        return false;
    if (dataset_batches_per_epoch(ds) == 0 && dataset_eval_batches(ds) == 0)
        return too_small(ds, err);
    if (ds->kind->prepare && !ds->kind->prepare(ds, err))
        return false;
    if (ds->spec.held_path && !open_held(ds, err))
        return false;
    snprintf(ds->description, sizeof ds->description, "%s: %lld %s to train on, %lld held out%s",
             ds->kind->name, (long long)ds->n_train, ds->kind->sequence ? "tokens" : "examples",
             (long long)dataset_held_out_size(ds),
             ds->held   ? " (other files)"
             : ds->test ? " (the files' own test part)"
                        : "");
    return true;
}

Dataset *dataset_open(const DataSpec *spec, RtError *err)
{
    const DataKind *kind = data_find_kind(spec->kind);
    Dataset *ds = kind ? rt_alloc(1, sizeof *ds, err) : NULL;
    if (!kind)
        unknown_kind(spec->kind, err);
    if (!ds)
        return NULL;
    ds->kind = kind;
    ds->spec = *spec;
    if (spec->held_path && !*spec->held_path)
        ds->spec.held_path = NULL;
    bool ok = open_kind(ds, err);
    /* the caller's; not needed any more */
    ds->spec.kind = ds->spec.path = ds->spec.columns = ds->spec.separator = NULL;
    ds->spec.part = NULL;
    ds->spec.held_path = NULL;
    ds->spec.left_out = NULL;
    ds->spec.learned = NULL;
    ds->spec.vocab = NULL;
    if (ok)
        return ds;
    dataset_close(ds);
    return NULL;
}

void dataset_close(Dataset *ds)
{
    if (!ds)
        return;
    dataset_close(ds->held);
    ds->kind->close(ds);
    vocab_free(&ds->vocab);
    json_decref(ds->learned);
    free(ds);
}

/* ---- numbers of batches ---- */

int64_t dataset_batches_per_epoch(const Dataset *ds)
{
    if (!ds->kind->sequence)
        return ds->n_train / ds->spec.batch;
    if (ds->n_train <= ds->spec.length)
        return 0;
    int64_t n = ds->n_train / (ds->spec.batch * ds->spec.length);
    return n ? n : 1;
}

/* Windows, or examples, to batches; without labels only whole batches count. */
int64_t dataset_eval_batches(const Dataset *ds)
{
    if (ds->held)
        return dataset_eval_batches(ds->held);
    int64_t n = ds->n_held, batch = ds->spec.batch;
    if (ds->kind->sequence)
        n = n / ds->spec.length + (n % ds->spec.length != 0);
    return n / batch + (ds->label_field >= 0 && n % batch != 0);
}

/* ---- batches ---- */

static void *slot(const Dataset *ds, void *const *dst, int f, int64_t b)
{
    return dst[f] ? (char *)dst[f] + b * ds->field_bytes[f] : NULL;
}

static void fill_ignore(const DataField *f, int32_t *label, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        label[i] = f->ignored;
}

/* Place b of a batch for an example that is not there: ignored labels (i32 in every kind: the value
 * has to fit), the rest zeros. */
static void put_padding(const Dataset *ds, int64_t b, void *const *dst)
{
    for (int f = 0; f < ds->n_fields; f++) {
        if (!dst[f])
            continue;
        if (ds->field[f].label)
            fill_ignore(&ds->field[f], slot(ds, dst, f, b),
                        ds->field_bytes[f] / (int64_t)sizeof(int32_t));
        else
            memset(slot(ds, dst, f, b), 0, (size_t)ds->field_bytes[f]);
    }
}

int64_t data_batch_example(const Dataset *ds, bool training, int64_t number, int64_t b)
{
    if (!training) {
        int64_t k = number * ds->spec.batch + b;
        return k < ds->n_held ? ds->n_train + k : -1;
    }
    int64_t per_epoch = dataset_batches_per_epoch(ds);
    uint64_t at = (uint64_t)(number % per_epoch * ds->spec.batch + b);
    return (int64_t)rt_permute(at, (uint64_t)ds->n_train, ds->spec.seed,
                               (uint64_t)(number / per_epoch));
}

int64_t dataset_example(const Dataset *ds, bool training, int64_t number, int64_t b)
{
    if (ds->held && !training)
        return dataset_example(ds->held, false, number, b);
    return ds->kind->sequence ? -1 : data_batch_example(ds, training, number, b);
}

static void put_example(const Dataset *ds, int64_t i, int64_t b, void *const *dst)
{
    if (i < 0) {
        put_padding(ds, b, dst);
        return;
    }
    for (int f = 0; f < ds->n_fields; f++)
        if (dst[f])
            ds->kind->example(ds, i, f, slot(ds, dst, f, b));
}

static bool put_examples(const Dataset *ds, bool training, int64_t number, void *const *dst,
                         RtError *err)
{
    if (ds->kind->batch)
        return ds->kind->batch(ds, training, number, dst, err);
    for (int64_t b = 0; b < ds->spec.batch; b++)
        put_example(ds, data_batch_example(ds, training, number, b), b, dst);
    return true;
}

/* Fields of sequence data: 0 is x, 1 is y. */
static void train_window(const Dataset *ds, int64_t step, int64_t b, void *const *dst)
{
    int64_t length = ds->spec.length;
    int64_t start = (int64_t)rt_rng_below((uint64_t)(ds->n_train - length), ds->spec.seed,
                                          (uint64_t)step, rt_name_key("data.windows"), (uint64_t)b);
    for (int f = 0; f < 2; f++)
        if (dst[f])
            ds->kind->tokens(ds, start + f, length, slot(ds, dst, f, b));
}

bool dataset_train_batch(const Dataset *ds, int64_t step, void *const *dst, RtError *err)
{
    int64_t per_epoch = dataset_batches_per_epoch(ds);
    if (per_epoch == 0)
        return too_small(ds, err);
    if (step < 0)
        return rt_error(err, "there is no training batch %lld", (long long)step);
    if (!ds->kind->sequence)
        return put_examples(ds, true, step, dst, err);
    for (int64_t b = 0; b < ds->spec.batch; b++)
        train_window(ds, step, b, dst);
    return true;
}

/* Window w of the held-out tokens: y is tokens [start, start + n), x what comes before each.
 * Returns the number of targets. */
static int64_t eval_window(const Dataset *ds, int64_t w, int64_t b, void *const *dst)
{
    int64_t length = ds->spec.length, windows = ds->n_held / length + (ds->n_held % length != 0);
    if (w >= windows) {
        put_padding(ds, b, dst);
        return 0;
    }
    int64_t start = ds->n_train + w * length, left = ds->total - start;
    int64_t n = left < length ? left : length;
    int64_t orphan = start == 0; /* the very first token has nothing before it */
    int32_t *x = slot(ds, dst, 0, b), *y = slot(ds, dst, 1, b);
    if (x) {
        memset(x, 0, (size_t)ds->field_bytes[0]);
        ds->kind->tokens(ds, start + orphan - 1, n - orphan, x + orphan);
    }
    if (y) {
        fill_ignore(&ds->field[1], y, length);
        ds->kind->tokens(ds, start + orphan, n - orphan, y + orphan);
    }
    return n - orphan;
}

static int64_t count_labels(const Dataset *ds, int64_t examples, void *const *dst)
{
    int f = ds->label_field;
    if (f < 0 || !dst[f])
        return examples;
    const int32_t *label = dst[f];
    int64_t n = ds->field_bytes[f] / (int64_t)sizeof *label * examples, counted = 0;
    for (int64_t i = 0; i < n; i++)
        counted += label[i] != ds->field[f].ignored;
    return counted;
}

bool dataset_eval_batch(const Dataset *ds, int64_t i, void *const *dst, int64_t *counted,
                        RtError *err)
{
    if (ds->held)
        return dataset_eval_batch(ds->held, i, dst, counted, err);
    if (i < 0 || i >= dataset_eval_batches(ds))
        return rt_error(err, "there is no evaluation batch %lld", (long long)i);
    int64_t batch = ds->spec.batch;
    *counted = 0;
    if (ds->kind->sequence) {
        for (int64_t b = 0; b < batch; b++)
            *counted += eval_window(ds, i * batch + b, b, dst);
        return true;
    }
    if (!put_examples(ds, false, i, dst, err))
        return false;
    int64_t left = ds->n_held - i * batch;
    *counted = count_labels(ds, left < batch ? left : batch, dst);
    return true;
}
