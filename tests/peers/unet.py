# SPDX-License-Identifier: GPL-3.0-or-later
"""U-Net (Ronneberger et al. 2015), unpadded, as in the paper."""
import torch
from torch import nn
from torch.nn import functional as F


def convolutions(n_in, width):
    return nn.Sequential(nn.Conv2d(n_in, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3), nn.ReLU())


class Down(nn.Module):
    def __init__(self, n_in, width, p=0.0):
        super().__init__()
        self.conv = convolutions(n_in, width)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        return self.drop(self.conv(x))


class Up(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.upconv = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.conv = convolutions(2 * width, width)

    def forward(self, x, skip):
        x = F.relu(self.upconv(x))
        top, left = ((a - b) // 2 for a, b in zip(skip.shape[2:], x.shape[2:]))
        cropped = skip[:, :, top:top + x.shape[2], left:left + x.shape[3]]
        return self.conv(torch.cat([x, cropped], 1))


class UNet(nn.Module):
    def __init__(self, width, classes, p=0.0):
        super().__init__()
        widths = [width * 2**level for level in range(4)]
        self.down = nn.ModuleList(Down(n, w, q) for n, w, q in zip([1] + widths, widths, [0.0, 0.0, 0.0, p]))
        self.bottom = Down(widths[-1], 2 * widths[-1], p)
        self.up = nn.ModuleList(Up(w) for w in widths)
        self.score = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skips = []
        for level in self.down:
            x = level(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for up, skip in reversed(list(zip(self.up, skips))):
            x = up(x, skip)
        return self.score(x)
