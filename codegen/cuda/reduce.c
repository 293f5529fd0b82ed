/* SPDX-License-Identifier: GPL-3.0-or-later */
/* sum, mean, reduce_max and sumsq: device/reduce.cuh, with what a reduction's shape decides. */
#include "codegen/cuda/columns.h"
#include "codegen/cuda/join.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/reduction.h"

#include "ir/support/divide.h"

enum { PARTIALS = 64, COLUMN_THREADS = 256 };

/* The function `name`: where element `i` of a set begins. */
static void write_place(StrBuf *out, const char *name, const Digits *set)
{
    strbuf_printf(out, "DEVICE i64 %s(i64 i)\n{\n    i64 at = 0;\n    (void)i;\n", name);
    for (int64_t k = set->n - 1; k >= 0; k--) {
        if (k > 0)
            strbuf_printf(out, "    at += i %% %lld * %lld;\n    i /= %lld;\n",
                          (long long)set->dim[k], (long long)set->stride[k],
                          (long long)set->dim[k]);
        else
            strbuf_printf(out, "    at += i * %lld;\n", (long long)set->stride[k]);
    }
    strbuf_put(out, "    return at;\n}\n");
}

static bool chunks_of_lines(const ReduceDesc *d)
{
    return d->chunks && d->reduced.count < d->chunks;
}

static void begin(StrBuf *out, const ReduceDesc *d)
{
    text_begin(out, 2, (const char *const[]){"common", "math", "line", NULL});
    text_define(out, "IS_MAX", d->op == OP_reduce_max);
    text_define(out, "IS_SQUARE", d->op == OP_sumsq);
    text_define(out, "ROUNDS_GO_ON", !chunks_of_lines(d));
    write_place(out, "kept_place", &d->kept);
    write_place(out, "reduced_place", &d->reduced);
    text_include(out, "reduce");
}

/* Where the results of a chunk begin, as text. */
static const char *target(const ReduceDesc *d)
{
    return d->chunks ? "BUF(float, 1) + chunk * PARTIAL_FLOATS" : "BUF(REAL(1), 1)";
}

/* A result as it is stored, with its factor where it is not partial. */
static void put_scaled(StrBuf *out, const ReduceDesc *d, const char *what)
{
    strbuf_printf(out, "OF(1, %s", what);
    if (d->scale != 1 && !d->chunks) {
        strbuf_put(out, " * ");
        text_float(out, d->scale);
    }
    strbuf_put(out, ")");
}

static void define_sizes(StrBuf *out, const ReduceDesc *d)
{
    text_define(out, "KEPT", d->kept.count);
    text_define(out, "REDUCED", d->reduced.count);
    text_define(out, "INNER", d->inner);
    text_define(out, "CHUNKS", d->chunks ? d->chunks : 1);
    text_define(out, "PARTIAL_FLOATS", d->partial_bytes / 4);
}

/* A thread a column of a chunk. */
static void write_columns(StrBuf *out, const char *symbol, const void *desc)
{
    const ReduceDesc *d = desc;
    begin(out, d);
    define_sizes(out, d);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, COLUMN_THREADS);
    strbuf_printf(out, "    const i64 at = (i64)blockIdx.x * %d + threadIdx.x;\n", COLUMN_THREADS);
    strbuf_put(
        out, "    const i64 column = at % ((i64)KEPT * INNER), chunk = at / ((i64)KEPT * INNER);\n"
             "    const i64 from = part_start(chunk, REDUCED, CHUNKS);\n"
             "    const i64 to = part_start(chunk + 1, REDUCED, CHUNKS);\n"
             "    const REAL(0) *x = BUF(const REAL(0), 0) + kept_place(column / INNER) + "
             "column % INNER;\n"
             "    if (chunk < CHUNKS)\n");
    strbuf_printf(out, "        (%s)[column] = ", target(d));
    put_scaled(out, d, "column_result(x, from, to)");
    strbuf_put(out, ";\n}\n");
}

static ColumnSums sums_of(const ReduceDesc *d)
{
    return (ColumnSums){.rows = d->reduced.count,
                        .width = d->inner,
                        .chunks = d->chunks,
                        .images = 1,
                        .pitch = {d->reduced.n ? d->reduced.stride[0] : 0, 0}};
}

/* Partial results of columns of one pitch. */
static bool has_tiles(const ReduceDesc *d)
{
    const ColumnSums sums = sums_of(d);
    return d->inner_kept && d->chunks && d->kept.count == 1 && d->reduced.n == 1 &&
           has_column_tiles(&sums);
}

static void write_tiles(StrBuf *out, const char *symbol, const void *desc)
{
    const ReduceDesc *d = desc;
    const ColumnSums sums = sums_of(d);
    begin(out, d);
    define_sizes(out, d);
    text_columns(out, &sums);
    text_include(out, "reduce_tiles");
    text_kernel(out, symbol, column_threads(&sums), "reduce_tiles");
}

/* Of the reduced elements, the part of `chunk`: outer ones where there are enough, else units of 16
 * of the last dim. */
static void put_range(StrBuf *out, const ReduceDesc *d)
{
    if (chunks_of_lines(d))
        strbuf_put(out, "    const i64 units = (INNER + LANES - 1) / LANES, r0 = 0, r1 = REDUCED;\n"
                        "    const i64 from = part_start(chunk, units, CHUNKS) * LANES;\n"
                        "    const i64 end = part_start(chunk + 1, units, CHUNKS) * LANES;\n"
                        "    const i64 to = end < INNER ? end : INNER;\n");
    else
        strbuf_put(out, "    const i64 from = 0, to = INNER;\n"
                        "    const i64 r0 = part_start(chunk, REDUCED, CHUNKS);\n"
                        "    const i64 r1 = part_start(chunk + 1, REDUCED, CHUNKS);\n");
}

/* A block a result of a chunk. */
static void write_lines(StrBuf *out, const char *symbol, const void *desc)
{
    const ReduceDesc *d = desc;
    begin(out, d);
    define_sizes(out, d);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, PARTIALS);
    strbuf_put(out,
               "    const i64 kept = (i64)blockIdx.x % KEPT, chunk = (i64)blockIdx.x / KEPT;\n");
    put_range(out, d);
    strbuf_put(out,
               "    const float r = line_result(BUF(const REAL(0), 0), kept, r0, r1, from, to);\n"
               "    if (threadIdx.x == 0)\n");
    strbuf_printf(out, "        (%s)[kept] = ", target(d));
    put_scaled(out, d, "r");
    strbuf_put(out, ";\n}\n");
}

/* A thread a result: integers are rare and small. */
static void write_integers(StrBuf *out, const char *symbol, const void *desc)
{
    const ReduceDesc *d = desc;
    const char *type = d->dtype == DTYPE_I32 ? "int" : "u8";
    text_begin(out, 2, (const char *const[]){"common", NULL});
    define_sizes(out, d);
    write_place(out, "kept_place", &d->kept);
    write_place(out, "reduced_place", &d->reduced);
    strbuf_printf(out, "\nKERNEL(%s, %d)\n{\n", symbol, COLUMN_THREADS);
    strbuf_printf(out, "    const i64 kept = (i64)blockIdx.x * %d + threadIdx.x;\n",
                  COLUMN_THREADS);
    bool max = d->op == OP_reduce_max;
    strbuf_printf(out, "    int r = %s;\n    if (kept >= KEPT)\n        return;\n",
                  max ? "-2147483647 - 1" : "0");
    strbuf_put(out, "    for (i64 i = 0; i < REDUCED; i++) {\n");
    strbuf_printf(out,
                  "        const int x = BUF(const %s, 0)[kept_place(kept) + reduced_place(i)];\n",
                  type);
    strbuf_put(out, max ? "        r = x > r ? x : r;\n" : "        r = (int)((u32)r + (u32)x);\n");
    strbuf_printf(out, "    }\n    BUF(%s, 1)[kept] = (%s)r;\n}\n", type, type);
}

static void call_of(Lowering *l, const ReduceDesc *d, const char *name, int64_t blocks,
                    const CallBuf *bufs, KernelText *text, int threads)
{
    CallDraft call = pod_call(l, name, d, DESC_BYTES(ReduceDesc), blocks, bufs, 2);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, threads);
}

static void join(Lowering *l, const ReduceDesc *d, CallBuf parts, CallBuf results)
{
    const JoinDesc j = {.results = d->results,
                        .parts = d->chunks,
                        .pitch = d->partial_bytes / 4,
                        .is_max = d->op == OP_reduce_max,
                        .scale = d->scale};
    cuda_join(l, "reduce_join", &j, parts, results);
}

void cuda_reduce(Lowering *l, const Node *n)
{
    ReduceDesc d = reduce_describe(l, n);
    const CallBuf whole[] = {{n->in[0], 0}, {n->out[0], 0}};
    const CallBuf part[] = {{n->in[0], 0}, {VALUE_NONE, 0}};
    int64_t chunks = d.chunks ? d.chunks : 1;
    if (d.dtype != DTYPE_F32) {
        reduce_add_digit(d.inner_kept ? &d.kept : &d.reduced, d.inner, 1);
        call_of(l, &d, "reduce_int", divide_up(d.kept.count, COLUMN_THREADS), whole, write_integers,
                COLUMN_THREADS);
        return;
    }
    int64_t columns = d.kept.count * d.inner;
    const ColumnSums sums = sums_of(&d);
    if (has_tiles(&d))
        call_of(l, &d, op_name(n->op), column_blocks(&sums), part, write_tiles,
                column_threads(&sums));
    else if (d.inner_kept)
        call_of(l, &d, op_name(n->op), divide_up(columns * chunks, COLUMN_THREADS),
                d.chunks ? part : whole, write_columns, COLUMN_THREADS);
    else
        call_of(l, &d, op_name(n->op), d.kept.count * chunks, d.chunks ? part : whole, write_lines,
                PARTIALS);
    if (d.chunks)
        join(l, &d, part[1], whole[1]);
}
