/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "event_reader.h"

#include "e2e.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* By a table of what 4 bits do (the writer has none). */
static uint32_t checksum(const unsigned char *p, size_t n)
{
    uint32_t table[16], crc = 0xffffffffU;
    for (uint32_t i = 0; i < 16; i++) {
        table[i] = i;
        for (int k = 0; k < 4; k++)
            table[i] = table[i] >> 1 ^ (table[i] & 1) * 0x82f63b78U;
    }
    for (size_t i = 0; i < n; i++) {
        crc = crc >> 4 ^ table[(crc ^ p[i]) & 15];
        crc = crc >> 4 ^ table[(crc ^ (p[i] >> 4)) & 15];
    }
    crc = ~crc;
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

static uint64_t little_endian(const unsigned char *p, int n)
{
    uint64_t x = 0;
    for (int i = n - 1; i >= 0; i--)
        x = x << 8 | p[i];
    return x;
}

/* --- messages: a sequence of fields --- */

typedef struct Message {
    const unsigned char *at, *end;
} Message;

typedef struct Field {
    unsigned number;
    uint64_t bits;   /* of a number */
    Message message; /* or text */
} Field;

static uint64_t take_varint(Message *m)
{
    uint64_t x = 0;
    for (int shift = 0; m->at < m->end && shift < 64; shift += 7) {
        unsigned char c = *m->at++;
        x |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return x;
    }
    EXPECT(false, "a number does not end");
    return 0;
}

static bool take_field(Message *m, Field *f)
{
    if (m->at >= m->end)
        return false;
    uint64_t key = take_varint(m), n = 0;
    unsigned wire = key & 7;
    *f = (Field){.number = (unsigned)(key >> 3)};
    if (wire == 0)
        f->bits = take_varint(m);
    else
        n = wire == 1 ? 8 : wire == 5 ? 4 : wire == 2 ? take_varint(m) : SIZE_MAX;
    if (n > (uint64_t)(m->end - m->at)) {
        EXPECT(false, "a field is longer than its message");
        return false;
    }
    if (wire == 1 || wire == 5)
        f->bits = little_endian(m->at, (int)n);
    f->message = (Message){m->at, m->at + n};
    m->at += n;
    return true;
}

static float float_of(uint64_t bits)
{
    uint32_t narrow = (uint32_t)bits;
    float x;
    memcpy(&x, &narrow, sizeof x);
    return x;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* --- events --- */

static void read_value(Message m, Point *p)
{
    Field f;
    bool has_tag = false, has_value = false;
    while (take_field(&m, &f)) {
        if (f.number == 1) {
            int n = (int)(f.message.end - f.message.at);
            snprintf(p->tag, sizeof p->tag, "%.*s", n, (const char *)f.message.at);
            has_tag = n > 0;
        } else if (f.number == 2) {
            p->value = float_of(f.bits);
            has_value = true;
        }
    }
    EXPECT(has_tag && has_value, "a value without its tag");
}

static void read_summary(Message m, const Point *at, Points *out)
{
    Field f;
    while (take_field(&m, &f) && out->n < MOST_POINTS) {
        Point *p = &out->point[out->n++];
        EXPECT(f.number == 1, "no value");
        *p = *at;
        read_value(f.message, p);
    }
}

static void forget_from(Points *out, int64_t step)
{
    int n = 0;
    for (int i = 0; i < out->n; i++)
        if (out->point[i].step < step)
            out->point[n++] = out->point[i];
    out->n = n;
}

static void read_session(Message m, int64_t step, Points *out)
{
    Field f;
    while (take_field(&m, &f)) {
        EXPECT(f.number == 1 && f.bits == 1, "no start");
        forget_from(out, step);
        out->n_starts++;
    }
}

static void read_event(Message m, Points *out)
{
    Point at = {0};
    Field f;
    Message summary = {0}, session = {0};
    while (take_field(&m, &f)) {
        if (f.number == 1)
            at.wall_time = double_of(f.bits);
        else if (f.number == 2)
            at.step = (int64_t)f.bits;
        else if (f.number == 3)
            EXPECT(f.message.end - f.message.at == 13 &&
                       memcmp(f.message.at, "brain.Event:2", 13) == 0,
                   "another version");
        else if (f.number == 5)
            summary = f.message;
        else if (f.number == 7)
            session = f.message;
        else
            EXPECT(false, "an unknown field");
    }
    EXPECT(at.wall_time > 1.6e9 && at.wall_time < 1e11, "no time of day");
    if (session.at)
        read_session(session, at.step, out);
    if (summary.at)
        read_summary(summary, &at, out);
}

/* --- files --- */

void events_read(const char *path, Points *points)
{
    long length;
    char *text = read_text(path, &length);
    if (!text) {
        EXPECT(false, path);
        return;
    }
    const unsigned char *p = (const unsigned char *)text, *end = p + length;
    int first = points->n_records;
    while (end - p >= 16) {
        uint64_t n = little_endian(p, 8);
        EXPECT(little_endian(p + 8, 4) == checksum(p, 8), "the checksum of a length");
        if (n + 16 > (uint64_t)(end - p))
            break;
        EXPECT(little_endian(p + 12 + n, 4) == checksum(p + 12, n), "the checksum of a record");
        read_event((Message){p + 12, p + 12 + n}, points);
        points->n_records++;
        p += 16 + n;
    }
    points->n_torn += p != end;
    EXPECT(points->n_records > first + 1, "no head");
    free(text);
}

static int is_event_file(const struct dirent *d)
{
    return strncmp(d->d_name, "events.out.tfevents.", 20) == 0;
}

int events_read_folder(const char *folder, Points *points)
{
    struct dirent **name;
    int n = scandir(folder, &name, is_event_file, alphasort);
    for (int i = 0; i < n; i++) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, name[i]->d_name);
        events_read(path, points);
        free(name[i]);
    }
    if (n >= 0)
        free(name);
    return n;
}
