# SPDX-License-Identifier: GPL-3.0-or-later
"""Small mistakes of a twin, which the comparison has to notice: each makes of a case and its module wrong ones."""
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional as F


def weight(case, module):
    """One weight of the last matrix is off by a sixteenth of the matrix's root mean square."""
    matrix = [p.data for p in module.parameters() if p.dim() == 2][-1]
    matrix[0, 0] += 2**-4 * matrix.square().mean().sqrt()
    return case, module


def epsilon(case, module):
    """The first normalization adds a tenth too much to the variance."""
    norm = next(m for m in module.modules() if hasattr(m, "eps"))
    norm.eps *= 1.1
    return case, module


def statistics(case, module):
    """The first normalization's running statistics move by a part in a thousand too much."""
    norm = next(m for m in module.modules() if isinstance(m, nn.BatchNorm2d))
    norm.momentum *= 1 + 2**-10
    return case, module


class OneGradientLess(nn.Module):
    """A relu that passes no gradient to the largest element of its first channel."""

    def forward(self, x):
        y = F.relu(x)
        blocked = torch.zeros_like(y, dtype=torch.bool)
        blocked[0, 0] = y[0, 0] == y[0, 0].max()
        return torch.where(blocked, y.detach(), y)


def decision(case, module):
    """One of a relu's decisions is wrong, for the gradient."""
    relu = [m for m in module.modules() if isinstance(m, nn.ReLU)][-1]
    for owner in module.modules():
        for name, child in owner.named_children():
            if child is relu:
                setattr(owner, name, OneGradientLess())
    return case, module


def learning_rate(case, module):
    """Both learning rates are off by a part in a thousand."""
    return replace(case, lr=tuple(lr * (1 + 2**-10) for lr in case.lr)), module


def coarse_learning_rate(case, module):
    """Both learning rates are off by a part in 128: where training is gentle, its changes are seen less sharply."""
    return replace(case, lr=tuple(lr * (1 + 2**-7) for lr in case.lr)), module


MOMENTS = ("m after", "adam_m after", "adam_v after")

# For each case the beginnings of the names of the results that a mistake must reach, and of those that it must not.
MISTAKES = {
    "gpt2": {weight: (("gradients", "10 steps", *MOMENTS), ()), epsilon: (("gradients", "10 steps", *MOMENTS), ()),
             learning_rate: (("10 steps",), ("gradients",))},
    "resnet18": {coarse_learning_rate: (("10 steps",), ("gradients", "running"))},
    "darts": {weight: (("gradients", "10 steps", *MOMENTS), ()), statistics: (("running", "10 steps"), ("gradients",)),
              decision: (("gradients", *MOMENTS), ("running",))},
}
