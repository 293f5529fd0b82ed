/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Transposition.  After merging dims that stay together, a permutation either keeps the last dim -
 * rows are copied by an element-wise program - or moves it: then squares of the two contiguous dims
 * are transposed, one square after the other. */
#include "codegen/cpu/point/vector_loops.h"
#include "codegen/cpu/rules.h"
#include "codegen/forms/point.h"
#include "codegen/jit/jit_short.h"

enum { SQUARE = 16, SQUARES_PER_TASK = 16 };

KERNEL_DESC_BEGIN
/* Output dims; the input's strides along them.  The last dim is contiguous in the output, dim
 * `lead` in the input. */
typedef struct TransposeDesc {
    int64_t rank, lead, bytes;
    int64_t dim[TYPE_MAX_RANK], in[TYPE_MAX_RANK], out[TYPE_MAX_RANK];
} TransposeDesc;
KERNEL_DESC(TransposeDesc)

static void drop(TransposeDesc *d, int64_t k)
{
    for (; k + 1 < d->rank; k++) {
        d->dim[k] = d->dim[k + 1];
        d->in[k] = d->in[k + 1];
        d->out[k] = d->out[k + 1];
    }
    d->rank--;
    d->dim[d->rank] = d->in[d->rank] = d->out[d->rank] = 0;
}

static void collapse(TransposeDesc *d)
{
    for (int64_t k = d->rank - 1; k >= 0; k--)
        if (d->dim[k] == 1)
            drop(d, k);
    for (int64_t k = d->rank - 2; k >= 0; k--)
        if (d->in[k] == d->in[k + 1] * d->dim[k + 1]) {
            d->dim[k + 1] *= d->dim[k];
            drop(d, k);
        }
}

static TransposeDesc describe(const Lowering *l, const Node *n)
{
    const Type *in = value_type(l->graph, n->in[0]), *out = value_type(l->graph, n->out[0]);
    TransposeDesc d = {.rank = out->rank, .bytes = dtype_bytes(in->dtype)};
    int64_t own[TYPE_MAX_RANK], step = 1, out_step = 1;
    for (int i = in->rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= in->dim[i];
    }
    for (int i = out->rank - 1; i >= 0; i--) {
        d.dim[i] = out->dim[i];
        d.out[i] = out_step;
        d.in[i] = own[node_ints_at(n, ATTR_perm, i, in->rank - 1 - i)];
        out_step *= out->dim[i];
    }
    collapse(&d);
    for (int64_t i = 0; i < d.rank; i++)
        if (d.in[i] == 1)
            d.lead = i;
    return d;
}

/* --- squares --- */

static int64_t squares(const TransposeDesc *d, int64_t k)
{
    return k == d->lead || k == d->rank - 1 ? divide_up(d->dim[k], SQUARE) : d->dim[k];
}

static int64_t total_squares(const TransposeDesc *d)
{
    int64_t n = 1;
    for (int64_t k = 0; k < d->rank; k++)
        n *= squares(d, k);
    return n;
}

/* First element of square number i, and its size along the two contiguous dims. */
static void locate(Jit *j, const TransposeDesc *d, JitValue i, JitValue *in, JitValue *out,
                   JitValue *lead, JitValue *last)
{
    *in = *out = jit_i64(j, 0);
    for (int64_t k = d->rank - 1; k >= 0; k--) {
        JitValue at = take_digit(j, &i, squares(d, k));
        if (k == d->lead || k == d->rank - 1) {
            at = jit_tmp(j, jit_mul(j, at, jit_i64(j, SQUARE)));
            JitValue rest = jit_tmp(j, jit_sub(j, jit_i64(j, d->dim[k]), at));
            *(k == d->lead ? lead : last) = jit_tmp(j, jit_min_i64(j, rest, jit_i64(j, SQUARE)));
        }
        *in = jit_tmp(j, jit_muladd_i64(j, at, d->in[k], *in));
        *out = jit_tmp(j, jit_muladd_i64(j, at, d->out[k], *out));
    }
}

static JitType element_pointer(Jit *j, const TransposeDesc *d)
{
    const JitTypes *t = jit_types(j);
    return d->bytes == 4 ? t->p_i32 : d->bytes == 8 ? t->p_i64 : t->p_u8;
}

static void emit_transpose(Jit *j, const void *desc)
{
    const TransposeDesc *d = desc;
    JitType p = element_pointer(j, d);
    JitValue first, end, in, out, lead = NULL, last = NULL;
    task_items(j, SQUARES_PER_TASK, total_squares(d), &first, &end);
    JitLoop square = jit_for(j, first, end, 1, "square");
    locate(j, d, jit_index(&square), &in, &out, &lead, &last);
    JitLoop y = jit_for(j, jit_i64(j, 0), lead, 1, "y");
    JitValue from = jit_tmp(j, jit_add(j, in, jit_index(&y)));
    JitValue to = jit_tmp(j, jit_muladd_i64(j, jit_index(&y), d->out[d->lead], out));
    JitLoop x = jit_for(j, jit_i64(j, 0), last, 1, "x");
    JitValue at = jit_tmp(j, jit_muladd_i64(j, jit_index(&x), d->in[d->rank - 1], from));
    JitValue v = jit_load(j, jit_buf(j, 0, p), at);
    jit_store(j, jit_buf(j, 1, p), jit_tmp(j, jit_add(j, to, jit_index(&x))), v);
    jit_end_for(j, &x);
    jit_end_for(j, &y);
    jit_end_for(j, &square);
}

/* --- rows --- */

static void copy_rows(Lowering *l, const Node *n, const TransposeDesc *d)
{
    DType t = value_type(l->graph, n->in[0])->dtype;
    Type space = type_make(t, (int)d->rank, d->dim);
    PointProgram *p = point_program(l->pool, &space);
    PointAccess from = {.buf = 0, .dtype = t}, to = {.buf = 1, .dtype = t};
    for (int64_t k = 0; k < d->rank; k++) {
        from.stride[k] = d->in[k];
        to.stride[k] = d->out[k];
    }
    point_store(p, point_load(p, from), to);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    point_call(l, p, "transpose", bufs, 2, 0);
}

void cpu_transpose(Lowering *l, const Node *n)
{
    TransposeDesc d = describe(l, n);
    const CallBuf bufs[] = {{n->in[0], 0}, {n->out[0], 0}};
    if (d.rank < 2 || d.lead == d.rank - 1)
        copy_rows(l, n, &d);
    else
        lower_pod_call(l, "transpose", emit_transpose, &d, DESC_BYTES(TransposeDesc),
                       divide_up(total_squares(&d), SQUARES_PER_TASK), bufs, 2);
}
