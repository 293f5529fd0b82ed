# SPDX-License-Identifier: GPL-3.0-or-later
"""The encoder-decoder Transformer (Vaswani et al. 2017) with fairseq's names.  variant "paper" normalizes after each
sublayer and its projections have biases; "tf" is TensorFlow's official model, which normalizes before each sublayer and
after each stack, without biases.  Token 0 is padding."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention import attend


def positions(length, width, variant, like):
    """Sines and cosines: alternating in the paper, one half after the other in TensorFlow's model."""
    half = width // 2
    i = torch.arange(half, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None]
    if variant == "tf":
        angle = angle * 10000 ** (-i / (half - 1))
        return torch.cat([angle.sin(), angle.cos()], 1).to(like)
    angle = angle * 10000 ** (-i / half)
    return torch.stack([angle.sin(), angle.cos()], 2).flatten(1).to(like)


class Attention(nn.Module):
    def __init__(self, width, heads, bias, p):
        super().__init__()
        self.heads, self.p = heads, p
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width, bias) for _ in range(4))

    def forward(self, x, memory, hidden):
        """hidden: true where a score is not to be looked at; broadcasts to [batch, heads, x, memory]."""
        batch, length, width = x.shape

        def split(t):
            return t.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.q_proj(x)), split(self.k_proj(memory)), split(self.v_proj(memory))
        y = attend(q, k, v, hidden, dropout=self.p)
        return self.out_proj(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    """Of the encoder, or of the decoder when it attends to the encoder's output."""

    def __init__(self, width, inner, heads, variant, decoder, p):
        super().__init__()
        self.variant, self.decoder = variant, decoder
        bias, eps = (True, 1e-5) if variant == "paper" else (False, 1e-6)
        self.self_attn = Attention(width, heads, bias, p)
        self.self_attn_layer_norm = nn.LayerNorm(width, eps)
        if decoder:
            self.encoder_attn = Attention(width, heads, bias, p)
            self.encoder_attn_layer_norm = nn.LayerNorm(width, eps)
        self.drop = nn.Dropout(p)
        self.fc1 = nn.Linear(width, inner)
        self.fc2 = nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width, eps)

    def residual(self, x, norm, sublayer):
        if self.variant == "paper":
            return norm(x + self.drop(sublayer(x)))
        return x + self.drop(sublayer(norm(x)))

    def forward(self, x, hidden, memory=None, memory_hidden=None):
        x = self.residual(x, self.self_attn_layer_norm, lambda t: self.self_attn(t, t, hidden))
        if self.decoder:
            x = self.residual(x, self.encoder_attn_layer_norm, lambda t: self.encoder_attn(t, memory, memory_hidden))
        return self.residual(x, self.final_layer_norm, lambda t: self.fc2(self.drop(F.relu(self.fc1(t)))))


class Stack(nn.Module):
    def __init__(self, layers, width, inner, heads, variant, decoder, p):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, inner, heads, variant, decoder, p) for _ in range(layers))
        self.layer_norm = nn.LayerNorm(width, 1e-6) if variant == "tf" else nn.Identity()

    def forward(self, x, *others):
        for layer in self.layers:
            x = layer(x, *others)
        return self.layer_norm(x)


class Transformer(nn.Module):
    def __init__(self, variant, layers, width, inner, heads, vocabulary, p=0.0):
        super().__init__()
        self.variant, self.width = variant, width
        self.drop = nn.Dropout(p)
        self.encoder = Stack(layers, width, inner, heads, variant, False, p)
        self.encoder.embed_tokens = nn.Embedding(vocabulary, width)
        self.decoder = Stack(layers, width, inner, heads, variant, True, p)
        nn.init.normal_(self.encoder.embed_tokens.weight, std=width**-0.5)

    def embed(self, ids):
        e = self.encoder.embed_tokens(ids) * math.sqrt(self.width)
        return self.drop(e.masked_fill((ids == 0)[:, :, None], 0) + positions(ids.shape[1], self.width, self.variant, e))

    def forward(self, source, target):
        padding = (source == 0)[:, None, None, :]
        future = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        memory = self.encoder(self.embed(source), padding)
        y = self.decoder(self.embed(target), future, memory, padding)
        return y @ self.encoder.embed_tokens.weight.T
