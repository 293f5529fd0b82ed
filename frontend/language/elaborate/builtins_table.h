/* The functions of the table in builtins.c, by file. */
#ifndef SCRIMP_FRONTEND_LANGUAGE_ELABORATE_BUILTINS_TABLE_H
#define SCRIMP_FRONTEND_LANGUAGE_ELABORATE_BUILTINS_TABLE_H

#include "frontend/language/elaborate/builtins.h"

/* builtins_layer.c */
BuiltinFn builtin_linear, builtin_affine, builtin_conv, builtin_bn, builtin_layernorm,
    builtin_embedding, builtin_dropout, builtin_maxpool, builtin_avgpool, builtin_global_avgpool,
    builtin_adaptive_avgpool, builtin_resize;
BuiltinFn builtin_deconv, builtin_lrn;
/* builtins_math.c */
BuiltinFn builtin_relu, builtin_gelu, builtin_silu, builtin_sigmoid, builtin_tanh, builtin_exp,
    builtin_log, builtin_sqrt, builtin_rsqrt, builtin_abs, builtin_sign, builtin_pow,
    builtin_maximum, builtin_minimum, builtin_select, builtin_cast, builtin_to_f32,
    builtin_stop_gradient, builtin_causal_mask, builtin_softmax, builtin_log_softmax, builtin_sum,
    builtin_mean, builtin_max, builtin_min, builtin_argmax, builtin_cross_entropy, builtin_mse,
    builtin_accuracy, builtin_sin, builtin_cos;
/* builtins_shape.c */
BuiltinFn builtin_reshape, builtin_identity, builtin_flatten, builtin_transpose, builtin_concat,
    builtin_stack, builtin_split, builtin_slice, builtin_center_crop, builtin_pad,
    builtin_broadcast, builtin_iota, builtin_zeros, builtin_ones, builtin_full;
/* einops.c */
BuiltinFn builtin_rearrange, builtin_einsum;
/* builtins_value.c */
BuiltinFn builtin_len, builtin_range, builtin_zip, builtin_enumerate, builtin_reversed, builtin_int,
    builtin_float, builtin_round, builtin_init, builtin_normal, builtin_uniform, builtin_he_normal,
    builtin_he_uniform, builtin_xavier_normal, builtin_xavier_uniform;
/* train_source.c */
BuiltinFn builtin_mnist, builtin_cifar10, builtin_text, builtin_tokens, builtin_npy,
    builtin_imagefolder, builtin_synthetic;
/* train_optim.c */
BuiltinFn builtin_sgd, builtin_adam, builtin_adamw, builtin_constant, builtin_linear_decay,
    builtin_step, builtin_cosine, builtin_inverse_sqrt;

/* builtins_constant.c */
BuiltinFn builtin_tensor, builtin_sinusoid;

/* The smallest or largest of compile-time numbers; builtins_value.c, for max and min. */
Val value_extreme(Call *c, bool largest);
Val value_sum(Call *c);

#endif
