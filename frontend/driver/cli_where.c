/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_where.h"

#include "ir/support/map.h"
#include "ir/support/strbuf.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* How much of a path tells places apart, and how many are told so at most. */
typedef enum Detail { WHOLE, STARS, FIRST_PART } Detail;
static const int most_places[] = {[WHOLE] = 2, [STARS] = 3, [FIRST_PART] = 6};

/* Places that are told as one. */
typedef struct Place {
    const char *path; /* of the first of them */
    const char *text; /* if there are others: what they have in common */
    uint32_t line;    /* 0: of several, or none */
    bool several;
} Place;

static size_t part_length(const char *part)
{
    return strcspn(part, ".");
}

static bool is_number(const char *part)
{
    size_t n = part_length(part);
    return n > 0 && strspn(part, "0123456789") == n;
}

const char *path_with_stars(Pool *pool, const char *path)
{
    StrBuf out = strbuf_new(pool);
    for (const char *part = path;; part++) {
        size_t n = part_length(part);
        strbuf_putn(&out, is_number(part) ? "*" : part, is_number(part) ? 1 : n);
        part += n;
        if (!*part)
            return out.text;
        strbuf_put(&out, ".");
    }
}

static const char *common_text(Pool *pool, const char *path, Detail detail)
{
    size_t first = part_length(path);
    if (detail == STARS)
        return path_with_stars(pool, path);
    if (detail == FIRST_PART && path[first])
        return pool_printf(pool, "%.*s.*", (int)first, path);
    return path;
}

static int by_line(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return strcmp(x->path, y->path);
}

/* Fills place, which has room for n; returns how many there are.  Lines tell places apart only
 * where they are shown. */
static int find_places(Pool *pool, const Loc *loc, int n, Detail detail, bool lines, Place *place)
{
    Map index = map_new(pool);
    int count = 0;
    for (int i = 0; i < n; i++) {
        uint32_t line = detail == FIRST_PART ? 0 : loc_line(&loc[i]), shown = lines ? line : 0;
        const char *path = loc[i].path ? loc[i].path : "";
        const char *text = common_text(pool, path, detail);
        const char *key = pool_printf(pool, "%s:%u", text, shown);
        const uint64_t *found = map_find(&index, key);
        if (found) {
            place[*found].several |= strcmp(place[*found].path, path) != 0;
        } else if (*path || shown) {
            map_set(&index, key, (uint64_t)count);
            place[count++] = (Place){path, text, line, false};
        }
    }
    qsort(place, (size_t)count, sizeof *place, by_line);
    return count;
}

static void put_place(StrBuf *out, const Place *p, bool lines)
{
    strbuf_printf(out, "%s%s", out->len ? ", " : "", p->several ? p->text : p->path);
    if (lines && p->line)
        strbuf_printf(out, ":%u", p->line);
}

const char *where_text(Pool *pool, const Loc *loc, int n, bool lines)
{
    Pool *scratch = pool_new_child(pool);
    Place *place = POOL_ARRAY(scratch, (size_t)n + 1, Place);
    StrBuf out = strbuf_new(pool);
    Detail d = WHOLE;
    int count = find_places(scratch, loc, n, d, lines, place);
    while (d < FIRST_PART && count > most_places[d])
        count = find_places(scratch, loc, n, ++d, lines, place);
    for (int i = 0; i < count && i < most_places[d]; i++)
        put_place(&out, &place[i], lines);
    if (count > most_places[d])
        strbuf_printf(&out, ", %d more", count - most_places[d]);
    pool_free(scratch);
    return out.text ? out.text : "";
}

const char *place_text(Pool *pool, const Graph *g, const Loc *loc)
{
    const char *in = loc->path ? pool_printf(pool, " in %s", loc->path) : "";
    const char *file = loc->file ? loc->file : g->source;
    return loc->line ? pool_printf(pool, ", %s:%u%s", file, loc->line, in) : in;
}

void place_json(json_t *object, const Loc *loc)
{
    json_object_set_new(object, "path", loc->path ? json_string(loc->path) : json_null());
    json_object_set_new(object, "line", loc->line ? json_integer(loc->line) : json_null());
    if (loc->file)
        json_object_set_new(object, "file", json_string(loc->file));
}
