/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reference evaluation of elements by number, and of order. */
#include "ir/eval_internal.h"

#include <math.h>

/* Element i of [outer, count, inner] belongs to element `k` of the line of [outer, length, inner].
 */
static int64_t place_in_line(const EvalAxis *part, const EvalAxis *whole, int64_t i, int64_t k)
{
    int64_t outer = i / (part->length * part->inner);
    return (outer * whole->length + k) * whole->inner + i % whole->inner;
}

/* (x, index): numbers outside of x are those of its first or last element. */
void eval_gather(EvalState *s, const Node *n)
{
    EvalAxis whole = eval_axis(eval_in_type(s, n, 0), n, -1);
    EvalAxis part = eval_axis(eval_in_type(s, n, 1), n, -1);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++) {
        double k = fmin(fmax(eval_in(s, n, 1)[i], 0), (double)(whole.length - 1));
        eval_out(s, n, 0)[i] = eval_in(s, n, 0)[place_in_line(&part, &whole, i, (int64_t)k)];
    }
}

/* (index, src): numbers outside of the result add nothing. */
void eval_scatter_add(EvalState *s, const Node *n)
{
    EvalAxis whole = eval_axis(eval_out_type(s, n, 0), n, -1);
    EvalAxis part = eval_axis(eval_in_type(s, n, 0), n, -1);
    double *out = eval_out(s, n, 0);
    for (int64_t i = 0, end = eval_out_count(s, n, 0); i < end; i++)
        out[i] = 0;
    for (int64_t i = 0, end = eval_in_count(s, n, 0); i < end; i++) {
        double k = eval_in(s, n, 0)[i];
        if (k >= 0 && k < (double)whole.length)
            out[place_in_line(&part, &whole, i, (int64_t)k)] += eval_in(s, n, 1)[i];
    }
}

/* NaN is larger than all numbers. */
static bool is_less(double a, double b)
{
    return isnan(b) ? !isnan(a) : a < b;
}

/* Element i comes before element k. */
static bool is_before(const double *x, int64_t i, int64_t k, bool descending)
{
    if (descending ? is_less(x[k], x[i]) : is_less(x[i], x[k]))
        return true;
    if (descending ? is_less(x[i], x[k]) : is_less(x[k], x[i]))
        return false;
    return i < k;
}

void eval_argsort(EvalState *s, const Node *n)
{
    const Type *x = eval_in_type(s, n, 0), *y = eval_out_type(s, n, 0);
    int64_t length = x->dim[x->rank - 1], count = y->dim[y->rank - 1];
    bool descending = node_flag(n, ATTR_descending);
    for (int64_t line = 0; line < type_elements(x) / length; line++)
        for (int64_t i = 0; i < length; i++) {
            int64_t place = 0;
            for (int64_t k = 0; k < length; k++)
                place += is_before(eval_in(s, n, 0) + line * length, k, i, descending);
            if (place < count)
                eval_out(s, n, 0)[line * count + place] = (double)i;
        }
}
