/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/report/report_pack.h"

#include <stdbool.h>
#include <string.h>

/* --- tables --- */

Packer packer_new(void)
{
    return (Packer){json_array(), json_object()};
}

json_t *packer_end(Packer *p)
{
    json_decref(p->index);
    return p->strings;
}

static json_t *packed_string(Packer *p, json_t *text)
{
    json_t *at = json_object_get(p->index, json_string_value(text));
    if (at)
        return json_incref(at);
    at = json_integer((json_int_t)json_array_size(p->strings));
    json_array_append(p->strings, text);
    json_object_set(p->index, json_string_value(text), at);
    return at;
}

static void append_nulls(json_t *column, size_t length)
{
    while (json_array_size(column) < length)
        json_array_append_new(column, json_null());
}

/* With nulls for the rows before this one. */
static json_t *column_of(json_t *columns, const char *key, bool is_text, size_t row)
{
    char name[32] = "$";
    strncat(name, key, sizeof name - 2);
    const char *title = is_text ? name : key;
    if (!json_object_get(columns, title))
        json_object_set_new(columns, title, json_array());
    json_t *column = json_object_get(columns, title);
    append_nulls(column, row);
    return column;
}

json_t *packed_rows(Packer *p, json_t *rows)
{
    json_t *columns = json_object(), *row, *value, *column;
    const char *key;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        json_object_foreach(row, key, value)
        {
            bool is_text = json_is_string(value);
            json_array_append_new(column_of(columns, key, is_text, i),
                                  is_text ? packed_string(p, value) : json_incref(value));
        }
    }
    json_object_foreach(columns, key, column)
    {
        append_nulls(column, json_array_size(rows));
    }
    json_decref(rows);
    return columns;
}

/* --- texts --- */

/* Where the line behind `at` begins, NULL: `at` is the last one. */
static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end ? end + 1 : NULL;
}

static json_t *line_json(const char *at)
{
    return json_stringn(at, strcspn(at, "\n"));
}

/* The first number of each line. */
static json_t *numbers_of_lines(json_t *lines)
{
    json_t *numbers = json_object(), *line;
    for (size_t i = json_array_size(lines); i-- > 0;) {
        line = json_array_get(lines, i);
        json_object_set_new(numbers, json_string_value(line), json_integer((json_int_t)i));
    }
    return numbers;
}

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();
    for (const char *at = text; at; at = next_line(at))
        json_array_append_new(lines, line_json(at));
    return lines;
}

/* Adds a line to the run that ends the packed text; false: it does not go on with it. */
static bool extend_run(json_t *packed, json_t *line, json_t *like)
{
    size_t n = json_array_size(packed);
    json_t *run = n ? json_array_get(packed, n - 1) : NULL;
    if (!json_is_array(run))
        return false;
    json_int_t from = json_integer_value(json_array_get(run, 0)),
               long_ = json_integer_value(json_array_get(run, 1));
    if (!json_equal(json_array_get(like, (size_t)(from + long_)), line))
        return false;
    json_array_set_new(run, 1, json_integer(long_ + 1));
    return true;
}

json_t *packed_text(const char *text, const char *like)
{
    json_t *packed = json_array(), *theirs = lines_of(like), *ours = lines_of(text), *line;
    json_t *number = numbers_of_lines(theirs);
    size_t i;
    json_array_foreach(ours, i, line)
    {
        json_t *at = json_object_get(number, json_string_value(line));
        if (extend_run(packed, line, theirs))
            continue;
        json_array_append_new(packed, at ? json_pack("[O,i]", at, 1) : json_incref(line));
    }
    json_decref(number);
    json_decref(theirs);
    json_decref(ours);
    return packed;
}
