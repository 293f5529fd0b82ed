/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Data sources: what a batch holds. */
#include "frontend/language/elaborate/train_internal.h"

#include "ir/support/strbuf.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* As runtime/data_imagefolder.c, runtime/sound.h and runtime/array_file.h have them. */
enum {
    IMAGE_MAX_SIZE = 16384,
    AUDIO_MIN_RATE = 1000,
    AUDIO_MAX_RATE = 384000,
    AUDIO_MAX_LENGTH = 1 << 24,
    MAX_ARRAY_NAME = 190
};

void source_add_field(DataSource *s, const char *name, DType dtype, int rank, const int64_t *dims)
{
    s->fields[s->n_fields++] = (SourceField){name, type_make(dtype, rank, dims), VALUE_NONE};
}

DataSource *source_new(BuiltinCall *c, const char *kind, int64_t batch)
{
    Elab *l = c->l;
    if (!l->train) {
        elab_error(l, c->span, "E210", "'%s' is a data source: it stands in the train section",
                   kind);
        return NULL;
    }
    if (batch < 1) {
        elab_error(l, c->span, "E105", "a batch has at least one example, got %" PRId64, batch);
        return NULL;
    }
    DataSource *s = POOL_NEW(l->pool, DataSource);
    *s = (DataSource){.kind = kind, .path = "", .batch = batch, .span = c->span};
    vec_push(l->pool, &l->train->sources, s);
    return s;
}

const char *source_paths(BuiltinCall *c, int arg)
{
    const Val single = c->arg[arg];
    ValList list = single.kind == VAL_LIST ? single.list : (ValList){&single, 1};
    StrBuf text = strbuf_new(c->l->pool);
    for (int i = 0; i < list.len; i++) {
        if (list.data[i].kind != VAL_STRING || strchr(list.data[i].s, '\n')) {
            elab_error(c->l, c->arg_span[arg], "E205", "a path must be a string, got %s",
                       val_kind_name(list.data[i].kind));
            return NULL;
        }
        strbuf_printf(&text, "%s%s", i ? "\n" : "", list.data[i].s);
    }
    return text.text ? text.text : "";
}

Val source_value(DataSource *s)
{
    return (Val){.kind = VAL_SOURCE, .source = s};
}

/* Images of bytes with a label each; rank with the batch. */
static Val labelled_images(BuiltinCall *c, const char *name, int rank, const int64_t *image)
{
    DataSource *s = source_new(c, name, image[0]);
    if (!s)
        return val_poison();
    s->path = c->arg[0].s;
    source_add_field(s, "image", DTYPE_U8, rank, image);
    source_add_field(s, "label", DTYPE_I32, 1, image);
    return source_value(s);
}

Val builtin_mnist(BuiltinCall *c)
{
    const int64_t image[] = {arg_int(c, 1), 28, 28};
    return labelled_images(c, "mnist", 3, image);
}

Val builtin_cifar10(BuiltinCall *c)
{
    const int64_t image[] = {arg_int(c, 1), 3, 32, 32};
    return labelled_images(c, "cifar10", 4, image);
}

/* Three numbers of a list argument, or those given; false after a message. */
static bool three_floats(BuiltinCall *c, int arg, const double otherwise[3], double out[3])
{
    const Val v = c->arg[arg];
    for (int i = 0; i < 3; i++)
        out[i] = otherwise[i];
    if (!arg_given(c, arg))
        return true;
    if (v.kind != VAL_LIST || v.list.len != 3) {
        elab_error(c->l, c->arg_span[arg], "E205",
                   "three numbers are wanted, for red, green and blue");
        return false;
    }
    for (int i = 0; i < 3; i++)
        out[i] = val_number(v.list.data[i]);
    return true;
}

/* Mean and deviation of ImageNet's pixels, as torchvision's weights expect them. */
static bool read_pixels(BuiltinCall *c, DataSource *s)
{
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225};
    if (!three_floats(c, 5, mean, s->mean) || !three_floats(c, 6, std, s->std))
        return false;
    for (int i = 0; i < 3; i++) {
        if (!(s->std[i] > 0) || !isfinite((float)(1 / (255 * s->std[i])))) {
            elab_error(c->l, c->arg_span[6], "E105", "std is what pixels are divided by: above 0");
            return false;
        }
        if (!isfinite((float)(s->mean[i] / s->std[i]))) {
            elab_error(c->l, c->arg_span[arg_given(c, 5) ? 5 : 6], "E105",
                       "mean / std is too large for f32: %g / %g", s->mean[i], s->std[i]);
            return false;
        }
    }
    return true;
}

Val builtin_imagefolder(BuiltinCall *c)
{
    const int64_t n = arg_int(c, 1), size = arg_int(c, 2), image[] = {n, 3, size, size};
    DataSource *s = source_new(c, "imagefolder", n);
    if (!s)
        return val_poison();
    s->path = c->arg[0].s;
    s->size = size;
    s->resize = arg_given(c, 3) ? arg_int(c, 3) : size + (size + 3) / 7;
    s->augment = arg_bool(c, 4);
    if (size < 1 || size > IMAGE_MAX_SIZE || s->resize < size) {
        elab_error(c->l, c->arg_span[s->resize < size ? 3 : 2], "E105",
                   "a picture is 1 to %d pixels wide, and no wider than resize", IMAGE_MAX_SIZE);
        return val_poison();
    }
    if (!read_pixels(c, s))
        return val_poison();
    source_add_field(s, "image", DTYPE_F32, 4, image);
    source_add_field(s, "label", DTYPE_I32, 1, &n);
    return source_value(s);
}

Val builtin_audiofolder(BuiltinCall *c)
{
    const int64_t n = arg_int(c, 1), length = arg_int(c, 2), audio[] = {n, 1, length};
    DataSource *s = source_new(c, "audiofolder", n);
    if (!s || !arg_in_bounds(c, 2, "length", 1, AUDIO_MAX_LENGTH) ||
        !arg_in_bounds(c, 3, "rate", AUDIO_MIN_RATE, AUDIO_MAX_RATE))
        return val_poison();
    s->path = c->arg[0].s;
    s->length = length;
    s->rate = arg_int(c, 3);
    s->augment = arg_bool(c, 4);
    source_add_field(s, "audio", DTYPE_F32, 3, audio);
    source_add_field(s, "label", DTYPE_I32, 1, &n);
    return source_value(s);
}

static Val sequences(BuiltinCall *c, const char *kind)
{
    const int64_t dims[] = {arg_int(c, 1), arg_int(c, 2)};
    const char *paths = source_paths(c, 0);
    DataSource *s = paths ? source_new(c, kind, dims[0]) : NULL;
    if (!s)
        return val_poison();
    if (dims[1] < 1) {
        elab_error(c->l, c->arg_span[2], "E105", "a sequence has at least one token");
        return val_poison();
    }
    s->path = paths;
    s->length = dims[1];
    source_add_field(s, "x", DTYPE_I32, 2, dims);
    source_add_field(s, "y", DTYPE_I32, 2, dims);
    return source_value(s);
}

Val builtin_text(BuiltinCall *c)
{
    Val v = sequences(c, "text");
    if (v.kind == VAL_SOURCE)
        v.source->chars = call_word_is(c, 3, "chars");
    return v;
}

Val builtin_tokens(BuiltinCall *c)
{
    return sequences(c, "tokens");
}

/* A field's type, and what its array is called: `f32[N, 3]`, or, where `array` may have a name of
 * its own, `["x_train", f32[N, 3]]`.  NULL for anything else. */
static const Type *field_type(const NamedArg *a, bool renamed, const char **array)
{
    const Val *v = &a->value;
    *array = a->name;
    if (renamed && v->kind == VAL_LIST && v->list.len == 2 && v->list.data[0].kind == VAL_STRING) {
        *array = v->list.data[0].s;
        v = &v->list.data[1];
    }
    bool fits = **array && strlen(*array) <= MAX_ARRAY_NAME && !strpbrk(*array, "\t\n");
    return fits && v->kind == VAL_TYPE ? v->type : NULL;
}

static void wrong_field(BuiltinCall *c, int i, bool renamed)
{
    if (elab_error(c->l, c->named[i].span, "E205",
                   i == SOURCE_MAX_FIELDS ? "a batch has at most 8 fields"
                                          : "a field is declared by its type"))
        diag_help(c->l->diag, "%s",
                  renamed
                      ? "image = f32[N, 784], or image = [\"x_train\", f32[N, 784]] for the array "
                        "x_train"
                      : "image = f32[N, 3, 32, 32]");
}

/* Named arguments `image = f32[N, 3, 32, 32]`; arrays (may be NULL): which array each is. */
static bool typed_fields(BuiltinCall *c, DataSource *s, StrBuf *arrays)
{
    for (int i = 0; i < c->n_named; i++) {
        const NamedArg *a = &c->named[i];
        const char *array;
        const Type *t = i < SOURCE_MAX_FIELDS ? field_type(a, arrays, &array) : NULL;
        if (!t) {
            wrong_field(c, i, arrays);
            return false;
        }
        if (t->rank < 1 || (s->batch && t->dim[0] != s->batch)) {
            elab_error(c->l, a->span, "E101", "the first dimension of every field is the batch");
            return false;
        }
        s->batch = t->dim[0];
        source_add_field(s, a->name, t->dtype, t->rank, t->dim);
        if (arrays)
            strbuf_printf(arrays, "%s%s\t%s", i ? "\n" : "", a->name, array);
    }
    if (!c->n_named &&
        elab_error(c->l, c->span, "E206", "'%s' wants the fields of a batch", c->fn->name))
        diag_help(c->l->diag, "image = f32[N, 3, 32, 32], label = i32[N]");
    return c->n_named > 0;
}

Val builtin_npy(BuiltinCall *c)
{
    const char *paths = source_paths(c, 0);
    DataSource *s = paths ? source_new(c, "npy", arg_int(c, 1)) : NULL;
    if (!s || !typed_fields(c, s, NULL))
        return val_poison();
    s->path = paths;
    return source_value(s);
}

static Val named_arrays(BuiltinCall *c, const char *kind)
{
    StrBuf arrays = strbuf_new(c->l->pool);
    DataSource *s = source_new(c, kind, arg_int(c, 1));
    if (!s || !typed_fields(c, s, &arrays))
        return val_poison();
    s->path = c->arg[0].s;
    s->columns = arrays.text;
    return source_value(s);
}

Val builtin_npz(BuiltinCall *c)
{
    return named_arrays(c, "npz");
}

Val builtin_safetensors(BuiltinCall *c)
{
    return named_arrays(c, "safetensors");
}

Val builtin_synthetic(BuiltinCall *c)
{
    DataSource *s = source_new(c, "synthetic", 1);
    if (s)
        s->batch = 0;
    return s && typed_fields(c, s, NULL) ? source_value(s) : val_poison();
}
