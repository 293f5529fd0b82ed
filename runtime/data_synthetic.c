/* SPDX-License-Identifier: GPL-3.0-or-later */
/* synthetic(shapes...): examples made up on the spot, for tests and timings, that can be learned.
 * Every example has a hidden class; floats and bytes are a pattern of that class plus noise, labels
 * are the class, float targets (label set) the pattern of the class.  A map of labels has one for
 * each quarter, so that networks that see coarsely can learn it.  Integer fields x and y of one
 * shape are a token sequence in which the next token mostly follows from the last. */
#include "runtime/data_internal.h"

#include "runtime/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATTERN = 4096, DEFAULT_EXAMPLES = 10000 };
/* Names the stream, apart from training steps and initial parameters. */
static const uint64_t SYNTHETIC_STEP = UINT64_MAX - 1;

typedef struct Synthetic {
    uint64_t classes;
    bool target[DATA_MAX_FIELDS]; /* a float field to predict */
    bool walk;                    /* x and y are a token sequence */
    int x, y;
    float pattern[PATTERN];
} Synthetic;

static uint64_t draw(const Dataset *ds, uint64_t n, const char *what, uint64_t index)
{
    return rt_rng_below(n, ds->spec.seed, SYNTHETIC_STEP, rt_name_key(what), index);
}

static bool add_field(Dataset *ds, const DataField *given, RtError *err)
{
    Synthetic *s = ds->state;
    bool integer = given->dtype == RT_I32 || given->dtype == RT_U8;
    if (!integer && given->dtype != RT_F32)
        return rt_error(err, "synthetic field %s: f32, i32 and u8 are made, not %s", given->name,
                        rt_dtype_name(given->dtype));
    if (given->label && given->dtype == RT_U8)
        return rt_error(err, "synthetic field %s: labels are i32", given->name);
    if (given->rank < 0 || given->rank > RT_MAX_RANK)
        return rt_error(err, "synthetic field %s: rank %d", given->name, given->rank);
    int f = ds->n_fields;
    DataField *field = data_add_field(ds, given->name, given->dtype, given->rank, given->dim);
    s->target[f] = given->label && !integer;
    field->label = given->label && integer;
    if (field->dtype == RT_I32) {
        field->min_id = 0;
        field->max_id = given->max_id < 1 ? 1 : given->max_id;
        if (field->max_id >= INT32_MAX)
            return rt_error(err, "synthetic field %s: %lld classes", given->name,
                            (long long)field->max_id);
    } else if (field->dtype == RT_U8) {
        field->min_id = 0;
        field->max_id = 255;
    }
    return true;
}

static bool is_walk(const Dataset *ds, int x, int y)
{
    if (x < 0 || y < 0)
        return false;
    const DataField *a = &ds->field[x], *b = &ds->field[y];
    return a->dtype == RT_I32 && b->dtype == RT_I32 && a->rank > 0 && a->rank == b->rank &&
           memcmp(a->dim, b->dim, sizeof a->dim) == 0 && a->max_id == b->max_id;
}

static bool synthetic_open(Dataset *ds, RtError *err)
{
    const DataSpec *spec = &ds->spec;
    Synthetic *s = ds->state = rt_alloc(1, sizeof *s, err);
    if (!s)
        return false;
    if (spec->n_fields < 1 || spec->n_fields > DATA_MAX_FIELDS || spec->examples < 0)
        return rt_error(err, "synthetic data: %d fields, %lld examples; give 1 to %d shapes",
                        spec->n_fields, (long long)spec->examples, DATA_MAX_FIELDS);
    for (int f = 0; f < spec->n_fields; f++) {
        if (!add_field(ds, &spec->field[f], err))
            return false;
        if (ds->field[f].label && s->classes == 0)
            s->classes = (uint64_t)ds->field[f].max_id + 1;
    }
    s->classes = s->classes ? s->classes : 10;
    s->x = dataset_find_field(ds, "x");
    s->y = dataset_find_field(ds, "y");
    s->walk = is_walk(ds, s->x, s->y);
    ds->total = spec->examples ? spec->examples : DEFAULT_EXAMPLES;
    return rt_init_fill(s->pattern, PATTERN, "normal(1)", spec->seed, "data.synthetic", err);
}

static void synthetic_close(Dataset *ds)
{
    free(ds->state);
}

/* Class c reads the table from its own start with its own stride, so that neither single elements
 * nor textures are shared. */
static float pattern_at(const Synthetic *s, uint64_t c, int64_t element, uint64_t salt)
{
    uint64_t stride = 2 * (c % 64) + 1;
    return s->pattern[(c * 797 + salt + (uint64_t)element * stride) % PATTERN];
}

/* Roughly normal with variance 1: the sum of a word's four bytes. */
static float noise_from(uint32_t word)
{
    int sum =
        (int)(word & 255) + (int)(word >> 8 & 255) + (int)(word >> 16 & 255) + (int)(word >> 24);
    return (float)(sum - 510) * (1 / 147.8f);
}

typedef struct Noise {
    uint32_t key[2], counter[4], word[4];
} Noise;

static uint32_t noise_word(Noise *noise, int64_t element)
{
    if (element % 4 == 0) {
        noise->counter[0] = (uint32_t)(element / 4);
        noise->counter[1] = (uint32_t)(element / 4 >> 32);
        rt_philox4x32(noise->counter, noise->key, noise->word);
    }
    return noise->word[element % 4];
}

/* Which label of an example counts from its class: of a map, the quarter that it lies in. */
static uint64_t label_step(const DataField *field, int64_t k)
{
    if (field->rank < 2)
        return (uint64_t)k;
    int64_t h = field->dim[field->rank - 2], w = field->dim[field->rank - 1];
    return (uint64_t)(2 * (k / w % h) / h + 2 * (k % w) / w);
}

static void fill_field(const Dataset *ds, int64_t i, int f, uint64_t c, void *dst)
{
    const Synthetic *s = ds->state;
    const DataField *field = &ds->field[f];
    uint64_t salt = rt_name_key(field->name), seed = ds->spec.seed ^ salt;
    int64_t n = ds->field_bytes[f] / rt_dtype_bytes(field->dtype);
    Noise noise = {.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                   .counter = {0, 0, (uint32_t)i, (uint32_t)(i >> 32)}};
    uint64_t ids = (uint64_t)field->max_id + 1;
    for (int64_t k = 0; k < n; k++) {
        if (field->label) {
            ((int32_t *)dst)[k] = (int32_t)((c + label_step(field, k)) % ids);
        } else if (s->target[f]) {
            ((float *)dst)[k] = pattern_at(s, c, k, salt);
        } else if (field->dtype == RT_F32) {
            ((float *)dst)[k] = pattern_at(s, c, k, salt) + noise_from(noise_word(&noise, k));
        } else if (field->dtype == RT_U8) {
            float v = 128 + 40 * (pattern_at(s, c, k, salt) + noise_from(noise_word(&noise, k)));
            ((uint8_t *)dst)[k] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
        } else { /* ids: one in four at random, the others say the class */
            uint32_t w = noise_word(&noise, k);
            uint64_t id = w % 4 == 0 ? w / 4 : c * 31 + (uint64_t)k * 7 + salt;
            ((int32_t *)dst)[k] = (int32_t)(id % ids);
        }
    }
}

/* One in eight tokens is random, the others are a fixed permutation of the one before. */
static void fill_walk(const Dataset *ds, int64_t i, int f, int32_t *dst)
{
    const Synthetic *s = ds->state;
    uint64_t ids = (uint64_t)ds->field[f].max_id + 1, base = (uint64_t)i << 32;
    int64_t n = ds->field_bytes[f] / (int64_t)sizeof *dst;
    uint64_t token = draw(ds, ids, "walk.start", (uint64_t)i);
    for (int64_t k = 0; k < n + (f == s->y); k++) {
        if (f == s->x)
            dst[k] = (int32_t)token;
        else if (k > 0)
            dst[k - 1] = (int32_t)token;
        uint64_t die = draw(ds, 8, "walk.die", base + (uint64_t)k);
        token = die == 0 ? draw(ds, ids, "walk.jump", base + (uint64_t)k)
                         : rt_permute(token, ids, ds->spec.seed, SYNTHETIC_STEP);
    }
}

static void synthetic_example(const Dataset *ds, int64_t i, int f, void *dst)
{
    const Synthetic *s = ds->state;
    if (s->walk && (f == s->x || f == s->y))
        fill_walk(ds, i, f, dst);
    else
        fill_field(ds, i, f, draw(ds, s->classes, "class", (uint64_t)i), dst);
}

const DataKind data_synthetic = {.name = "synthetic",
                                 .traits.made_up = true,
                                 .open = synthetic_open,
                                 .close = synthetic_close,
                                 .example = synthetic_example};
