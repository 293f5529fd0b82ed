# SPDX-License-Identifier: GPL-3.0-or-later
"""Training steps of the examples in PyTorch, to be timed: network, initial values, random batches, loss, optimizer and
clipping are those of the example.  Trainer takes them."""
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn
from torch.nn import functional as F

import attention
import gpt2 as gpt
import lstm
import modern
import transformer
import unet

attention.way = attention.fused


@dataclass
class Step:
    """batch() makes a random batch, loss(module, batch) the loss of it; optimizer(module, **way) is PyTorch's, to which
    `way` says how it runs; clip is the largest norm of the gradient, or None."""
    module: nn.Module
    batch: Callable
    loss: Callable
    optimizer: Callable
    clip: float = None

    def parameters(self):
        return sum(p.numel() for p in self.module.parameters())


def sgd(**settings):
    return lambda module, **way: torch.optim.SGD(module.parameters(), **settings, **way)


def adam(**settings):
    return lambda module, **way: torch.optim.Adam(module.parameters(), **settings, **way)


def adamw(weight_decay, **settings):
    """Only matrices decay."""
    def make(module, **way):
        groups = [{"params": [p for p in module.parameters() if p.ndim > 1], "weight_decay": weight_decay},
                  {"params": [p for p in module.parameters() if p.ndim <= 1], "weight_decay": 0.0}]
        return torch.optim.AdamW([g for g in groups if g["params"]], **settings, **way)
    return make


def pictures(n, size, classes=1000, channels=3, labels=()):
    return lambda: {"image": torch.randn(n, channels, size, size), "label": torch.randint(classes, (n, *labels))}


def words(n, length, vocabulary, **others):
    fields = {"x": length, "y": length, **others}
    return lambda: {name: torch.randint(vocabulary, (n, size)) for name, size in fields.items()}


def classify(smoothing=0.0):
    return lambda module, batch: F.cross_entropy(module(batch["image"]), batch["label"], label_smoothing=smoothing)


def predict(times=1):
    def loss(module, batch):
        value = F.cross_entropy(module(batch["x"]).flatten(0, 1), batch["y"].flatten())
        return times * value if times != 1 else value
    return loss


def translate(module, batch):
    return F.cross_entropy(module(batch["src"], batch["x"]).flatten(0, 1), batch["y"].flatten(), ignore_index=0,
                           label_smoothing=0.1)


def matrices(module, init, but=()):
    """Weights of more than one axis by `init`, biases zeros."""
    for name, p in module.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(p)
        elif p.ndim > 1 and name not in but:
            init(p)
    return module


def mlp(n, hidden):
    module = nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                           nn.Linear(hidden, 10))
    return Step(module, pictures(n, 28, 10, channels=1), classify(), sgd(lr=0.1, momentum=0.9))


def language(module, layers, n, length, vocabulary, optimizer):
    for name, p in module.named_parameters():
        if name.endswith("c_proj.weight"):
            nn.init.normal_(p, std=0.02 * (2 * layers) ** -0.5)
    return Step(module, words(n, length, vocabulary), predict(), optimizer, clip=1.0)


def chargpt(n, length):
    module = gpt.GPT2(4, 4, 128, 65, context=length, bias=False, gelu="none")
    return language(module, 4, n, length, 65, adamw(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1))


def gpt2(n, length):
    return language(gpt.GPT2(12, 12, 768, 50257), 12, n, length, 50257, adamw(lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1))


def torchvision_step(name, n, size, optimizer):
    import torchvision
    return Step(getattr(torchvision.models, name)(), pictures(n, size), classify(), optimizer)


def resnet(depth, n, size):
    return torchvision_step(f"resnet{depth}", n, size, sgd(lr=0.1, momentum=0.9, weight_decay=1e-4))


def densenet121(n, size):
    return torchvision_step("densenet121", n, size, sgd(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4))


def vgg16(n, size):
    return torchvision_step("vgg16", n, size, sgd(lr=0.01, momentum=0.9, weight_decay=5e-4))


def mobilenet_v2(n, size):
    return torchvision_step("mobilenet_v2", n, size, sgd(lr=0.045, momentum=0.9, weight_decay=4e-5))


def vit_small(n, size):
    module = modern.ViT(384, 6, 12, size, 16, 1000)
    nn.init.normal_(module.cls_token, std=1e-6)
    return Step(module, pictures(n, size), classify(0.1), adamw(lr=1e-3, weight_decay=0.05), clip=1.0)


def unet_step(n, size):
    module = matrices(unet.UNet(64, 2, p=0.5), lambda p: nn.init.kaiming_normal_(p, nonlinearity="relu"))
    return Step(module, pictures(n, size, 2, 1, labels=(size - 184, size - 184)), classify(), sgd(lr=1e-4, momentum=0.99))


def lstm_medium(n, length):
    module = lstm.LSTM(10_000, 650, p=0.5)
    for p in module.parameters():
        nn.init.uniform_(p, -0.05, 0.05)
    return Step(module, words(n, length, 10_000), predict(times=length), sgd(lr=1.0), clip=5.0)


def transformer_base(n, length):
    module = matrices(transformer.Transformer("tf", 6, 512, 2048, 8, 33_708, p=0.1), nn.init.xavier_uniform_,
                      but=["encoder.embed_tokens.weight"])
    return Step(module, words(n, length, 33_708, src=length), translate, adam(lr=1e-4, betas=(0.9, 0.997), eps=1e-9))


STEPS = {
    "mlp": lambda: mlp(256, 1024),
    "chargpt": lambda: chargpt(12, 64),
    "gpt2-2x256": lambda: gpt2(2, 256),
    "gpt2-1x1024": lambda: gpt2(1, 1024),
    "resnet18": lambda: resnet(18, 16, 64),
    "resnet50": lambda: resnet(50, 8, 224),
    "densenet121": lambda: densenet121(8, 224),
    "vgg16": lambda: vgg16(4, 224),
    "mobilenet_v2": lambda: mobilenet_v2(8, 224),
    "vit": lambda: vit_small(8, 224),
    "unet": lambda: unet_step(1, 188),
    "lstm": lambda: lstm_medium(20, 35),
    "lstm_layers": lambda: lstm_medium(20, 35),
    "transformer": lambda: transformer_base(32, 64),
}


class Trainer:
    """Takes steps of one of STEPS on batches of their own.  mode: contiguous, channels_last or compile.
    NAME:winograd is NAME; NAME:bf16 takes NAME's with the loss, but not its gradient, inside of torch.autocast."""

    def __init__(self, name, mode):
        torch.manual_seed(1)
        name, _, precision = name.partition(":")
        self.step = STEPS[name]()
        self.half = precision == "bf16"
        self.cast = torch.autocast("cpu", torch.bfloat16, enabled=self.half)
        self.layout = {"memory_format": torch.channels_last} if mode == "channels_last" else {}
        if self.layout:
            self.step.module.to(**self.layout)
        self.loss = torch.compile(self.step.loss) if mode == "compile" else self.step.loss
        self.way, self.optimizer = "fused", None

    def batch(self):
        """The next batch, laid out as the network wants it."""
        return {k: t.to(**self.layout) if t.ndim == 4 and self.layout else t for k, t in self.step.batch().items()}

    def backward(self, batch):
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast:
            value = self.loss(self.step.module, batch)
        value.backward()
        if self.step.clip:
            nn.utils.clip_grad_norm_(self.step.module.parameters(), self.step.clip)
        return value

    def use(self, way):
        """An optimizer that runs as `way` says: PyTorch's fused or foreach, or neither."""
        self.way = way
        self.optimizer = self.step.optimizer(self.step.module, **({way: True} if way != "for" else {"foreach": False}))
