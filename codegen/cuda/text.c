/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "codegen/cuda/text.h"

#include "codegen/cuda/device_text.h"
#include "ir/support/bug.h"

#include <math.h>
#include <string.h>

DeviceTexts device_texts_all(void)
{
    return (DeviceTexts){device_names, device_texts,
                         (int)(sizeof device_texts / sizeof *device_texts)};
}

static bool has_text(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof device_names / sizeof *device_names; i++)
        if (strncmp(device_names[i], name, length) == 0 &&
            strcmp(device_names[i] + length, ".cuh") == 0)
            return true;
    return false;
}

void text_include(StrBuf *out, const char *name)
{
    if (!has_text(name))
        BUG("no text %s", name);
    strbuf_printf(out, "#include \"%s.cuh\"\n", name);
}

void cuda_call(Lowering *l, CallDraft *call, KernelText *text, int threads)
{
    call->text = text;
    call->threads = threads;
    if (call->n_tasks > 0)
        lower_call(l, *call);
}

void text_begin(StrBuf *out, int n_args, const char *const *parts)
{
    text_define(out, "N_ARGS", n_args ? n_args : 1);
    for (; *parts; parts++)
        text_include(out, *parts);
}

void text_kernel(StrBuf *out, const char *symbol, int threads, const char *body)
{
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n    %s(a);\n}\n", symbol, threads, body);
}

void text_kernel_blocks(StrBuf *out, const char *symbol, int threads, int blocks, const char *body)
{
    strbuf_printf(out, "\nKERNEL_BLOCKS(%s, %d, %d)\n{\n    %s(a);\n}\n", symbol, threads, blocks,
                  body);
}

void text_define(StrBuf *out, const char *name, int64_t value)
{
    strbuf_printf(out, "#define %s %lld%s\n", name, (long long)value,
                  value > INT32_MAX || value < INT32_MIN ? "LL" : "");
}

const char *text_type(DType t)
{
    switch (t) {
    case DTYPE_F32:
        return "float";
    case DTYPE_BF16:
        return "u16";
    case DTYPE_I32:
        return "int";
    case DTYPE_I64:
        return "i64";
    case DTYPE_U8:
    case DTYPE_BOOL:
        return "u8";
    case DTYPE_F16:
    case DTYPE_COUNT:
        break;
    }
    BUG("no code for elements of type %s", dtype_name(t));
}

const char *text_bits_type(int64_t bytes)
{
    return bytes == 4 ? "u32" : bytes == 8 ? "i64" : bytes == 2 ? "unsigned short" : "u8";
}

void text_define_float(StrBuf *out, const char *name, double value)
{
    strbuf_printf(out, "#define %s ", name);
    text_float(out, value);
    strbuf_put(out, "\n");
}

void text_float(StrBuf *out, double value)
{
    float f = (float)value;
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (isfinite(f))
        strbuf_printf(out, "%af", (double)f);
    else
        strbuf_printf(out, "from_bits(0x%08x)", (unsigned)bits);
}

void text_batch(StrBuf *out, const char *name, int64_t n, const int64_t *dim, const int64_t *stride)
{
    strbuf_printf(out, "DEVICE i64 %s(i64 batch)\n{\n    i64 at = 0;\n    (void)batch;\n", name);
    for (int64_t i = n - 1; i >= 0; i--) {
        strbuf_printf(out, "    at += batch %% %lld * %lld;\n", (long long)dim[i],
                      (long long)stride[i]);
        strbuf_printf(out, "    batch /= %lld;\n", (long long)dim[i]);
    }
    strbuf_put(out, "    return at;\n}\n");
}

static void put_column(StrBuf *out, int64_t i)
{
    strbuf_put(out, i % 8 ? " " : "\n    ");
}

void text_floats(StrBuf *out, const char *name, const float *x, int64_t n)
{
    strbuf_printf(out, "TABLE float %s[] = {", name);
    for (int64_t i = 0; i < n; i++) {
        put_column(out, i);
        text_float(out, (double)x[i]);
        strbuf_put(out, ",");
    }
    strbuf_put(out, "\n};\n");
}

void text_integers(StrBuf *out, const char *name, const int64_t *x, int64_t n)
{
    strbuf_printf(out, "TABLE int %s[] = {", name);
    for (int64_t i = 0; i < n; i++) {
        put_column(out, i);
        strbuf_printf(out, "%lld,", (long long)x[i]);
    }
    strbuf_put(out, "\n};\n");
}
