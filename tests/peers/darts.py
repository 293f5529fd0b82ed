# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of DARTS' second-order cells (Liu et al. 2019) for CIFAR images, with the names of its authors' code,
without auxiliary head and drop path."""
import torch
from torch import nn
from torch.nn import functional as F


def relu_conv_bn(n_in, n_out):
    return nn.Sequential(nn.ReLU(), nn.Conv2d(n_in, n_out, 1, bias=False), nn.BatchNorm2d(n_out))


class ReLUConvBN(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.op = relu_conv_bn(n_in, n_out)

    def forward(self, x):
        return self.op(x)


class FactorizedReduce(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv_1 = nn.Conv2d(n_in, n_out // 2, 1, stride=2, bias=False)
        self.conv_2 = nn.Conv2d(n_in, n_out // 2, 1, stride=2, bias=False)
        self.bn = nn.BatchNorm2d(n_out)

    def forward(self, x):
        x = F.relu(x)
        return self.bn(torch.cat([self.conv_1(x), self.conv_2(x[:, :, 1:, 1:])], 1))


def depthwise(width, kernel, stride, dilation=1):
    """relu, depthwise, pointwise, batch normalization."""
    return [nn.ReLU(),
            nn.Conv2d(width, width, kernel, stride, dilation * (kernel // 2), dilation, groups=width, bias=False),
            nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)]


class Sequence(nn.Module):
    def __init__(self, *stages):
        super().__init__()
        self.op = nn.Sequential(*stages)

    def forward(self, x):
        return self.op(x)


def skip_connect(width, stride):
    return nn.Identity() if stride == 1 else FactorizedReduce(width, width)


def sep_conv_3x3(width, stride):
    return Sequence(*depthwise(width, 3, stride), *depthwise(width, 3, 1))


def dil_conv_3x3(width, stride):
    return Sequence(*depthwise(width, 3, stride, 2))


def max_pool_3x3(width, stride):
    del width
    return nn.MaxPool2d(3, stride, 1)


# Two operations for each new state, with the state that each reads.
NORMAL = [(sep_conv_3x3, 0), (sep_conv_3x3, 1), (sep_conv_3x3, 0), (sep_conv_3x3, 1),
          (sep_conv_3x3, 1), (skip_connect, 0), (skip_connect, 0), (dil_conv_3x3, 2)]
REDUCE = [(max_pool_3x3, 0), (max_pool_3x3, 1), (skip_connect, 2), (max_pool_3x3, 1),
          (max_pool_3x3, 0), (skip_connect, 2), (skip_connect, 2), (max_pool_3x3, 1)]
OUTPUTS = (2, 3, 4, 5)


class Cell(nn.Module):
    def __init__(self, genes, before_last, last, width, reduction, after_reduction):
        super().__init__()
        self.preprocess0 = (FactorizedReduce if after_reduction else ReLUConvBN)(before_last, width)
        self.preprocess1 = ReLUConvBN(last, width)
        self.sources = [source for _, source in genes]
        self._ops = nn.ModuleList(op(width, 2 if reduction and source < 2 else 1) for op, source in genes)

    def forward(self, before_last, last):
        states = [self.preprocess0(before_last), self.preprocess1(last)]
        results = zip(self._ops, self.sources)
        for (op1, from1), (op2, from2) in zip(results, results):  # by pairs
            states.append(op1(states[from1]) + op2(states[from2]))
        return torch.cat([states[i] for i in OUTPUTS], 1)


class Network(nn.Module):
    def __init__(self, channels, layers, classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 3 * channels, 3, padding=1, bias=False), nn.BatchNorm2d(3 * channels))
        before_last = last = 3 * channels
        width, after_reduction, cells = channels, False, []
        for i in range(layers):
            reduction = i in (layers // 3, 2 * layers // 3)
            width = 2 * width if reduction else width
            cells.append(Cell(REDUCE if reduction else NORMAL, before_last, last, width, reduction, after_reduction))
            before_last, last, after_reduction = last, len(OUTPUTS) * width, reduction
        self.cells = nn.ModuleList(cells)
        self.classifier = nn.Linear(last, classes)

    def forward(self, x):
        before_last = last = self.stem(x)
        for cell in self.cells:
            before_last, last = last, cell(before_last, last)
        return self.classifier(last.mean((2, 3)))
