/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random cases of attention and its gradient; see op_cases.h. */
#include "op_cases.h"

#include "ir/attention.h"

#include <string.h>

typedef struct Sizes {
    Type q, k, v, out, rows;
    const char *by_rows; /* letters */
} Sizes;

/* Now and then more keys or rows than one chain of products adds. */
static int64_t op_length(OpCase *c)
{
    return op_int(c, 0, 9) ? op_dim(c) : op_int(c, 257, 300);
}

/* Now and then more than a block of a device makes. */
static int64_t op_width(OpCase *c)
{
    return c->small || op_int(c, 0, 9) ? op_dim(c) : op_int(c, 129, 256);
}

/* Now and then so many keys that the scores of a block do not fit into scratch memory. */
static int64_t op_keys(OpCase *c, int64_t rows)
{
    return rows <= 9 && !op_int(c, 0, 5) ? op_int(c, 16500, 16600) : op_length(c);
}

static Sizes op_sizes(OpCase *c, int64_t rows, int64_t keys, int batch)
{
    Sizes s = {.q = {.dtype = DTYPE_F32, .rank = batch}, .by_rows = ""};
    for (int i = 0; i < s.q.rank; i++)
        s.q.dim[i] = op_int(c, 1, 3);
    if (s.q.rank && rows * keys <= 4096 && !op_int(c, 0, 5))
        s.q.dim[0] = op_int(c, 33, 40); /* more heads than tasks may use the workspace */
    s.k = s.v = s.out = s.rows = s.q;
    int n = s.q.rank;
    int64_t width = op_width(c), value_width = op_coin(c) ? width : op_width(c);
    if (n && op_coin(c)) /* heads that share keys */
        s.q.dim[n - 1] = s.out.dim[n - 1] = s.rows.dim[n - 1] *= op_int(c, 2, 5);
    s.q.dim[n] = s.out.dim[n] = s.rows.dim[n] = rows;
    s.k.dim[n] = s.v.dim[n] = keys;
    s.q.dim[n + 1] = s.k.dim[n + 1] = width;
    s.v.dim[n + 1] = s.out.dim[n + 1] = value_width;
    s.q.rank = s.k.rank = s.v.rank = s.out.rank = n + 2;
    s.rows.rank = n + 1;
    return s;
}

/* Of four dims, some tensors by rows: of these letters. */
static Sizes op_sizes_by_rows(OpCase *c, int64_t rows, int64_t keys, const char *letters,
                              AttrList *attrs)
{
    Sizes s = op_sizes(c, rows, keys, 2);
    char *chosen = POOL_ARRAY(c->pool, strlen(letters) + 1, char);
    size_t n = 0;
    for (const char *x = letters; *x; x++)
        if (op_coin(c) || (!n && !x[1]))
            chosen[n++] = *x;
    s.by_rows = chosen;
    attrs_string(attrs, ATTR_by_rows, chosen);
    return s;
}

static void op_tensor(OpCase *c, const Sizes *s, char letter, Type t)
{
    op_normal(c, strchr(s->by_rows, letter) ? attention_turn(t) : t);
}

/* A number for each key, of some of the batch dims. */
static void op_bias(OpCase *c, const Type *k)
{
    Type t = {.dtype = DTYPE_F32};
    int64_t keys = k->dim[k->rank - 2];
    for (int i = op_coin(c) ? 0 : k->rank - 1; i < k->rank - 2; i++)
        t.dim[t.rank++] = op_coin(c) ? 1 : k->dim[i];
    if (t.rank || op_coin(c))
        t.dim[t.rank++] = 1;
    t.dim[t.rank++] = keys;
    op_normal(c, t);
}

static void op_options(OpCase *c, const Type *k, bool biased, AttrList *attrs)
{
    /* Exponents of some units: the errors of large ones are those of their exponentials. */
    attrs_float(attrs, ATTR_scale, op_uniform(c, 0.5, 1) / (double)k->dim[k->rank - 1]);
    if (op_coin(c))
        attrs_int(attrs, ATTR_causal, 1);
    if (biased && op_coin(c))
        op_bias(c, k);
    if (op_coin(c))
        return;
    attrs_float(attrs, ATTR_p, op_uniform(c, 0, 0.9));
    attrs_int(attrs, ATTR_key, (int64_t)op_bits(c));
    op_integers(c, DIMS(4), DTYPE_I32, INT32_MIN, INT32_MAX);
}

static void op_forward(OpCase *c, const Sizes *s, bool biased, AttrList *attrs)
{
    op_tensor(c, s, 'q', s->q);
    op_tensor(c, s, 'k', s->k);
    op_tensor(c, s, 'v', s->v);
    op_options(c, &s->k, biased, attrs);
    op_done(c, OP_attention, attrs);
}

static void op_attention_of(OpCase *c, int64_t rows, int64_t keys, bool biased)
{
    AttrList attrs = {0};
    Sizes s = op_sizes(c, rows, keys, (int)op_int(c, 0, 2));
    op_forward(c, &s, biased, &attrs);
}

void op_attention(OpCase *c)
{
    int64_t rows = op_length(c);
    op_attention_of(c, rows, op_keys(c, rows), true);
}

/* Without a bias, which has no gradient. */
void op_attention_plain(OpCase *c)
{
    op_attention_of(c, op_dim(c), op_dim(c), false);
}

static void op_gradient(OpCase *c, const Sizes *s, AttrList *attrs)
{
    unsigned heads = c->bf16 & 0xe; /* the gradient is of the result's type, statistics are f32 */
    c->bf16 = (c->bf16 & ~0x3fu) | heads | (heads != 0);
    op_tensor(c, s, 'g', s->out);
    op_tensor(c, s, 'q', s->q);
    op_tensor(c, s, 'k', s->k);
    op_tensor(c, s, 'v', s->v);
    op_floats(c, s->rows, 1, 3);
    op_floats(c, s->rows, 2, 30);
    op_options(c, &s->k, true, attrs);
    op_done(c, OP_attention_grad, attrs);
}

void op_attention_grad(OpCase *c)
{
    AttrList attrs = {0};
    int64_t rows = op_length(c);
    Sizes s = op_sizes(c, rows, op_keys(c, rows), (int)op_int(c, 0, 2));
    op_gradient(c, &s, &attrs);
}

static void op_attention_by_rows(OpCase *c)
{
    AttrList attrs = {0};
    int64_t rows = op_length(c);
    Sizes s = op_sizes_by_rows(c, rows, op_keys(c, rows), "qkvo", &attrs);
    op_forward(c, &s, true, &attrs);
}

static void op_attention_grad_by_rows(OpCase *c)
{
    AttrList attrs = {0};
    int64_t rows = op_length(c);
    Sizes s = op_sizes_by_rows(c, rows, op_keys(c, rows), "qkvgQKV", &attrs);
    op_gradient(c, &s, &attrs);
}

const OpRow op_by_rows_cases[] = {{OP_attention, op_attention_by_rows},
                                  {OP_attention_grad, op_attention_grad_by_rows}};
const int op_by_rows_cases_n = sizeof op_by_rows_cases / sizeof *op_by_rows_cases;
