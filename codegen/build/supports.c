/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Element types are no part of the row in ops.def and do not follow from its column `cpu`: what an
 * operation means in a type is the same everywhere, what has code is a matter of the kernels, and
 * one rule (`pointwise`, `fill`) serves operations of different types. */
#include "codegen/build/supports.h"

#include <stdio.h>

/* Sets of element types, as they are read below: f = f32, i = i32, u = u8, b = bool, l = i64, h =
 * bf16, r = f32 and bf16. */
enum {
    F = 1 << DTYPE_F32,
    I = 1 << DTYPE_I32,
    U = 1 << DTYPE_U8,
    B = 1 << DTYPE_BOOL,
    L = 1 << DTYPE_I64,
    H = 1 << DTYPE_BF16,
    R = F | H,
    IU = I | U,
    IUL = IU | L, /* labels and ids */
    FI = F | I,
    FIU = FI | U,
    FIUB = FIU | B,
    RI = R | I,
    RIU = FIU | H,
    RIUB = FIUB | H,
    ALL = RIUB | L /* what lies in memory and is not computed with */
};

/* By operation: the types of the first input, of the second, of all others, of the results. */
typedef struct KernelTypes {
    unsigned char first, second, others, result;
} KernelTypes;

static const KernelTypes only_f32 = {F, F, F, F}, point_types = {R, R, R, R};

/* Operations without a row are computed in f32 alone; element-wise ones in bf16, too. */
static const KernelTypes kernel_types[OP_COUNT] = {
    [OP_input] = {0, 0, 0, FIUB | L}, /* what data sources fill */
    [OP_param] = {0, 0, 0, FIUB},
    [OP_buffer] = {0, 0, 0, FIUB},
    [OP_state] = {0, 0, 0, FIUB},
    [OP_const] = {0, 0, 0, RIUB},
    [OP_full] = {0, 0, 0, RIUB},
    [OP_iota] = {0, 0, 0, FI},
    [OP_neg] = {RI, 0, 0, RI},
    [OP_abs] = {RIU, 0, 0, RIU},
    [OP_sign] = {RIU, 0, 0, RIU},
    [OP_relu] = {RIU, 0, 0, RIU},
    [OP_cast] = {RIUB, 0, 0, RIUB},
    [OP_stop_gradient] = {ALL, 0, 0, ALL},
    [OP_add] = {RIU, RIU, 0, RIU},
    [OP_sub] = {RIU, RIU, 0, RIU},
    [OP_mul] = {RIUB, RIUB, 0, RIUB},
    [OP_maximum] = {RIUB, RIUB, 0, RIUB},
    [OP_minimum] = {RIUB, RIUB, 0, RIUB},
    [OP_eq] = {RIUB, RIUB, 0, B},
    [OP_ne] = {RIUB, RIUB, 0, B},
    [OP_lt] = {RIUB, RIUB, 0, B},
    [OP_le] = {RIUB, RIUB, 0, B},
    [OP_gt] = {RIUB, RIUB, 0, B},
    [OP_ge] = {RIUB, RIUB, 0, B},
    [OP_select] = {B, RIUB, RIUB, RIUB},
    [OP_relu_mask] = {R, 0, 0, I},
    [OP_relu_mask_grad] = {R, I, 0, R},
    [OP_dropout] = {R, I, 0, R},
    [OP_random] = {I, 0, 0, FI},
    [OP_matmul] = {R, R, 0, R},
    [OP_linear] = {R, R, F, R},
    [OP_conv2d] = {R, R, F, R},
    [OP_conv2d_dgrad] = {R, R, 0, R},
    [OP_conv2d_wgrad] = {R, R, 0, F},
    [OP_deconv2d] = {R, R, F, R},
    [OP_mean] = {R, 0, 0, F},
    [OP_maxpool] = {R, 0, 0, R},
    [OP_maxpool_grad] = {R, R, 0, R},
    [OP_avgpool] = {R, 0, 0, R},
    [OP_avgpool_grad] = {R, 0, 0, R},
    [OP_adaptive_avgpool] = {R, 0, 0, R},
    [OP_adaptive_avgpool_grad] = {R, 0, 0, R},
    [OP_resize] = {R, 0, 0, R},
    [OP_resize_grad] = {R, 0, 0, R},
    [OP_bn_stats] = {R, 0, 0, F},
    [OP_bn_grad_sums] = {R, R, F, F},
    [OP_lrn] = {R, 0, 0, R},
    [OP_lrn_grad] = {R, R, 0, R},
    [OP_layernorm] = {R, F, F, R},
    [OP_layernorm_grad] = {R, R, F, R},
    [OP_layernorm_grad_sums] = {R, R, F, F},
    [OP_softmax] = {R, 0, 0, R},
    [OP_log_softmax] = {R, 0, 0, R},
    [OP_softmax_grad] = {R, R, 0, R},
    [OP_log_softmax_grad] = {R, R, 0, R},
    [OP_sum] = {RI, 0, 0, FI},
    [OP_reduce_max] = {RIU, 0, 0, RIU},
    [OP_argmax] = {R, 0, 0, I},
    [OP_cumsum] = {RI, 0, 0, RI},
    [OP_cumprod] = {RI, 0, 0, RI},
    [OP_cumprod_grad] = {R, R, R, R},
    [OP_prod] = {RI, 0, 0, FI},
    [OP_prod_grad] = {R, R, 0, R},
    [OP_maxpool_index] = {R, 0, 0, U},
    [OP_maxpool_index_grad] = {R, U, 0, R},
    [OP_cross_entropy] = {R, IUL, F, F},
    [OP_cross_entropy_grad] = {R, IUL, F, R},
    [OP_accuracy] = {R, IUL, F, F},
    [OP_attention] = {R, R, RI, R}, /* the last input may be a generator */
    [OP_attention_grad] = {R, R, RI, R},
    [OP_embedding] = {IUL, R, 0, R},
    [OP_embedding_grad] = {IUL, R, F, F},
    [OP_gather] = {RIUB, IUL, 0, RIUB},
    [OP_scatter_add] = {IUL, RI, 0, FI},
    [OP_argsort] = {RI, 0, 0, I},
    [OP_reshape] = {ALL, 0, 0, ALL},
    [OP_transpose] = {RIUB, 0, 0, RIUB},
    [OP_broadcast] = {RIUB, 0, 0, RIUB},
    [OP_slice] = {RIUB, 0, 0, RIUB},
    [OP_subview] = {RIUB, 0, 0, RIUB},
    [OP_concat] = {RIUB, RIUB, RIUB, RIUB},
    [OP_pad] = {RIUB, 0, 0, RIUB},
    [OP_adam_step] = {F, F, FI, F}, /* the step's number may be an integer */
    [OP_checksum] = {FI, 0, 0, I},
};

static bool has(int set, DType t)
{
    return set >> t & 1;
}

/* "f32, i32 and u8" */
static const char *set_text(int set, char *text, size_t size)
{
    size_t n = 0;
    static const char *const separator[] = {"", " and ", ", "};
    int left = __builtin_popcount((unsigned)set);
    text[0] = '\0';
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (has(set, (DType)t))
            n += (size_t)snprintf(text + n, size - n, "%s%s", dtype_name((DType)t),
                                  separator[--left > 2 ? 2 : left]);
    return text;
}

/* What stands in for a type that has no code here. */
static const char *way_out(int set, DType got)
{
    if (got == DTYPE_F16)
        return has(set, DTYPE_BF16) ? "; make it bf16" : "; there is no f16: leave it f32";
    if (got == DTYPE_I64)
        return has(set, DTYPE_I32) ? "; make it i32" : "; make it i32, then |> to_f32()";
    return has(set, DTYPE_F32) ? "; |> to_f32()" : has(set, DTYPE_I32) ? "; |> cast(i32)" : "";
}

static bool no_code(const Node *n, int set, DType got, int operand, ShapeError *err)
{
    char text[64];
    err->code = "E111";
    err->operand = operand;
    snprintf(err->message, sizeof err->message, "no code for %s %s %s", op_name(n->op),
             operand < 0 && n->n_in ? "with a result of type" : "of", dtype_name(got));
    snprintf(err->help, sizeof err->help, "there is code for %s%s",
             set_text(set, text, sizeof text), way_out(set, got));
    return false;
}

/* The bias that a library adds has the result's type. */
static int operand_set(const Node *n, const KernelTypes *k, int i)
{
    if (i == 2 && node_attr(n, ATTR_library))
        return R;
    return i == 0 ? k->first : i == 1 ? k->second : k->others;
}

static bool supports_body(const Graph *body, ShapeError *err)
{
    for (size_t i = 0; i < body->order.len; i++) {
        const Node *n = graph_node(body, body->order.data[i]);
        if (n->op != OP_input && !codegen_supports(body, n, err))
            return false;
    }
    return true;
}

bool codegen_supports(const Graph *g, const Node *n, ShapeError *err)
{
    bool point = op_table[n->op].op_class == OP_CLASS_POINT;
    const KernelTypes *k = kernel_types[n->op].result ? &kernel_types[n->op]
                           : point                    ? &point_types
                                                      : &only_f32;
    if (n->body)
        return supports_body(n->body, err);
    for (int i = 0; i < n->n_in; i++) {
        DType t = value_type(g, n->in[i])->dtype;
        if (!has(operand_set(n, k, i), t))
            return no_code(n, operand_set(n, k, i), t, i, err);
    }
    for (int i = 0; i < n->n_out; i++) {
        DType t = value_type(g, n->out[i])->dtype;
        if (!has(k->result, t))
            return no_code(n, k->result, t, -1, err);
    }
    return true;
}

const char *codegen_unsupported(Pool *pool, const Graph *g)
{
    ShapeError err;
    for (size_t i = 0; i < g->order.len; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!codegen_supports(g, n, &err))
            return pool_printf(pool, "%s (%s, line %u): %s", err.message,
                               graph_value(g, n->out[0])->name, n->loc.line, err.help);
    }
    return NULL;
}

const char *codegen_unsupported_by(Pool *pool, const Backend *backend, const Graph *g)
{
    const char *missing = codegen_unsupported(pool, g);
    for (size_t i = 0; i < g->order.len && !missing && backend->has_code; i++) {
        const Node *n = graph_node(g, g->order.data[i]);
        if (!backend->has_code(n))
            missing =
                pool_printf(pool, "--device %s has no code for %s yet (%s, line %u)", backend->name,
                            op_name(n->op), graph_value(g, n->out[0])->name, n->loc.line);
    }
    return missing;
}
