/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Shared by the evaluator's rule files: one rule for every name in the `eval` column of ops.def. */
#ifndef SCRIMP_IR_EVAL_INTERNAL_H
#define SCRIMP_IR_EVAL_INTERNAL_H

#include "ir/eval.h"
#include "ir/support/bug.h"

/* Fills the node's output buffers, which eval_run has allocated, from its inputs. */
typedef void EvalRule(EvalState *s, const Node *n);

#define OP(name, min_in, max_in, n_out, op_class, shape, flops, grad, eval, ...)                   \
    EvalRule eval_##eval;
#include "ir/ops.def"
#undef OP

static inline const double *eval_in(const EvalState *s, const Node *n, int i)
{
    return s->data[n->in[i]];
}
static inline double *eval_out(const EvalState *s, const Node *n, int i)
{
    return s->data[n->out[i]];
}
static inline const Type *eval_in_type(const EvalState *s, const Node *n, int i)
{
    return value_type(s->graph, n->in[i]);
}
static inline const Type *eval_out_type(const EvalState *s, const Node *n, int i)
{
    return value_type(s->graph, n->out[i]);
}
static inline int64_t eval_in_count(const EvalState *s, const Node *n, int i)
{
    return type_elements(eval_in_type(s, n, i));
}
static inline int64_t eval_out_count(const EvalState *s, const Node *n, int i)
{
    return type_elements(eval_out_type(s, n, i));
}

enum { EVAL_WALK_OPERANDS = 3 };

/* Visits the elements of a shape in row-major order and keeps, for each operand, the offset of the
 * element that belongs to it (stride 0 along broadcast axes). */
typedef struct EvalWalk {
    int rank, n_operands;
    int64_t dim[TYPE_MAX_RANK], index[TYPE_MAX_RANK];
    int64_t stride[EVAL_WALK_OPERANDS][TYPE_MAX_RANK];
    int64_t at[EVAL_WALK_OPERANDS];
} EvalWalk;

EvalWalk eval_walk(const Type *shape);
/* An operand that broadcasts to the walked shape as numpy does. */
void eval_walk_broadcast(EvalWalk *w, const Type *operand);
/* An operand with its own strides and first offset. */
void eval_walk_strided(EvalWalk *w, const int64_t *stride, int64_t start);
void eval_walk_next(EvalWalk *w);
/* Row-major element strides of a shape. */
void eval_strides(const Type *t, int64_t *stride);

/* A shape seen around one axis: [outer, length, inner]. */
typedef struct EvalAxis {
    int64_t outer, length, inner;
} EvalAxis;
/* The axis attribute (negative counts from the end), `otherwise` when absent. */
EvalAxis eval_axis(const Type *t, const Node *n, int64_t otherwise);

/* Images as both layouts see them: element (b, c, h, w) is at
 * b*sb + c*sc + h*sh + w*sw. */
typedef struct EvalImage {
    int64_t n, c, h, w;
    int64_t sn, sc, sh, sw;
} EvalImage;
EvalImage eval_image(const Type *t, bool nhwc);
static inline int64_t eval_image_at(const EvalImage *m, int64_t b, int64_t c, int64_t h, int64_t w)
{
    return b * m->sn + c * m->sc + h * m->sh + w * m->sw;
}

/* One element stored in an integer or bool tensor: truncated towards zero, saturated. */
double eval_to_dtype(DType dtype, double value);

/* A 64-bit number of two i32 words, as the inputs of a random generator have it. */
uint64_t eval_words(double low, double high);

#endif
