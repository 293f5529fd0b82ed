/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The form in which a page has its data: docs/report.md. */
#include "report_data.h"

#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table by column, as a list of rows. */
static json_t *rows_of(const json_t *data, json_t *columns)
{
    const json_t *strings = json_object_get(data, "strings");
    json_t *rows = json_array(), *column, *value;
    const char *title;
    size_t i;
    json_object_foreach(columns, title, column)
    {
        bool is_text = *title == '$';
        json_array_foreach(column, i, value)
        {
            if (i >= json_array_size(rows))
                json_array_append_new(rows, json_object());
            if (is_text && !json_is_null(value))
                value = json_array_get(strings, (size_t)json_integer_value(value));
            EXPECT(value, title);
            if (!json_is_null(value))
                json_object_set(json_array_get(rows, i), title + is_text, value);
        }
    }
    return rows;
}

static void unpack_step(const json_t *data, json_t *step)
{
    static const char *const tables[] = {"operations", "buffers", "views"};
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
        json_object_set_new(step, tables[k], rows_of(data, json_object_get(step, tables[k])));
}

/* Line `number` of a text, with the end of the line; NULL: it has not so many. */
static const char *line_at(const char *text, json_int_t number)
{
    while (text && number-- > 0)
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    return text;
}

/* A list of lines, or of [from, n] for n lines of another text. */
static void unpack_text(json_t *ir, const char *key, const char *like)
{
    char *out = NULL;
    size_t length, i;
    FILE *f = open_memstream(&out, &length);
    const json_t *item;
    json_array_foreach(json_object_get(ir, key), i, item)
    {
        json_int_t from = json_integer_value(json_array_get(item, 0)), n = 1;
        const char *line = json_string_value(item);
        if (!line) {
            n = json_integer_value(json_array_get(item, 1));
            line = line_at(like, from);
        }
        EXPECT(line && n > 0, key);
        for (; line && n > 0; n--, line = line_at(line, 1))
            fprintf(f, "%.*s\n", (int)strcspn(line, "\n"), line);
        EXPECT(n == 0, "lines that there are not");
    }
    fclose(f);
    json_object_set_new(ir, key, json_string(out));
    free(out);
}

static json_t *unpacked(json_t *data)
{
    json_t *ir = json_object_get(data, "ir");
    unpack_step(data, json_object_get(data, "kept"));
    unpack_step(data, json_object_get(data, "planned"));
    unpack_text(ir, "after", json_string_value(json_object_get(ir, "before")));
    return data;
}

json_t *report_data(const char *name)
{
    static const char begin[] = "<script type=\"application/json\" id=\"data\">";
    char *page = read_text(in_tmp(name), NULL);
    char *from = page ? strstr(page, begin) : NULL, *end = from ? strstr(from, "</script>") : NULL;
    json_t *data = NULL;
    if (end)
        data =
            json_loadb(from + sizeof begin - 1, (size_t)(end - from) - sizeof begin + 1, 0, NULL);
    EXPECT(data, name);
    free(page);
    return data ? unpacked(data) : NULL;
}
