# SPDX-License-Identifier: GPL-3.0-or-later
"""Mixtral (Jiang et al. 2024) with the names of Hugging Face's MixtralForCausalLM, every expert with room for all of its
tokens, and with the load-balancing loss of Fedus et al. 2022."""
import torch
from torch import nn
from torch.nn import functional as F

from modern import LlamaAttention, RMSNorm


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.w1 = nn.Linear(width, hidden, bias=False)
        self.w2 = nn.Linear(hidden, width, bias=False)
        self.w3 = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Experts(nn.Module):
    def __init__(self, width, hidden, experts, top):
        super().__init__()
        self.top = top
        self.gate = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, hidden) for _ in range(experts))

    def forward(self, x):
        tokens, n = x.flatten(0, 1), len(self.experts)
        chances = self.gate(tokens).softmax(-1)
        rating, chosen = chances.topk(self.top)
        rating = rating / rating.sum(-1, keepdim=True)
        y = torch.zeros_like(tokens)
        for e, expert in enumerate(self.experts):
            token, place = torch.where(chosen == e)
            y = y.index_add(0, token, expert(tokens[token]) * rating[token, place, None])
        share = F.one_hot(chosen, n).sum(1).to(x.dtype).mean(0)
        return y.view_as(x), n * (share * chances.mean(0)).sum()


class Layer(nn.Module):
    def __init__(self, width, hidden, heads, kv_heads, base, experts, top):
        super().__init__()
        self.input_layernorm = RMSNorm(width, 1e-5)
        self.self_attn = LlamaAttention(width, heads, kv_heads, base)
        self.post_attention_layernorm = RMSNorm(width, 1e-5)
        self.block_sparse_moe = Experts(width, hidden, experts, top)

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        y, spread = self.block_sparse_moe(self.post_attention_layernorm(x))
        return x + y, spread


class Decoder(nn.Module):
    def __init__(self, vocabulary, width, layers, **settings):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width, **settings) for _ in range(layers))
        self.norm = RMSNorm(width, 1e-5)

    def forward(self, ids):
        x, spreads = self.embed_tokens(ids), []
        for layer in self.layers:
            x, spread = layer(x)
            spreads.append(spread)
        return self.norm(x), sum(spreads) / len(spreads)


class Mixtral(nn.Module):
    def __init__(self, vocabulary, width, layers, **settings):
        super().__init__()
        self.model = Decoder(vocabulary, width, layers, **settings)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x, spread = self.model(ids)
        return self.lm_head(x), spread
