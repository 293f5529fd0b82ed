/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/support/shape_cases.h"

#include "check.h"
#include "ir/support/strbuf.h"

#include <stdlib.h>
#include <string.h>

const OpCase op_cases[] = {
    {OP_full, "", "shape=2,3 value=1", "f32[2,3]"},
    {OP_full, "", "shape= dtype=i32", "i32[]"},
    {OP_full, "", "", "E105"},
    {OP_full, "", "shape=2,3 dtype=f31", "E105"},
    {OP_full, "", "shape=1,1,1,1,1,1,1,1,1", "E103"},
    {OP_full, "", "shape=-1", "E108"},
    {OP_full, "", "shape=0", "E108"},
    {OP_full, "", "shape=" BIG ",4", "E108"},
    {OP_iota, "", "shape=7", "i32[7]"},
    {OP_iota, "", "shape=7,2 axis=0 dtype=f32", "f32[7,2]"},
    {OP_iota, "", "shape=7 axis=1", "E105"},
    {OP_literal, "", "values=0.5,-1,3", "f32[3]"},
    {OP_literal, "", "values=0.1", "E105"},
    {OP_literal, "", "", "E108"},

    {OP_neg, "i32[3]", "", "i32[3]"},
    {OP_neg, "bool[3]", "", "E104"},
    {OP_abs, "f32[3]", "", "f32[3]"},
    {OP_abs, "f32[3] f32[3]", "", "E109"},
    {OP_sign, "f32[]", "", "f32[]"},
    {OP_sign, "", "", "E109"},
    {OP_exp, "f32[2,2]", "", "f32[2,2]"},
    {OP_exp, "i32[2]", "", "E104"},
    {OP_log, "f32[1]", "", "f32[1]"},
    {OP_log, "u8[1]", "", "E104"},
    {OP_sqrt, "f32[1]", "", "f32[1]"},
    {OP_sqrt, "i64[1]", "", "E104"},
    {OP_rsqrt, "f32[1]", "", "f32[1]"},
    {OP_rsqrt, "f16[1]", "", "E104"},
    {OP_sin, "f32[4]", "", "f32[4]"},
    {OP_sin, "i32[4]", "", "E104"},
    {OP_cos, "f32[4]", "", "f32[4]"},
    {OP_cos, "u8[4]", "", "E104"},
    {OP_tanh, "bf16[4]", "", "bf16[4]"},
    {OP_tanh, "f16[4]", "", "E104"},
    {OP_sigmoid, "f32[4]", "", "f32[4]"},
    {OP_sigmoid, "i32[4]", "", "E104"},
    {OP_relu, "f32[4]", "", "f32[4]"},
    {OP_relu, "bool[4]", "", "E104"},
    {OP_gelu, "f32[4]", "approx=", "f32[4]"},
    {OP_gelu, "i32[4]", "", "E104"},
    {OP_silu, "f32[4]", "", "f32[4]"},
    {OP_silu, "i32[4]", "", "E104"},
    {OP_cast, "u8[2,3]", "dtype=f32", "f32[2,3]"},
    {OP_cast, "u8[2,3]", "", "E105"},
    {OP_cast, "u8[2,3]", "dtype=float", "E105"},
    {OP_stop_gradient, "bool[4]", "", "bool[4]"},
    {OP_stop_gradient, "", "", "E109"},

    {OP_add, "f32[2,1,4] f32[3,1]", "", "f32[2,3,4]"},
    {OP_add, "f32[2,3] f32[]", "", "f32[2,3]"},
    {OP_add, "bf16[2,3] f32[]", "", "bf16[2,3]"},
    {OP_add, "f32[32,64,56,56] f32[32,256,56,56]", "", "E101"},
    {OP_add, "f32[2,3] i32[2,3]", "", "E104"},
    {OP_add, "bool[2] bool[2]", "", "E104"},
    {OP_sub, "i32[5] i32[1]", "", "i32[5]"},
    {OP_sub, "f32[5] f32[4]", "", "E101"},
    {OP_mul, "bool[2] bool[2]", "", "bool[2]"},
    {OP_mul, "f32[2] f32[3]", "", "E101"},
    {OP_div, "f32[2] f32[2]", "", "f32[2]"},
    {OP_div, "i32[2] i32[2]", "", "E104"},
    {OP_pow, "f32[2] f32[]", "", "f32[2]"},
    {OP_pow, "i32[2] i32[]", "", "E104"},
    {OP_maximum, "f32[2,1] f32[1,2]", "", "f32[2,2]"},
    {OP_maximum, "f32[2,3] f32[2,2]", "", "E101"},
    {OP_minimum, "i32[2] i32[2]", "", "i32[2]"},
    {OP_minimum, "i32[2]", "", "E109"},
    {OP_eq, "i32[4] i32[]", "", "bool[4]"},
    {OP_eq, "i32[4] i64[4]", "", "E104"},
    {OP_ne, "bool[4] bool[4]", "", "bool[4]"},
    {OP_ne, "f32[4] f32[5]", "", "E101"},
    {OP_lt, "f32[4,1] f32[5]", "", "bool[4,5]"},
    {OP_lt, "f32[4] f32[5]", "", "E101"},
    {OP_le, "f32[4] f32[4]", "", "bool[4]"},
    {OP_le, "f32[4] i32[4]", "", "E104"},
    {OP_gt, "f32[4] f32[4]", "", "bool[4]"},
    {OP_gt, "f32[4]", "", "E109"},
    {OP_ge, "f32[4] f32[4]", "", "bool[4]"},
    {OP_ge, "f32[2,4] f32[3,4]", "", "E101"},
    {OP_select, "bool[4,1] f32[3] f32[]", "", "f32[4,3]"},
    {OP_select, "f32[3] f32[3] f32[3]", "", "E104"},
    {OP_select, "bool[2] f32[3] f32[3]", "", "E101"},
    {OP_select, "bool[3] f32[3] f32[2]", "", "E101"},
    {OP_relu_grad, "f32[3] f32[3]", "", "f32[3]"},
    {OP_relu_grad, "i32[3] i32[3]", "", "E104"},
    {OP_relu_mask, "f32[32]", "", "i32[1]"},
    {OP_relu_mask, "f32[3,11]", "", "i32[2]"},
    {OP_relu_mask, "f32[]", "", "i32[1]"},
    {OP_relu_mask, "i32[32]", "", "E104"},
    {OP_relu_mask_grad, "f32[3,11] i32[2]", "", "f32[3,11]"},
    {OP_relu_mask_grad, "f32[3,11] i32[1]", "", "E101"},
    {OP_relu_mask_grad, "f32[3,11] f32[3,11]", "", "E104"},
    {OP_tanh_grad, "f32[3] f32[3]", "", "f32[3]"},
    {OP_tanh_grad, "f32[3] f32[2]", "", "E101"},
    {OP_sigmoid_grad, "f32[3] f32[3]", "", "f32[3]"},
    {OP_sigmoid_grad, "f32[3] f32[2]", "", "E101"},
    {OP_gelu_grad, "f32[3] f32[3]", "approx=", "f32[3]"},
    {OP_gelu_grad, "f32[3] f32[2]", "", "E101"},
    {OP_silu_grad, "f32[3] f32[3]", "", "f32[3]"},
    {OP_silu_grad, "f32[3] f32[2]", "", "E101"},
    {OP_dropout, "f32[3,5] i32[4]", "p=0.5 key=3", "f32[3,5]"},
    {OP_dropout, "f32[3,5] i32[2]", "p=0.5", "E101"},
    {OP_dropout, "f32[3,5] i32[4]", "p=1", "E105"},
    {OP_dropout, "f32[3,5] i32[4]", "p=nan", "E105"},

    {OP_sum, "f32[2,3,4]", "axes=1", "f32[2,4]"},
    {OP_sum, "bf16[2,3,4]", "axes=1", "f32[2,4]"},
    {OP_sum, "i32[2,3,4]", "axes=0,2 keepdims=", "i32[1,3,1]"},
    {OP_sum, "f32[2,3,4]", "", "f32[]"},
    {OP_sum, "f32[2,3,4]", "axes=3", "E105"},
    {OP_sum, "f32[2,3,4]", "axes=1,0", "E105"},
    {OP_sum, "f32[2,3,4]", "axes=-1", "E105"},
    {OP_sum, "bool[2]", "", "E104"},
    {OP_mean, "f32[2,3]", "axes=0,1", "f32[]"},
    {OP_mean, "i32[2,3]", "axes=0,1", "E104"},
    {OP_reduce_max, "f32[2,3]", "axes=0", "f32[3]"},
    {OP_reduce_max, "f32[2,3]", "axes=1,1", "E105"},
    {OP_sumsq, "f32[2,3]", "", "f32[]"},
    {OP_sumsq, "i32[2,3]", "", "E104"},
    {OP_argmax, "f32[2,3,4]", "axis=1", "i32[2,4]"},
    {OP_argmax, "f32[2,3,4]", "keepdims=", "i32[2,3,1]"},
    {OP_argmax, "f32[]", "", "E105"},

    {OP_matmul, "f32[2,3] f32[3,5]", "", "f32[2,5]"},
    {OP_matmul, "bf16[2,3] f32[3,5]", "", "bf16[2,5]"},
    {OP_matmul, "bf16[2,3] bf16[3,5]", "dtype=f32", "f32[2,5]"},
    {OP_matmul, "f32[2,3] f32[3,5]", "dtype=i32", "E105"},
    {OP_matmul, "f32[7,1,2,3] f32[4,3,5]", "", "f32[7,4,2,5]"},
    {OP_matmul, "f32[3,2] f32[5,3]", "ta= tb=", "f32[2,5]"},
    {OP_matmul, "f32[2,3] f32[5,3]", "", "E101"},
    {OP_matmul, "f32[2,2,3] f32[3,3,5]", "", "E101"},
    {OP_matmul, "f32[3] f32[3,5]", "", "E103"},
    {OP_matmul, "f32[2,3] i32[3,5]", "", "E104"},
    {OP_linear, "f32[2,3] f32[5,3] f32[5]", "", "f32[2,5]"},
    {OP_linear, "f32[2,7,3] f32[3,5]", "in_out=", "f32[2,7,5]"},
    {OP_linear, "f32[32,512,7,7] f32[10,7]", "", "f32[32,512,7,10]"},
    {OP_linear, "f32[3] f32[5,3]", "", "E103"},
    {OP_linear, "f32[2,3] f32[5,4]", "", "E101"},
    {OP_linear, "f32[2,3] f32[5,3] f32[3]", "", "E101"},
    {OP_conv2d, "f32[2,3,224,224] f32[64,3,7,7]", "stride=2,2 padding=3,3", "f32[2,64,112,112]"},
    {OP_conv2d, "f32[2,9,8,3] f32[3,3,3,4] f32[4]", "nhwc= padding=1,0", "f32[2,9,6,4]"},
    {OP_conv2d, "f32[1,8,5,5] f32[8,1,3,3]", "groups=8 dilation=2,2", "f32[1,8,1,1]"},
    {OP_conv2d, "f32[1,8,4,5] f32[8,1,3,3]", "groups=8 dilation=2,2", "E106"},
    {OP_conv2d, "f32[1,8,5,5] f32[8,4,3,3]", "", "E101"},
    {OP_conv2d, "f32[1,8,5,5] f32[9,4,3,3]", "groups=2", "E105"},
    {OP_conv2d, "f32[1,8,5,5] f32[8,8,3,3]", "stride=0,1", "E105"},
    {OP_conv2d, "f32[1,8,5,5] f32[8,8,3,3]", "stride=1", "E105"},
    {OP_conv2d, "f32[1,8,5,5] f32[8,8,3,3]", "groups=0", "E105"},
    {OP_conv2d, "f32[8,5,5] f32[8,8,3,3]", "", "E103"},
    {OP_conv2d, "f32[1,8,5,5] f32[8,8,3,3] f32[5]", "", "E101"},
    {OP_conv2d, "f32[1,1,1,1] f32[1,1,1,1]", "padding=9223372036854775807,0", "E108"},
    {OP_conv2d, "f32[1,1,3,3] f32[1,1,3,3]", "dilation=9223372036854775807,1", "E108"},
    {OP_conv2d_dgrad, "f32[2,64,4,4] f32[64,3,3,3]", "hw=8,8 stride=2,2 padding=1,1",
     "f32[2,3,8,8]"},
    {OP_conv2d_dgrad, "f32[2,4,4,64] f32[3,3,3,64]", "nhwc= hw=7,8 stride=2,2 padding=1,1",
     "f32[2,7,8,3]"},
    {OP_conv2d_dgrad, "f32[2,64,4,4] f32[64,3,3,3]", "hw=9,8 stride=2,2 padding=1,1", "E101"},
    {OP_conv2d_dgrad, "f32[2,64,4,4] f32[64,3,3,3]", "stride=2,2", "E105"},
    {OP_conv2d_wgrad, "f32[2,8,9,9] f32[2,6,7,7]", "hw=3,3 groups=2", "f32[6,4,3,3]"},
    {OP_conv2d_wgrad, "f32[2,9,9,8] f32[2,7,7,6]", "hw=3,3 groups=2 nhwc=", "f32[3,3,4,6]"},
    {OP_conv2d_wgrad, "bf16[2,9,9,8] bf16[2,7,7,6]", "hw=3,3 groups=2 nhwc=", "f32[3,3,4,6]"},
    {OP_conv2d_wgrad, "f32[2,8,9,9] f32[2,6,7,7]", "hw=3,3 groups=3", "E105"},
    {OP_conv2d_wgrad, "f32[2,8,9,9] f32[2,6,7,6]", "hw=3,3", "E101"},
    {OP_deconv2d, "f32[2,1024,28,28] f32[1024,512,2,2] f32[512]", "stride=2,2", "f32[2,512,56,56]"},
    {OP_deconv2d, "f32[1,8,8,21] f32[4,4,21,20]", "nhwc= stride=2,2 padding=1,1", "E101"},
    {OP_deconv2d, "f32[1,8,8,21] f32[4,4,30,21]", "nhwc= stride=2,2 padding=1,1",
     "f32[1,16,16,30]"},
    {OP_deconv2d, "f32[1,6,5,7] f32[6,4,3,2]",
     "groups=3 stride=3,2 output_padding=2,1 dilation=1,3", "f32[1,12,17,17]"},
    {OP_deconv2d, "f32[1,6,5,5] f32[6,4,3,3]", "groups=4", "E105"},
    {OP_deconv2d, "f32[1,6,5,5] f32[6,4,3,3]", "stride=2,2 output_padding=2,0", "E105"},
    {OP_deconv2d, "f32[1,6,5,5] f32[6,4,3,3]", "dilation=1,3 output_padding=0,2", "f32[1,4,7,13]"},
    {OP_deconv2d, "f32[1,6,5,5] f32[6,4,3,3]", "output_padding=-1,0", "E105"},
    {OP_deconv2d, "f32[1,6,1,5] f32[6,4,3,3]", "padding=2,2", "E106"},
    {OP_deconv2d, "f32[1,6,5,5] f32[6,4,3,3] f32[6]", "", "E101"},
    {OP_deconv2d, "f32[6,5,5] f32[6,4,3,3]", "", "E103"},
    {OP_deconv2d, "f32[1,1,3,3] f32[1,1,1,1]", "stride=9223372036854775807,1", "E108"},
    {OP_deconv2d, "f32[1,1,1,1] f32[1,1,1,1]",
     "stride=9223372036854775807,1 output_padding=9223372036854775806,0", "E108"},

    {OP_maxpool, "f32[1,2,112,112]", "kernel=3,3 stride=2,2 padding=1,1", "f32[1,2,56,56]"},
    {OP_maxpool, "f32[1,2,6,6]", "kernel=3,3 stride=2,2", "f32[1,2,2,2]"},
    {OP_maxpool, "f32[1,2,6,6]", "kernel=3,3 stride=2,2 ceil=", "f32[1,2,3,3]"},
    /* The fourth window would start in the right padding: dropped. */
    {OP_maxpool, "f32[1,2,5,5]", "kernel=2,2 stride=2,2 padding=1,1 ceil=", "f32[1,2,3,3]"},
    /* The only window hangs over by less than a stride; by a stride. */
    {OP_maxpool, "f32[1,2,2,5]", "kernel=4,3 stride=4,4 ceil=", "f32[1,2,1,2]"},
    {OP_avgpool, "f32[1,2,4,3]", "kernel=5,2 stride=2,2 padding=0,1 ceil=", "f32[1,2,1,2]"},
    {OP_maxpool, "f32[1,2,2,5]", "kernel=4,3 stride=2,4 ceil=", "E106"},
    {OP_maxpool, "f32[1,1,4097,4096]", "kernel=4097,4096", "E108"},
    {OP_maxpool, "f32[1,6,6,2]", "kernel=2,3 nhwc=", "f32[1,3,2,2]"},
    {OP_maxpool, "f32[1,2,6,6]", "", "E105"},
    {OP_maxpool, "f32[1,2,2,2]", "kernel=3,3", "E106"},
    {OP_maxpool, "f32[1,2,6,6]", "kernel=2,2 padding=2,2", "E106"},
    {OP_maxpool, "f32[1,2,6,6]", "kernel=2,2 dilation=2,2", "E105"},
    {OP_maxpool_grad, "f32[1,2,3,3] f32[1,2,6,6]", "kernel=2,2", "f32[1,2,6,6]"},
    {OP_maxpool_grad, "f32[1,2,2,3] f32[1,2,6,6]", "kernel=2,2", "E101"},
    {OP_maxpool_index, "f32[1,2,6,6]", "kernel=3,3 stride=2,2 ceil=", "u8[1,2,3,3]"},
    {OP_maxpool_index, "f32[1,2,32,32]", "kernel=16,16", "u8[1,2,2,2]"},
    {OP_maxpool_index, "f32[1,2,32,32]", "kernel=16,17", "E108"},
    {OP_maxpool_index, "i32[1,2,6,6]", "kernel=2,2", "E104"},
    {OP_maxpool_index_grad, "f32[1,2,3,3] u8[1,2,3,3]", "kernel=2,2 hw=6,6", "f32[1,2,6,6]"},
    {OP_maxpool_index_grad, "f32[1,2,3,3] u8[1,2,3,3]", "kernel=2,2 hw=8,6", "E101"},
    {OP_maxpool_index_grad, "f32[1,2,3,3] u8[1,2,3,2]", "kernel=2,2 hw=6,6", "E101"},
    {OP_maxpool_index_grad, "f32[1,2,3,3] f32[1,2,3,3]", "kernel=2,2 hw=6,6", "E104"},
    {OP_avgpool, "f32[1,2,7,7]", "kernel=7,7 count_pad=", "f32[1,2,1,1]"},
    {OP_avgpool, "i32[1,2,7,7]", "kernel=7,7", "E104"},
    {OP_avgpool_grad, "f32[1,2,1,1]", "kernel=7,7 hw=7,7", "f32[1,2,7,7]"},
    {OP_avgpool_grad, "f32[1,2,1,1]", "kernel=7,7 hw=14,7", "E101"},
    {OP_adaptive_avgpool, "f32[1,2,7,9]", "hw=3,12", "f32[1,2,3,12]"},
    {OP_adaptive_avgpool, "f32[1,7,9,2]", "hw=3,12 nhwc=", "f32[1,3,12,2]"},
    {OP_adaptive_avgpool, "f32[2,7,9]", "hw=3,3", "E103"},
    {OP_adaptive_avgpool, "f32[1,2,7,9]", "", "E105"},
    {OP_adaptive_avgpool, "f32[1,2,7,9]", "hw=0,1", "E105"},
    {OP_adaptive_avgpool_grad, "f32[1,2,3,3]", "hw=7,9", "f32[1,2,7,9]"},
    {OP_adaptive_avgpool_grad, "u8[1,2,3,3]", "hw=7,9", "E104"},
    {OP_resize, "f32[2,19,90,90]", "hw=713,713 align_corners=", "f32[2,19,713,713]"},
    {OP_resize, "f32[2,5,4,3]", "hw=2,9 nearest= nhwc=", "f32[2,2,9,3]"},
    {OP_resize, "f32[2,5,4,3]", "hw=2,9 nearest= align_corners=", "E105"},
    {OP_resize, "f32[2,5,4,3]", "hw=2", "E105"},
    {OP_resize, "f32[2,5,4,3]", "hw=" BIG ",4", "E108"},
    {OP_resize_grad, "f32[2,19,5,5]", "hw=3,4", "f32[2,19,3,4]"},
    {OP_resize_grad, "f32[19,5,5]", "hw=3,4", "E103"},
    {OP_bn_stats, "f32[4,8,5,5]", "", "f32[8] f32[8]"},
    {OP_bn_stats, "f32[4,5,5,8]", "axis=3", "f32[8] f32[8]"},
    {OP_bn_stats, "f32[8]", "", "E103"},
    {OP_bn_stats, "f32[4,8]", "axis=2", "E105"},
    {OP_bn_apply, "f32[4,8] f32[8] f32[8] f32[8] f32[8]", "", "f32[4,8]"},
    {OP_bn_apply, "f32[4,8] f32[8] f32[8] f32[8] f32[4]", "", "E101"},
    {OP_bn_grad_sums, "f32[4,8] f32[4,8] f32[8] f32[8]", "", "f32[8] f32[8]"},
    {OP_bn_grad_sums, "f32[4,8] f32[5,8] f32[8] f32[8]", "", "E101"},
    {OP_bn_grad_x, "f32[4,8] f32[4,8] f32[8] f32[8] f32[8] f32[8] f32[8]", "", "f32[4,8]"},
    {OP_bn_grad_x, "f32[4,8] f32[8] f32[8] f32[8] f32[8] f32[8] f32[8]", "", "E101"},
    {OP_bn_running, "f32[8] f32[8]", "", "f32[8]"},
    {OP_bn_running, "f32[8] f32[4]", "", "E101"},
    {OP_lrn, "f32[2,96,55,55]", "window=5", "f32[2,96,55,55]"},
    {OP_lrn, "f32[2,55,55,96]", "axis=3 window=1024", "f32[2,55,55,96]"},
    {OP_lrn, "f32[2,8,5,5]", "window=0", "E105"},
    {OP_lrn, "f32[2,8,5,5]", "window=1025", "E105"},
    {OP_lrn, "f32[2,4097,5]", "", "E108"},
    {OP_lrn, "f32[8]", "", "E103"},
    {OP_lrn, "i32[2,8]", "", "E104"},
    {OP_lrn_grad, "f32[2,8,5,5] f32[2,8,5,5]", "", "f32[2,8,5,5]"},
    {OP_lrn_grad, "f32[2,8,5,5] f32[2,8,5,4]", "", "E101"},
    {OP_layernorm, "f32[2,3,4]", "", "f32[2,3,4] f32[2,3] f32[2,3]"},
    {OP_layernorm, "bf16[2,3,4] f32[4]", "", "bf16[2,3,4] f32[2,3] f32[2,3]"},
    {OP_layernorm, "f32[4] f32[4] f32[4]", "", "f32[4] f32[] f32[]"},
    {OP_layernorm, "f32[2,3,4] f32[3]", "", "E101"},
    {OP_layernorm, "f32[]", "", "E103"},
    {OP_layernorm_grad, "f32[2,4] f32[2,4] f32[2] f32[2] f32[4]", "", "f32[2,4]"},
    {OP_layernorm_grad, "f32[2,4] f32[2,4] f32[4] f32[2]", "", "E101"},
    {OP_layernorm_grad_sums, "f32[2,4] f32[2,4] f32[2] f32[2]", "", "f32[4] f32[4]"},
    {OP_layernorm_grad_sums, "f32[2,4] f32[2,4] f32[2] f32[4]", "", "E101"},

    {OP_softmax, "f32[2,4]", "axis=0", "f32[2,4]"},
    {OP_softmax, "f32[2,4]", "axis=2", "E105"},
    {OP_softmax_grad, "f32[2,4] f32[2,4]", "", "f32[2,4]"},
    {OP_softmax_grad, "f32[2,4] f32[4]", "", "E101"},
    {OP_log_softmax, "f32[2,4]", "", "f32[2,4]"},
    {OP_log_softmax, "f32[]", "", "E105"},
    {OP_log_softmax_grad, "f32[2,4] f32[2,4]", "", "f32[2,4]"},
    {OP_log_softmax_grad, "f32[2,4] i32[2,4]", "", "E104"},
    {OP_cross_entropy, "f32[8,10] i32[8]", "", "f32[]"},
    {OP_cross_entropy, "f32[8,10,4] i64[8,4]", "axis=1 smoothing=0.1", "f32[]"},
    {OP_cross_entropy, "f32[8,10,4] i32[8,10]", "axis=1", "E101"},
    {OP_cross_entropy, "f32[8,10] f32[8]", "", "E104"},
    {OP_cross_entropy, "f32[8,10] i32[8]", "smoothing=2", "E105"},
    {OP_cross_entropy, "f32[8,10,4] i32[8,4] f32[10]", "axis=1 reduction=none", "f32[8,4]"},
    {OP_cross_entropy, "f32[8,10] i32[8] f32[10]", "reduction=sum", "f32[]"},
    {OP_cross_entropy, "f32[8,10] i32[8] f32[8]", "", "E101"},
    {OP_cross_entropy, "f32[8,10] i32[8]", "reduction=max", "E105"},
    {OP_cross_entropy_grad, "f32[8,10] i32[8] f32[8] f32[10]", "reduction=none", "f32[8,10]"},
    {OP_cross_entropy_grad, "f32[8,10] i32[8] f32[8]", "", "E101"},
    {OP_cross_entropy_grad, "f32[8,10] i32[8] f32[]", "", "f32[8,10]"},
    {OP_cross_entropy_grad, "f32[8,10] i32[8] f32[1]", "", "E101"},
    {OP_accuracy, "f32[8,10] u8[8]", "", "f32[]"},
    {OP_accuracy, "f32[8,10] i32[10]", "", "E101"},
    {OP_embedding, "i32[2,3] f32[100,16]", "", "f32[2,3,16]"},
    {OP_embedding, "i32[2,3] f32[100,16]", "dtype=bf16", "bf16[2,3,16]"},
    {OP_embedding, "f32[2,3] f32[100,16]", "", "E104"},
    {OP_embedding, "i32[1,1,1,1,1,1,1,1] f32[100,16]", "", "E103"},
    {OP_embedding_grad, "i32[2,3] f32[2,3,16]", "shape=100,16", "f32[100,16]"},
    {OP_embedding_grad, "i32[2,3] f32[2,3,16]", "shape=100,8", "E101"},
    {OP_causal_mask, "f32[2,4,4]", "", "f32[2,4,4]"},
    {OP_causal_mask, "f32[4]", "", "E103"},
    {OP_attention, "f32[2,3,5,8] f32[2,3,7,8] f32[2,3,7,4]", "scale=0.5 causal=1",
     "f32[2,3,5,4] f32[2,3,5] f32[2,3,5]"},
    {OP_attention, "f32[5,8] f32[7,8] f32[7,4] f32[1,7] i32[4]", "p=0.1 key=3",
     "f32[5,4] f32[5] f32[5]"},
    {OP_attention, "f32[2,5,8] f32[2,7,8] f32[2,7,4] f32[2,1,7]", "",
     "f32[2,5,4] f32[2,5] f32[2,5]"},
    {OP_attention, "bf16[2,5,8] bf16[2,7,8] bf16[2,7,4]", "", "bf16[2,5,4] f32[2,5] f32[2,5]"},
    {OP_attention, "f32[5,8] f32[7,8] bf16[7,4] bf16[7]", "", "bf16[5,4] f32[5] f32[5]"},
    {OP_attention, "f32[5,8] f32[7,9] f32[7,4]", "", "E101"},
    {OP_attention, "f32[5,8] f32[7,8] f32[8,4]", "", "E101"},
    {OP_attention, "f32[5,8] f32[7,8] f32[7,4] f32[5,7]", "", "E101"},
    {OP_attention, "f32[5,8] f32[7,8] f32[7,4] i32[4]", "", "E104"},
    {OP_attention, "f32[5,8] f32[7,8] f32[7,4]", "p=0.1", "E109"},
    {OP_attention, "f32[5,8] f32[7,8] f32[7,4] i32[4]", "p=1", "E105"},
    {OP_attention, "f32[5,8] f32[2,7,8] f32[7,4]", "", "E103"},
    {OP_attention, "f32[5,257] f32[7,257] f32[7,4]", "", "E108"},
    {OP_attention_grad, "f32[5,4] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[5]", "causal=1",
     "f32[5,8] f32[7,8] f32[7,4]"},
    {OP_attention_grad, "bf16[5,4] f32[5,8] bf16[7,8] f32[7,4] f32[5] f32[5]", "",
     "f32[5,8] bf16[7,8] f32[7,4]"},
    {OP_attention_grad, "f32[5,4] f32[5,8] bf16[7,8] f32[7,4] f32[5] f32[5]", "", "E104"},
    {OP_attention_grad, "bf16[5,4] bf16[5,8] bf16[7,8] bf16[7,4] bf16[5] f32[5]", "", "E104"},
    {OP_attention_grad, "f32[5,8] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[5]", "", "E101"},
    {OP_attention_grad, "f32[5,4] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[7]", "", "E101"},
    {OP_attention_grad, "f32[5,4] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[5] f32[5,4]",
     "library=cudnn workspace=64", "f32[5,8] f32[7,8] f32[7,4]"},
    {OP_attention_grad,
     "f32[2,3,5,4] f32[2,3,5,8] f32[2,3,7,8] f32[2,3,7,4] f32[2,3,5] f32[2,3,5] f32[2,5,3,4]",
     "perm=0,2,1,3 library=cudnn workspace=64", "f32[2,3,5,8] f32[2,3,7,8] f32[2,3,7,4]"},
    {OP_attention_grad, "f32[5,4] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[5] f32[4,5]",
     "library=cudnn workspace=64", "E101"},
    {OP_attention_grad, "f32[5,4] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[5] f32[5,4]",
     "perm=0,2,1,3 library=cudnn workspace=64", "E105"},
    {OP_attention_grad,
     "f32[2,3,3,4] f32[2,3,3,8] f32[2,3,7,8] f32[2,3,7,4] f32[2,3,3] f32[2,3,3] f32[2,3,4,3]",
     "perm=0,1,3,2 library=cudnn workspace=64", "E105"},
    {OP_attention_grad,
     "f32[3,3,3,4] f32[3,3,3,8] f32[3,3,7,8] f32[3,3,7,4] f32[3,3,3] f32[3,3,3] f32[3,3,3,4]",
     "perm=0,0,0,3 library=cudnn workspace=64", "E105"},
    {OP_attention_grad, "f32[5,4] f32[5,8] f32[7,8] f32[7,4] f32[5] f32[5]",
     "library=cudnn workspace=64", "E101"},

    {OP_reshape, "f32[2,3,4]", "shape=6,4", "f32[6,4]"},
    {OP_reshape, "i32[1]", "shape=", "i32[]"},
    {OP_reshape, "f32[2,3,4]", "shape=5,5", "E107"},
    {OP_transpose, "f32[2,3,4]", "perm=2,0,1", "f32[4,2,3]"},
    {OP_transpose, "f32[2,3,4]", "perm=2,0", "E105"},
    {OP_transpose, "f32[2,3,4]", "perm=2,0,0", "E105"},
    {OP_transpose, "f32[2,3,4]", "perm=3,0,1", "E105"},
    {OP_broadcast, "f32[3,1]", "shape=2,3,4", "f32[2,3,4]"},
    {OP_broadcast, "f32[3,2]", "shape=2,3,4", "E101"},
    {OP_broadcast, "f32[2,3,4]", "shape=3,4", "E101"},
    {OP_slice, "f32[10,4]", "start=1,0 limit=8,4 step=3,1", "f32[3,4]"},
    {OP_slice, "f32[10,4]", "start=1,0 limit=8,4", "f32[7,4]"},
    {OP_slice, "f32[10,4]", "start=1,0 limit=11,4", "E107"},
    {OP_slice, "f32[10,4]", "start=8,0 limit=8,4", "E107"},
    {OP_slice, "f32[10,4]", "start=1,0 limit=8,4 step=0,1", "E105"},
    {OP_subview, "f32[10,4]", "start=1,0 limit=8,4 step=3,1", "f32[3,4]"},
    {OP_subview, "f32[10,4]", "start=1,0 limit=11,4", "E107"},
    {OP_concat, "f32[2,3] f32[2,5] f32[2,1]", "axis=1", "f32[2,9]"},
    {OP_concat, "f32[2,3]", "axis=0", "f32[2,3]"},
    {OP_concat, "f32[32,64,28,28] f32[32,128,27,27]", "axis=1", "E102"},
    {OP_concat, "f32[2,3] f32[2,3,1]", "axis=1", "E102"},
    {OP_concat, "f32[2,3] i32[2,3]", "axis=1", "E104"},
    {OP_concat, "f32[2,3]", "axis=2", "E105"},
    {OP_pad, "f32[2,3]", "lo=1,0 hi=0,2 value=-1", "f32[3,5]"},
    {OP_pad, "f32[2,3]", "lo=-1,0 hi=0,2", "E105"},
    {OP_pad, "f32[2,3]", "lo=1 hi=0,2", "E105"},
    {OP_pad, "f32[2,3]", "lo=9223372036854775807,0", "E108"},

    {OP_sgd_step, "f32[4] f32[4] f32[4] f32[] f32[]", "", "f32[4] f32[4]"},
    {OP_sgd_step, "f32[4] f32[4] f32[] f32[]", "", "f32[4]"},
    {OP_sgd_step, "f32[4] f32[3] f32[] f32[]", "", "E101"},
    {OP_sgd_step, "f32[4] f32[4] f32[4] f32[1] f32[]", "", "E101"},
    {OP_adam_step, "f32[4] f32[4] f32[4] f32[4] f32[] f32[] i32[]", "", "f32[4] f32[4] f32[4]"},
    {OP_adam_step, "f32[4] f32[4] f32[4] f32[4] f32[] f32[] i32[1]", "", "E104"},
    {OP_adam_step, "f32[4] f32[4] f32[4] f32[5] f32[] f32[] i32[]", "", "E101"},
    {OP_clip_scale, "f32[]", "max_norm=1", "f32[]"},
    {OP_clip_scale, "f32[3]", "", "E101"},
    {OP_checksum, "i32[3,4]", "", "i32[2]"},
    {OP_checksum, "", "", "E109"},
    {OP_fused, "f32[3]", "", "E110"},
    {OP_param, "", "", "E110"},
};

const int n_op_cases = sizeof op_cases / sizeof op_cases[0];

const char *next_word(Pool *pool, const char **text)
{
    *text += strspn(*text, " ");
    size_t n = strcspn(*text, " ");
    const char *word = n ? pool_strndup(pool, *text, n) : NULL;
    *text += n;
    return word;
}

static int parse_ints(Pool *pool, const char *text, int64_t **out)
{
    int n = 0;
    *out = POOL_ARRAY(pool, 16, int64_t);
    while (*text && *text != ']') {
        char *end;
        (*out)[n++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static void parse_floats(Pool *pool, AttrKey key, const char *text, AttrList *list)
{
    int n = 0;
    double *values = POOL_ARRAY(pool, 16, double);
    while (*text) {
        char *end;
        values[n++] = strtod(text, &end);
        text = *end == ',' ? end + 1 : end;
    }
    attrs_floats(list, key, values, n);
}

Type parse_type(Pool *pool, const char *text)
{
    size_t n = strcspn(text, "[");
    DType dtype = DTYPE_F32;
    int64_t *dims;
    CHECK_MSG(dtype_from_name(pool_strndup(pool, text, n), &dtype), "%s", text);
    int rank = parse_ints(pool, text + n + 1, &dims);
    return type_make(dtype, rank, dims);
}

void parse_attr(Pool *pool, const char *text, AttrList *list)
{
    size_t n = strcspn(text, "=");
    const char *value = text + n + 1;
    AttrKey key = ATTR_axis;
    int64_t *ints;
    CHECK_MSG(attr_from_name(pool_strndup(pool, text, n), &key), "%s", text);
    if (attr_kind(key) == ATTR_KIND_BOOL)
        attrs_int(list, key, 1);
    else if (attr_kind(key) == ATTR_KIND_INT)
        attrs_int(list, key, strtoll(value, NULL, 10));
    else if (attr_kind(key) == ATTR_KIND_FLOAT)
        attrs_float(list, key, strtod(value, NULL));
    else if (attr_kind(key) == ATTR_KIND_STRING)
        attrs_string(list, key, value);
    else if (attr_kind(key) == ATTR_KIND_FLOATS)
        parse_floats(pool, key, value, list);
    else {
        int count = parse_ints(pool, value, &ints);
        attrs_ints(list, key, ints, count);
    }
}
