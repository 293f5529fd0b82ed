/* SPDX-License-Identifier: GPL-3.0-or-later */
/* text(PATHS): files joined in order; tokens are bytes, or indices into the sorted set of
 * characters (as nanoGPT's character data sets). */
#include "runtime/data_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct Text {
    unsigned char *token; /* n tokens of `width` bytes each, native order */
    int width;            /* 1, 2 or 4 */
} Text;

/* All files in one block; a single file is read straight into it. */
static bool read_files(const PathList *paths, FileBytes *out, RtError *err)
{
    if (paths->n == 1)
        return file_read(paths->path[0], DATA_MAX_BYTES, out, err);
    unsigned char *all = NULL;
    int64_t len = 0, cap = 0;
    bool ok = true;
    for (int64_t i = 0; ok && i < paths->n; i++) {
        FileBytes file;
        if (!file_read(paths->path[i], DATA_MAX_BYTES - len, &file, err)) {
            ok = false;
            break;
        }
        if (len + file.bytes > cap) {
            cap = 2 * (len + file.bytes);
            unsigned char *grown = realloc(all, (size_t)cap);
            ok = grown || rt_error(err, "out of memory for %lld bytes of text", (long long)cap);
            all = grown ? grown : all;
        }
        if (ok && file.bytes)
            memcpy(all + len, file.data, (size_t)file.bytes);
        len += file.bytes;
        file_release(&file);
    }
    if (!ok) {
        free(all);
        return false;
    }
    unsigned char *exact = realloc(all, len ? (size_t)len : 1);
    *out = (FileBytes){exact ? exact : all, len, false};
    return true;
}

static void store(unsigned char *token, int width, int64_t i, int32_t value)
{
    uint8_t v1 = (uint8_t)value;
    uint16_t v2 = (uint16_t)value;
    const void *p = width == 1 ? (const void *)&v1 : width == 2 ? (const void *)&v2 : &value;
    memcpy(token + i * width, p, (size_t)width);
}

/* Characters to tokens.  With at most 256 of them a token never takes more bytes than its
 * character, and the text is replaced in place. */
static bool encode_chars(Dataset *ds, FileBytes *file, RtError *err)
{
    Text *t = ds->state;
    const Vocab *given = ds->spec.vocab;
    if (given ? !vocab_from_codes(&ds->vocab, given->code, given->size, err)
              : !vocab_from_text(&ds->vocab, file->data, file->bytes, err))
        return false;
    if (given && vocab_encode(given, (const char *)file->data, file->bytes, NULL, 0, err) < 0)
        return rt_error_prefix(err, "the text to train on has not all of these characters");
    t->width = ds->vocab.size <= 256 ? 1 : ds->vocab.size <= 65536 ? 2 : 4;
    unsigned char *token = (unsigned char *)(uintptr_t)file->data;
    if (t->width > 1)
        token = rt_alloc(file->bytes, (size_t)t->width, err);
    if (!token)
        return false;
    int64_t n = 0;
    for (int64_t at = 0; at < file->bytes; n++) {
        uint32_t code = 0;
        int len = utf8_decode(file->data + at, file->bytes - at, &code);
        store(token, t->width, n, vocab_find(&ds->vocab, code));
        at += len;
    }
    t->token = token;
    ds->total = n;
    ds->loaded_bytes = t->width > 1 ? n * t->width : file->bytes;
    if (t->width == 1)
        file->data = NULL; /* taken over */
    return true;
}

static bool text_load(Dataset *ds, const PathList *paths, RtError *err)
{
    Text *t = ds->state;
    FileBytes file;
    if (!read_files(paths, &file, err))
        return false;
    if (ds->spec.chars) {
        bool ok = encode_chars(ds, &file, err);
        file_release(&file);
        return ok || (paths->n == 1 && rt_error_prefix(err, "%s", paths->path[0]));
    }
    t->token = (unsigned char *)(uintptr_t)file.data;
    t->width = 1;
    ds->total = ds->loaded_bytes = file.bytes;
    ds->vocab = vocab_bytes();
    return true;
}

static bool text_open(Dataset *ds, RtError *err)
{
    PathList paths;
    ds->state = rt_alloc(1, sizeof(Text), err);
    if (!ds->state || !paths_expand(ds->spec.path, NULL, &paths, err))
        return false;
    bool ok = text_load(ds, &paths, err);
    paths_free(&paths);
    ds->has_vocab = ok;
    if (ok)
        data_add_sequence_fields(ds, 0, ds->vocab.size - 1);
    return ok;
}

static void text_close(Dataset *ds)
{
    Text *t = ds->state;
    if (t)
        free(t->token);
    free(t);
}

static void text_tokens(const Dataset *ds, int64_t start, int64_t n, int32_t *dst)
{
    const Text *t = ds->state;
    const unsigned char *p = t->token + start * t->width;
    for (int64_t i = 0; i < n; i++, p += t->width) {
        uint16_t v2;
        switch (t->width) {
        case 1:
            dst[i] = *p;
            break;
        case 2:
            memcpy(&v2, p, 2);
            dst[i] = v2;
            break;
        default:
            memcpy(&dst[i], p, 4);
        }
    }
}

const DataKind data_text = {.name = "text",
                            .sequence = true,
                            .traits.counted = "tokens",
                            .open = text_open,
                            .close = text_close,
                            .tokens = text_tokens};
