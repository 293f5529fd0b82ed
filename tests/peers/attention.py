# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention of the networks here: written out, of which every PyTorch has the parts, or PyTorch's own in one call."""
import math

import torch
from torch.nn import functional as F


def written_out(q, k, v, hidden=None, causal=False, dropout=0.0):
    """hidden: true where a score is not to be looked at."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return F.dropout(scores.softmax(-1), dropout) @ v


def fused(q, k, v, hidden=None, causal=False, dropout=0.0):
    mask = None if hidden is None else ~hidden
    return F.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal=causal)


# What attend() calls.  Parity is with what is written out; who measures speed sets fused.
way = written_out


def attend(*operands, **options):
    return way(*operands, **options)
