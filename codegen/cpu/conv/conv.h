/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Convolutions.  conv.c looks at a node's form (codegen/forms/convolution.h) and picks one of these
 * kernels:
 * - a plain matrix product (1x1, stride 1);
 * - conv_window: packed weights, a register tile of pixels x channels; forward, and the data
 * gradient as one or more forward-like passes over dy (one per phase of the stride);
 * - conv_wgrad: the weight gradient, a register tile of input channels x output channels;
 * conv_join adds up partial sums, where it has any;
 * - conv_depthwise, conv_depthwise_wgrad: one or a few channels per group, vectors run along the
 * channels;
 * - winograd: 3x3 of stride 1, where the node is marked;
 * - conv_plain: any layout and size, element by element. */
#ifndef SCRIMP_CODEGEN_CPU_CONV_CONV_H
#define SCRIMP_CODEGEN_CPU_CONV_CONV_H

#include "codegen/cpu/gemm/gemm_tile.h"
#include "codegen/cpu/gemm/matrix_lower.h"
#include "codegen/forms/convolution.h"

/* Tasks go over `units` lots of `images` images, in bands of so many rows of an axis, the last of
 * which may be shorter; lots of several images have one band. */
typedef struct ConvBands {
    int64_t units, images, rows;
    int64_t tasks; /* of a band */
} ConvBands;
/* What they write, and read of the source, of images whose rows have `row` elements. */
TaskSpans *conv_bands_written(Pool *pool, const ConvBands *b, const ConvAxis *y, int64_t row);
TaskSpans *conv_bands_read(Pool *pool, const ConvBands *b, const ConvAxis *y, int64_t row);

KERNEL_DESC_BEGIN
typedef struct ConvWindow {
    ConvGeometry q;
    bool transposed; /* data gradient: sums over q.k, makes q.c */
    bool phase;      /* of a stride: its passes share bands of the source if they can */
    bool direct;     /* decided by conv_window_plan: the source is read in place */
    bool made;       /* the source is made for the kernel (codegen/cpu/point/prologue.h) */
    char unused[4];
    ConvAxis axis[2];
    int64_t red, cols; /* per group: channels summed over, channels made */
    int64_t source_c, result_c;
    int64_t packed_offset; /* floats, in the workspace */
    int source_buf, weight_buf, packed_buf, out_buf;
    /* decided by conv_window_plan */
    TileShape shape;
    int64_t panels, panel_groups;
    int64_t pixel_floats;                         /* floats between pixels of the padded copy */
    int64_t unit_images, unit_rows, unit_columns; /* pixels that one list of tiles covers */
    int64_t band_units;                           /* units (in rows) of a task */
    Epilogue epilogue;
} ConvWindow;
KERNEL_DESC(ConvWindow)

extern const KernelFamily conv_window_family;
void conv_window_plan(ConvWindow *w, const Target *target, int variant);
int64_t conv_window_tasks(const ConvWindow *w);
/* What the tasks of n passes, which run together, write, and read of the source: bands of images.
 * NULL where tasks go over groups, or task i of one pass does not make the same rows as that of
 * another, or the passes do not make all of the result. */
TaskSpans *conv_window_writes(Pool *pool, const ConvWindow *w, int64_t n);
TaskSpans *conv_window_reads(Pool *pool, const ConvWindow *w, int64_t n);
/* Packed weights: of a group's column, of a group, of all. */
int64_t conv_window_weight_floats(const ConvWindow *w);
int64_t conv_window_group_floats(const ConvWindow *w, int lanes);
int64_t conv_window_packed_floats(const ConvWindow *w, int lanes);
/* Turns a call with the window's buffers into the one that packs its weights, of this type (tasks:
 * groups x panels). */
void conv_pack_call(Pool *pool, CallDraft *call, const ConvWindow *w, DType dtype, int lanes);
/* KernelEmit over passes with equally many tasks: task t is task t of all of them, so that phases
 * read a band of the source from memory once. */
typedef struct ConvPhases {
    int64_t n;
    const ConvWindow *window;
} ConvPhases;
void conv_phases_emit(Jit *j, const void *desc);

/* Partial sums [chunk][rows][row_floats] in the workspace become the weight gradient. */
KERNEL_DESC_BEGIN
typedef struct ConvJoin {
    int64_t chunks, rows, columns, row_floats;
    int64_t rest_skip; /* floats before the last, partial vector of columns */
    int partial_buf, out_buf;
    Epilogue epilogue;
} ConvJoin;
KERNEL_DESC(ConvJoin)
int64_t conv_join_tasks(const ConvJoin *d);
void conv_join_emit(Jit *j, const void *desc);

/* Weight gradient. */
KERNEL_DESC_BEGIN
typedef struct ConvWgrad {
    ConvGeometry q;
    int64_t chunks; /* of the rows of dy, with partial sums of their own; 1: none */
    int x_buf, dy_buf, partial_buf, out_buf;
    int x_made; /* flag: x is made for the kernel (codegen/cpu/point/prologue.h); */
    int steps;  /* then: between the rows of dy that this number of the call and the next one say */
    TileShape shape;
    int64_t panels, panel_groups;
    int64_t channel_block, channel_blocks; /* of one group's input channels */
    int64_t band_rows;                     /* rows of dy, images after one another, per pass */
    /* Tasks that a thread has one after another go over the bands together, as runs.  All tasks of
     * a run are of one set: of one chunk and group, and of run_blocks blocks of channels. */
    int64_t run;        /* tasks of a run, at most */
    int64_t run_blocks; /* all channel_blocks, or 1 */
    int64_t run_panels; /* panels of dy that the tasks of a run have, at most */
    bool pack_once;     /* these are packed once a band, not for each row of the kernel and block */
    char unused[7];
    Epilogue epilogue;
} ConvWgrad;
KERNEL_DESC(ConvWgrad)
extern const KernelFamily conv_wgrad_family;
/* By a variant, or the default where that one needs more scratch memory than there is. */
void conv_wgrad_plan(ConvWgrad *w, const Target *target, int variant);
/* In the order of chunks, groups of channels, blocks, groups of panels, and rows of the kernel. */
int64_t conv_wgrad_tasks(const ConvWgrad *w);
int64_t conv_wgrad_set(const ConvWgrad *w); /* tasks of a set */
/* Floats of the copy of a row of x, and of a packed panel of a band of dy. */
int64_t conv_wgrad_x_row(const ConvWgrad *w);
int64_t conv_wgrad_packed(const ConvWgrad *w, int lanes);
/* Channels of one block under all s are neighbours in the copy and in the result. */
bool conv_wgrad_joined(const ConvWgrad *w);
ReadPieces *conv_wgrad_pieces(Pool *pool, const ConvWgrad *w);
void conv_wgrad_emit(Jit *j, const void *desc);
void conv_wgrad_join(ConvJoin *join, const ConvWgrad *w);

/* Narrow groups; a_buf and b_buf: operands in the order of the node. */
KERNEL_DESC_BEGIN
typedef struct ConvDepth {
    ConvGeometry q;
    ConvPart part;
    int a_buf, b_buf, partial_buf, out_buf;
    int weight_buf;    /* b_buf, or the workspace with the weights that conv_depthwise_pack made */
    int64_t band_rows; /* of a task, decided by conv_depthwise_plan */
    int a_made;        /* flag: the image is made for the kernel (codegen/cpu/point/prologue.h) */
    int steps;         /* of a weight gradient, then: between the rows of dy that this number of the
                          call and the next one say */
    Epilogue epilogue;
} ConvDepth;
KERNEL_DESC(ConvDepth)
int64_t conv_depthwise_weights(const ConvGeometry *q); /* floats */
/* Vector v of channels with channel i of each group in all lanes of the group. */
JitValue conv_depthwise_spread(Jit *j, const ConvGeometry *q, JitValue v, int64_t i);
int64_t conv_depthwise_pack_tasks(const ConvDepth *d);
void conv_depthwise_pack_emit(Jit *j, const void *desc);
/* Forward, data gradient. */
void conv_depthwise_plan(ConvDepth *d);
int64_t conv_depthwise_tasks(const ConvDepth *d);
/* Bands of images: of the result, and of what is read, which is NULL for the phases of a stride. */
TaskSpans *conv_depthwise_writes(Pool *pool, const ConvDepth *d);
TaskSpans *conv_depthwise_reads(Pool *pool, const ConvDepth *d);
void conv_depthwise_emit(Jit *j, const void *desc);
/* Weight gradient: partial sums of chunks (that many tasks), and their sum. */
int64_t conv_depthwise_chunk_floats(const ConvGeometry *q);
ReadPieces *conv_depthwise_wgrad_pieces(Pool *pool, const ConvDepth *d);
void conv_depthwise_wgrad_emit(Jit *j, const void *desc);
void conv_depthwise_join(ConvJoin *join, const ConvDepth *d, int lanes);
/* Of the source columns from the first tap of pixel `first` on, those that `pixels` pixels reach
 * and that lie within the source: [low, high). */
typedef struct DepthSpan {
    int64_t low, high;
} DepthSpan;
DepthSpan conv_depthwise_span(const ConvAxis *x, int64_t first, int64_t pixels);

/* Pieces of x for a weight gradient, `steps` as in ReadPieces: of each chunk, which is so many
 * tasks, some bands of rows of dy, images one behind another. */
ReadPieces *conv_sum_pieces(Pool *pool, const ConvGeometry *q, int steps, int64_t chunks,
                            int64_t tasks, int64_t band_rows);

/* Winograd's form, winograd.h. */
void conv_winograd_lower(const MatrixNode *m, ConvPart part);

/* Columns of images smaller than their weights (ir/conv_columns.h). */
void conv_columns_lower(const MatrixNode *m, const ConvGeometry *q, ConvPart part,
                        const char *what);

/* The simple kernel. */
KERNEL_DESC_BEGIN
typedef struct ConvSimple {
    ConvGeometry q;
    ConvPart part;
    int a_buf, b_buf, bias_buf, out_buf; /* operands in the order of the node */
    char unused[4];
    Epilogue epilogue; /* without bias */
} ConvSimple;
KERNEL_DESC(ConvSimple)
int64_t conv_plain_tasks(const ConvSimple *s);
void conv_plain_emit(Jit *j, const void *desc);

#endif
