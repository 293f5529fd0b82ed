/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "equal_runs.h"

#include "e2e.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void expect_equal_runs(const char *a, const char *b)
{
    Result r = run("cmp $TMP/%s/model.safetensors $TMP/%s/model.safetensors && "
                   "cmp $TMP/%s/optimizer-*.safetensors $TMP/%s/optimizer-*.safetensors",
                   a, b, a, b);
    EXPECT(r.code == 0, *r.out ? r.out : r.err);
    result_free(&r);
}

void expect_equal_steps(const char *a, const char *b)
{
    Result r = run("cd $TMP && for f in %s %s; do sed 's/, \"seconds.*//' $f.log > $f.rows; done; "
                   "cmp %s.rows %s.rows",
                   a, b, a, b);
    EXPECT(r.code == 0, *r.out ? r.out : r.err);
    result_free(&r);
    expect_equal_runs(a, b);
}

double trained_loss(const char *command, const char *name)
{
    Result r = run(SIMULATED "%s --out $TMP/%s --log $TMP/%s.log", command, name, name);
    char log[64];
    EXPECT(r.code == 0, r.err);
    result_free(&r);
    snprintf(log, sizeof log, "%s.log", name);
    return last_in_log(in_tmp(log), "loss");
}

/* The losses in $TMP/NAME.log; how many there are. */
static int losses(const char *name, double *loss, int most)
{
    char file[64];
    int n = 0;
    snprintf(file, sizeof file, "%s.log", name);
    char *text = read_text(in_tmp(file), NULL);
    for (const char *p = text; p && n < most && (p = strstr(p, "\"loss\": ")); n++) {
        p += strlen("\"loss\": ");
        loss[n] = strtod(p, NULL);
    }
    free(text);
    return n;
}

void expect_near_losses(const char *a, const char *b, int n, double tolerance)
{
    double x[16] = {0}, y[16] = {0};
    char text[128];
    EXPECT(n <= 16 && losses(a, x, n) == n && losses(b, y, n) == n, "steps are missing");
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "step %d: a loss of %.9g, and of %.9g", i + 1, x[i], y[i]);
        EXPECT(fabs(y[i] - x[i]) <= tolerance * fabs(x[i]), text);
    }
}

/* A safetensors file: the length of its header, the header, the data. */
typedef struct Tensors {
    char *file;
    json_t *header;
    const char *data;
    long bytes; /* of the data */
} Tensors;

/* The only file of the run whose name matches. */
static bool open_tensors(const char *run, const char *pattern, Tensors *t)
{
    char path[64];
    uint64_t length = 0;
    long n = 0;
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", run, pattern);
    *t = (Tensors){0};
    if (glob(in_tmp(path), 0, NULL, &found) == 0 && found.gl_pathc == 1)
        t->file = read_text(found.gl_pathv[0], &n);
    globfree(&found);
    if (t->file && n > (long)sizeof length)
        memcpy(&length, t->file, sizeof length);
    if (length == 0 || length > (uint64_t)n - sizeof length)
        return false;
    t->header = json_loadb(t->file + sizeof length, (size_t)length, 0, NULL);
    t->data = t->file + sizeof length + length;
    t->bytes = n - (long)(sizeof length + length);
    return t->header != NULL;
}

static void close_tensors(Tensors *t)
{
    json_decref(t->header);
    free(t->file);
}

/* The f32 data of a tensor and their number; NULL: there is none. */
static const char *tensor_data(const Tensors *t, const char *name, long *n)
{
    const json_t *of = json_object_get(t->header, name), *at = json_object_get(of, "data_offsets");
    const char *dtype = json_string_value(json_object_get(of, "dtype"));
    long begin = (long)json_integer_value(json_array_get(at, 0));
    long end = (long)json_integer_value(json_array_get(at, 1));
    bool ok = dtype && strcmp(dtype, "F32") == 0 && begin >= 0 && begin <= end && end <= t->bytes;
    *n = ok ? (end - begin) / 4 : 0;
    return ok ? t->data + begin : NULL;
}

static double element(const char *data, long i)
{
    float x;
    memcpy(&x, data + 4 * i, sizeof x);
    return (double)x;
}

static void expect_near(const char *name, const char *a, const char *b, long n, double tolerance)
{
    double difference = 0, norm = 0;
    char text[128];
    for (long i = 0; i < n; i++) {
        double d = element(a, i) - element(b, i);
        difference += d * d;
        norm += element(a, i) * element(a, i);
    }
    snprintf(text, sizeof text, "%s: %g of its norm away", name,
             sqrt(difference / (norm > 0 ? norm : 1)));
    EXPECT(difference <= tolerance * tolerance * norm, text);
}

void expect_near_tensors(const char *a, const char *b, const char *pattern, double tolerance)
{
    Tensors first, second;
    const char *name;
    json_t *of;
    int n_compared = 0;
    bool ok = open_tensors(a, pattern, &first), both = open_tensors(b, pattern, &second) && ok;
    EXPECT(both, "no tensors");
    json_object_foreach(both ? first.header : NULL, name, of)
    {
        long n, m;
        const char *x = tensor_data(&first, name, &n), *y = tensor_data(&second, name, &m);
        if (strcmp(name, "__metadata__") == 0)
            continue;
        EXPECT(x && y && n == m, name);
        if (x && y && n == m)
            expect_near(name, x, y, n, tolerance);
        n_compared++;
    }
    EXPECT(n_compared > 0, "no tensors");
    close_tensors(&first);
    close_tensors(&second);
}
