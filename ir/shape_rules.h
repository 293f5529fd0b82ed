/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Helpers of the shape rules, shared by shape_rules*.c. */
#ifndef SCRIMP_IR_SHAPE_RULES_H
#define SCRIMP_IR_SHAPE_RULES_H

#include "ir/op_rules.h"
#include "ir/shape_error.h"

#define SHAPE_UNUSED __attribute__((unused))
#define SHAPE_RULE(name)                                                                           \
    bool shape_##name(SHAPE_UNUSED const Graph *g, SHAPE_UNUSED const Node *node,                  \
                      SHAPE_UNUSED Type *out, SHAPE_UNUSED int *n_out,                             \
                      SHAPE_UNUSED ShapeError *err)

static inline const Type *shape_in(const Graph *g, const Node *n, int i)
{
    return value_type(g, n->in[i]);
}
/* Each of these fails with a message unless input i is as said. */
bool want_float(const Graph *g, const Node *n, int i, ShapeError *err);
/* The element type of what is computed of floats: bf16 where one of them is, else f32. */
DType real_result(DType a, DType b);
/* out->dtype of an operation that may say its own: the attribute dtype, f32 or bf16, else that of
 * what is computed of inputs 0 and 1. */
bool want_result(const Graph *g, const Node *n, Type *out, ShapeError *err);
bool want_integer(const Graph *g, const Node *n, int i, ShapeError *err);
bool want_rank(const Graph *g, const Node *n, int i, int low, int high, ShapeError *err);
bool want_type(const Graph *g, const Node *n, int i, const Type *expected, ShapeError *err);
/* Inputs from `first` on are floats of shape [c].  names: what messages call them, from `first` on.
 */
bool want_vectors(const Graph *g, const Node *n, int first, const char *const *names, int64_t c,
                  ShapeError *err);
/* Input 2 of a product or convolution, if any: f32, or where a library computes it also bf16. */
bool want_bias_vector(const Graph *g, const Node *n, int64_t features, ShapeError *err);
#define INPUT_NAMES(...) ((const char *const[]){__VA_ARGS__})
/* The axis attribute (default: otherwise) lies in 0..rank-1. */
bool want_axis(const Node *n, int rank, int otherwise, int *axis, ShapeError *err);
/* The attribute dtype, `otherwise` when absent; fails when it names no element type. */
bool shape_dtype(const Node *n, DType otherwise, DType *out, ShapeError *err);
/* An INTS attribute of exactly count elements in low..high; fails when absent and otherwise < low.
 */
bool want_ints(const Node *n, AttrKey key, int count, int64_t low, int64_t otherwise, int64_t *out,
               ShapeError *err);

#endif
