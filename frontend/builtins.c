/* THE table of builtins.  A new function = one row here, and the function. */
#include "frontend/builtins.h"

#include "frontend/builtins_table.h"

#include "ir/support/strbuf.h"

#include <string.h>

// clang-format off
/* name, signature, documentation, function, owns parameters.
 * Kinds: tensor, operand (tensor or number), int, float, bool, string, ints (an int or a list),
 * floats, list, init, rate (a number or schedule), any, a|b|c (one of these words),
 * rest (further positional arguments), named (further named ones). */
const Builtin builtin_table[] = {
    /* layers */
    {"linear", "x: tensor, out: int, bias: bool = true, layout: out_in|in_out = out_in, init: init = none",
     "x W^T + b over the last dimension; weight [out, in], or [in, out] with layout = \"in_out\"", builtin_linear, true},
    {"conv", "x: tensor, out: int, kernel: ints, stride: ints = 1, pad: ints = 0, dilation: ints = 1, groups: int = 1, bias: bool = true, init: init = none",
     "2-D convolution of [N,C,H,W]; kernel, stride, pad and dilation are n or [h, w]", builtin_conv, true},
    {"deconv", "x: tensor, out: int, kernel: ints, stride: ints = 1, pad: ints = 0, output_pad: ints = 0, dilation: ints = 1, groups: int = 1, bias: bool = true, init: init = none",
     "transposed 2-D convolution of [N,C,H,W], as PyTorch's ConvTranspose2d: height (H-1) stride - 2 pad + dilation (kernel-1) + output_pad + 1", builtin_deconv, true},
    {"bn", "x: tensor, eps: float = 1e-5, momentum: float = 0.1",
     "batch normalization over the channels (dimension 1); running statistics outside training", builtin_bn, true},
    {"lrn", "x: tensor, size: int = 5, alpha: float = 1e-4, beta: float = 0.75, k: float = 1, average: bool = true",
     "local response normalization over `size` neighbouring channels (dimension 1): x / (k + a (sum of their squares)) ** beta; a is alpha / size as in PyTorch and Caffe, or alpha as in the paper with average = false; k > 0 and alpha >= 0", builtin_lrn, false},
    {"layernorm", "x: tensor, eps: float = 1e-5, bias: bool = true, affine: bool = true",
     "layer normalization over the last dimension", builtin_layernorm, true},
    {"affine", "x: tensor, weight: tensor, bias: tensor = none", "x W^T + b with a weight [out, in] and a bias [out] that there already are, such as $wte.weight or a `param`", builtin_affine, false},
    {"embedding", "ids: tensor, n: int, dim: int, init: init = none",
     "rows of an [n, dim] table, chosen by integers", builtin_embedding, true},
    {"dropout", "x: tensor, p: float", "zeroes elements with probability p and scales the others by 1/(1-p), in training", builtin_dropout, false},
    /* activations and element-wise functions */
    {"relu", "x: tensor", "max(x, 0)", builtin_relu, false},
    {"gelu", "x: tensor, approx: none|tanh = none", "Gaussian error linear unit, by erf or its tanh approximation", builtin_gelu, false},
    {"silu", "x: tensor", "x sigmoid(x)", builtin_silu, false},
    {"sigmoid", "x: tensor", "1 / (1 + exp(-x))", builtin_sigmoid, false},
    {"tanh", "x: tensor", "hyperbolic tangent", builtin_tanh, false},
    {"exp", "x: operand", "e to the x", builtin_exp, false},
    {"log", "x: operand", "natural logarithm", builtin_log, false},
    {"sin", "x: operand", "sine; NaN past |x| = 102942", builtin_sin, false},
    {"cos", "x: operand", "cosine; NaN past |x| = 102942", builtin_cos, false},
    {"sqrt", "x: operand", "square root", builtin_sqrt, false},
    {"rsqrt", "x: operand", "1 / sqrt(x)", builtin_rsqrt, false},
    {"abs", "x: operand", "absolute value", builtin_abs, false},
    {"sign", "x: tensor", "-1, 0 or 1", builtin_sign, false},
    {"pow", "x: operand, y: operand", "x to the y; also written x ** y", builtin_pow, false},
    {"maximum", "a: operand, b: operand", "the larger, element by element", builtin_maximum, false},
    {"minimum", "a: operand, b: operand", "the smaller, element by element", builtin_minimum, false},
    {"select", "condition: tensor, a: operand, b: operand", "a where the condition holds, else b", builtin_select, false},
    {"where", "condition: tensor, a: operand, b: operand", "the same as select", builtin_select, false},
    {"cast", "x: tensor, dtype: f32|f16|bf16|i32|i64|u8|bool", "converts the element type", builtin_cast, false},
    {"to_f32", "x: tensor, scale: float = 1", "converts to f32 and multiplies by scale", builtin_to_f32, false},
    {"stop_gradient", "x: tensor", "x, through which no gradient flows", builtin_stop_gradient, false},
    {"causal_mask", "x: tensor", "sets elements [.., t, s] with s > t to -inf", builtin_causal_mask, false},
    /* reductions */
    {"softmax", "x: tensor, axis: int = -1", "softmax along an axis", builtin_softmax, false},
    {"log_softmax", "x: tensor, axis: int = -1", "log of softmax along an axis", builtin_log_softmax, false},
    {"sum", "x: any, axis: ints = none, keepdims: bool = false", "sum over some axes, or all, of u8 as i32; of a list: the sum of its elements", builtin_sum, false},
    {"mean", "x: tensor, axis: ints = none, keepdims: bool = false", "mean over some axes, or all", builtin_mean, false},
    {"max", "x: any, more: rest, axis: ints = none, keepdims: bool = false", "of a tensor: the largest element over some axes, or all; of numbers or a list: the largest", builtin_max, false},
    {"min", "x: any, more: rest, axis: ints = none, keepdims: bool = false", "of a tensor: the smallest element over some axes, or all; of numbers or a list: the smallest", builtin_min, false},
    {"argmax", "x: tensor, axis: int = -1, keepdims: bool = false", "index of the first largest element", builtin_argmax, false},
    /* pooling */
    {"maxpool", "x: tensor, kernel: ints, stride: ints = none, pad: ints = 0, ceil: bool = false", "largest element of each window of [N,C,H,W]; stride is the kernel if not given", builtin_maxpool, false},
    {"avgpool", "x: tensor, kernel: ints, stride: ints = none, pad: ints = 0, ceil: bool = false, count_pad: bool = true", "mean of each window of [N,C,H,W]", builtin_avgpool, false},
    {"global_avgpool", "x: tensor", "mean of each channel: [N,C,H,W] to [N,C,1,1]", builtin_global_avgpool, false},
    {"adaptive_avgpool", "x: tensor, size: ints", "[N,C,H,W] to [N,C,size]: mean of the windows from floor(i H / h) to ceil((i+1) H / h), which differ by one in size and overlap where h does not divide H", builtin_adaptive_avgpool, false},
    {"resize", "x: tensor, size: ints, mode: bilinear|nearest = bilinear, align_corners: bool = false", "[N,C,H,W] to [N,C,size], up or down, without smoothing: between the four nearest elements, or element floor(i H / h); with align_corners the outermost elements lie on each other, else the outer borders; a side has at most 262,144 elements", builtin_resize, false},
    /* shapes */
    {"reshape", "x: tensor, shape: ints", "another shape with as many elements; one size may be -1", builtin_reshape, false},
    {"identity", "x: tensor", "x; an operation of its own to --count, but nothing runs", builtin_identity, false},
    {"flatten", "x: tensor, from: int = 1", "joins the dimensions from `from` on into one", builtin_flatten, false},
    {"transpose", "x: tensor, axes: ints, other: int = none", "transpose(x, [2, 0, 1]) permutes the dimensions; transpose(x, 1, 2) exchanges two", builtin_transpose, false},
    {"rearrange", "x: tensor, pattern: string, sizes: named", "einops: rearrange(x, \"b t (h d) -> b h t d\", h = 4)", builtin_rearrange, false},
    {"einsum", "pattern: string, operands: rest", "einsum(\"b i k, b k j -> b i j\", x, y)", builtin_einsum, false},
    {"concat", "xs: list, axis: int", "joins tensors along an axis", builtin_concat, false},
    {"stack", "xs: list, axis: int = 0", "joins tensors along a new axis", builtin_stack, false},
    {"split", "x: tensor, parts: ints, axis: int = -1", "a list of equal parts (an int), or of parts of the given sizes (a list)", builtin_split, false},
    {"slice", "x: tensor, axis: int, start: int = 0, end: int = none, step: int = 1", "elements start, start + step, ... before end (the last if not given) along an axis; a negative start or end counts from the end", builtin_slice, false},
    {"center_crop", "x: tensor, size: ints = none, like: tensor = none", "the middle of the last two dimensions, as large as size or as those of `like`; an odd rest is cut off at the end", builtin_center_crop, false},
    {"pad", "x: tensor, lo: ints, hi: ints = none, value: float = 0", "adds lo[i] elements before and hi[i] after dimension i", builtin_pad, false},
    {"broadcast", "x: tensor, shape: ints", "repeats dimensions of size 1", builtin_broadcast, false},
    {"iota", "n: int", "0, 1, ..., n-1 as i32[n]", builtin_iota, false},
    {"zeros", "shape: ints, dtype: f32|f16|bf16|i32|i64|u8|bool = f32", "a tensor of zeros; as an initial value: zeros", builtin_zeros, false},
    {"ones", "shape: ints, dtype: f32|f16|bf16|i32|i64|u8|bool = f32", "a tensor of ones; as an initial value: ones", builtin_ones, false},
    {"full", "shape: ints, value: float, dtype: f32|f16|bf16|i32|i64|u8|bool = f32", "a tensor of equal elements", builtin_full, false},
    {"tensor", "values: floats", "the numbers of a list as f32[n], part of the program: tensor([0.5, 2, 1])", builtin_tensor, false},
    {"sinusoid", "length: int, dim: int, base: float = 10000, layout: interleaved|halves = interleaved", "f32[length, dim] of sin and cos of position / base^(2i/dim), i < dim/2, alternating (Vaswani et al. 2017); halves: all sines before all cosines, of position / base^(i/(dim/2-1)) (tensor2tensor)", builtin_sinusoid, false},
    /* losses and metrics */
    {"cross_entropy", "logits: tensor, labels: tensor, label_smoothing: float = 0, ignore_index: int = -100, weight: any = none, reduction: mean|sum|none = mean", "negative log likelihood of integer labels, as torch.nn.CrossEntropyLoss; weight: of the classes, a tensor or a list, not negative; the mean is divided by the weights of the labels, none gives a loss for each label; classes on the last axis if labels have the shape of logits without it, else on axis 1", builtin_cross_entropy, false},
    {"mse", "a: tensor, b: operand, reduction: mean|sum|none = mean", "mean of (a - b) ** 2, their sum, or each", builtin_mse, false},
    {"accuracy", "logits: tensor, labels: tensor, ignore_index: int = -100", "part of the labels whose logit is the largest", builtin_accuracy, false},
    /* compile-time values */
    {"len", "x: any", "length of a list or string; of a tensor: its first dimension", builtin_len, false},
    {"range", "a: int, b: int = none, step: int = 1", "[a, a+step, ...] below b; range(n) is 0..n", builtin_range, false},
    {"zip", "lists: rest", "a list of lists of the i-th elements", builtin_zip, false},
    {"enumerate", "xs: list", "[[0, x0], [1, x1], ...]", builtin_enumerate, false},
    {"reversed", "xs: list", "the list backwards", builtin_reversed, false},
    {"int", "x: any", "an int from a float (towards zero), bool or int", builtin_int, false},
    {"float", "x: any", "a float from a number", builtin_float, false},
    {"round", "x: float", "the nearest int", builtin_round, false},
    /* initial values */
    {"init", "weight: init = none, bias: init = none", "with init(weight = normal(0.02), bias = zeros) { ... }: initial values of the linear, conv, deconv and embedding layers inside", builtin_init, false},
    {"normal", "std: float = 1", "initial value: normal with mean 0", builtin_normal, false},
    {"uniform", "lo: float = 0, hi: float = 1", "initial value: uniform between lo and hi", builtin_uniform, false},
    {"he_normal", "fan: in|out = in, gain: float = 1.4142135623730951", "initial value: normal with deviation gain / sqrt(fan)", builtin_he_normal, false},
    {"he_uniform", "fan: in|out = in, gain: float = 1.4142135623730951", "initial value: uniform with deviation gain / sqrt(fan)", builtin_he_uniform, false},
    {"xavier_normal", "gain: float = 1", "initial value: normal with deviation gain sqrt(2 / (fan_in + fan_out))", builtin_xavier_normal, false},
    {"xavier_uniform", "gain: float = 1", "initial value: uniform with deviation gain sqrt(2 / (fan_in + fan_out))", builtin_xavier_uniform, false},
    /* data sources */
    {"mnist", "path: string, batch: int", "MNIST in IDX files: .image u8[N,28,28], .label i32[N]", builtin_mnist, false},
    {"cifar10", "path: string, batch: int", "CIFAR-10 binary files: .image u8[N,3,32,32], .label i32[N]", builtin_cifar10, false},
    {"text", "paths: any, batch: int, length: int, tokens: bytes|chars = bytes", "windows of text: .x i32[N,T] and .y, shifted by one", builtin_text, false},
    {"tokens", "path: any, batch: int, length: int", "windows of a token .bin file: .x i32[N,T] and .y, shifted by one", builtin_tokens, false},
    {"npy", "paths: any, batch: int, fields: named", "NumPy arrays, x.npy being field x: npy([\"x.npy\", \"y.npy\"], batch = N, x = f32[N, 784], y = i32[N])", builtin_npy, false},
    {"imagefolder", "path: string, batch: int, size: int = 224, resize: int = none, augment: bool = true, mean: floats = none, std: floats = none", "JPEG and PNG pictures, a folder for each class: .image f32[N,3,size,size], .label i32[N]; in training random parts and mirrored (unless augment = false), else the middle after the shorter side became resize (size * 8 / 7); minus mean, divided by std (ImageNet's)", builtin_imagefolder, false},
    {"synthetic", "fields: named", "random data: synthetic(image = f32[N, 3, 32, 32], label = i32[N]); integers stay below the model's classes or rows", builtin_synthetic, false},
    /* optimizers and learning rates */
    {"sgd", "lr: rate, momentum: float = 0, nesterov: bool = false, weight_decay: float = 0, dampening: float = 0, clip: float = 0, gradient_free: bool = false", "stochastic gradient descent as in PyTorch; gradient_free: gradients go into the momentum as they are made and are stored nowhere", builtin_sgd, false},
    {"adam", "lr: rate, betas: floats = none, eps: float = 1e-8, weight_decay: float = 0, decay_on: all|matrices = all, clip: float = 0", "Adam; weight decay is added to the gradient", builtin_adam, false},
    {"adamw", "lr: rate, betas: floats = none, eps: float = 1e-8, weight_decay: float = 0.01, decay_on: all|matrices = all, clip: float = 0", "Adam with decoupled weight decay", builtin_adamw, false},
    {"constant", "lr: float, warmup: float = 0", "a constant learning rate", builtin_constant, false},
    {"linear_decay", "lr: float, warmup: float = 0, min: float = 0, power: float = 1", "falls linearly from lr to min, or with a power of the part that is left: 0.9 is the poly policy of segmentation networks", builtin_linear_decay, false},
    {"step", "lr: float, every: float, factor: float = 0.1, warmup: float = 0, start: float = 0", "multiplied by factor after every `every` epochs (steps when the section counts steps), counted from `start`", builtin_step, false},
    {"cosine", "lr: float, warmup: float = 0, min: float = 0", "falls along half a cosine from lr to min", builtin_cosine, false},
    {"inverse_sqrt", "lr: float, warmup: float", "rises linearly to lr during warmup, then falls with the square root of the time: lr sqrt(warmup / t)", builtin_inverse_sqrt, false},
};
// clang-format on
const int builtin_count = sizeof builtin_table / sizeof builtin_table[0];

/* The parts of the table, each from a function on. */
static const struct Part {
    const char *first, *title;
} parts[] = {
    {"linear", "layers"},
    {"relu", "element-wise functions"},
    {"softmax", "reductions"},
    {"maxpool", "pooling"},
    {"reshape", "functions of shapes"},
    {"cross_entropy", "losses and metrics"},
    {"len", "functions of numbers and lists"},
    {"init", "initial values"},
    {"mnist", "data sources"},
    {"sgd", "optimizers"},
    {"constant", "learning rates"},
};
enum { N_PARTS = sizeof parts / sizeof parts[0] };

const char *builtin_part(Pool *pool, const char *member)
{
    StrBuf names = strbuf_new(pool);
    int part = -1, found = -1;
    for (int i = 0; i < builtin_count; i++) {
        const char *name = builtin_table[i].name;
        if (part + 1 < N_PARTS && strcmp(name, parts[part + 1].first) == 0) {
            if (found >= 0)
                break;
            part++;
            names = strbuf_new(pool);
        }
        strbuf_printf(&names, "%s%s", names.len ? ", " : "", name);
        if (strcmp(name, member) == 0)
            found = part;
    }
    return found < 0 ? NULL : pool_printf(pool, "%s: %s", parts[found].title, names.text);
}

const Builtin *builtin_find(const char *name)
{
    for (int i = 0; i < builtin_count; i++)
        if (strcmp(builtin_table[i].name, name) == 0)
            return &builtin_table[i];
    return NULL;
}

int frontend_functions(Pool *pool, const FunctionInfo **out)
{
    FunctionInfo *list = POOL_ARRAY(pool, (size_t)builtin_count, FunctionInfo);
    for (int i = 0; i < builtin_count; i++) {
        const Builtin *b = &builtin_table[i];
        list[i] = (FunctionInfo){b->name, b->signature, b->doc, b->layer};
    }
    *out = list;
    return builtin_count;
}
