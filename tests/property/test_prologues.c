/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Batch normalization that convolutions apply to what they read (passes/norms.c) changes no bit:
 * models with every kind of kernel that can, and some of what must be left alone, and random chains
 * of convolutions, trained by numbers of threads whose tasks begin and end within pieces, in turns
 * with other kernels, with and without recomputation, in poisoned memory, compared with the same
 * model whose normalized images are tensors.  And every target has code for large images and
 * batches, too, which are only lowered.  SCRIMP_MODELS, SCRIMP_LARGE_MODELS: how many random
 * models, SCRIMP_FIRST_MODEL: the seed of the first, without the fixed ones; SCRIMP_TEST_MODEL: one
 * of these alone; SCRIMP_ALL=1: for every instruction set. */
#include "check.h"
#include "tests/support/graph_text.h"
#include "tests/support/random.h"
#include "tests/support/run/model_run.h"
#include "tests/support/sample.h"

#include "codegen/build/step.h"
#include "codegen/build/tuning.h"
#include "codegen/jit/target.h"
#include "ir/support/strbuf.h"
#include "runtime/abi.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SMALL_CACHE: of a core, so that small tensors are large, and kernels run in turns. */
enum {
    STEPS = 3,
    THREADS_MOST = 5,
    WANTED_MOST = 12,
    REFUSED_MOST = 8,
    SMALL_CACHE = 200 * 1024,
    VARIANTS = 9,
    LARGE_MODELS = 200
};
static const uint64_t data_seed = 5;
/* Builds with kernels that apply a normalization: in turns with others, and in steps that compute
 * something again. */
static int n_in_turns, n_recomputing, n_large;

/* --- fixed models --- */

#define TRAIN(shape, n, rest)                                                                      \
    "train {\n"                                                                                    \
    "  batch = synthetic(x = f32" shape ", label = i32[" n "])\n"                                  \
    "  loss = cross_entropy(m(batch.x), batch.label)\n"                                            \
    "  optim = sgd(lr = 0.05, momentum = 0.9)\n"                                                   \
    "  steps = 3\n" rest "}\n"
#define MODEL(shape, n, body) MODEL_WITH(shape, n, body, "")
#define MODEL_WITH(shape, n, body, rest)                                                           \
    "model m(x: f32" shape ") {\n" body                                                            \
    "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n}\n" TRAIN(shape, n, rest)

typedef struct Fixed {
    const char *name, *text;
    int whole;                       /* normalizations that stay one operation */
    const char *wanted[WANTED_MOST]; /* kernels with a prologue, by their labels behind "norm, " */
    const char *refused[REFUSED_MOST]; /* kernels of which there is one, without a prologue */
} Fixed;

enum { ANY_NUMBER = -1 };

static const Fixed fixed[] = {
    {"depthwise",
     MODEL("[5, 3, 21, 19]", "5",
           "  x = x |> c1: conv(20, 3, pad = 1, bias = false) |> b1: bn() |> relu6()\n"
           "  x = x |> c2: conv(20, 3, pad = 1, groups = 20, bias = false) |> b2: bn() |> relu6()\n"
           "  x = x |> c3: conv(44, 1, bias = false) |> b3: bn()\n"
           "  x = x |> c4: conv(44, 5, pad = 2, stride = 2, groups = 44) |> b4: bn() |> relu()\n"
           "  x = x |> c5: conv(44, 3, pad = 2, dilation = 2, groups = 44) |> b5: bn() |> relu6()\n"
           "  x = x |> c6: conv(24, 1) |> b6: bn() |> relu()\n"
           "  x = x |> c7: conv(24, 3, pad = 1, stride = 2, groups = 24) |> b7: bn()\n"
           "  x = x |> c8: conv(33, 1)\n"),
     0,
     {"conv 3x3/1 5x21x19x20>20", "conv 1x1 1995x44x20", "conv 5x5/2 5x21x19x44>44",
      "conv 3x3/1 5x11x10x44>44", "conv 1x1 550x24x44", "conv 3x3/2 5x11x10x24>24",
      "conv 1x1 150x33x24", "conv 1x1 dw 20x44x1995", "conv dw 3x3/1 5x21x19x20>20",
      "conv dw 5x5/2 5x21x19x44>44", "conv dw 3x3/1 5x11x10x44>44", "conv dw 3x3/2 5x11x10x24>24"},
     {NULL}},
    {"pointwise",
     MODEL("[5, 3, 24, 24]", "5",
           "  x = x |> c1: conv(900, 1, bias = false) |> b1: bn() |> relu()\n"
           "  x = x |> c2: conv(36, 1, bias = false) |> b2: bn() |> relu6()\n"
           "  x = x |> c3: conv(70, 1) |> b3: bn()\n"
           "  x = x |> c4: conv(8, 1, bias = false) |> b4: bn() |> relu()\n"
           "  x = x |> c5: conv(300, 1, bias = false)\n"),
     0,
     {"conv 1x1 2880x36x900", "conv 1x1 2880x70x36", "conv 1x1 2880x8x70", "conv 1x1 2880x300x8",
      "conv 1x1 dw 900x36x2880", "conv 1x1 dw 36x70x2880", "conv 1x1 dw 70x8x2880",
      "conv 1x1 dw 8x300x2880"},
     {NULL}},
    {"one image",
     MODEL("[1, 3, 40, 37]", "1",
           "  x = x |> c1: conv(40, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
           "  x = x |> c2: conv(17, 1, bias = false) |> b2: bn() |> relu6()\n"
           "  x = x |> c3: conv(24, 3, pad = 1, bias = false) |> b3: bn() |> relu()\n"
           "  x = x |> c4: conv(24, 3, pad = 1, groups = 24, bias = false)\n"),
     0,
     {"conv 1x1 1480x17x40", "conv 3x3/1 1x40x37x17>24", "conv 3x3/1 1x40x37x24>24",
      "conv 1x1 dw 40x17x1480", "conv dw 3x3/1 1x40x37x17>24", "conv dw 3x3/1 1x40x37x24>24"},
     {NULL}},
    {"windows",
     MODEL("[5, 3, 33, 30]", "5",
           "  x = x |> c1: conv(24, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
           "  x = x |> c2: conv(40, 3, pad = 1, bias = false) |> b2: bn() |> relu6()\n"
           "  x = x |> c3: conv(33, 3, pad = 1, stride = 2) |> b3: bn()\n"
           "  x = x |> c4: conv(20, 5, pad = [2, 1], stride = [1, 2], bias = false)\n"),
     0,
     {"conv 3x3/1 5x33x30x24>40", "conv 3x3/2 5x33x30x40>33", "conv 5x5/1 5x17x15x33>20",
      "conv dw 3x3/1 5x33x30x24>40", "conv dw 3x3/2 5x33x30x40>33", "conv dw 5x5/1 5x17x15x33>20"},
     {NULL}},
    /* Whether what adds gradients up is fused into weight gradients, which have no prologue then,
     * is no matter here. */
    {"accumulated",
     MODEL_WITH("[5, 3, 21, 19]", "5",
                "  x = x |> c1: conv(20, 3, pad = 1, bias = false) |> b1: bn() |> relu6()\n"
                "  x = x |> c2: conv(44, 1, bias = false) |> b2: bn() |> relu()\n"
                "  x = x |> c3: conv(44, 5, pad = 2, stride = 2, groups = 44)\n",
                "  accumulate = 2\n"),
     ANY_NUMBER,
     {NULL},
     {NULL}},
    {"small images",
     MODEL("[5, 3, 14, 14]", "5",
           "  x = x |> c1: conv(48, 3, pad = 1, stride = 2, bias = false) |> b1: bn() |> relu()\n"
           "  x = x |> c2: conv(136, 3, pad = 1, bias = false) |> b2: bn() |> relu()\n"
           "  x = x |> c3: conv(136, 3, pad = 1, groups = 136, bias = false) |> b3: bn()\n"
           "  x = relu(x) |> c4: conv(72, 3, pad = 1, stride = 2, bias = false) |> b4: bn()\n"
           "  x = relu(x) |> c5: conv(64, 3, pad = 1, bias = false) |> b5: bn() |> relu()\n"
           "  x = x |> c6: conv(300, 1, bias = false) |> b6: bn() |> relu6()\n"
           "  x = x |> c7: conv(80, 1, bias = false)\n"),
     0,
     {"conv 3x3/1 5x7x7x48>136", "conv 3x3/1 5x7x7x136>136", "conv 3x3/2 5x7x7x136>72",
      "conv 3x3/1 5x4x4x72>64", "conv 1x1 80x300x64", "conv 1x1 80x80x300",
      "conv dw 3x3/1 5x7x7x48>136", "conv dw 3x3/1 5x7x7x136>136", "conv dw 3x3/2 5x7x7x136>72",
      "conv dw 3x3/1 5x4x4x72>64", "conv 1x1 dw 64x300x80", "conv 1x1 dw 300x80x80"},
     {NULL}},
    /* Parts of the sums of weight gradients have several pieces each. */
    {"large images",
     MODEL("[8, 3, 128, 136]", "8",
           "  x = x |> c1: conv(8, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
           "  x = x |> c2: conv(8, 3, pad = 1, bias = false) |> b2: bn() |> relu6()\n"
           "  x = x |> c3: conv(16, 1, bias = false) |> b3: bn()\n"
           "  x = x |> c4: conv(16, 3, pad = 1, groups = 16, bias = false)\n"),
     0,
     {"conv 3x3/1 8x128x136x8>8", "conv 1x1 139264x16x8", "conv 3x3/1 8x128x136x16>16",
      "conv dw 3x3/1 8x128x136x8>8", "conv 1x1 dw 8x16x139264", "conv dw 3x3/1 8x128x136x16>16"},
     {NULL}},
    /* The second of two pieces begins within rows of the whole. */
    {"pieces",
     MODEL("[3, 3, 15, 18]", "3",
           "  x = x |> c1: conv(16, 3, pad = 1, bias = false)\n"
           "  y = x |> b2: bn() |> relu() |> c2: conv(24, 1, bias = false)\n"
           "  y = y |> b3: bn() |> relu() |> c3: conv(12, 3, pad = 1, bias = false)\n"
           "  z = y |> b4: bn() |> relu6() |> c4: conv(20, 3, pad = 1, bias = false)\n"
           "  x = concat([x, y, z], axis = 1)\n"
           "  w = z |> b5: bn() |> c5: conv(20, 3, pad = 1, groups = 20, bias = false)\n"
           "  x = concat([x, w], axis = 1)\n"
           "  x = x |> b6: bn() |> relu() |> c6: conv(40, 1, bias = false)\n"
           "  x = concat([x, w |> b7: bn() |> relu() |> c7: conv(24, 1)], axis = 1)\n"
           "  x = x |> b8: bn() |> relu() |> c8: conv(18, 3, pad = 1, stride = 2)\n"),
     0,
     {"conv 1x1 810x24x16", "conv 3x3/1 3x15x18x24>12", "conv 3x3/1 3x15x18x12>20",
      "conv 3x3/1 3x15x18x20>20", "conv 1x1 810x40x68", "conv 1x1 810x24x20",
      "conv 3x3/2 3x15x18x64>18", "conv 1x1 dw 16x24x810", "conv dw 3x3/1 3x15x18x12>20",
      "conv dw 3x3/1 3x15x18x20>20", "conv 1x1 dw 20x24x810", "conv dw 3x3/2 3x15x18x64>18"},
     {NULL}},
    {"sums",
     MODEL("[4, 3, 17, 13]", "4",
           "  x = x |> c1: conv(24, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
           "  y = x |> c2: conv(48, 1, bias = false) |> b2: bn() |> relu()\n"
           "  y = y |> c3: conv(24, 3, pad = 1, bias = false) |> b3: bn()\n"
           "  x = relu(x + y)\n"
           "  y = x |> c4: conv(24, 3, pad = 1, groups = 24, bias = false) |> b4: bn() |> relu()\n"
           "  x = x + (y |> c5: conv(24, 1)) * y\n"),
     1,
     {"conv 1x1 884x48x24", "conv 3x3/1 4x17x13x48>24", "conv 1x1 884x24x24",
      "conv 1x1 dw 24x48x884", "conv dw 3x3/1 4x17x13x48>24", "conv 1x1 dw 24x24x884"},
     {NULL}},
    /* By pooling, a clamp whose gradient reads what it reads, groups, a window without padding, a
     * stride, 7 channels, columns; by pooling. */
    {"left alone",
     MODEL("[2, 3, 30, 30]", "2",
           "  x = x |> c1: conv(16, 3, pad = 1, bias = false) |> b1: bn() |> relu()\n"
           "  x = x |> maxpool(2) |> c2: conv(24, 1, bias = false) |> b2: bn()\n"
           "  x = clamp(x, -0.5, 0.75) |> c3: conv(32, 1, bias = false) |> b3: bn() |> relu()\n"
           "  x = x |> c4: conv(32, 3, pad = 1, groups = 2, bias = false) |> b4: bn() |> relu()\n"
           "  x = x |> c5: conv(24, 3, bias = false) |> b5: bn() |> relu()\n"
           "  x = x |> c6: conv(16, 3, pad = 1, stride = 3, bias = false) |> b6: bn() |> relu()\n"
           "  x = x |> c7: conv(7, 1, bias = false) |> b7: bn() |> relu()\n"
           "  x = x |> c8: conv(256, 1, bias = false) |> b8: bn() |> relu()\n"
           "  x = x |> c9: conv(300, 3, pad = 1, bias = false) |> b9: bn() |> relu()\n"),
     8,
     {"conv 1x1 50x7x16", "conv 1x1 dw 16x7x50"},
     {"conv 1x1 450x24x16", "conv 1x1 450x32x24", "conv 3x3/1 2x15x15x32>32",
      "conv 3x3/1 2x15x15x32>24", "conv 3x3/3 2x13x13x24>16", "conv 1x1 50x256x7",
      "conv 3x3/1 2x5x5x256>300"}},
};
enum { N_FIXED = sizeof fixed / sizeof *fixed };

/* --- random models --- */

/* LARGE_FLOATS: parts of the sums of weight gradients have several pieces each. */
enum { IMAGE_FLOATS = 200 * 1000, LARGE_FLOATS = 2500 * 1000 };

#define END_OF_MODEL                                                                               \
    "  return x |> global_avgpool() |> flatten() |> fc: linear(10)\n}\n"                           \
    "train {\n  batch = synthetic(x = f32%s, label = i32[%d])\n"                                   \
    "  loss = cross_entropy(m(batch.x), batch.label)\n"                                            \
    "  optim = sgd(lr = 0.05, momentum = 0.9)\n  steps = 3\n}\n"

typedef struct Drawn {
    StrBuf text;
    Random random;
    int n, c, h, w, labels; /* of x now */
    int64_t most;           /* elements of an image */
} Drawn;

static int draw(Drawn *d, int low, int high)
{
    return low + random_below(&d->random, high - low + 1);
}

static bool chance(Drawn *d, int one_in)
{
    return random_below(&d->random, one_in) == 0;
}

static void put_norm(Drawn *d)
{
    static const char *const behind[] = {"", " |> relu()", " |> relu6()"};
    strbuf_printf(&d->text, " |> b%d: bn()%s", d->labels, behind[draw(d, 0, 2)]);
}

static int reduced(int size, int taps, int pad, int dilation, int stride)
{
    return (size + 2 * pad - dilation * (taps - 1) - 1) / stride + 1;
}

/* same: the image keeps its size. */
static void put_window(Drawn *d, bool same)
{
    int kind = draw(d, 0, 2), taps = kind == 0 ? 1 : draw(d, 0, 3) ? 3 : 5;
    int dilation = taps > 1 && chance(d, 4) ? 2 : 1, stride = same || chance(d, 2) ? 1 : 2;
    int pad = dilation * (taps / 2), out = kind == 2 ? d->c : draw(d, 8, 70);
    if (kind == 0)
        stride = 1;
    if (!same && pad > 1 && d->h > taps * dilation && d->w > taps * dilation && chance(d, 3))
        pad--;
    int h = reduced(d->h, taps, pad, dilation, stride);
    int w = reduced(d->w, taps, pad, dilation, stride);
    while (kind < 2 && out > 8 && (int64_t)d->n * h * w * out > d->most)
        out--;
    strbuf_printf(&d->text, " |> c%d: conv(%d, %d, pad = %d, dilation = %d, stride = %d, groups = ",
                  d->labels++, out, taps, pad, dilation, stride);
    strbuf_printf(&d->text, "%d%s)", kind == 2 ? out : 1, chance(d, 3) ? "" : ", bias = false");
    d->c = out;
    d->h = h;
    d->w = w;
}

static void put_piece(Drawn *d)
{
    int before = d->c;
    bool beside = chance(d, 3);
    strbuf_printf(&d->text, "  %c = x", beside ? 'y' : 'x');
    put_norm(d);
    put_window(d, beside);
    strbuf_put(&d->text, "\n");
    if (!beside)
        return;
    if (d->c == before && chance(d, 2)) {
        strbuf_put(&d->text, "  x = x + y\n");
        return;
    }
    strbuf_put(&d->text, "  x = concat([x, y], axis = 1)\n");
    d->c += before;
}

static const char *random_chain(Pool *pool, uint64_t seed)
{
    Drawn d = {.text = strbuf_new(pool), .random = {seed}};
    bool large = chance(&d, 5);
    d.n = large ? draw(&d, 6, 8) : draw(&d, 1, 4);
    d.c = 3;
    d.h = large ? draw(&d, 110, 150) : draw(&d, 5, 40);
    d.w = large ? draw(&d, 110, 150) : draw(&d, 5, 40);
    d.most = large ? LARGE_FLOATS : IMAGE_FLOATS;
    const char *shape = pool_printf(pool, "[%d, 3, %d, %d]", d.n, d.h, d.w);
    strbuf_printf(&d.text, "model m(x: f32%s) {\n  x = x", shape);
    int first = draw(&d, 8, large ? 18 : 40);
    strbuf_printf(&d.text, " |> c%d: conv(%d, 3, pad = 1, bias = false)\n", d.labels++, first);
    d.c = first;
    for (int pieces = draw(&d, 2, 3); pieces > 0; pieces--)
        put_piece(&d);
    strbuf_printf(&d.text, END_OF_MODEL, shape, d.n);
    return d.text.text;
}

/* --- bits --- */

/* How a model is built, and by how many threads it is trained, up to a 0. */
typedef struct Way {
    const char *budget;
    int64_t strip_cache;
    int threads[THREADS_MOST];
    int variant; /* of all kernels */
} Way;

static void poison_scratch(char *const *buf, int64_t begin, int64_t end, char *scratch)
{
    (void)buf;
    (void)begin;
    (void)end;
    memset(scratch, 0xff, SCRIMP_SCRATCH_BYTES);
}

/* Each thread's own: NaNs. */
static void poison(Running *r, int n_threads)
{
    int64_t persistent = r->built->plan->persistent_bytes;
    arena_poison(&r->arena, persistent, r->arena.bytes - persistent);
    r->context.run(&r->context, 0, poison_scratch, NULL, n_threads);
}

/* The same training by the plain model, and by the other with each number of threads. */
static void check_bits(const Built *plain, const Built *other, const int *threads, const char *name,
                       const char *text)
{
    Running a, b[THREADS_MOST];
    int n = 0;
    if (!run_open(&a, plain, 1))
        return;
    run_initialize(&a, 1);
    for (; n < THREADS_MOST && threads[n] && run_open(&b[n], other, threads[n]); n++)
        run_initialize(&b[n], 1);
    const char *where = NULL;
    for (int64_t step = 0; step < STEPS && !where; step++) {
        run_step(&a, data_seed, step);
        for (int i = 0; i < n && !where; i++) {
            poison(&b[i], threads[i]);
            run_step(&b[i], data_seed, step);
            where = run_difference(&a, &b[i]);
            CHECK_MSG(!where, "%s: %d threads: step %lld changes %s\n%s", name, threads[i],
                      (long long)step + 1, where, text);
        }
    }
    CHECK_MSG(where || isfinite(run_output(&a, "loss")), "%s: the loss is no number\n%s", name,
              text);
    run_close(&a);
    for (int i = 0; i < n; i++)
        run_close(&b[i]);
}

/* --- kernels --- */

static int count_calls(const Built *b, const char *label)
{
    int n = 0;
    for (int i = 0; i < b->step->n_calls; i++)
        n += strstr(b->step->calls[i].label, label) != NULL;
    return n;
}

static void list_calls(const Built *b)
{
    for (int i = 0; i < b->step->n_calls; i++)
        if (strstr(b->step->calls[i].label, "conv"))
            printf("  %s\n", b->step->calls[i].label);
}

static void count_build(const Built *b)
{
    bool turns = false;
    for (int i = 0; i < b->step->n_calls; i++) {
        const char *label = b->step->calls[i].label;
        turns |= strstr(label, "norm, ") && strstr(label, " > ");
    }
    n_in_turns += turns;
    n_recomputing += b->report.recomputed_ops > 0 && count_calls(b, "norm, ") > 0;
}

/* Where nothing is recomputed. */
static void check_kernels(const Fixed *f, const Built *plain, const Built *other)
{
    int whole = graph_text_count(other->graph, "= bn_apply");
    CHECK_MSG(whole == f->whole || f->whole == ANY_NUMBER,
              "%s: %d normalizations are one operation", f->name, whole);
    CHECK(count_calls(plain, "norm, ") == 0);
    for (int i = 0; i < WANTED_MOST && f->wanted[i]; i++) {
        const char *label = pool_printf(other->pool, "norm, %s", f->wanted[i]);
        CHECK_MSG(count_calls(other, label) > 0, "%s: no kernel is \"%s\"", f->name, label);
    }
    for (int i = 0; i < REFUSED_MOST && f->refused[i]; i++) {
        const char *label = pool_printf(other->pool, "norm, %s", f->refused[i]);
        CHECK_MSG(count_calls(other, f->refused[i]) > 0 && count_calls(other, label) == 0,
                  "%s: a kernel is \"%s\"", f->name, label);
    }
    if (getenv("SCRIMP_TEST_MODEL"))
        list_calls(other);
}

/* --- models --- */

static bool build_way(Pool *pool, const Way *way, const char *march, const char *text, Built *out)
{
    BuildOptions o = {.budget = way->budget};
    const char *build = getenv("SCRIMP_BUILD"), *error = NULL;
    if (!model_plan(pool, text, &o, out))
        return false;
    Tuning tuning = {.chosen = map_new(pool), .all = way->variant};
    CodegenOptions options = {.march = march,
                              .tuning = &tuning,
                              .cache_dir =
                                  pool_printf(pool, "%s/test-cache", build ? build : "/tmp"),
                              .jobs = 2,
                              .strip_cache = way->strip_cache};
    out->step = codegen_compile(pool, out->graph, out->plan, &options, &error);
    CHECK_MSG(out->step, "%s\n%s", error, text);
    return out->step;
}

/* f: NULL for a random model. */
static void check_way(const Built *plain, const Way *way, const Fixed *f, const char *march,
                      const char *name, const char *text)
{
    Pool *pool = pool_new();
    Built other;
    if (build_way(pool, way, march, text, &other)) {
        if (f && !*way->budget && !march)
            check_kernels(f, plain, &other);
        count_build(&other);
        check_bits(plain, &other, way->threads, name, text);
        codegen_unload(other.step);
    }
    pool_free(pool);
}

static void check_model(const char *name, const char *text, const Fixed *f, const char *march,
                        const Way *ways, int n_ways)
{
    Pool *pool = pool_new();
    BuildOptions o = {.budget = "", .no_norms = true, .strip_cache = STRIPS_NONE, .march = march};
    Built plain;
    if (model_build(pool, text, &o, &plain)) {
        for (int i = 0; i < n_ways; i++)
            check_way(&plain, &ways[i], f, march, name, text);
        codegen_unload(plain.step);
    }
    pool_free(pool);
}

static const Way fixed_ways[] = {{"", 0, {1, 2, 3, 5}, 0},
                                 {"", SMALL_CACHE, {1, 3}, 0},
                                 {"60%", 0, {1, 2, 5}, 0},
                                 {"min", SMALL_CACHE, {3}, 0}};

static void check_fixed(const char *only, const char *march)
{
    for (int i = 0; i < N_FIXED; i++)
        if (!only || strcmp(only, fixed[i].name) == 0)
            check_model(fixed[i].name, fixed[i].text, &fixed[i], march, fixed_ways,
                        sizeof fixed_ways / sizeof *fixed_ways);
}

static void check_random(uint64_t seed, const char *march)
{
    Random r = {seed};
    const Way ways[] = {{"", 0, {1, 3}, 0},
                        {"", SMALL_CACHE, {2, 5}, 1 + random_below(&r, VARIANTS)},
                        {"65%", 0, {2}, 0}};
    Pool *pool = pool_new();
    const char *text = random_chain(pool, seed);
    const char *name = pool_printf(pool, "seed %llu, variant %d%s%s", (unsigned long long)seed,
                                   ways[1].variant, march ? " for " : "", march ? march : "");
    int n = check_failures;
    check_model(name, text, NULL, march, ways, sizeof ways / sizeof *ways);
    if (check_failures > n)
        printf("SCRIMP_FIRST_MODEL=%llu SCRIMP_MODELS=1 finds it\n", (unsigned long long)seed);
    pool_free(pool);
}

/* --- what is only lowered --- */

/* One convolution of any size behind a normalization. */
/* Any taps, padding and dilation for each axis: windows wider than the image, results of few rows.
 */
static void put_odd_window(Drawn *d)
{
    int taps[2], pad[2], dilation[2], stride = draw(d, 1, 2), groups = chance(d, 3) ? d->c : 1;
    const int size[2] = {d->h, d->w};
    for (int i = 0; i < 2; i++) {
        taps[i] = chance(d, 4) ? draw(d, 1, size[i] < 48 ? size[i] : 48) : draw(d, 1, 7);
        dilation[i] = chance(d, 2) ? 1 : draw(d, 1, 24);
        int span = (taps[i] - 1) * dilation[i] + 1;
        pad[i] = chance(d, 2) ? span / 2 : draw(d, 0, span - 1);
        if (size[i] + 2 * pad[i] < span)
            pad[i] = span / 2;
    }
    strbuf_printf(&d->text, " |> c%d: conv(%d, [%d, %d], pad = [%d, %d], dilation = [%d, %d], ",
                  d->labels++, groups > 1 ? d->c : draw(d, 8, 70), taps[0], taps[1], pad[0], pad[1],
                  dilation[0], dilation[1]);
    strbuf_printf(&d->text, "stride = %d, groups = %d, bias = false)", stride, groups);
}

static const char *large_model(Pool *pool, uint64_t seed)
{
    Drawn d = {.text = strbuf_new(pool), .random = {seed}, .most = INT64_MAX};
    d.h = draw(&d, 1, chance(&d, 3) ? 20 : 160);
    d.w = draw(&d, 1, chance(&d, 3) ? 20 : chance(&d, 4) ? 1000 : 160);
    d.c = draw(&d, 8, chance(&d, 2) ? 100 : 960);
    int fit = (1 << 30) / (d.h * d.w * d.c), most = chance(&d, 2) ? 16 : 1024;
    d.n = draw(&d, 1, fit < 1 ? 1 : fit < most ? fit : most);
    const char *shape = pool_printf(pool, "[%d, %d, %d, %d]", d.n, d.c, d.h, d.w);
    strbuf_printf(&d.text, "model m(x: f32%s) {\n  x = x", shape);
    put_norm(&d);
    if (chance(&d, 2))
        put_odd_window(&d);
    else
        put_window(&d, false);
    strbuf_printf(&d.text, "\n" END_OF_MODEL, shape, d.n);
    return d.text.text;
}

/* What is taken apart has code for every target, variant and second-level cache: no kernel reads
 * more than there is room for, however many tasks it has. */
static void check_large(uint64_t seed)
{
    Pool *pool = pool_new();
    const char *text = large_model(pool, seed), *error = NULL;
    BuildOptions o = {0};
    PassContext ctx = {.pool = pool, .graph = model_lower(pool, text, &o)};
    bool ok = ctx.graph && passes_run(&ctx, pipeline_before(pool, "order"), NULL, NULL);
    CHECK_MSG(ok, "seed %llu: %s\n%s", (unsigned long long)seed, ctx.error.message, text);
    bool apart = ok && graph_text_count(ctx.graph, "= bn_apply") == 0;
    for (const char *const *name = target_names(); apart && *name; name++) {
        Tuning tuning = {.chosen = map_new(pool),
                         .all = (int)(hash_bytes(*name, strlen(*name), seed) % (VARIANTS + 1))};
        Target target = *target_find(*name);
        target.l2_bytes = (int64_t)1 << (18 + seed % 6);
        StepTarget step = {
            .backend = &cpu_backend, .target = &target, .tuning = &tuning, .only_look = true};
        int norms = 0;
        const StepProgram *p = step_program(pool, ctx.graph, NULL, step, &error);
        for (int i = 0; p && i < p->n_calls; i++)
            norms += strstr(p->calls[i].label, "norm, ") != NULL;
        CHECK_MSG(p && norms == 2, "large seed %llu for %s: %d kernels, %s\n%s",
                  (unsigned long long)seed, *name, norms, error, text);
    }
    n_large += apart;
    pool_free(pool);
}

int main(void)
{
    const char *only = getenv("SCRIMP_TEST_MODEL"), *from = getenv("SCRIMP_FIRST_MODEL");
    int models = only ? 0 : sample_number("SCRIMP_MODELS", 8);
    int large = only ? 0 : sample_number("SCRIMP_LARGE_MODELS", 200);
    int first = sample_number("SCRIMP_FIRST_MODEL", 1);
    printf("seeds %d to %d, of large models to %d\n", first, first + models - 1, first + large - 1);
    if (!from)
        check_fixed(only, NULL);
    for (int i = 0; i < models && check_failures < 10; i++)
        check_random((uint64_t)(first + i), NULL);
    for (const char *const *name = target_names(); sample_all() && *name; name++) {
        if (!target_runs_here(target_find(*name)))
            continue;
        if (!from)
            check_fixed(only, *name);
        for (int i = 0; i < models && check_failures < 10; i++)
            check_random((uint64_t)(first + i), *name);
    }
    printf("%d builds with such kernels in turns, %d that recompute\n", n_in_turns, n_recomputing);
    for (int i = 0; i < large && check_failures < 10; i++)
        check_large((uint64_t)(first + i));
    printf("%d of %d large models are taken apart\n", n_large, large);
    CHECK(only || from || (4 * n_large >= large && n_in_turns > 0 && n_recomputing > 0));
    return test_result();
}
