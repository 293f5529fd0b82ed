/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random one-node graphs: a generator for every operation that has a lowering rule.  Shapes
 * straddle vector lengths: 1s, multiples and neighbours of multiples of 4, 8 and 16. */
#ifndef SCRIMP_TESTS_PROPERTY_OP_CASES_H
#define SCRIMP_TESTS_PROPERTY_OP_CASES_H

#include "op_case.h"

#define CASE(name) OpCaseMake op_##name;
#include "op_cases.def"
#undef CASE

OpCaseMake op_loop;         /* which has no kernel of its own */
OpCaseMake op_long_argsort; /* sorted in the workspace */

/* By OpKind; `none` rules have nothing to test: NULL. */
extern OpCaseMake *const op_case_table[OP_COUNT];

/* More cases of an operation, with a generator each. */
typedef struct OpRow {
    OpKind op;
    OpCaseMake *make;
} OpRow;

extern const OpRow op_conv_cases[]; /* the kinds of convolution that kernels treat apart */
extern const int op_conv_cases_n;
extern const OpRow op_winograd_cases[]; /* of the processor alone; with an epilogue, the last one */
extern const int op_winograd_cases_n;
extern const OpRow op_by_rows_cases[]; /* of the processor alone: attention by rows */
extern const int op_by_rows_cases_n;
extern const OpRow op_pairs_cases[]; /* of the processor alone: sums added by pairs */
extern const int op_pairs_cases_n;
extern const OpRow op_conv_groups[]; /* the same with an epilogue: fused groups */
extern const int op_conv_groups_n;
extern const OpRow op_tile_cases[]; /* products as large as a device wants them */
extern const int op_tile_cases_n;
extern const OpRow op_edges[]; /* past what a block of a device has at a time */
extern const int op_edges_n;
extern const OpRow op_extremes[]; /* at the edges of the number range */
extern const int op_extremes_n;

/* For the gradient check, by OpKind: values keep off kinks and ties; NULL: no gradient rule. */
extern OpCaseMake *const grad_case_table[OP_COUNT];

/* What generators have in common. */

/* Draws one of t's axes, which is added to the attributes. */
int op_axis(OpCase *c, AttrList *attrs, Type t);
/* What a reduction reads, over some of its axes, all when absent, with and without keepdims. */
Type op_reduced(OpCase *c, int most_dims, AttrList *attrs);

/* Sizes of a convolution. */
typedef struct OpConv {
    AttrList attrs;
    int64_t stride[2], padding[2], dilation[2], hw[2];
    int64_t n, groups, in, out, h, w, r, s;
    bool nhwc;
} OpConv;

Type op_image(bool nhwc, int64_t n, int64_t channels, int64_t h, int64_t w);
void op_two(OpCase *c, AttrList *attrs, AttrKey key, int64_t low, int64_t high, int64_t *pair);
Type op_filter(const OpConv *v);
Type op_conv_input(const OpConv *v);
Type op_conv_output(const OpConv *v);
bool op_conv_fits(const OpConv *v);
void op_attention_plain(OpCase *c); /* what has a gradient */
Type op_channelled(OpCase *c, AttrList *attrs, int64_t *channels);

#endif
