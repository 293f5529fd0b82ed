# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions near a tie.  relu, relu6 and max pooling decide; where two values are closer than rounding errors, f32 may
decide otherwise than float64, one element of a gradient goes elsewhere, and errors of 1e-7 become errors of 1e-3: then a
comparison measures luck.  So decisions are watched, in PyTorch alone: how far from a tie in float64, and how far float32
is off there.
"""
import collections
import contextlib
import math

import torch
from torch.nn import functional as F

NEVER = -1e30

# How many of float32's largest errors a decision must be away from a tie: in the first step and in those that follow,
# whose errors are larger and where less can be chosen.
CLEAR = 4.0
CLEAR_LATER = 2.0


def by_channel(distances):
    """The smallest of each channel (the second axis).  An exact tie does not count: it is two zeros of a relu, or one
    value that overlapping windows hold twice, and then either choice gives the same gradient."""
    return torch.where(distances > 0, distances, math.inf).transpose(0, 1).flatten(1).amin(1)


def relu_margins(x):
    """How far from zero the closest value of each channel is."""
    return by_channel(x.abs())


def hardtanh_margins(x, low, high):
    """How far from a bound the closest value of each channel is."""
    return by_channel(torch.minimum((x - low).abs(), (x - high).abs()))


def pair(n):
    return (n, n) if isinstance(n, int) else tuple(n)


def end_padding(length, kernel, stride, padding, ceil_mode):
    """What to add at the end of an axis so that its windows are those of max_pool2d; negative: they leave a rest."""
    rest = length + 2 * padding - kernel
    windows = (rest + stride - 1 if ceil_mode else rest) // stride + 1
    if (windows - 1) * stride >= length + padding:
        windows -= 1  # a window would lie in the padding only
    return (windows - 1) * stride + kernel - length - padding


def pool_margins(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """How far the second largest of a window is below the largest: the least of each channel.  Half of it, since both
    may be off."""
    assert dilation == 1 and not return_indices
    kernel, stride, (above, left) = pair(kernel_size), pair(stride or kernel_size), pair(padding)
    below, right = (end_padding(*axis, ceil_mode) for axis in zip(x.shape[2:], kernel, stride, (above, left)))
    padded = F.pad(x, (left, right, above, below), value=NEVER)
    windows = F.unfold(padded.flatten(0, 1)[:, None], kernel, stride=stride)
    first = windows.amax(1, keepdim=True)
    second = windows.masked_fill(windows == first, NEVER).amax(1, keepdim=True)
    return by_channel((first - second).view(*x.shape[:2], -1)) / 2


@contextlib.contextmanager
def intercepted(before):
    """Calls before(x, margins) ahead of each relu, hardtanh (as which relu6 runs) and max pooling that runs inside;
    margins() are its margins."""
    relu, leaky_relu, hardtanh, max_pool2d = F.relu, F.leaky_relu, F.hardtanh, F.max_pool2d

    def watched_relu(x, *arguments, **options):
        before(x, relu_margins)
        return relu(x, *arguments, **options)

    def watched_leaky_relu(x, *arguments, **options):
        before(x, relu_margins)
        return leaky_relu(x, *arguments, **options)

    def watched_hardtanh(x, low=-1.0, high=1.0, *arguments):
        before(x, lambda x: hardtanh_margins(x, low, high))
        return hardtanh(x, low, high, *arguments)

    def watched_max_pool2d(x, *arguments, **options):
        before(x, lambda x: pool_margins(x, *arguments, **options))
        return max_pool2d(x, *arguments, **options)

    F.relu, F.leaky_relu = watched_relu, watched_leaky_relu
    F.hardtanh, F.max_pool2d = watched_hardtanh, watched_max_pool2d
    try:
        yield
    finally:
        F.relu, F.leaky_relu, F.hardtanh, F.max_pool2d = relu, leaky_relu, hardtanh, max_pool2d


def clearance(exact, rounded):
    """The smallest margin of all decisions, as a multiple of float32's largest error in the same channel.
    exact() and rounded() run the same network, in float64 and in float32."""
    seen, ratios = collections.deque(), []

    def remember(x, margins):
        seen.append((x.detach().clone(), margins(x.detach())))

    def judge(x, _):
        truth, margins = seen.popleft()
        errors = (truth - x.detach().double()).abs().transpose(0, 1).flatten(1).amax(1)
        ratios.append((margins / errors.clamp(min=1e-30)).min().item())

    with intercepted(remember):
        exact()
    with intercepted(judge):
        rounded()
    return min(ratios, default=math.inf)
