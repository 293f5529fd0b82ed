/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What attention and attention_grad compute, for everything that has to know: shapes, costs,
 * workspaces, the reference, kernels.
 *
 * attention is   softmax(mask(q k^T * scale + bias))  with dropout, times v,  for every head: the
 * scores, which no tensor holds, are [rows, keys].  Its gradient makes them again from q, k and the
 * largest score and the sum of exponentials of every row, which attention gives back.
 *
 * The last batch dim of k and v may be shorter: each of their heads is then read by a group of
 * neighbouring heads of q.  dk and dv are sums over the group: of each head the chains over rows,
 * added in order, and then those of the heads, in order.
 *
 * Tensors have letters: q, k, v, and o, the result; in the gradient g, Q, K, V, the gradients of o,
 * q, k, v.  For a library (attribute `library`) and on the CPU they may lie by rows, [batch, rows,
 * heads, width], which the attribute `by_rows` says of each, and inside of other values. */
#ifndef SCRIMP_IR_ATTENTION_H
#define SCRIMP_IR_ATTENTION_H

#include "ir/graph.h"

/* Elements of a query, a key, a value: one chain of products adds so many. */
enum { ATTENTION_WIDTH_MOST = 256 };

/* The order of dims [batch, heads, rows, width] in which models have what attention reads and
 * gives.
 */
extern const int64_t attention_by_rows[4];

/* The letter of input i, or of result i; 0: it has none. */
char attention_input(const Node *n, int i);
char attention_result(const Node *n, int i);
/* The value of a letter; VALUE_NONE: the node has none. */
ValueId attention_tensor(const Node *n, char tensor);
bool attention_lies_by_rows(const Node *n, char tensor);
/* A type by rows as by heads, and the other way round. */
Type attention_turn(Type t);

/* From one of the batch, a head, a row to the next, in elements; heads: of one of the batch. */
typedef struct AttentionStrides {
    int64_t heads, batch, head, row;
} AttentionStrides;
/* Of a tensor of this type whose dims lie that far apart. */
AttentionStrides attention_strides(const Node *n, char tensor, const Type *t,
                                   const int64_t *stride);
/* Rows that can be read or written where they lie inside of another value, every batch dim evenly:
 * a library's, 16 bytes at a time; the CPU's, of tensors by rows, that begin at multiples of their
 * width. */
bool attention_takes_strides(const Graph *g, const Node *n, char tensor);

typedef struct AttentionShape {
    int64_t heads;      /* all batch dims of q together */
    int64_t group;      /* heads of q that share one of k and v */
    int64_t rows, keys; /* of a head */
    int64_t width, value_width;
    int n_batch; /* batch dims, and elements between their biases */
    int64_t batch[TYPE_MAX_RANK], bias_batch[TYPE_MAX_RANK];
    int q, k, v, bias, rng; /* inputs; bias, rng: -1 when there is none */
    int dout, max, sum;     /* inputs of the gradient; else -1 */
    bool grad, causal, drops;
    bool k_bf16, v_bf16; /* and so are dk, dv */
    double scale;        /* 1 where there is none */
    double p;            /* of dropout, and its key */
    int64_t key;
} AttentionShape;

AttentionShape attention_shape(const Graph *g, const Node *n);
/* Scores that are not masked, of all heads. */
double attention_scores(const AttentionShape *a);

/* How the CPU's kernels go through a head: block_rows rows at a time (at its end, or that of a
 * chain, fewer), whose scores for all keys lie in a thread's scratch memory, or, where these are
 * too many, in the workspace.  Tasks that need workspace are at most ATTENTION_PARTS, each with its
 * own part of it: the scores of a block (in the gradient also their gradients), then, in the
 * gradient, a sum for every element of dk and of dv unless the rows are one chain of products, one
 * more where heads share keys, and one more for every element of those that are bf16, unless
 * scratch memory has room for these. */
enum { ATTENTION_PARTS = 32, ATTENTION_CHAIN = 256 };
typedef struct AttentionBlocks {
    int64_t block_rows;
    int64_t parts;         /* tasks */
    int64_t scores_floats; /* of a part; 0: scores lie in scratch memory */
    int64_t sums_floats;   /* of a part */
    int64_t heads_fit;     /* flag: scratch memory has room for a head's keys and values in f32, in
                              the gradient also for theirs */
} AttentionBlocks;
AttentionBlocks attention_blocks(const AttentionShape *a);

#endif
