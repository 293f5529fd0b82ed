/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What attention and its gradient share: a block of rows of one head.
 *
 * The scores of a block lie in memory by keys: key s has those of all rows, one behind the other,
 * so that vectors run over rows.  Then no operand of a product but the queries has to be repacked:
 * keys and values are read where they lie, element by element in the one product and by whole rows
 * in the other, or, if they are bf16, in an f32 copy of the same order; and maxima, exponentials
 * and sums of rows are computed without adding up lanes.
 * Rows that a short block lacks are computed of whatever lies there, and not written. */
#ifndef SCRIMP_CODEGEN_CPU_ATTENTION_ATTENTION_BLOCK_H
#define SCRIMP_CODEGEN_CPU_ATTENTION_ATTENTION_BLOCK_H

#include "codegen/cpu/gemm/gemm_tile.h"
#include "codegen/forms/attention.h"
#include "codegen/jit/jit.h"

enum { BLOCK_VECTORS_MOST = 16 }; /* of the rows of a block */

/* A block's rows of a tensor, with room for whole vectors and for all rows; and as columns.
 */
typedef struct BlockRows {
    int64_t width, stride; /* elements of a row, and between rows */
    JitValue rows, columns;
} BlockRows;

/* Rows of one head, so many elements apart. */
typedef struct HeadRows {
    JitValue first;
    int64_t apart;
} HeadRows;

typedef struct Block {
    Jit *j;
    const AttentionDesc *d;
    AttentionBuffers buf;
    int64_t height;              /* rows that are computed, whole vectors, */
    int vectors;                 /* so many */
    JitValue part;               /* of the workspace */
    JitValue scores, dscores;    /* by key; the latter in the gradient */
    JitValue sums, result, copy; /* parts of scratch memory */
    JitValue k_copy, v_copy;     /* of a head's keys and values; NULL: none */
    JitValue dk_copy, dv_copy;   /* the same of their gradients */
    BlockRows q, dout;           /* dout: in the gradient */
    JitValue head, key_head;     /* numbers of the head and of its keys' */
    HeadRows q_head, k_head, v_head, dout_head;
    JitValue bias_head;
    JitValue row0, n;                        /* first row, and how many there are */
    JitValue line;                           /* the first row among those of all heads */
    JitValue keys, open_keys;                /* that a row sees, and that all see */
    JitValue row_number[BLOCK_VECTORS_MOST]; /* vi */
    JitValue rng[4];                         /* vi: key and step of dropout */
    JitVar quads[BLOCK_VECTORS_MOST];        /* vi: what it keeps of four keys */
    bool masked;                             /* the keys being computed are not open to all */
} Block;

/* Adds the call of a node's kernel. */
void block_lower(Lowering *l, const Node *n, KernelEmit *emit);

/* Begins a kernel; part: i64, the task's number. */
Block block_begin(Jit *j, const AttentionDesc *d);
bool block_bf16(const Block *b, int buf);
void block_part(Block *b, JitValue part);
/* before: i64, 0 where the thread has not yet begun with this head of keys. */
void block_head(Block *b, JitValue head, JitValue before);
/* Rows of a head, or head of keys, of a tensor, by its letter. */
HeadRows block_in_head(const Block *b, int buf, char tensor, JitValue head);
/* Emits the body for rows [row0, end) of the head, or for the first block_rows of them: once for
 * blocks of so many rows and once for those, of fewer vectors, that a head or a chain ends with. */
typedef void BlockBody(Block *b, void *user);
void block_of_rows(Block *b, JitValue row0, JitValue end, BlockBody *body, void *user);

/* step for vector v of the rows at every key that the block sees; place: of the vector in scores.
 */
typedef void BlockStep(Block *b, JitValue key, JitValue place, int v, void *user);
void block_each_key(Block *b, BlockStep *step, void *user);

/* to[key][r] = the product of a key's row of `of` and row r, for the keys that the block sees. */
void block_by_keys(Block *b, const HeadRows *of, const BlockRows *rows, JitValue to);
/* Makes the block's scores, as they come out of the product. */
void block_scores(Block *b);
/* A vector of them, scaled, with bias, masked. */
JitValue block_score(Block *b, JitValue key, JitValue place, int v);
/* Lanes of -1: rows that see the key. */
JitValue block_open(Block *b, JitValue key, int v);
/* The generator's key, and room for what it draws. */
void block_begin_dropout(Block *b);
/* x after dropout. */
JitValue block_dropped(Block *b, JitValue key, int v, JitValue x);
/* Sums over keys in the order of line_sum, a vector of rows each. */
void block_sums_clear(Block *b);
void block_sums_add(Block *b, JitValue key, int v, JitValue x);
JitValue block_sums(Block *b, int v);
/* result[r][c] = sum over keys of x[key][r] * of[key][c] for the block's rows: chains over keys;
 * then written to its rows of a head's tensor. */
void block_times_keys(Block *b, JitValue x, const HeadRows *of, int64_t width, HeadRows to);
/* Numbers of the rows of vector v in a tensor that has one for each row of all heads. */
JitValue block_load(Block *b, JitValue p, int v, double fill);
void block_store(Block *b, JitValue p, int v, JitValue x);

#endif
