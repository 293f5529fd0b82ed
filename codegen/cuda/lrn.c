/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Local response normalisation: a block has all channels of some lines in shared memory, so that
 * results may lie on inputs. */
#include "codegen/forms/lrn.h"
#include "codegen/cuda/rules.h"
#include "codegen/cuda/text.h"
#include "codegen/forms/pod.h"

#include "ir/support/divide.h"
#include "ir/workspace.h"

enum { THREADS = 256, MOST_LINES = 32, SHARED_FLOATS = 6144, SHARED_BYTES = 49152 };

_Static_assert(3 * LRN_CHANNELS_MOST * 4 <= SHARED_BYTES, "three buffers of a line fit");

/* Lines of a block; buffers: one of squares, and for the gradient two more. */
static int64_t lines_of(const LrnDesc *d, int buffers)
{
    int64_t lines = MOST_LINES;
    while (lines > 1 && lines * d->channels * buffers > SHARED_FLOATS)
        lines /= 2;
    return lines;
}

/* s to the power of beta. */
static const char *power_of(double beta)
{
    if (beta == 1)
        return "s";
    if (beta == 0.75)
        return "sqrtf(s) * sqrtf(sqrtf(s))";
    return beta == 0.5 ? "sqrtf(s)" : "s_pow(s, BETA)";
}

static void write_kernel(StrBuf *out, const char *symbol, const LrnDesc *d, int n_bufs,
                         const char *body)
{
    text_begin(out, n_bufs, (const char *const[]){"common", "math", NULL});
    text_define(out, "X_BUF", n_bufs - 2);
    text_define(out, "LINES", d->outer * d->inner);
    text_define(out, "CHANNELS", d->channels);
    text_define(out, "INNER", d->inner);
    text_define(out, "BEFORE", d->before);
    text_define(out, "AFTER", d->after);
    text_define(out, "FROM_FIRST", d->before + d->after < LRN_UNROLLED);
    text_define(out, "BLOCK_LINES", lines_of(d, n_bufs == 3 ? 3 : 1));
    text_define_float(out, "ALPHA", d->alpha);
    text_define_float(out, "BETA", d->beta);
    text_define_float(out, "K", d->k);
    text_define_float(out, "FACTOR", 2 * d->alpha * d->beta);
    strbuf_printf(out, "#define POWER(s) (%s)\n", power_of(d->beta));
    text_include(out, "lrn");
    text_include(out, body);
    text_kernel(out, symbol, THREADS, body);
}

static void write_forward(StrBuf *out, const char *symbol, const void *desc)
{
    write_kernel(out, symbol, desc, 2, "lrn_forward");
}

static void write_gradient(StrBuf *out, const char *symbol, const void *desc)
{
    write_kernel(out, symbol, desc, 3, "lrn_gradient");
}

void cuda_lrn(Lowering *l, const Node *n)
{
    LrnDesc d = lrn_describe(l, n);
    CallBuf bufs[CALL_MAX_BUFS];
    int n_bufs = node_bufs(n, bufs);
    int64_t lines = lines_of(&d, n_bufs == 3 ? 3 : 1);
    CallDraft call = pod_call(l, op_name(n->op), &d, DESC_BYTES(LrnDesc),
                              divide_up(d.outer * d.inner, lines), bufs, n_bufs);
    pod_count_work(l, &call);
    cuda_call(l, &call, n_bufs == 3 ? write_gradient : write_forward, THREADS);
}
