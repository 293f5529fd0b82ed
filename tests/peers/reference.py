# SPDX-License-Identifier: GPL-3.0-or-later
"""The same training in PyTorch: gradients, statistics and steps of a module, in float32 and in float64."""
import copy

import numpy as np
import torch

import decisions


# Far above what rounding leaves of a gradient that is zero: with the usual 1e-8 Adam would divide that by itself.
ADAM_EPS = 2.0**-13


def to_numpy(tensors):
    return {name: t.detach().numpy().copy() for name, t in tensors}


def state(module):
    """Weights and buffers as {name: array}, without the counters of batches that scrimp does not keep."""
    return to_numpy((n, t) for n, t in module.state_dict().items() if not n.endswith("num_batches_tracked"))


def parameters(module):
    return to_numpy(module.named_parameters())


def buffers(module):
    names = set(dict(module.named_parameters()))
    return {n: a for n, a in state(module).items() if n not in names}


def as_batch(arrays, dtype):
    """Arrays as tensors: floats in dtype, integers as the int64 that PyTorch wants for labels and indices."""
    return {n: torch.from_numpy(a).to(dtype if a.dtype.kind == "f" else torch.int64) for n, a in arrays.items()}


def in_precision(module, dtype):
    """A copy that trains in dtype."""
    return copy.deepcopy(module).to(dtype).train()


def gradient(module, loss_of, arrays, dtype):
    """Loss, {name: gradient} and {name: statistic} after one forward and backward pass."""
    m = in_precision(module, dtype)
    loss = loss_of(m, as_batch(arrays, dtype))
    loss.backward()
    grads = to_numpy((n, p.grad) for n, p in m.named_parameters())
    return {"loss": np.asarray(loss.item())}, grads, buffers(m)


def variants(module, arrays):
    """Module and batch in ways that mean the same and differ in how float32 rounds: as it comes, with the examples in
    the opposite order, and with channels last.  An odd number, of which there is a median."""
    backwards = {n: a[::-1].copy() for n, a in arrays.items()}
    channels_last = copy.deepcopy(module).to(memory_format=torch.channels_last)
    return [(module, arrays), (module, backwards), (channels_last, arrays)]


def sgd(parameters, lr, weight_decay):
    return torch.optim.SGD(parameters, lr=lr, momentum=0.9, weight_decay=weight_decay)


def adamw(parameters, lr, weight_decay):
    return torch.optim.AdamW(parameters, lr=lr, eps=ADAM_EPS, weight_decay=weight_decay)


OPTIMIZERS = {"sgd": sgd, "adamw": adamw}

# What scrimp's checkpoints call the state of the optimizers.
MOMENTS = {"momentum_buffer": "m", "exp_avg": "adam_m", "exp_avg_sq": "adam_v"}


class Training:
    """A module that trains in dtype."""

    def __init__(self, module, arrays, loss_of, dtype, optimizer):
        self.module, self.loss_of, self.batch = in_precision(module, dtype), loss_of, as_batch(arrays, dtype)
        self.optimizer, self.losses = optimizer(self.module.parameters()), []

    def step(self):
        self.optimizer.zero_grad()
        loss = self.loss_of(self.module, self.batch)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def results(self):
        """Losses before each step as an array, {name: weight or statistic} after the last, and the optimizer's state as
        {one of MOMENTS: {name: array}}."""
        moments = {}
        for name, p in self.module.named_parameters():
            for kind, t in self.optimizer.state[p].items():
                if kind in MOMENTS:
                    moments.setdefault(MOMENTS[kind], {})[name] = t.numpy().copy()
        return {"loss": np.asarray(self.losses)}, state(self.module), moments


def train(variants, loss_of, optimizer, steps):
    """Trains the first variant in float64 and, side by side, all of them in float32.  The results of float64, a list of
    those of float32, and for each step how clear the first variant's decisions are (decisions.py)."""
    exact = Training(*variants[0], loss_of, torch.float64, optimizer)
    first, *others = rounded = [Training(*variant, loss_of, torch.float32, optimizer) for variant in variants]
    clear = []
    for _ in range(steps):
        clear.append(decisions.clearance(exact.step, first.step))
        for training in others:
            training.step()
    return exact.results(), [training.results() for training in rounded], clear
