/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How kernels use their workspace, which the plan reserves: the one place of what plan and kernels
 * must agree on.
 *
 * A chunked reduction computes reduce_chunks partial results, a number that the shapes decide and
 * the threads do not, and adds them in order: the same bits for any number of threads.  Partial
 * result c is at workspace + c * reduce_partial_bytes.  A reduction of no chunks computes each
 * result alone, the results shared out to the threads, and needs no workspace. */
#ifndef SCRIMP_IR_WORKSPACE_H
#define SCRIMP_IR_WORKSPACE_H

#include "ir/graph.h"

/* conv2d, conv2d_dgrad and deconv2d may repack their weights as [groups][R][S][rows][panel]: the
 * panel is what the vectors run over (the channels of the result, of one group), padded to a
 * multiple of CONV_PANEL; rows are the other channels of the group.  Their workspace holds exactly
 * that, as f32, or columns (ir/conv_columns.h). */
enum { CONV_PANEL = 64 };

/* The weight gradient of a convolution with narrow groups (NHWC, as many channels in as out: one a
 * group, or at most NARROW_GROUP and a multiple of DEPTHWISE_PAD in all) sums over so many chunks
 * of the rows of dy, each with partial sums [R][S][channels of a group][channels padded to a
 * multiple of DEPTHWISE_PAD] in the workspace, as f32. */
enum { DEPTHWISE_CHUNKS = 32, DEPTHWISE_PAD = 16, NARROW_GROUP = 8 };

/* Other weight gradients (NHWC) whose result is small beside what they read sum over that many
 * chunks of the rows of dy, each with its own partial result, as f32, in the workspace; 1: one sum,
 * no workspace. */
enum { WGRAD_CHUNKS = 16 };
int64_t conv_wgrad_chunks(const Graph *g, const Node *n);

/* Rows of dy, of `ow` columns that `columns` columns of x lie under, which are a chain of a
 * window's weight gradient (codegen/forms/convolution.h). */
enum {
    CONV_BAND_PIXELS = 168,      /* a chain's rounding error grows with its length */
    CONV_BAND_BYTES = 256 * 1024 /* of a band's copied rows of x, unless it has one row */
};
int64_t conv_wgrad_band(int64_t ow, int64_t columns, int64_t channels);

/* lrn keeps the channels of a vector of pixels, with half a window of zeros on both sides, in a
 * thread's scratch memory, three times for the gradient. */
enum { LRN_WINDOW_MOST = 1024, LRN_CHANNELS_MOST = 4096 };

/* argsort has lines of up to SORT_IN_SCRATCH elements in a thread's scratch memory; of longer ones,
 * so many lines have SORT_WORDS 64-bit words each in the workspace, and wait for one another. */
enum { SORT_IN_SCRATCH = 4096, SORT_SLOTS = 64, SORT_LENGTH_MOST = 1 << 30 };
#define SORT_WORDS(length) (2 * (length) + 1)
int64_t sort_slots(const Graph *g, const Node *n); /* 0: no workspace */

enum {
    REDUCE_CHUNKS = 64, /* at most */
    /* sum, mean and reduce_max with more results than this have work for every thread without
     * chunks, and partial results would cost more memory than the reduction saves time. */
    REDUCE_CHUNKED_RESULTS = 4096,
    /* The input is at least this many times as large as all partial results, unless there is one
     * only: a workspace is a small part of what is in memory anyway. */
    REDUCE_DATA_PER_PARTIAL = 4
};

/* At least 1 for bn_stats, bn_grad_sums, layernorm_grad_sums, checksum, accuracy and
 * cross_entropy that sums; for sum, mean, sumsq and reduce_max at least 2, or 0 when the results
 * alone give enough tasks, or there is little to do; 0 for the rest.  embedding_grad has none: its
 * partial results would be whole tables; it shares out the columns of the table instead. */
int reduce_chunks(const Graph *g, const Node *n);
/* Bytes of one partial result, a multiple of 64: an f32 for every result; for losses, accuracy and
 * checksums 16 bytes. */
int64_t reduce_partial_bytes(const Graph *g, const Node *n);
/* cross_entropy that sums over so many lines of logits or more, each of so many neighbours, also
 * has the loss of every line, an f32, in its workspace: a device computes them all at once before
 * it adds any.  Where they begin; 0: there are none. */
enum { KEPT_LOSSES = 4096, KEPT_LOSS_CLASSES = 1024 };
int64_t kept_losses_offset(const Graph *g, const Node *n);
/* Columns, or elements, of a task of a reduction without chunks. */
enum { REDUCE_TASK_COLUMNS = 256, REDUCE_TASK_ELEMENTS = 16384 };

#endif
