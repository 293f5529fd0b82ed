# SPDX-License-Identifier: GPL-3.0-or-later
"""Moves the weights of a case away from ties (decisions.py).  A convolutional network makes a million decisions in a
step, and no seed keeps all of them clear of rounding errors.  But where they fall can be chosen: zero may lie anywhere
between two neighbouring values of a channel, and another kernel has other maxima.  This looks at float64 in PyTorch
only, before anything is computed with scrimp.
"""
import copy
import re

import torch
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

import decisions

# How far a bias may be moved, relative to what batch normalization makes of a channel's deviation.
REACH = 0.25

FAR = 1e9

# How many kernels are tried for a channel that is pooled.
KERNELS = 8


def clearest_zeros(x):
    """For each channel of x the z within REACH that is furthest from all values, and how far that is."""
    rows = x.transpose(0, 1).flatten(1)
    reach = REACH * (rows.std(1, keepdim=True) if rows.shape[1] > 1 else torch.ones_like(rows))
    ends = torch.full_like(rows[:, :1], FAR)
    values = torch.cat([-ends, rows.sort(1).values, ends], 1)
    below, above = values[:, :-1], values[:, 1:]
    z = torch.maximum(torch.minimum((below + above) / 2, reach), -reach)
    distance, best = torch.minimum(z - below, above - z).max(1)
    return z.gather(1, best[:, None])[:, 0], distance


def along_channels(v, x):
    return v.view(-1, *[1] * (x.dim() - 2))


def pooled_margins(x, chain):
    """The smallest margins of each channel in poolings, one after the other, given as options of max_pool2d."""
    least = torch.full_like(x[0].flatten(1)[:, 0], FAR)
    for options in chain:
        least = torch.minimum(least, decisions.pool_margins(x, **options))
        x = F.max_pool2d(x, **options)
    return least


def normalized(norm, x):
    return F.batch_norm(x, None, None, norm.weight, norm.bias, True, 0.0, norm.eps)


def choose_kernels(conv, norm, x, chain):
    """Of some kernels for each output channel, the one whose maxima, after normalization and relu, are the clearest.
    Returns the normalized output."""
    chosen = None
    for _ in range(KERNELS):
        kernel = conv.weight if chosen is None else torch.randn_like(conv.weight) * conv.weight.std()
        y = normalized(norm, F.conv2d(x, kernel, conv.bias, conv.stride, conv.padding, conv.dilation, conv.groups))
        score = pooled_margins(F.relu(y), chain)
        if chosen is None:
            chosen = kernel, y, score
            continue
        better = score > chosen[2]
        chosen = (torch.where(better[:, None, None, None], kernel, chosen[0]),
                  torch.where(along_channels(better, y), y, chosen[1]), torch.where(better, score, chosen[2]))
    conv.weight.copy_(chosen[0])
    return chosen[1]


@torch.no_grad()
def settle(module, forward, batch, pools):
    """Changes module so that few decisions of forward(module, batch) are near a tie.
    A relu that reads what a layer with a bias has written gets that bias moved.  pools names convolutions whose
    output, after batch normalization and relu, is pooled: {pattern of names: options of the poolings}; their kernels are
    chosen.  batch is of float64."""
    exact = copy.deepcopy(module).double().train()
    made = {}  # id of a tensor: the tensor, kept so that the id stays its own, and the layer and input that made it

    def written(layer, inputs, output):
        made[id(output)] = output, layer, inputs[0]

    def before(x, margins):
        _, layer, source = made.get(id(x), (None, None, None))
        if margins is not decisions.relu_margins or getattr(layer, "bias", None) is None or x.dim() not in (2, 4):
            return
        _, conv, conv_input = made.get(id(source), (None, None, None))
        if conv in pooled:
            x.copy_(choose_kernels(conv, layer, conv_input, pooled[conv]))
        zeros, _ = clearest_zeros(x)
        layer.bias -= zeros
        x -= along_channels(zeros, x)

    pooled = {m: chain for n, m in exact.named_modules() for pattern, chain in pools.items() if re.fullmatch(pattern, n)}
    layers = [m for m in exact.modules() if isinstance(m, (_BatchNorm, _ConvNd, torch.nn.Linear))]
    hooks = [m.register_forward_hook(written) for m in layers]
    with decisions.intercepted(before):
        forward(exact, batch)
    for hook in hooks:
        hook.remove()
    weights = dict(exact.named_parameters())
    for name, p in module.named_parameters():
        p.copy_(weights[name])
