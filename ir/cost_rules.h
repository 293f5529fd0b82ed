/* How reductions split their work, shared by the plan (their workspace) and the kernels (the same
 * numbers).
 *
 * A chunked reduction computes REDUCE_CHUNKS partial results, whatever the number of threads, and
 * adds them in order: the same bits for any number of threads.  Partial result c is at workspace +
 * c * reduce_partial_bytes. A reduction that is not chunked computes each result alone, the results
 * shared out to the threads. */
#ifndef SCRIMP_IR_COST_RULES_H
#define SCRIMP_IR_COST_RULES_H

#include "ir/graph.h"

/* conv2d, conv2d_dgrad and deconv2d may repack their weights as [groups][R][S][rows][panel]: the
 * panel is what the vectors run over (the channels of the result, of one group), padded to a
 * multiple of CONV_PANEL; rows are the other channels of the group.  Their workspace holds exactly
 * that, as f32. */
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
/* A weight gradient (NHWC) of a 1x1 kernel without stride, padding or groups: one matrix product.
 */
bool conv_wgrad_is_product(const Graph *g, const Node *n);

/* lrn keeps the channels of a vector of pixels, with half a window of zeros on both sides, in a
 * thread's scratch memory, three times for the gradient. */
enum { LRN_WINDOW_MOST = 1024, LRN_CHANNELS_MOST = 4096 };

enum {
    REDUCE_CHUNKS = 64,
    /* sum, mean and reduce_max with more results than this have work for every thread without
     * chunks, and partial results would cost more memory than the reduction saves time. */
    REDUCE_CHUNKED_RESULTS = 4096
};

/* True for sumsq, bn_stats, bn_grad_sums, layernorm_grad_sums, checksum, accuracy, cross_entropy
 * that sums, and for sum, mean and reduce_max of at most REDUCE_CHUNKED_RESULTS results.
 * embedding_grad is not: its partial results would be whole tables; it shares out the columns of
 * the table instead.
 */
bool reduce_is_chunked(const Graph *g, const Node *n);
/* Bytes of one partial result: elements of all outputs, rounded up to 16, times 8 (doubles). */
int64_t reduce_partial_bytes(const Graph *g, const Node *n);

#endif
