/* SPDX-License-Identifier: GPL-3.0-or-later */
/* zip(SOURCES): several sources read in step, example i of one with example i of the others. */
#include "runtime/data_internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct Zip {
    Dataset *part[DATA_MAX_FIELDS];
    int n;
    /* By field: whose it is, and its number there. */
    int part_of[DATA_MAX_FIELDS], field_of[DATA_MAX_FIELDS];
} Zip;

/* Whether its examples can be asked for one by one, and are always the same; an unknown kind is
 * refused elsewhere. */
static bool has_examples(const DataKind *kind)
{
    return !kind || (kind->example && !kind->batch && !kind->left_out && !kind->traits.made_up &&
                     !kind->traits.several);
}

static Dataset *open_part(const Dataset *ds, int k, RtError *err)
{
    DataSpec spec = ds->spec.part[k];
    spec.batch = ds->spec.batch;
    spec.seed = ds->spec.seed;
    spec.held_out = ds->spec.held_out;
    spec.held_out_is_part = ds->spec.held_out_is_part;
    memcpy(spec.ignored_field, ds->spec.ignored_field, sizeof spec.ignored_field);
    spec.ignored = ds->spec.ignored;
    spec.learned = json_array_get(ds->spec.learned, (size_t)k);
    if (json_is_null(spec.learned))
        spec.learned = NULL;
    return dataset_open(&spec, err);
}

/* That examples of part k go with those of the first. */
static bool check_sizes(const Zip *z, int k, RtError *err)
{
    const Dataset *a = z->part[0], *b = z->part[k];
    return (a->n_train == b->n_train && a->n_held == b->n_held) ||
           rt_error(err,
                    "zip reads its sources in step, but %s (the first) has %lld examples to train "
                    "on and %lld held out, %s (number %d) %lld and %lld",
                    a->kind->name, (long long)a->n_train, (long long)a->n_held, b->kind->name,
                    k + 1, (long long)b->n_train, (long long)b->n_held);
}

static bool add_fields(Dataset *ds, int k, RtError *err)
{
    Zip *z = ds->state;
    for (int f = 0; f < z->part[k]->n_fields; f++) {
        const DataField *field = &z->part[k]->field[f];
        if (dataset_find_field(ds, field->name) >= 0)
            return rt_error(err, "zip: two sources have a field %s", field->name);
        if (ds->n_fields == DATA_MAX_FIELDS)
            return rt_error(err, "zip: more than %d fields", DATA_MAX_FIELDS);
        z->part_of[ds->n_fields] = k;
        z->field_of[ds->n_fields] = f;
        ds->field[ds->n_fields++] = *field;
    }
    return true;
}

static bool add_part(Dataset *ds, int k, RtError *err)
{
    Zip *z = ds->state;
    const char *kind = ds->spec.part[k].kind;
    if (!has_examples(data_find_kind(kind)))
        return rt_error(err, "%s cannot be zipped", kind);
    z->part[k] = open_part(ds, k, err);
    if (!z->part[k])
        return false;
    z->n++;
    ds->loaded_bytes += z->part[k]->loaded_bytes;
    ds->test = z->part[k]->test ? z->part[k]->test : ds->test;
    return check_sizes(z, k, err) && add_fields(ds, k, err);
}

/* A list by source, with nulls, when there is anything. */
static bool collect_learned(Dataset *ds, RtError *err)
{
    const Zip *z = ds->state;
    bool any = false;
    ds->learned = json_array();
    for (int k = 0; k < z->n; k++) {
        json_t *of_part = z->part[k]->learned;
        any = any || of_part;
        if (json_array_append_new(ds->learned, of_part ? json_incref(of_part) : json_null()) != 0)
            return rt_error(err, "out of memory");
    }
    if (any)
        return true;
    json_decref(ds->learned);
    ds->learned = NULL;
    return true;
}

static bool zip_open_parts(Dataset *ds, RtError *err)
{
    const Zip *z = ds->state = rt_alloc(1, sizeof(Zip), err);
    if (!z)
        return false;
    if (ds->spec.n_parts < 1 || ds->spec.n_parts > DATA_MAX_FIELDS)
        return rt_error(err, "zip wants 1 to %d sources, got %d", DATA_MAX_FIELDS,
                        ds->spec.n_parts);
    for (int k = 0; k < ds->spec.n_parts; k++)
        if (!add_part(ds, k, err))
            return false;
    ds->total = z->part[0]->total;
    return collect_learned(ds, err);
}

static void zip_close_parts(Dataset *ds)
{
    Zip *z = ds->state;
    for (int k = 0; z && k < z->n; k++)
        dataset_close(z->part[k]);
    free(z);
}

static void zip_example(const Dataset *ds, int64_t i, int f, void *dst)
{
    const Zip *z = ds->state;
    const Dataset *part = z->part[z->part_of[f]];
    part->kind->example(part, i, z->field_of[f], dst);
}

const DataKind data_zip = {.name = "zip",
                           .traits.several = true,
                           .open = zip_open_parts,
                           .close = zip_close_parts,
                           .example = zip_example};
