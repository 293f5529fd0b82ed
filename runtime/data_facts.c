/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an open data set says of itself. */
#include "runtime/data_internal.h"

#include <string.h>

int dataset_n_fields(const Dataset *ds)
{
    return ds->n_fields;
}

const DataField *dataset_field(const Dataset *ds, int i)
{
    return i >= 0 && i < ds->n_fields ? &ds->field[i] : NULL;
}

int dataset_find_field(const Dataset *ds, const char *name)
{
    for (int f = 0; f < ds->n_fields; f++)
        if (strcmp(ds->field[f].name, name) == 0)
            return f;
    return -1;
}

int64_t dataset_train_size(const Dataset *ds)
{
    return ds->n_train;
}

int64_t dataset_held_out_size(const Dataset *ds)
{
    return ds->held ? ds->held->n_held : ds->n_held;
}

int64_t dataset_batch_size(const Dataset *ds)
{
    return ds->spec.batch;
}

int64_t dataset_eval_unread(const Dataset *ds)
{
    if (ds->held)
        return dataset_eval_unread(ds->held);
    return ds->kind->sequence || ds->label_field >= 0 ? 0 : ds->n_held % ds->spec.batch;
}

const char *dataset_warning(const Dataset *ds)
{
    return ds->warning;
}

static LeftOutList *left_out(const Dataset *ds)
{
    return ds->kind->left_out ? ds->kind->left_out(ds) : NULL;
}

int64_t dataset_left_out(const Dataset *ds)
{
    const LeftOutList *list = left_out(ds);
    return list ? list->n : 0;
}

int64_t dataset_left_out_limit(const Dataset *ds)
{
    const LeftOutList *list = left_out(ds);
    return list ? list->limit : 0;
}

const char *dataset_left_out_name(const Dataset *ds, int64_t i)
{
    return ds->kind->example_name(ds, left_out(ds)->item[i].example);
}

bool dataset_tell_left_out(const Dataset *ds, int64_t *i, const char **why)
{
    LeftOutList *list = left_out(ds);
    if (!list || list->told == list->n)
        return false;
    *i = list->told++;
    *why = list->item[*i].why;
    return true;
}

int64_t dataset_loaded_bytes(const Dataset *ds)
{
    return ds->loaded_bytes;
}

const char *dataset_description(const Dataset *ds)
{
    return ds->description;
}

const Vocab *dataset_vocab(const Dataset *ds)
{
    return ds->has_vocab ? &ds->vocab : NULL;
}

struct json_t *dataset_learned(const Dataset *ds)
{
    return ds->learned;
}
