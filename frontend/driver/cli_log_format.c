/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/cli_log_format.h"

#include "frontend/driver/cli_metrics.h"
#include "ir/support/strbuf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- JSON --- */

static const char *no_header(Pool *pool, const LogColumns *columns)
{
    (void)pool, (void)columns;
    return "";
}

/* JSON has no NaN or infinity. */
static void put_number(FILE *f, const char *before, double value)
{
    fputs(before, f);
    fprintf(f, isfinite(value) ? "%.9g" : "null", value);
}

static void put_table(FILE *f, const Metric *t)
{
    int64_t columns = t->type->dim[t->type->rank - 1];
    int64_t rows = t->type->rank == 2 ? t->type->dim[0] : 1;
    fprintf(f, ", \"val_%s\": %s", t->name, t->type->rank == 2 ? "[" : "");
    for (int64_t r = 0; r < rows; r++) {
        fputs(r ? ", [" : "[", f);
        for (int64_t i = 0; i < columns; i++)
            put_number(f, i ? ", " : "", t->value[r * columns + i]);
        fputc(']', f);
    }
    fputs(t->type->rank == 2 ? "]" : "", f);
}

/* Steps allocate nothing: no JSON library here. */
static void put_json(FILE *f, const LogColumns *columns, const LogRow *row)
{
    (void)columns;
    fprintf(f, "{\"step\": %lld", (long long)row->step);
    for (int i = 0; i < row->n; i++) {
        fprintf(f, ", \"%s\"", row->scalar[i].name);
        put_number(f, ": ", row->scalar[i].value);
    }
    for (int i = 0; i < row->n_tables; i++)
        put_table(f, &row->table[i]);
    fputs(row->skipped ? ", \"skipped\": true}\n" : "}\n", f);
}

/* Spaces may have come from another program. */
static bool read_json(const char *line, size_t length, LogPlace *out)
{
    long long step;
    if (sscanf(line, " { \"step\" : %lld", &step) != 1 || length < 2 ||
        strcmp(line + length - 2, "}\n") != 0)
        return false;
    *out = (LogPlace){step, strstr(line, "\"val_loss\"") != NULL};
    return true;
}

static bool begins_json(const char *line, size_t length)
{
    static const char start[] = "{\"step\": ";
    return strncmp(line, start, length < sizeof start - 1 ? length : sizeof start - 1) == 0;
}

/* --- CSV --- */

static void put_field(StrBuf *out, const char *name)
{
    bool plain = !strpbrk(name, ",\"\r\n");
    strbuf_put(out, plain ? "," : ",\"");
    for (; *name; name++)
        strbuf_printf(out, *name == '"' ? "\"\"" : "%c", *name);
    strbuf_put(out, plain ? "" : "\"");
}

static const char *csv_header(Pool *pool, const LogColumns *c)
{
    StrBuf out = strbuf_new(pool);
    strbuf_put(&out, "step");
    for (int i = 0; i < c->n_step; i++)
        put_field(&out, c->step[i].name);
    if (c->skips)
        put_field(&out, "skipped");
    for (int i = 0; i < c->n_evaluation; i++)
        put_field(&out, c->evaluation[i].name);
    strbuf_put(&out, "\n");
    return out.text;
}

static void put_empty(FILE *f, int n)
{
    for (int i = 0; i < n; i++)
        fputc(',', f);
}

/* A step leaves the columns of evaluations empty, and an evaluation those of steps. */
static void put_csv(FILE *f, const LogColumns *c, const LogRow *row)
{
    fprintf(f, "%lld", (long long)row->step);
    put_empty(f, row->evaluation ? c->n_step + c->skips : 0);
    for (int i = 0; i < row->n; i++) {
        double x = row->scalar[i].value;
        fprintf(f, isnan(x) ? ",nan" : ",%.9g", x); /* no "-nan" */
    }
    if (!row->evaluation) {
        fputs(row->skipped ? ",true" : c->skips ? "," : "", f);
        put_empty(f, c->n_evaluation);
    }
    fputc('\n', f);
}

static bool read_csv(const char *line, size_t length, LogPlace *out)
{
    char *end;
    long long step = strtoll(line, &end, 10);
    if (end == line || *end != ',' || strlen(line) != length || line[length - 1] != '\n')
        return false;
    *out = (LogPlace){step, end[1] == ','}; /* every step has a loss */
    return true;
}

static bool begins_csv(const char *line, size_t length)
{
    return length > 0 && strspn(line, "0123456789+-.,einftrua") == length;
}

/* --- both --- */

const LogFormat *log_format_of(const char *path)
{
    static const LogFormat json = {no_header, put_json, read_json, begins_json};
    static const LogFormat csv = {csv_header, put_csv, read_csv, begins_csv};
    const char *dot = strrchr(path, '.');
    return dot && strcasecmp(dot, ".csv") == 0 ? &csv : &json;
}
