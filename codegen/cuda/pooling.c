/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Max pooling: a thread a window of neighbouring channels.  The gradients gather what the windows
 * over an element send it, window by window (device/maxpool_grad.cuh). */
#include "codegen/forms/pooling.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"

/* A thread has WIDE channels, where all can be shared out so, else one.  A block of the gradients
 * has pixels of a square, or a half of one, of at most MOST_CHANNELS channels each: EACH of a
 * thread. */
enum { THREADS = 256, WIDE = 8, MOST_CHANNELS = 16, EACH = 2 };

/* What a block of the gradients keeps of a window's channel: a number, in a byte up to MOST_BYTE of
 * them, and dy.  SHARED_BYTES is what a kernel may have without asking for more. */
enum { MOST_BYTE = 256, DY_BYTES = 4, SHARED_BYTES = 48 << 10 };

typedef struct Tile {
    int64_t channels, h, w;
} Tile;

static int wide(const PoolDesc *d)
{
    return d->channels % WIDE ? 1 : WIDE;
}

static Tile tile_of(const PoolDesc *d)
{
    Tile t = {wide(d), 1, 1};
    while (t.channels < d->channels && t.channels < MOST_CHANNELS)
        t.channels *= 2;
    while (t.channels * t.h * t.w < EACH * THREADS * wide(d))
        *(t.w <= t.h ? &t.w : &t.h) *= 2;
    return t;
}

/* Along an axis, how many windows reach so many pixels at most. */
static int64_t windows_along(int64_t pixels, int64_t kernel, int64_t stride, int64_t windows)
{
    int64_t reach = (pixels + kernel - 2) / stride + 1;
    return reach < windows ? reach : windows;
}

static int64_t most_windows(const PoolDesc *d, Tile t)
{
    return windows_along(t.h, d->kernel[0], d->stride[0], d->oh) *
           windows_along(t.w, d->kernel[1], d->stride[1], d->ow);
}

static bool is_small(const PoolDesc *d)
{
    int64_t most = INT32_MAX - 2 * THREADS * WIDE, images = d->images * d->channels;
    return images <= most / (d->h * d->w) && images <= most / (d->oh * d->ow);
}

/* image: the buffer of the image that windows look at. */
static void begin(StrBuf *out, const PoolDesc *d, int n_args, int image, bool is_index)
{
    text_begin(out, n_args, (const char *const[]){"common", "math", "real", NULL});
    text_define(out, "IMAGE", image);
    text_define(out, "IS_INDEX", is_index);
    text_define(out, "THREADS", THREADS);
    text_define(out, "WIDE", wide(d));
    strbuf_printf(out, "#define PLACE %s\n", is_small(d) ? "int" : "i64");
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

static void write_kernel(StrBuf *out, const char *symbol, int blocks, const char *body)
{
    text_include(out, body);
    text_kernel_blocks(out, symbol, THREADS, blocks, body);
}

static void write_maxpool(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0, false);
    write_kernel(out, symbol, 4, "maxpool");
}

static void write_index(StrBuf *out, const char *symbol, const void *desc)
{
    begin(out, desc, 2, 0, true);
    write_kernel(out, symbol, 4, "maxpool");
}

/* Sums that outlive a part of the windows take registers from the search of the next part: those of
 * a third block. */
static void write_gradient(StrBuf *out, const char *symbol, const PoolDesc *d, bool is_index)
{
    Tile t = tile_of(d);
    bool bytes = d->kernel[0] <= MOST_BYTE / d->kernel[1];
    int64_t windows = most_windows(d, t);
    int64_t part = SHARED_BYTES / (t.channels * (DY_BYTES + (bytes ? 1 : (int64_t)sizeof(int))));
    begin(out, d, 3, 1, is_index);
    strbuf_printf(out, "#define NUMBER %s\n", bytes ? "u8" : "int");
    text_define(out, "MOST_WINDOWS", windows);
    text_define(out, "WINDOWS", windows < part ? windows : part);
    text_define(out, "TILE_CHANNELS", t.channels);
    text_define(out, "TILE_H", t.h);
    text_define(out, "TILE_W", t.w);
    write_kernel(out, symbol, windows <= part ? 3 : 2, "maxpool_grad");
}

static void write_grad(StrBuf *out, const char *symbol, const void *desc)
{
    write_gradient(out, symbol, desc, false);
}

static void write_index_grad(StrBuf *out, const char *symbol, const void *desc)
{
    write_gradient(out, symbol, desc, true);
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
    int64_t groups = d.images * (d.channels / wide(&d)) * d.oh * d.ow;
    lower(l, n, &d, divide_up(groups, THREADS),
          n->op == OP_maxpool_index ? write_index : write_maxpool);
}

static void lower_gradient(Lowering *l, const Node *n, KernelText *text)
{
    PoolDesc d = pool_describe(l, n);
    Tile t = tile_of(&d);
    int64_t tiles = divide_up(d.channels, t.channels) * divide_up(d.h, t.h) * divide_up(d.w, t.w);
    lower(l, n, &d, d.images * tiles, text);
}

void cuda_maxpool_grad(Lowering *l, const Node *n)
{
    lower_gradient(l, n, write_grad);
}

void cuda_maxpool_index_grad(Lowering *l, const Node *n)
{
    lower_gradient(l, n, write_index_grad);
}
