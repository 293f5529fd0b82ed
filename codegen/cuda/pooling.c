/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Max pooling: a thread an output, channels side by side.  The gradients gather what the windows
 * over an element send it, window by window. */
#include "codegen/forms/pooling.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"

/* A block of maxpool_grad: pixels of a square, or a half of one, of at most MOST_CHANNELS channels
 * each. */
enum { THREADS = 256, MOST_CHANNELS = 16 };

typedef struct Tile {
    int64_t channels, h, w;
} Tile;

static Tile tile_of(const PoolDesc *d)
{
    Tile t = {1, 1, 1};
    while (t.channels < d->channels && t.channels < MOST_CHANNELS)
        t.channels *= 2;
    while (t.channels * t.h * t.w < THREADS)
        *(t.w <= t.h ? &t.w : &t.h) *= 2;
    return t;
}

/* pooled: the buffer of the image that windows look at. */
static void begin(StrBuf *out, const PoolDesc *d, int n_args, int pooled)
{
    text_begin(out, n_args, (const char *const[]){"common", "math", "real", NULL});
    strbuf_printf(out, "#define POOLED REAL(%d)\n", pooled);
    strbuf_printf(out, "#define POOLED_VALUE(x) VALUE(%d, x)\n", pooled);
    text_define(out, "IMAGES", d->images);
    text_define(out, "CHANNELS", d->channels);
    text_define(out, "H", d->h);
    text_define(out, "W", d->w);
    text_define(out, "OH", d->oh);
    text_define(out, "OW", d->ow);
    text_define(out, "KERNEL_H", d->kernel[0]);
    text_define(out, "KERNEL_W", d->kernel[1]);
    text_define(out, "STRIDE_H", d->stride[0]);
    text_define(out, "STRIDE_W", d->stride[1]);
    text_define(out, "PADDING_H", d->padding[0]);
    text_define(out, "PADDING_W", d->padding[1]);
    text_include(out, "window");
}

static void write_kernel(StrBuf *out, const char *symbol, const char *body)
{
    text_include(out, body);
    text_kernel_blocks(out, symbol, THREADS, 4, body);
}

static void write_maxpool(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0);
    strbuf_put(out, "#define TAKEN REAL(1)\n#define TAKE(best, number) OF(1, best)\n");
    write_kernel(out, symbol, "maxpool");
}

static void write_index(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0);
    strbuf_put(out, "#define TAKEN u8\n#define TAKE(best, number) ((u8)(number))\n");
    write_kernel(out, symbol, "maxpool");
}

static void write_grad(StrBuf *out, const char *symbol, const void *desc)
{
    const PoolDesc *d = desc;
    Tile t = tile_of(d);
    begin(out, d, 3, 1);
    text_define(out, "TILE_CHANNELS", t.channels);
    text_define(out, "TILE_H", t.h);
    text_define(out, "TILE_W", t.w);
    write_kernel(out, symbol, "maxpool_grad");
}

static void write_index_grad(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 3, 0);
    write_kernel(out, symbol, "maxpool_index_grad");
}

static void lower(Lowering *l, const Node *n, const PoolDesc *d, int64_t blocks, KernelText *text)
{
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    CallDraft call = pod_call(l, op_name(n->op), d, DESC_BYTES(PoolDesc), blocks, bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, text, THREADS);
}

void cuda_maxpool(Lowering *l, const Node *n)
{
    PoolDesc d = pool_describe(l, n);
    int64_t outputs = d.images * d.channels * d.oh * d.ow;
    lower(l, n, &d, divide_up(outputs, THREADS),
          n->op == OP_maxpool_index ? write_index : write_maxpool);
}

void cuda_maxpool_grad(Lowering *l, const Node *n)
{
    PoolDesc d = pool_describe(l, n);
    Tile t = tile_of(&d);
    int64_t tiles = divide_up(d.channels, t.channels) * divide_up(d.h, t.h) * divide_up(d.w, t.w);
    lower(l, n, &d, d.images * tiles, write_grad);
}

void cuda_maxpool_index_grad(Lowering *l, const Node *n)
{
    PoolDesc d = pool_describe(l, n);
    int64_t inputs = d.images * d.channels * d.h * d.w;
    lower(l, n, &d, divide_up(inputs, THREADS), write_index_grad);
}
