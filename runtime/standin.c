/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Texts and tokens; pictures, sounds, tables and arrays are in files of their own. */
#include "runtime/data_internal.h"
#include "runtime/rng.h"
#include "runtime/standin_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_BYTES = 300000, TOKENS = 200000, MAX_TOKEN_IDS = 512 };
static const uint64_t STANDIN_STEP = UINT64_MAX - 2;

/* ---- numbers ---- */

Dice dice_of(const char *name, int64_t index)
{
    return (Dice){.key = rt_name_key(name), .step = STANDIN_STEP - ((uint64_t)index << 8)};
}

int64_t dice_roll(Dice *d, int64_t n)
{
    return (int64_t)rt_rng_below((uint64_t)n, 0, d->step, d->key, d->rolled++);
}

/* The sum of twelve numbers below 1. */
double dice_normal(Dice *d)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)dice_roll(d, 1 << 20) / (1 << 20);
    return sum;
}

/* ---- bytes ---- */

void made_add(MadeBytes *b, const void *data, int64_t n)
{
    if (b->n + n > b->room) {
        int64_t room = 2 * (b->n + n) + 4096;
        unsigned char *grown = b->failed ? NULL : realloc(b->data, (size_t)room);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->room = room;
    }
    memcpy(b->data + b->n, data, (size_t)n);
    b->n += n;
}

void made_text(MadeBytes *b, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    made_add(b, text, n < (int)sizeof text ? n : (int)sizeof text - 1);
}

static bool make_parent(const char *path, RtError *err)
{
    size_t n = (size_t)(path_base(path) - path);
    char *dir = n ? rt_alloc((int64_t)n + 1, 1, err) : NULL;
    if (n && !dir)
        return false;
    if (dir)
        memcpy(dir, path, n);
    bool ok = !dir || folder_make(dir, err);
    free(dir);
    return ok;
}

bool made_place(const char *path, RtError *err)
{
    struct stat st;
    if (lstat(path, &st) == 0)
        return rt_error(err, "%s is there already: it is not written over", path);
    return make_parent(path, err);
}

bool made_write(MadeBytes *b, const char *path, RtError *err)
{
    bool ok = !b->failed || rt_error(err, "out of memory");
    ok = ok && made_place(path, err) && file_replace(path, b->data, b->n, err);
    free(b->data);
    *b = (MadeBytes){0};
    return ok;
}

int64_t standin_limit(const DataSpec *spec, const char *field, int64_t otherwise)
{
    for (int f = 0; f < spec->n_fields; f++)
        if (strcmp(spec->field[f].name, field) == 0 && spec->field[f].max_id > 0)
            return spec->field[f].max_id;
    return otherwise;
}

/* ---- text ---- */

static const char *const words[4][8] = {
    {"small", "old", "green", "quiet", "happy", "tall", "lost", "bright"},
    {"cat", "river", "teacher", "stone", "bird", "garden", "ship", "king"},
    {"sees", "follows", "finds", "carries", "loves", "leaves", "calls", "paints"},
    {"slowly", "again", "at night", "today", "with care", "in spring", "alone", "by the sea"}};

/* "the old cat sees the river again." */
static void sentence(MadeBytes *b, Dice *d)
{
    int64_t cat = dice_roll(d, 8); /* who it is says much of what follows */
    made_text(b, "the %s %s %s the %s", words[0][dice_roll(d, 8)], words[1][cat],
              words[2][(cat + dice_roll(d, 2)) % 8], words[1][dice_roll(d, 8)]);
    if (dice_roll(d, 2))
        made_text(b, " %s", words[3][(cat + dice_roll(d, 3)) % 8]);
    made_text(b, dice_roll(d, 4) ? ". " : ".\n");
}

static bool standin_text(const DataSpec *spec, StandIn *out, RtError *err)
{
    MadeBytes b = {0};
    Dice d = dice_of("text", 0);
    while (b.n < TEXT_BYTES && !b.failed)
        sentence(&b, &d);
    snprintf(out->said, sizeof out->said, "%lld bytes of made-up sentences", (long long)b.n);
    return made_write(&b, spec->path, err);
}

/* Seven of eight tokens follow from the one before. */
static bool standin_tokens(const DataSpec *spec, StandIn *out, RtError *err)
{
    MadeBytes b = {0};
    Dice d = dice_of("tokens", 0);
    int32_t header[256] = {20240520, 1, TOKENS};
    int64_t ids = standin_limit(spec, "x", 255) + 1, token = 0;
    ids = ids > MAX_TOKEN_IDS ? MAX_TOKEN_IDS : ids;
    made_add(&b, header, sizeof header);
    for (int64_t i = 0; i < TOKENS; i++) {
        uint16_t v = (uint16_t)token;
        made_add(&b, &v, sizeof v);
        token = dice_roll(&d, 8) ? (token * 31 + 17) % ids : dice_roll(&d, ids);
    }
    snprintf(out->said, sizeof out->said, "%d made-up tokens, of %lld ids, in llm.c's format",
             TOKENS, (long long)ids);
    return made_write(&b, spec->path, err);
}

/* ---- all ---- */

/* Of arrays only: other sources make up as many examples as they like. */
static bool standin_zip(const DataSpec *spec, StandIn *out, RtError *err)
{
    for (int k = 0; k < spec->n_parts; k++) {
        const char *kind = spec->part[k].kind;
        if (!data_traits(kind)->named_arrays && strcmp(kind, "npy") != 0)
            return rt_error(err,
                            "zip with %s: write a model that reads it alone, and `scrimp data` of "
                            "that",
                            kind);
    }
    for (int k = 0; k < spec->n_parts; k++) {
        DataSpec part = *spec;
        part.kind = spec->part[k].kind;
        part.path = spec->part[k].path;
        part.columns = spec->part[k].columns;
        if (!standin_write(&part, out, err))
            return false;
    }
    return true;
}

bool standin_write(const DataSpec *spec, StandIn *out, RtError *err)
{
    static const struct {
        const char *kind;
        bool many; /* its path may be a list */
        bool (*write)(const DataSpec *spec, StandIn *out, RtError *err);
    } kinds[] = {{"mnist", false, standin_mnist},
                 {"cifar10", false, standin_cifar10},
                 {"imagefolder", false, standin_imagefolder},
                 {"audiofolder", false, standin_audiofolder},
                 {"text", false, standin_text},
                 {"tokens", false, standin_tokens},
                 {"csv", false, standin_csv},
                 {"npz", false, standin_npz},
                 {"safetensors", false, standin_safetensors},
                 {"npy", true, standin_npy}};
    if (strcmp(spec->kind, "zip") == 0)
        return standin_zip(spec, out, err);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].kind, spec->kind) != 0)
            continue;
        if (!spec->path || !*spec->path || strpbrk(spec->path, "*?[") ||
            (!kinds[i].many && strchr(spec->path, '\n')))
            return rt_error(err, "the model names %s: say with --data PATH where it goes",
                            spec->path && *spec->path ? "more than one file" : "no file");
        bool folder = kinds[i].write == standin_mnist || kinds[i].write == standin_cifar10 ||
                      kinds[i].write == standin_imagefolder ||
                      kinds[i].write == standin_audiofolder;
        if (folder && folder_exists(spec->path)) /* with files of other names */
            return rt_error(err, "%s is there already: it is not written over", spec->path);
        return kinds[i].write(spec, out, err);
    }
    return rt_error(err, "%s reads no files: there is nothing to write", spec->kind);
}
