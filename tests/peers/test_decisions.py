# SPDX-License-Identifier: GPL-3.0-or-later
"""pool_margins against windows written out one by one: those of max_pool2d, no more and no fewer."""
import itertools
import math

import torch
from torch.nn import functional as F

import decisions


def brute_force(x, kernel_size, stride, padding, ceil_mode):
    """Half the least distance between the two largest values of a window, for each channel of x (channels, h, w).
    How many windows there are is taken from what max_pool2d returns."""
    height, width = F.max_pool2d(x[None], kernel_size, stride, padding, ceil_mode=ceil_mode).shape[2:]

    def window(plane, row, column):
        top, left = (max(i * stride - padding, 0) for i in (row, column))
        bottom, right = (i * stride - padding + kernel_size for i in (row, column))
        return plane[top:bottom, left:right].flatten().sort(descending=True).values

    def margin(values):
        return float(values[0] - values[1]) / 2 if len(values) > 1 else math.inf

    return [min(margin(window(plane, *at)) for at in itertools.product(range(height), range(width))) for plane in x]


def shapes():
    for kernel, stride, padding, ceil_mode in itertools.product((1, 2, 3), (1, 2, 3, 4), (0, 1), (False, True)):
        if 2 * padding <= kernel:
            for height in range(max(kernel, 2), 10):
                yield (height, 7), dict(kernel_size=kernel, stride=stride, padding=padding, ceil_mode=ceil_mode)


def main():
    generator = torch.Generator().manual_seed(1)
    count = 0
    for (height, width), options in shapes():
        x = torch.rand(3, height, width, generator=generator, dtype=torch.float64)
        mine, truth = decisions.pool_margins(x[None], **options).tolist(), brute_force(x, **options)
        for a, b in zip(mine, truth):
            if not (math.isclose(a, b, rel_tol=1e-12) or b == math.inf and a > 1e20):
                print(f"FAIL {height}x{width} {options}: margin {a}, windows one by one give {b}")
                return 1
        count += 1
    print(f"{count} poolings: the margins are those of their windows")
    return 0
