"""Decisions near a tie.  relu and max pooling decide; where two values are closer than rounding errors, f32 may decide
otherwise than float64, one element of a gradient goes elsewhere, and errors of 1e-7 become errors of 1e-3: then a
comparison measures luck.  So decisions are watched while float64 computes.
"""
import contextlib
import math

import torch
from torch.nn import functional as F

NEVER = -1e30

# About twice the rounding error of a deep network's activations, relative to their size.
MARGIN = 5e-7


def smallest(distances):
    """An exact tie does not count: it is two zeros of a relu, or one value that overlapping windows hold twice, and then
    either choice gives the same gradient."""
    return torch.where(distances > 0, distances, math.inf).min()


def relu_margin(x):
    return smallest(x.abs()) / x.square().mean().sqrt()


def pair(n):
    return (n, n) if isinstance(n, int) else tuple(n)


def max_margin(x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """How far the second largest of each window is below the largest."""
    assert dilation == 1 and not return_indices
    kernel, (above, left) = pair(kernel_size), pair(padding)
    more = kernel if ceil_mode else (0, 0)  # too much of what never wins does no harm
    padded = F.pad(x, (left, left + more[1], above, above + more[0]), value=NEVER)
    windows = F.unfold(padded.flatten(0, 1)[:, None], kernel, stride=pair(stride or kernel))
    first = windows.amax(1, keepdim=True)
    second = windows.masked_fill(windows == first, NEVER).amax(1, keepdim=True)
    return smallest(first - second) / x.square().mean().sqrt()


def clear(margins, drift=1):
    """drift: how many times larger rounding errors are than in a first step."""
    return min(margins, default=1.0) >= drift * MARGIN


@contextlib.contextmanager
def watched():
    """A list to which each relu and max pooling that runs inside appends its smallest distance from a tie, relative to
    the size of its input."""
    margins = []
    relu, max_pool2d = F.relu, F.max_pool2d

    def watched_relu(x, *arguments, **options):
        margins.append(relu_margin(x.detach()).item())
        return relu(x, *arguments, **options)

    def watched_max_pool2d(x, *arguments, **options):
        margins.append(max_margin(x.detach(), *arguments, **options).item())
        return max_pool2d(x, *arguments, **options)

    F.relu, F.max_pool2d = watched_relu, watched_max_pool2d
    try:
        yield margins
    finally:
        F.relu, F.max_pool2d = relu, max_pool2d
