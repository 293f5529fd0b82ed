/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_tensorboard.h"

#include "frontend/driver/tensorboard.pb-c.h"
#include "ir/support/clock.h"
#include "runtime/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double SECONDS_BETWEEN_FLUSHES = 5;
static const char PREFIX[] = "events.out.tfevents.";

/* An event with as many values as a row has, and its bytes. */
typedef struct EventRoom {
    Board__Event event;
    Board__Summary summary;
    Board__Summary__Value *value, **values;
    uint8_t *bytes;
} EventRoom;

/* --- records --- */

/* CRC-32C (Castagnoli), bit by bit: a row has about a hundred bytes. */
static uint32_t crc32c(const uint8_t *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78U : 0);
    }
    return ~crc;
}

/* Records hold checksums of checksums: these are masked, so that they are no fixed point. */
static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

static void put_little_endian(uint8_t *out, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)(x >> 8 * i);
}

static void put_record(FILE *f, const uint8_t *bytes, size_t n)
{
    uint8_t head[12], tail[4];
    put_little_endian(head, n, 8);
    put_little_endian(head + 8, masked(crc32c(head, 8)), 4);
    put_little_endian(tail, masked(crc32c(bytes, n)), 4);
    fwrite(head, 1, sizeof head, f);
    fwrite(bytes, 1, n, f);
    fwrite(tail, 1, sizeof tail, f);
}

static double wall_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_event(EventFile *e, Board__Event *event, int64_t step)
{
    event->has_wall_time = event->has_step = 1;
    event->wall_time = wall_time();
    event->step = step;
    put_record(e->file, e->room->bytes, board__event__pack(event, e->room->bytes));
}

/* --- the file --- */

/* The longest row, and the two events in front of it. */
static EventRoom *make_room(Pool *pool, const LogColumns *c)
{
    enum { BESIDE_TAG = 32, BESIDE_ROW = 128 };
    size_t n = (size_t)(c->n_step > c->n_evaluation ? c->n_step : c->n_evaluation), bytes = 0;
    EventRoom *r = POOL_NEW(pool, EventRoom);
    r->value = POOL_ARRAY(pool, n + 1, Board__Summary__Value);
    r->values = POOL_ARRAY(pool, n + 1, Board__Summary__Value *);
    for (size_t i = 0; i < n; i++) {
        board__summary__value__init(&r->value[i]);
        r->values[i] = &r->value[i];
    }
    for (int i = 0; i < c->n_step; i++)
        bytes += strlen(c->step[i].name) + BESIDE_TAG;
    for (int i = 0; i < c->n_evaluation; i++)
        bytes += strlen(c->evaluation[i].name) + BESIDE_TAG;
    r->bytes = pool_alloc(pool, bytes + BESIDE_ROW);
    board__event__init(&r->event);
    board__summary__init(&r->summary);
    return r;
}

typedef struct Newest {
    long long seconds;
} Newest;

/* No run has a file of a later time: such a name is somebody else's. */
static const long long LAST_SECOND = 1LL << 40;

static bool see_file(void *user, const char *dir, const char *name, RtError *err)
{
    Newest *newest = user;
    (void)dir, (void)err;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0) {
        long long seconds = strtoll(name + sizeof PREFIX - 1, NULL, 10);
        if (seconds > newest->seconds && seconds < LAST_SECOND)
            newest->seconds = seconds;
    }
    return true;
}

/* Files of a folder are read in the order of their names, which begin with the time: two in one
 * second get different ones. */
static const char *name_file(Cli *cli, RtError *err)
{
    Newest newest = {0};
    char host[HOST_NAME_MAX + 1] = "";
    if (!folder_make(cli->run.tensorboard, err) ||
        !folder_each(cli->run.tensorboard, see_file, &newest, err))
        return NULL;
    gethostname(host, sizeof host - 1);
    long long now = (long long)time(NULL);
    return pool_printf(cli->pool, "%s/%s%010lld.%s.%ld", cli->run.tensorboard, PREFIX,
                       now > newest.seconds ? now : newest.seconds + 1, *host ? host : "host",
                       (long)getpid());
}

/* Which version the events have, and from which step on those of other files do not count. */
static void put_start(EventFile *e, int64_t step)
{
    static char version[] = "brain.Event:2";
    Board__Event event = BOARD__EVENT__INIT;
    event.file_version = version;
    put_event(e, &event, 0);
    Board__SessionLog start = BOARD__SESSION_LOG__INIT;
    start.has_status = 1;
    start.status = BOARD__SESSION_LOG__STATUS__START;
    event = (Board__Event)BOARD__EVENT__INIT;
    event.session_log = &start;
    put_event(e, &event, step);
}

bool events_open(Cli *cli, const LogColumns *columns, int64_t step, EventFile *out)
{
    RtError err;
    *out = (EventFile){0};
    if (!cli->run.tensorboard)
        return true;
    out->path = name_file(cli, &err);
    if (!out->path)
        return cli_error(cli, EXIT_USER, "E510", NULL, "--tensorboard: %s", err.message) == EXIT_OK;
    out->file = fopen(out->path, "wbxe");
    if (!out->file)
        return cli_error(cli, EXIT_USER, "E510", NULL, "cannot write %s: %s", out->path,
                         strerror(errno)) == EXIT_OK;
    out->room = make_room(cli->pool, columns);
    put_start(out, step);
    events_flush(out);
    return true;
}

void events_row(EventFile *e, const LogRow *row)
{
    if (!e->file)
        return;
    EventRoom *r = e->room;
    for (int i = 0; i < row->n; i++) {
        union {
            const char *given;
            char *tag; /* the library's structure is for readers, too */
        } u = {row->scalar[i].name};
        r->value[i].tag = u.tag;
        r->value[i].has_simple_value = 1;
        r->value[i].simple_value = (float)row->scalar[i].value;
    }
    r->summary.n_value = (size_t)row->n;
    r->summary.value = r->values;
    r->event.summary = &r->summary;
    put_event(e, &r->event, row->step);
    if (row->evaluation || clock_seconds() - e->flushed > SECONDS_BETWEEN_FLUSHES)
        events_flush(e);
}

void events_flush(EventFile *e)
{
    if (!e->file)
        return;
    e->flushed = clock_seconds();
    if (fflush(e->file) == 0 && !ferror(e->file))
        return;
    fprintf(stderr, "warning: cannot write %s: %s; training goes on without events\n", e->path,
            strerror(errno));
    e->lost = true;
    fclose(e->file);
    e->file = NULL;
}

bool events_close(Cli *cli, EventFile *e)
{
    events_flush(e);
    if (e->file && fclose(e->file) != 0)
        e->lost = true;
    e->file = NULL;
    if (e->lost)
        cli_error(cli, EXIT_USER, "E510", NULL, "rows are missing in %s", e->path);
    return !e->lost;
}
