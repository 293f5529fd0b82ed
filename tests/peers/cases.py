"""The table of what is compared: model files of examples/, at sizes that take seconds, and the same network in PyTorch."""
from dataclasses import dataclass, field
from typing import Callable

import numpy as np
import torch
import torchvision
from torch.nn import functional as F

import gpt2


@dataclass
class Case:
    """A model file and its PyTorch twin.

    options  of the model file (-D).
    loss     statements of the train section; batch is the data, whose fields are the names of `data`.
    data     arrays of one batch, from a numpy generator; the first axis counts examples.
    module   makes the twin, whose state_dict has scrimp's names.
    torch_loss  the loss of (module, batch of tensors).
    lr       of SGD with momentum and of AdamW.
    """
    example: str
    options: dict
    loss: str
    data: Callable
    module: Callable
    torch_loss: Callable
    lr: tuple = field(default=(2**-9, 2**-14))


def images(n, size, classes, channels=3):
    def make(rng):
        return {"image": rng.standard_normal((n, channels, size, size)).astype(np.float32),
                "label": rng.integers(0, classes, n).astype(np.int32)}
    return make


def words(n, length, vocabulary):
    def make(rng):
        ids = rng.integers(0, vocabulary, (n, length + 1)).astype(np.int32)
        return {"x": ids[:, :-1].copy(), "y": ids[:, 1:].copy()}
    return make


def classify(module, batch):
    return F.cross_entropy(module(batch["image"]), batch["label"])


def predict(module, batch):
    return F.cross_entropy(module(batch["x"]).flatten(0, 1), batch["y"].flatten())


def zoo(name, **settings):
    """A network of torchvision with its own initial weights."""
    return lambda: getattr(torchvision.models, name)(weights=None, num_classes=10, **settings)


def image_case(example, options, module, n=4, size=64, torch_loss=classify, **more):
    return Case(example, {"N": n, "size": size, "classes": 10, **options},
                f"loss = cross_entropy({example}(batch.image), batch.label)",
                images(n, size, 10), module, torch_loss, **more)


# The keys are the names of the tests (tests/peers/CMakeLists.txt reads them).
CASES = {
    "resnet18": image_case("resnet", {"depth": 18}, zoo("resnet18")),
    "resnet50": image_case("resnet", {"depth": 50}, zoo("resnet50")),
}
