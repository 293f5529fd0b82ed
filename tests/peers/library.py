#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes tests/property/library_cases.txt: what PyTorch computes, in double, for functions of the language and its library.

    tests/peers/library.py > tests/property/library_cases.txt

Element i of parameter j of a case is sin(1 + 1.3 i + 2.1 j); a case's loss is the sum of element i of its result times
cos(0.9 i).  property_test_library evaluates the same, and the gradient of every parameter.
"""
import math
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def rotate_half(x, base=10000.0):
    """rope as in Hugging Face's LLaMA."""
    T, D = x.shape[-2:]
    freq = base ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    angle = torch.arange(T, dtype=torch.float64)[:, None] * freq
    c, s = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    a, b = x.chunk(2, -1)
    return x * c + torch.cat([-b, a], -1) * s


def rotate_pairs(x, base=10000.0):
    """rope as in the paper: complex numbers of neighbouring elements."""
    T, D = x.shape[-2:]
    freq = base ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    turn = torch.polar(torch.ones(T, D // 2), torch.arange(T, dtype=torch.float64)[:, None] * freq)
    return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], D // 2, 2)) * turn).reshape(x.shape)


def attention(q, k, v, keep):
    """As torch.nn.functional.scaled_dot_product_attention is defined, which versions before 2.0 do not have."""
    scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~keep, -math.inf)
    return torch.softmax(scores, -1) @ v


def grouped(q, k, v):
    r = q.shape[1] // k.shape[1]
    T = q.shape[2]
    return attention(q, k.repeat_interleave(r, 1), v.repeat_interleave(r, 1), torch.ones(T, T, dtype=torch.bool).tril())


def masked(q, k, v):
    return attention(q, k, v, torch.arange(5) != 2)


def at(x, *values):
    """These values, of which x has the gradient: for kinks and ties."""
    return x - x.detach() + torch.tensor(values)


AT = "$_x - stop_gradient($_x) + tensor([{}])"
INDEX = "cast(reshape(tensor([{}]), [{}]), i32)"

TIES = ", ".join(str(i * i % 5) for i in range(27))


# name: (call in scrimp, {parameter: shape}, the same in PyTorch).  $ stands for the name of the case.
CASES = {
    "rmsnorm": ("$_x |> $: rmsnorm(eps = 1e-5)", {"$_x": (3, 4), "$.weight": (4,)},
                lambda x, w: w * x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()),
    "groupnorm": ("$_x |> $: groupnorm(2)", {"$_x": (2, 4, 2, 3), "$.weight": (4,), "$.bias": (4,)},
                  lambda x, w, b: F.group_norm(x, 2, w, b)),
    "groupnorm_flat": ("groupnorm($_x, 3, affine = false)", {"$_x": (2, 6)}, lambda x: F.group_norm(x, 3)),
    "instancenorm": ("$_x |> $: instancenorm(affine = true)", {"$_x": (2, 3, 4), "$.weight": (3,), "$.bias": (3,)},
                     lambda x, w, b: F.instance_norm(x, weight=w, bias=b)),
    "attention": ("attention($_q, $_k, $_v, scale = 0.3)", {"$_q": (1, 2, 3, 4), "$_k": (1, 2, 5, 4), "$_v": (1, 2, 5, 4)},
                  lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1) @ v),
    "attention_mask": ("attention($_q, $_k, $_v, mask = iota(5) != 2)",
                       {"$_q": (1, 2, 3, 4), "$_k": (1, 2, 5, 4), "$_v": (1, 2, 5, 4)}, masked),
    "attention_grouped": ("attention($_q, $_k, $_v, causal = true)",
                          {"$_q": (2, 4, 3, 2), "$_k": (2, 2, 3, 2), "$_v": (2, 2, 3, 2)}, grouped),
    "rope": ("rope($_x)", {"$_x": (2, 3, 4)}, rotate_half),
    "rope_pairs": ("rope($_x, base = 100, layout = interleaved)", {"$_x": (2, 3, 6)}, lambda x: rotate_pairs(x, 100.0)),
    "pixel_shuffle": ("pixel_shuffle($_x, 2)", {"$_x": (1, 8, 2, 3)}, lambda x: F.pixel_shuffle(x, 2)),
    "pixel_unshuffle": ("pixel_unshuffle($_x, 2)", {"$_x": (1, 2, 4, 6)}, lambda x: F.pixel_unshuffle(x, 2)),
    "tile": ("tile($_x, [2, 1, 3])", {"$_x": (2, 2, 2)}, lambda x: x.repeat(2, 1, 3)),
    "roll": ("roll($_x, -1, 1)", {"$_x": (2, 4)}, lambda x: x.roll(-1, 1)),
    "roll_more": ("roll($_x, 7, 0)", {"$_x": (5, 2)}, lambda x: x.roll(7, 0)),
    "tril": ("tril($_x, diagonal = 1)", {"$_x": (2, 4, 5)}, lambda x: x.tril(1)),
    "triu": ("triu($_x, -1)", {"$_x": (4, 3)}, lambda x: x.triu(-1)),
    "conv1d": ("$_x |> $: conv1d(4, 3, stride = 2, pad = 2, dilation = 2, groups = 2)",
               {"$_x": (2, 2, 9), "$.weight": (4, 1, 3), "$.bias": (4,)},
               lambda x, w, b: F.conv1d(x, w, b, 2, 2, 2, 2)),
    "conv3d": ("$_x |> $: conv3d(4, [2, 3, 2], stride = [2, 1, 2], pad = [1, 2, 1], dilation = [2, 1, 2], groups = 2)",
               {"$_x": (2, 4, 5, 3, 4), "$.weight": (4, 2, 2, 3, 2), "$.bias": (4,)},
               lambda x, w, b: F.conv3d(x, w, b, (2, 1, 2), (1, 2, 1), (2, 1, 2), 2)),
    "conv3d_flat": ("$_x |> $: conv3d(3, [1, 2, 2], bias = false)", {"$_x": (1, 2, 3, 3, 3), "$.weight": (3, 2, 1, 2, 2)},
                    F.conv3d),
    "maxpool1d": ("maxpool1d($_x, 3, stride = 2, pad = 1, ceil = true)", {"$_x": (2, 3, 8)},
                  lambda x: F.max_pool1d(x, 3, 2, 1, ceil_mode=True)),
    "maxpool1d_plain": ("maxpool1d($_x, 2)", {"$_x": (1, 2, 7)}, lambda x: F.max_pool1d(x, 2)),
    "avgpool1d": ("avgpool1d($_x, 3, stride = 2, pad = 1, ceil = true)", {"$_x": (2, 3, 8)},
                  lambda x: F.avg_pool1d(x, 3, 2, 1, True)),
    "avgpool1d_inside": ("avgpool1d($_x, 4, pad = 2, count_pad = false)", {"$_x": (2, 2, 9)},
                         lambda x: F.avg_pool1d(x, 4, None, 2, False, False)),
    "maxpool3d": ("maxpool3d($_x, [2, 3, 2], stride = [1, 2, 2], pad = [1, 1, 0], ceil = true)", {"$_x": (2, 2, 3, 4, 5)},
                  lambda x: F.max_pool3d(x, (2, 3, 2), (1, 2, 2), (1, 1, 0), ceil_mode=True)),
    "maxpool3d_ties": ("maxpool3d(reshape(" + AT.format(TIES) + ", [1, 1, 3, 3, 3]), 2, stride = 1)", {"$_x": (27,)},
                       lambda x: F.max_pool3d(at(x, *eval(TIES)).reshape(1, 1, 3, 3, 3), 2, 1)),
    "avgpool3d": ("avgpool3d($_x, [2, 3, 2], stride = 2, pad = [1, 1, 0], ceil = true)", {"$_x": (2, 2, 3, 4, 5)},
                  lambda x: F.avg_pool3d(x, (2, 3, 2), 2, (1, 1, 0), True)),
    "avgpool3d_inside": ("avgpool3d($_x, 3, stride = 2, pad = 1, count_pad = false)", {"$_x": (1, 2, 4, 5, 3)},
                         lambda x: F.avg_pool3d(x, 3, 2, 1, False, False)),
    "where": ("where(reshape(iota(3) != 1, [3, 1]), $_a, $_b)", {"$_a": (4,), "$_b": (2, 1, 1)},
              lambda a, b: torch.where((torch.arange(3) != 1).reshape(3, 1), a, b)),
    "where_wide": ("where(iota(4) != 1, $_a, 2) * $_b", {"$_a": (2, 1), "$_b": (4,)},
                   lambda a, b: torch.where(torch.arange(4) != 1, a, 2.0) * b),
    "nll": ("nll(log_softmax($_x), " + INDEX.format("2, 0, -100, 1", "4") + ")", {"$_x": (4, 3)},
            lambda x: F.nll_loss(x.log_softmax(-1), torch.tensor([2, 0, -100, 1]))),
    "nll_weighted": ("nll(log_softmax($_x, axis = 1), " + INDEX.format("2, 0, 1, 1, 0, 2, 2, 0", "2, 4")
                     + ", ignore_index = 1, weight = tensor([0.5, 3, 2]))", {"$_x": (2, 3, 4)},
                     lambda x: F.nll_loss(x.log_softmax(1), torch.tensor([[2, 0, 1, 1], [0, 2, 2, 0]]),
                                          torch.tensor([0.5, 3, 2]), ignore_index=1)),
    "nll_each": ("nll($_x, " + INDEX.format("2, 0, 1, -1, 0, 2, 1, 1", "2, 2, 2") + ", ignore_index = -1, reduction = none)",
                 {"$_x": (2, 3, 2, 2)},
                 lambda x: F.nll_loss(x, torch.tensor([2, 0, 1, -1, 0, 2, 1, 1]).reshape(2, 2, 2), ignore_index=-1,
                                      reduction="none")),
    "nll_sum": ("nll($_x, " + INDEX.format("2, 0", "2") + ", reduction = sum)", {"$_x": (2, 3)},
                lambda x: F.nll_loss(x, torch.tensor([2, 0]), reduction="sum")),
    "bce": ("bce_with_logits(3 * $_x, 0.5 + 0.5 * $_y)", {"$_x": (4, 3), "$_y": (4, 3)},
            lambda x, y: F.binary_cross_entropy_with_logits(3 * x, 0.5 + 0.5 * y)),
    "bce_weighted": ("bce_with_logits(3 * $_x, $_y, pos_weight = 2.5, weight = tensor([0.5, 2]), reduction = none)",
                     {"$_x": (3, 2), "$_y": (3, 2)},
                     lambda x, y: F.binary_cross_entropy_with_logits(3 * x, y, torch.tensor([0.5, 2]), reduction="none",
                                                                     pos_weight=torch.tensor(2.5))),
    "l1": ("l1($_a, $_b, reduction = sum)", {"$_a": (3, 2), "$_b": (3, 2)}, lambda a, b: F.l1_loss(a, b, reduction="sum")),
    "huber": ("huber(2 * $_a, $_b, delta = 0.7)", {"$_a": (3, 4), "$_b": (3, 4)},
              lambda a, b: F.huber_loss(2 * a, b, delta=0.7)),
    "kl_div": ("kl_div(log_softmax($_p), softmax($_q), reduction = batchmean)", {"$_p": (3, 4), "$_q": (3, 4)},
               lambda p, q: F.kl_div(p.log_softmax(-1), q.softmax(-1), reduction="batchmean")),
    "kl_div_log": ("kl_div(log_softmax($_p), log_softmax($_q), log_target = true)", {"$_p": (3, 4), "$_q": (3, 4)},
                   lambda p, q: F.kl_div(p.log_softmax(-1), q.log_softmax(-1), reduction="mean", log_target=True)),
    "cosine": ("cosine_embedding($_a, $_b, tensor([1, -1, 1, -1]), margin = -0.5, reduction = none)", {"$_a": (4, 3), "$_b": (4, 3)},
               lambda a, b: F.cosine_embedding_loss(a, b, torch.tensor([1, -1, 1, -1]), -0.5, reduction="none")),
    "cosine_similarity": ("cosine_similarity($_a, $_b, axis = 1)", {"$_a": (2, 3, 2), "$_b": (2, 3, 2)},
                          lambda a, b: F.cosine_similarity(a, b, 1)),
    "triplet": ("triplet($_a, $_p, $_n, margin = 0.8)", {"$_a": (4, 3), "$_p": (4, 3), "$_n": (4, 3)},
                lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=0.8)),
    "ctc": ("ctc(log_softmax(3 * $_x), " + INDEX.format("1, 2, 2, 3, 1, 1", "2, 3") + ")", {"$_x": (8, 2, 4)},
            lambda x: F.ctc_loss((3 * x).log_softmax(-1), torch.tensor([[1, 2, 2], [3, 1, 1]]), torch.tensor([8, 8]),
                                 torch.tensor([3, 3]))),
    "ctc_lengths": ("ctc(log_softmax($_x), " + INDEX.format("0, 1, 1, 3, 2, 2, 1, 1, 0, 0, 0, 0", "4, 3") + ", steps = "
                    + INDEX.format("7, 4, 5, 3", "4") + ", lengths = " + INDEX.format("3, 1, 2, 0", "4")
                    + ", blank = 2, reduction = none)", {"$_x": (7, 4, 4)},
                    lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([[0, 1, 1], [3, 0, 0], [1, 1, 0], [0, 0, 0]]),
                                         torch.tensor([7, 4, 5, 3]), torch.tensor([3, 1, 2, 0]), blank=2,
                                         reduction="none")),
    "ctc_impossible": ("ctc(log_softmax($_x), " + INDEX.format("1, 1, 2, 1", "2, 2") + ", reduction = sum, zero_infinity"
                       " = true)", {"$_x": (2, 2, 3)},
                       lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([[1, 1], [2, 1]]), torch.tensor([2, 2]),
                                            torch.tensor([2, 2]), reduction="sum", zero_infinity=True)),
    "ctc_one": ("ctc(log_softmax($_x), " + INDEX.format("1", "1, 1") + ")", {"$_x": (1, 1, 3)},
                lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([[1]]), torch.tensor([1]), torch.tensor([1]))),
    "max_unpool": ("max_unpool(maxpool_indices($_x, 2)[0], maxpool_indices($_x, 2)[1], [4, 6]) * $_y",
                   {"$_x": (2, 2, 4, 6), "$_y": (2, 2, 4, 6)},
                   lambda x, y: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2) * y),
    "maxpool_indices": ("to_f32(maxpool_indices($_x, [3, 2], stride = [1, 2], pad = [1, 0])[1]) * $_y + sum($_x)",
                        {"$_x": (2, 2, 4, 5), "$_y": (2, 2, 4, 2)},
                        lambda x, y: F.max_pool2d(x, (3, 2), (1, 2), (1, 0), return_indices=True)[1] * y
                        + x.sum()),
    "maxpool_indices_ties": ("to_f32(maxpool_indices(reshape(" + AT.format("1, 2, 2, 2, 1, 2, 0, 2, 2")
                             + ", [1, 1, 3, 3]), 2, stride = 1, pad = 1)[1]) * $_y + sum($_x)", {"$_x": (9,), "$_y": (1, 1, 4, 4)},
                             lambda x, y: F.max_pool2d(at(x, 1, 2, 2, 2, 1, 2, 0, 2, 2).reshape(1, 1, 3, 3), 2, 1, 1,
                                                       return_indices=True)[1] * y + x.sum()),
    "gru": ("$_x |> $: gru(2)", {"$_x": (4, 3, 2), "$.weight_ih": (6, 2), "$.weight_hh": (6, 2), "$.bias_ih": (6,),
                                 "$.bias_hh": (6,)},
            lambda x, *w: torch.gru(x, torch.zeros(1, 3, 2), w, True, 1, 0.0, False, False, False)[0]),
    "lstm": ("$_x |> $: lstm(2)", {"$_x": (4, 3, 2), "$.weight_ih": (8, 2), "$.weight_hh": (8, 2), "$.bias_ih": (8,),
                                   "$.bias_hh": (8,)},
             lambda x, *w: torch.lstm(x, (torch.zeros(1, 3, 2), torch.zeros(1, 3, 2)), w, True, 1, 0.0, False, False,
                                      False)[0]),
    "lstm_unrolled": ("$_x |> $: lstm(3, unroll = true)",
                      {"$_x": (3, 2, 2), "$.weight_ih": (12, 2), "$.weight_hh": (12, 3), "$.bias_ih": (12,),
                       "$.bias_hh": (12,)},
                      lambda x, *w: torch.lstm(x, (torch.zeros(1, 2, 3), torch.zeros(1, 2, 3)), w, True, 1, 0.0, False,
                                               False, False)[0]),
    "erf": ("erf(2 * $_x)", {"$_x": (9,)}, lambda x: torch.erf(2 * x)),
    "leaky_relu": ("leaky_relu(" + AT.format("-2, 0, 3") + ", slope = 0.1)", {"$_x": (3,)},
                   lambda x: F.leaky_relu(at(x, -2, 0, 3), 0.1)),
    "leaky_relu_turned": ("leaky_relu(" + AT.format("-2, 0, 3") + ", slope = -0.5)", {"$_x": (3,)},
                          lambda x: F.leaky_relu(at(x, -2, 0, 3), -0.5)),
    "elu": ("elu(" + AT.format("-30, -1, -1e-9, 0, 3") + ", alpha = 1.5)", {"$_x": (5,)},
            lambda x: F.elu(at(x, -30, -1, -1e-9, 0, 3), 1.5)),
    "softplus": ("softplus(" + AT.format("-90, -3, 0, 5, 90") + ", beta = 2)", {"$_x": (5,)},
                 lambda x: F.softplus(at(x, -90, -3, 0, 5, 90), 2, threshold=200)),
    "mish": ("mish(" + AT.format("-90, -3, -1e-3, 0, 5, 90") + ")", {"$_x": (6,)},
             lambda x: F.mish(at(x, -90, -3, -1e-3, 0, 5, 90))),
    "hardswish": ("hardswish(4 * $_x)", {"$_x": (12,)}, lambda x: F.hardswish(4 * x)),
    "relu6": ("relu6(" + AT.format("-1, 0, 2, 6, 7") + ")", {"$_x": (5,)}, lambda x: F.relu6(at(x, -1, 0, 2, 6, 7))),
    "clamp": ("clamp(" + AT.format("-2, -1, 0, 2, 3") + ", -1, 2)", {"$_x": (5,)},
              lambda x: at(x, -2, -1, 0, 2, 3).clamp(-1, 2)),
    "clamp_crossed": ("clamp(" + AT.format("-2, 0, 3") + ", lo = 2, hi = 1)", {"$_x": (3,)},
                      lambda x: at(x, -2, 0, 3).clamp(2, 1)),
    "prod": ("prod($_x, axis = 1)", {"$_x": (2, 3, 2)}, lambda x: x.prod(1)),
    "prod_all": ("prod($_x)", {"$_x": (2, 2)}, lambda x: x.prod()),
    "prod_zeros": ("prod(reshape(" + AT.format("1, 2, 3, 4, 0, 6, 0, 8, 0") + ", [3, 3]), -1, keepdims = true)",
                   {"$_x": (9,)}, lambda x: at(x, 1, 2, 3, 4, 0, 6, 0, 8, 0).reshape(3, 3).prod(-1, keepdim=True)),
    "cumsum": ("cumsum($_x, -1)", {"$_x": (2, 5)}, lambda x: x.cumsum(-1)),
    "cumsum_back": ("cumsum($_x, 0, reverse = true)", {"$_x": (4, 2)}, lambda x: x.flip(0).cumsum(0).flip(0)),
    "cumsum_before": ("cumsum($_x, 0, exclusive = true)", {"$_x": (4, 2)}, lambda x: x.cumsum(0) - x),
    "cumprod": ("cumprod(2 * $_x, 1)", {"$_x": (2, 4, 2)}, lambda x: (2 * x).cumprod(1)),
    "cumprod_zeros": ("cumprod(" + AT.format("2, 0, 3, 0, 5") + ", 0)", {"$_x": (5,)},
                      lambda x: at(x, 2, 0, 3, 0, 5).cumprod(0)),
    "gather": ("gather($_x, " + INDEX.format("2, 0, 0, 1, 2, 2", "3, 2") + ", 0)", {"$_x": (3, 4)},
               lambda x: x.gather(0, torch.tensor([[2, 0], [0, 1], [2, 2]]))),
    "scatter_add": ("scatter_add($_x, " + INDEX.format("2, 0, 0, 1, 2, 2", "2, 3") + ", $_y, 1)",
                    {"$_x": (3, 3), "$_y": (3, 4)},
                    lambda x, y: x.scatter_add(1, torch.tensor([[2, 0, 0], [1, 2, 2]]), y[:2, :3])),
    "index_select": ("index_select($_x, " + INDEX.format("2, 0, 2", "3") + ", 1)", {"$_x": (2, 3, 2)},
                     lambda x: x.index_select(1, torch.tensor([2, 0, 2]))),
    "index_select_first": ("index_select($_x, " + INDEX.format("2, 0, 2", "3") + ", 0)", {"$_x": (3, 2)},
                           lambda x: x.index_select(0, torch.tensor([2, 0, 2]))),
    "index_select_last": ("index_select($_x, " + INDEX.format("2, 0, 2", "3") + ", -1)", {"$_x": (2, 3)},
                          lambda x: x.index_select(-1, torch.tensor([2, 0, 2]))),
    "sort": ("sort($_x)", {"$_x": (3, 5)}, lambda x: x.sort(dim=-1, stable=True)[0]),
    "sort_ties": ("sort(" + AT.format("2, 1, 2, 1, 2, -0.0, 0") + ", descending = true)", {"$_x": (7,)},
                  lambda x: at(x, 2, 1, 2, 1, 2, -0.0, 0).sort(dim=-1, stable=True, descending=True)[0]),
    "argsort": ("to_f32(argsort(stop_gradient($_x))) * $_x", {"$_x": (3, 5)}, lambda x: x.argsort(-1) * x),
    "topk": ("topk($_x, 2)[0]", {"$_x": (3, 5)}, lambda x: x.topk(2)[0]),
    "topk_index": ("to_f32(topk($_x, 2)[1]) * $_x[.., 0..2]", {"$_x": (3, 5)}, lambda x: x.topk(2)[1] * x[:, :2]),
    "flip": ("flip($_x, [0, -1])", {"$_x": (2, 3, 4)}, lambda x: x.flip(0, -1)),
    "one_hot": ("one_hot(" + INDEX.format("2, 0, 1, 2", "2, 2") + ", 3) * $_x", {"$_x": (2, 2, 3)},
                lambda x: F.one_hot(torch.tensor([[2, 0], [1, 2]]), 3) * x),
    "var": ("var($_x, axis = 1)", {"$_x": (3, 4)}, lambda x: x.var(1)),
    "var_all": ("var($_x, correction = 0)", {"$_x": (3, 4)}, lambda x: x.var(unbiased=False)),
    "std": ("std($_x, axis = [0, 2], keepdims = true)", {"$_x": (3, 2, 4)}, lambda x: x.std((0, 2), keepdim=True)),
    "random_flip": ("random_flip($_x, p = 1, always = true)", {"$_x": (2, 1, 2, 3)}, lambda x: x.flip(3)),
    "random_flip_never": ("random_flip($_x, p = 0, always = true)", {"$_x": (2, 1, 2, 3)}, lambda x: x),
    "random_crop": ("random_crop($_x, 0, always = true)", {"$_x": (2, 2, 3, 4)}, lambda x: x),
    "random_resized_crop": ("random_resized_crop($_x, [1, 1], ratio = 1, mirror = 1, always = true)", {"$_x": (2, 2, 3, 3)},
                            lambda x: x.flip(3)),
    "color_jitter": ("color_jitter(0.4 + 0.3 * $_x, 0.5, 0.5, 0.5, p = 0, always = true)", {"$_x": (2, 3, 2, 2)},
                     lambda x: 0.4 + 0.3 * x),
    "random_grayscale": ("random_grayscale($_x, p = 1, always = true)", {"$_x": (2, 3, 2, 2)},
                         lambda x: torch.einsum("nchw,c->nhw", x, torch.tensor([0.299, 0.587, 0.114]))[:, None].expand_as(x)),
    "logsumexp": ("logsumexp(100 * $_x, axis = [0, -1])", {"$_x": (2, 3, 2)}, lambda x: torch.logsumexp(100 * x, (0, -1))),
}


def numbers(t):
    return " ".join(repr(v) for v in t.reshape(-1).tolist())


def main():
    print("# Written by tests/peers/library.py with PyTorch", torch.__version__.split("+")[0])
    for name, (call, shapes, function) in CASES.items():
        print("case", name)
        values = []
        for j, (parameter, shape) in enumerate(shapes.items()):
            n = math.prod(shape)
            v = torch.sin(1 + 1.3 * torch.arange(n, dtype=torch.float64) + 2.1 * j).reshape(shape).requires_grad_()
            values.append(v)
            print("param", parameter.replace("$", name), *shape)
        print("call", call.replace("$", name))
        y = function(*values)
        loss = (y.reshape(-1) * torch.cos(0.9 * torch.arange(y.numel(), dtype=torch.float64))).sum()
        loss.backward()
        print("loss", repr(loss.item()))
        for v in values:
            print("grad", numbers(v.grad))


main()
