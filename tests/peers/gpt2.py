# SPDX-License-Identifier: GPL-3.0-or-later
"""GPT-2 (Radford et al. 2019) with Hugging Face's parameter names, whose linear layers keep weights as [in, out].  Without
biases and with the exact GELU it is nanoGPT's."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import attend


class Conv1D(nn.Module):
    """x W + b, the weight being [in, out]."""

    def __init__(self, n_in, n_out, bias):
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight.T, self.bias)


class Attention(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.c_attn = Conv1D(width, 3 * width, bias)
        self.c_proj = Conv1D(width, width, bias)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.c_attn(x).chunk(3, -1))
        y = attend(q, k, v, causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class MLP(nn.Module):
    def __init__(self, width, bias, gelu):
        super().__init__()
        self.gelu = gelu
        self.c_fc = Conv1D(width, 4 * width, bias)
        self.c_proj = Conv1D(4 * width, width, bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate=self.gelu))


def norm(width, bias):
    return nn.LayerNorm(width) if bias else nn.LayerNorm(width, bias=False)


class Layer(nn.Module):
    def __init__(self, width, heads, bias, gelu):
        super().__init__()
        self.ln_1 = norm(width, bias)
        self.attn = Attention(width, heads, bias)
        self.ln_2 = norm(width, bias)
        self.mlp = MLP(width, bias, gelu)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, layers, heads, width, vocabulary, context=1024, bias=True, gelu="tanh"):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Layer(width, heads, bias, gelu) for _ in range(layers))
        self.ln_f = norm(width, bias)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe.weight[:ids.shape[1]]
        for layer in self.h:
            x = layer(x)
        return self.ln_f(x) @ self.wte.weight.T  # tied head
