/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source: NumPy's NEP 1 and numpy/lib/format.py. */
#include "runtime/npy.h"

#include <stdio.h>
#include <string.h>

enum { MAX_HEADER = 1 << 16 };

static const struct {
    const char *descr; /* NULL: not in .npy */
    int64_t bytes;
    RtDType dtype; /* of the field */
} npy_types[NPY_TYPE_COUNT] = {
    [NPY_F2] = {"f2", 2, RT_F32}, [NPY_BF16] = {NULL, 2, RT_F32}, [NPY_F4] = {"f4", 4, RT_F32},
    [NPY_F8] = {"f8", 8, RT_F32}, [NPY_I4] = {"i4", 4, RT_I32},   [NPY_I8] = {"i8", 8, RT_I32},
    [NPY_U1] = {"u1", 1, RT_U8},  [NPY_B1] = {"b1", 1, RT_BOOL},
};

int64_t npy_type_bytes(NpyType type)
{
    return npy_types[type].bytes;
}

RtDType npy_type_dtype(NpyType type)
{
    return npy_types[type].dtype;
}

/* ---- the header: a Python dict literal ---- */

typedef struct Scan {
    const char *p, *end;
} Scan;

static void skip_space(Scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n'))
        s->p++;
}

static bool accept(Scan *s, const char *text)
{
    skip_space(s);
    size_t n = strlen(text);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, text, n) != 0)
        return false;
    s->p += n;
    return true;
}

/* A quoted string without escapes. */
static bool read_string(Scan *s, char *out, size_t size)
{
    skip_space(s);
    if (s->p == s->end || (*s->p != '\'' && *s->p != '"'))
        return false;
    char quote = *s->p++;
    size_t n = 0;
    for (; s->p < s->end && *s->p != quote; s->p++) {
        if (*s->p == '\\' || n + 1 >= size)
            return false;
        out[n++] = *s->p;
    }
    out[n] = 0;
    return accept(s, (char[]){quote, 0});
}

static bool read_integer(Scan *s, int64_t *out)
{
    skip_space(s);
    if (s->p == s->end || *s->p < '0' || *s->p > '9')
        return false;
    for (*out = 0; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
        if (!rt_mul(*out, 10, out) || !rt_add(*out, *s->p - '0', out))
            return false;
    accept(s, "L"); /* Python 2 wrote long integers so */
    return true;
}

static bool read_shape(Scan *s, NpyArray *out)
{
    if (!accept(s, "("))
        return false;
    for (out->rank = 0; !accept(s, ")"); out->rank++) {
        if (out->rank == RT_MAX_RANK || !read_integer(s, &out->dims[out->rank]))
            return false;
        if (!accept(s, ",")) { /* "(3)" is no tuple, but NumPy's reader takes "(3, 4)" */
            out->rank++;
            return accept(s, ")");
        }
    }
    return true;
}

/* The type that is read and most like one that is not: integers, or f4 (also of dates and text). */
static const char *nearest_type(const char *descr)
{
    const char *kind = descr + strspn(descr, "<>|=");
    return *kind == 'i' || *kind == 'u'   ? "int32"
           : *kind == '?' || *kind == 'b' ? "bool"
                                          : "float32";
}

static bool read_descr(Scan *s, NpyArray *out, RtError *err)
{
    char descr[16];
    if (!read_string(s, descr, sizeof descr))
        return rt_error(err,
                        "the .npy element type is not a plain one, but a record: save each field "
                        "of it as an array, a[\"NAME\"]");
    int t = 0;
    for (; t < NPY_TYPE_COUNT; t++) {
        const char *known = npy_types[t].descr;
        bool one_byte = npy_types[t].bytes == 1;
        if (known && descr[0] == (one_byte ? '|' : '<') && strcmp(descr + 1, known) == 0)
            break;
    }
    if (t == NPY_TYPE_COUNT)
        return rt_error(err,
                        "element type '%s': <f2, <f4, <f8, <i4, <i8, |u1 and |b1 are read; in "
                        "Python: a.astype(\"%s\")",
                        descr, nearest_type(descr));
    out->type = (NpyType)t;
    return true;
}

static bool read_key(Scan *s, NpyArray *out, unsigned *seen, RtError *err)
{
    char key[32];
    if (!read_string(s, key, sizeof key) || !accept(s, ":"))
        return rt_error(err, "the .npy header is damaged");
    if (strcmp(key, "descr") == 0) {
        *seen |= 1;
        return read_descr(s, out, err);
    }
    if (strcmp(key, "fortran_order") == 0) {
        *seen |= 2;
        return accept(s, "False") ||
               rt_error(err, "Fortran order; in Python: numpy.ascontiguousarray(a)");
    }
    if (strcmp(key, "shape") == 0) {
        *seen |= 4;
        return read_shape(s, out) || rt_error(err,
                                              "the .npy shape is damaged or has more than %d "
                                              "dimensions",
                                              RT_MAX_RANK);
    }
    return rt_error(err, "the .npy header has an unknown key '%s'", key);
}

static bool read_header(Scan s, NpyArray *out, RtError *err)
{
    unsigned seen = 0;
    bool ok = accept(&s, "{");
    while (ok && !accept(&s, "}")) {
        if (!read_key(&s, out, &seen, err))
            return false;
        if (!accept(&s, ",")) {
            ok = accept(&s, "}");
            break;
        }
    }
    skip_space(&s);
    if (!ok || s.p != s.end || seen != 7)
        return rt_error(err, "the .npy header is damaged");
    return true;
}

bool npy_parse(const unsigned char *bytes, int64_t n, NpyArray *out, RtError *err)
{
    *out = (NpyArray){0};
    if (n < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return rt_error(err, "not a .npy file");
    if (bytes[6] < 1 || bytes[6] > 3)
        return rt_error(err, ".npy version %d: 1 to 3 are read", bytes[6]);
    int64_t start = bytes[6] == 1 ? 10 : 12, len = bytes[8] | bytes[9] << 8;
    if (bytes[6] > 1)
        len |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (len > MAX_HEADER || len > n - start)
        return rt_error(err, "the .npy header is cut off");
    const char *text = (const char *)bytes + start;
    if (!read_header((Scan){text, text + len}, out, err))
        return false;
    int64_t elements, size;
    if (!rt_elements(out->rank, out->dims, &elements) ||
        !rt_mul(elements, npy_type_bytes(out->type), &size) || size != n - start - len)
        return rt_error(err, "the .npy shape does not fit the %lld bytes that follow the header",
                        (long long)(n - start - len));
    out->data = bytes + start + len;
    return true;
}

/* ---- elements ---- */

int64_t npy_integer(const NpyArray *a, int64_t i)
{
    const unsigned char *p = a->data + i * npy_type_bytes(a->type);
    int32_t v4;
    int64_t v8;
    if (a->type == NPY_I4) {
        memcpy(&v4, p, 4);
        return v4;
    }
    if (a->type == NPY_I8) {
        memcpy(&v8, p, 8);
        return v8;
    }
    return *p;
}

/* As bits: arithmetic on a float could flush a subnormal number, and makes a signalling NaN quiet.
 */
static void copy_floats(const NpyArray *a, const unsigned char *from, int64_t n, float *dst)
{
    if (a->type == NPY_F4 && n > 0)
        memcpy(dst, from, (size_t)n * sizeof *dst);
    for (int64_t k = 0; a->type == NPY_F8 && k < n; k++) {
        double wide;
        memcpy(&wide, from + k * 8, 8);
        dst[k] = (float)wide;
    }
    for (int64_t k = 0; (a->type == NPY_F2 || a->type == NPY_BF16) && k < n; k++) {
        uint16_t half;
        memcpy(&half, from + k * 2, 2);
        dst[k] = a->type == NPY_F2 ? rt_f16_to_f32(half) : rt_bf16_to_f32(half);
    }
}

bool npy_is_float(NpyType type)
{
    return npy_types[type].dtype == RT_F32;
}

bool npy_range(const NpyArray *a, const int32_t *ignored, int64_t *least, int64_t *most,
               RtError *err)
{
    int64_t n;
    *least = INT64_MAX;
    *most = INT64_MIN;
    if (!rt_elements(a->rank, a->dims, &n))
        return rt_error(err, "too large");
    for (int64_t i = 0; i < n; i++) {
        int64_t v = npy_integer(a, i);
        if (v != (int32_t)v)
            return rt_error(err, "element %lld is %lld, which does not fit 32 bits", (long long)i,
                            (long long)v);
        if (ignored && v == *ignored)
            continue;
        *least = v < *least ? v : *least;
        *most = v > *most ? v : *most;
    }
    return true;
}

void npy_copy(const NpyArray *a, int64_t first, int64_t n, RtDType dtype, void *dst)
{
    int32_t *integer = dst;
    unsigned char *byte = dst;
    if (npy_is_float(a->type)) {
        copy_floats(a, a->data + first * npy_type_bytes(a->type), n, dst);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        if (dtype == RT_I32)
            integer[k] = (int32_t)npy_integer(a, first + k);
        else
            byte[k] = a->data[first + k];
    }
}

/* ---- writing ---- */

static const char *descr_of(RtDType dtype)
{
    return dtype == RT_F32 ? "<f4" : dtype == RT_I32 ? "<i4" : dtype == RT_U8 ? "|u1" : "|b1";
}

bool npy_write_header(AtomicFile *file, RtDType dtype, int rank, const int64_t *dims, RtError *err)
{
    enum { LENGTH_AT = 8, TEXT_AT = 10, ALIGN = 64 };
    char text[TEXT_AT + 64 + RT_MAX_RANK * 24 + ALIGN] = "\x93NUMPY\x01";
    size_t at = TEXT_AT;
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of(dtype));
    for (int i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%lld,%s", (long long)dims[i],
                               i + 1 < rank ? " " : "");
    at += (size_t)snprintf(text + at, sizeof text - at, "), }");
    size_t end = (at + ALIGN) / ALIGN * ALIGN; /* with the line's end, aligned as NumPy wants it */
    memset(text + at, ' ', end - at);
    text[end - 1] = '\n';
    text[LENGTH_AT] = (char)((end - TEXT_AT) & 255);
    text[LENGTH_AT + 1] = (char)((end - TEXT_AT) >> 8);
    return atomic_write(file, text, (int64_t)end, err);
}
