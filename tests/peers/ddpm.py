# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of denoising diffusion (Ho et al. 2020), with the names of diffusers' UNet2DModel."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import attend


class Residual(nn.Module):
    def __init__(self, channels, out, time, groups, p):
        super().__init__()
        self.norm1 = nn.GroupNorm(groups, channels, eps=1e-6)
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1)
        self.time_emb_proj = nn.Linear(time, out)
        self.norm2 = nn.GroupNorm(groups, out, eps=1e-6)
        self.dropout = nn.Dropout(p)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.conv_shortcut = nn.Conv2d(channels, out, 1) if channels != out else nn.Identity()

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time_emb_proj(F.silu(time))[:, :, None, None]
        return self.conv_shortcut(x) + self.conv2(self.dropout(F.silu(self.norm2(y))))


class Attention(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.group_norm = nn.GroupNorm(groups, channels, eps=1e-6)
        self.to_q = nn.Linear(channels, channels)
        self.to_k = nn.Linear(channels, channels)
        self.to_v = nn.Linear(channels, channels)
        self.to_out = nn.ModuleList([nn.Linear(channels, channels)])

    def forward(self, x):
        y = self.group_norm(x).flatten(2).transpose(1, 2)[:, None]
        y = attend(self.to_q(y), self.to_k(y), self.to_v(y))
        return x + self.to_out[0](y).transpose(2, 3).reshape(x.shape)


class Level(nn.Module):
    """Residual blocks, each with the number of channels that comes in, and attention behind each or nowhere."""

    def __init__(self, channels, out, time, attends, groups, p):
        super().__init__()
        self.resnets = nn.ModuleList(Residual(c, out, time, groups, p) for c in channels)
        self.attentions = nn.ModuleList(Attention(out, groups) for _ in channels if attends)

    def step(self, x, i, time):
        x = self.resnets[i](x, time)
        return self.attentions[i](x) if len(self.attentions) else x


class Sampler(nn.Module):
    def __init__(self, channels, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride, padding=2 - stride)

    def forward(self, x):
        return self.conv(x)


class Down(Level):
    def __init__(self, *options, halve):
        super().__init__(*options)
        if halve:
            self.downsamplers = nn.ModuleList([Sampler(options[1], 2)])
        self.halve = halve

    def forward(self, x, time):
        skips = []
        for i in range(len(self.resnets)):
            x = self.step(x, i, time)
            skips.append(x)
        if self.halve:
            x = self.downsamplers[0](F.pad(x, (0, 1, 0, 1)))
            skips.append(x)
        return x, skips


class Middle(Level):
    def __init__(self, channels, time, groups, p):
        super().__init__([channels, channels], channels, time, False, groups, p)
        self.attentions = nn.ModuleList([Attention(channels, groups)])

    def forward(self, x, time):
        return self.resnets[1](self.attentions[0](self.resnets[0](x, time)), time)


class Up(Level):
    def __init__(self, *options, double):
        super().__init__(*options)
        if double:
            self.upsamplers = nn.ModuleList([Sampler(options[1], 1)])
        self.double = double

    def forward(self, x, skips, time):
        for i in range(len(self.resnets)):
            x = self.step(torch.cat([x, skips.pop()], 1), i, time)
        return self.upsamplers[0](F.interpolate(x, scale_factor=2)) if self.double else x


class TimeEmbedding(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.linear_1 = nn.Linear(width, 4 * width)
        self.linear_2 = nn.Linear(4 * width, 4 * width)

    def forward(self, t):
        half = self.width // 2
        frequency = 10000 ** (-torch.arange(half, dtype=self.linear_1.weight.dtype) / (half - 1))
        angle = t[:, None] * frequency
        return self.linear_2(F.silu(self.linear_1(torch.cat([angle.sin(), angle.cos()], 1))))


class UNet(nn.Module):
    def __init__(self, width=128, factors=(1, 2, 2, 2), layers=2, groups=32, attend=16, p=0.1, size=32):
        super().__init__()
        self.time_embedding = TimeEmbedding(width)
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        self.down_blocks, self.up_blocks = nn.ModuleList(), nn.ModuleList()
        x, skips, last, time = width, [width], len(factors) - 1, 4 * width
        for i, out in enumerate(f * width for f in factors):
            channels = [x] + [out] * (layers - 1)
            self.down_blocks.append(Down(channels, out, time, size >> i == attend, groups, p, halve=i < last))
            skips += [out] * (layers + (i < last))
            x = out
        self.mid_block = Middle(x, time, groups, p)
        for i, out in enumerate(f * width for f in reversed(factors)):
            channels = [(x if k == 0 else out) + skips.pop() for k in range(layers + 1)]
            self.up_blocks.append(Up(channels, out, time, size >> last - i == attend, groups, p, double=i < last))
            x = out
        self.conv_norm_out = nn.GroupNorm(groups, x, eps=1e-6)
        self.conv_out = nn.Conv2d(x, 3, 3, padding=1)

    def forward(self, x, t):
        time = self.time_embedding(t)
        x = self.conv_in(x)
        skips = [x]
        for down in self.down_blocks:
            x, new = down(x, time)
            skips += new
        x = self.mid_block(x, time)
        for up in self.up_blocks:
            x = up(x, skips, time)
        return self.conv_out(F.silu(self.conv_norm_out(x)))
