/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "frontend/driver/predict_text.h"

#include "frontend/driver/cli_fields.h"
#include "frontend/driver/predict_table.h"

#include <math.h>
#include <string.h>

/* ---- which classes ---- */

/* The evaluation's accuracy; NULL where it has none. */
static const Node *find_accuracy(const Graph *g)
{
    ValueId v = g ? graph_output(g, "accuracy") : VALUE_NONE;
    const Node *n = v == VALUE_NONE ? NULL : value_node(g, v);
    return n && n->op == OP_accuracy ? n : NULL;
}

TextClasses predict_classes(Cli *cli, const Ast *ast, const Type *type)
{
    FrontendOptions o = cli_frontend_options(cli, FRONTEND_EVAL);
    const Graph *g = frontend_lower(cli->pool, cli->diag, ast, &o);
    const Node *n = find_accuracy(g);
    TextClasses c = {0};
    diag_clear(cli->diag); /* of an evaluation that is not asked for */
    if (!n || type->rank != 2 || node_int(n, ATTR_axis, 1) != 1)
        return c;
    const Type *logits = value_type(g, n->in[0]);
    const Node *label = value_node(g, field_root(g, n->in[1]));
    c.present = logits->rank == 2 && logits->dim[1] == type->dim[1];
    if (c.present && field_is_input(label))
        c.values = predict_table_values(cli, g, field_name(label));
    return c;
}

void predict_classes_free(TextClasses *c)
{
    json_decref(c->values);
    *c = (TextClasses){0};
}

/* The class of an example, the largest logit's; -1 where one is no number. */
static int64_t largest(const TextResult *r, int64_t example)
{
    const float *logit = (const float *)r->data + example * r->width;
    int64_t best = 0;
    for (int64_t i = 0; i < r->width; i++) {
        if (isnan(logit[i]))
            return -1;
        best = logit[i] > logit[best] ? i : best;
    }
    return r->width > 0 ? best : -1;
}

static const char *class_name(const TextClasses *c, int64_t i)
{
    return i < 0 ? NULL : json_string_value(json_array_get(c->values, (size_t)i));
}

/* ---- numbers ---- */

static double number_at(const TextResult *r, int64_t i)
{
    switch ((int)r->dtype) {
    case RT_F32:
        return (double)((const float *)r->data)[i];
    case RT_I32:
        return (double)((const int32_t *)r->data)[i];
    default: /* u8, bool */
        return (double)((const unsigned char *)r->data)[i];
    }
}

/* Nine digits tell every f32. */
static void put_number(FILE *f, double v, const char *not_finite)
{
    if (isfinite(v))
        fprintf(f, "%.9g", v);
    else
        fputs(not_finite ? not_finite : isnan(v) ? "nan" : v > 0 ? "inf" : "-inf", f);
}

/* ---- CSV ---- */

/* RFC 4180: in quotes where it has to be. */
static void put_cell(FILE *f, const char *text)
{
    size_t n = strlen(text);
    bool spaces = n > 0 && (text[0] == ' ' || text[n - 1] == ' ');
    if (!spaces && !text[strcspn(text, ",\"\r\n")]) {
        fputs(text, f);
        return;
    }
    putc('"', f);
    for (; *text; text++)
        fprintf(f, *text == '"' ? "\"\"" : "%c", *text);
    putc('"', f);
}

static void put_heading(const PredictText *t, FILE *f)
{
    fputs(t->files ? "file," : "", f);
    fputs(t->classes.present ? "predicted," : "", f);
    for (int k = 0; k < t->n; k++) {
        const TextResult *r = &t->result[k];
        fputs(k ? "," : "", f);
        for (int64_t i = 0; i < r->width; i++) {
            const char *class = k == 0 ? class_name(&t->classes, i) : NULL;
            fputs(i ? "," : "", f);
            if (class)
                put_cell(f, pool_printf(t->pool, "%s[%s]", r->name, class));
            else if (r->row)
                fprintf(f, "%s[%lld]", r->name, (long long)i);
            else
                fputs(r->name, f);
        }
    }
    putc('\n', f);
}

static void put_line(const PredictText *t, int64_t example, const char *file, FILE *f)
{
    if (file) {
        put_cell(f, file);
        putc(',', f);
    }
    int64_t class = t->classes.present ? largest(&t->result[0], example) : -1;
    const char *name = class_name(&t->classes, class);
    if (name)
        put_cell(f, name);
    else if (class >= 0 && !t->classes.values)
        fprintf(f, "%lld", (long long)class);
    fputs(t->classes.present ? "," : "", f);
    for (int k = 0; k < t->n; k++)
        for (int64_t i = 0; i < t->result[k].width; i++) {
            fputs(k || i ? "," : "", f);
            put_number(f, number_at(&t->result[k], example * t->result[k].width + i), NULL);
        }
    putc('\n', f);
}

/* ---- JSON ---- */

/* null: it is not UTF-8. */
static void put_string(FILE *f, const char *text)
{
    json_t *string = json_string(text);
    if (!string)
        string = json_null();
    json_dumpf(string, f, JSON_ENCODE_ANY);
    json_decref(string);
}

static void put_class(const PredictText *t, int64_t class, FILE *f)
{
    const char *name = class_name(&t->classes, class);
    fputs("\"predicted\": ", f);
    if (name)
        put_string(f, name);
    else if (class >= 0 && !t->classes.values)
        fprintf(f, "%lld", (long long)class);
    else
        fputs("null", f);
    fputs(", ", f);
}

static void put_object(const PredictText *t, int64_t example, const char *file, FILE *f)
{
    putc('{', f);
    if (file) {
        fputs("\"file\": ", f);
        put_string(f, file);
        fputs(", ", f);
    }
    if (t->classes.present)
        put_class(t, largest(&t->result[0], example), f);
    for (int k = 0; k < t->n; k++) {
        const TextResult *r = &t->result[k];
        fprintf(f, "%s\"%s\": %s", k ? ", " : "", r->name, r->row ? "[" : "");
        for (int64_t i = 0; i < r->width; i++) {
            fputs(i ? ", " : "", f);
            put_number(f, number_at(r, example * r->width + i), "null");
        }
        fputs(r->row ? "]" : "", f);
    }
    putc('}', f);
}

/* ---- all of it ---- */

void predict_text_begin(const PredictText *t, int64_t count, FILE *f)
{
    if (t->json)
        fprintf(f, "{\"examples\": %lld, \"predictions\": [", (long long)count);
    else
        put_heading(t, f);
}

void predict_text_end(const PredictText *t, FILE *f)
{
    if (t->json)
        fputs("]}\n", f);
}

void predict_text_examples(const PredictText *t, int64_t first, int64_t n, FILE *f)
{
    for (int64_t i = 0; i < n; i++) {
        const char *file = t->files ? examples_file(t->files, first + i) : NULL;
        if (!t->json) {
            put_line(t, i, file, f);
            continue;
        }
        fputs(first + i ? ",\n" : "\n", f);
        put_object(t, i, file, f);
    }
}
