/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "passes/remat/cache/stored.h"

#include "ir/support/map.h"

#include <string.h>

static const char FORMAT[] = "scrimp.plans.1 ";
enum { KEY_BYTES = 32, CHECK_BYTES = 8 };

static uint64_t checksum(const char *data, size_t bytes)
{
    return hash_bytes(data, bytes, 0);
}

StrBuf stored_begin(Pool *pool, const char *key)
{
    StrBuf b = strbuf_new(pool);
    strbuf_put(&b, FORMAT);
    strbuf_putn(&b, key, KEY_BYTES);
    return b;
}

void stored_put(StrBuf *b, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        strbuf_putn(b, &(char){(char)(x | 128)}, 1);
    strbuf_putn(b, &(char){(char)x}, 1);
}

/* 0, -1, 1, -2, ... become 0, 1, 2, 3, ... */
static uint64_t fold_sign(int64_t x)
{
    return x < 0 ? 2 * (uint64_t)(-(x + 1)) + 1 : 2 * (uint64_t)x;
}

static int64_t unfold_sign(uint64_t x)
{
    return x & 1 ? -(int64_t)(x >> 1) - 1 : (int64_t)(x >> 1);
}

void stored_put_schedule(StrBuf *b, const RematSchedule *s)
{
    stored_put(b, (uint64_t)s->len);
    for (int i = 0, expected = 0; i < s->len; expected = s->node[i++] + 1)
        stored_put(b, fold_sign(s->node[i] - expected));
}

void stored_end(StrBuf *b)
{
    uint64_t sum = checksum(b->text, b->len);
    for (int k = 0; k < CHECK_BYTES; k++)
        strbuf_putn(b, &(char){(char)(sum >> 8 * k)}, 1);
}

bool stored_open(StoredReader *r, const char *key, const char *data, size_t bytes)
{
    size_t head = sizeof FORMAT - 1 + KEY_BYTES;
    *r = (StoredReader){0};
    if (bytes < head + CHECK_BYTES || memcmp(data, FORMAT, sizeof FORMAT - 1) != 0 ||
        memcmp(data + sizeof FORMAT - 1, key, KEY_BYTES) != 0)
        return false;
    const unsigned char *first = (const unsigned char *)data, *end = first + bytes - CHECK_BYTES;
    uint64_t sum = 0;
    for (int k = 0; k < CHECK_BYTES; k++)
        sum |= (uint64_t)end[k] << 8 * k;
    *r = (StoredReader){first + head, end, sum == checksum(data, bytes - CHECK_BYTES)};
    return r->ok;
}

uint64_t stored_get(StoredReader *r)
{
    uint64_t x = 0;
    for (unsigned shift = 0; r->ok; shift += 7) {
        r->ok = r->at < r->end && shift < 63;
        if (!r->ok)
            break;
        x |= (uint64_t)(*r->at & 127) << shift;
        if (*r->at++ < 128)
            return x;
    }
    return 0;
}

bool stored_get_schedule(StoredReader *r, Pool *pool, int n_nodes, RematSchedule *out)
{
    uint64_t len = stored_get(r);
    r->ok = r->ok && len <= (uint64_t)(r->end - r->at) && len <= INT32_MAX;
    if (!r->ok)
        return false;
    *out = (RematSchedule){(int)len, POOL_ARRAY(pool, (size_t)len + 1, int)};
    int64_t expected = 0;
    for (int i = 0; i < out->len && r->ok; i++) {
        int64_t away = unfold_sign(stored_get(r));
        r->ok = r->ok && away >= -expected && away < n_nodes - expected;
        out->node[i] = r->ok ? (int)(expected + away) : 0;
        expected = out->node[i] + 1;
    }
    return r->ok;
}

bool stored_at_end(const StoredReader *r)
{
    return r->ok && r->at == r->end;
}
