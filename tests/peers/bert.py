# SPDX-License-Identifier: GPL-3.0-or-later
"""BERT (Devlin et al. 2019) with the names of Hugging Face's BertForMaskedLM."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import attend


class Embeddings(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(512, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, ids):
        x = self.word_embeddings(ids) + self.position_embeddings(torch.arange(ids.shape[1]))
        return self.LayerNorm(x + self.token_type_embeddings(torch.zeros_like(ids)))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        return attend(q, k, v).transpose(1, 2).reshape(B, T, C)


class Output(nn.Module):
    def __init__(self, inner, width):
        super().__init__()
        self.dense = nn.Linear(inner, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, y, x):
        return self.LayerNorm(self.dense(y) + x)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.ModuleDict({"self": SelfAttention(width, heads), "output": Output(width, width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, 4 * width)})
        self.output = Output(4 * width, width)

    def forward(self, x):
        x = self.attention["output"](self.attention["self"](x), x)
        return self.output(F.gelu(self.intermediate["dense"](x)), x)


class Transform(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x):
        return self.LayerNorm(F.gelu(self.dense(x)))


class Predictions(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.transform = Transform(width)

    def forward(self, x, weight):
        return F.linear(self.transform(x), weight, self.bias)


class Bert(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width)
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(width, heads) for _ in range(layers))})

    def forward(self, ids):
        x = self.embeddings(ids)
        for layer in self.encoder["layer"]:
            x = layer(x)
        return x


class MaskedLM(nn.Module):
    def __init__(self, vocabulary, width, heads, layers):
        super().__init__()
        self.bert = Bert(vocabulary, width, heads, layers)
        self.cls = nn.ModuleDict({"predictions": Predictions(vocabulary, width)})

    def forward(self, ids):
        return self.cls["predictions"](self.bert(ids), self.bert.embeddings.word_embeddings.weight)
