"""The table of what is compared: model files of examples/, at sizes that take seconds, and the same network in PyTorch."""
from dataclasses import dataclass
from typing import Callable

import numpy as np
from torch.nn import functional as F

import darts
import gpt2
import lstm
from vision import VGG, zoo


@dataclass
class Case:
    """A model file and its PyTorch twin.

    options  of the model file (-D).
    loss     statements of the train section; batch is the data, whose fields are the names of `data`.
    data     arrays of one batch, from a numpy generator; the first axis counts examples.
    module   makes the twin, whose state_dict has scrimp's names.
    torch_loss  the loss of (module, batch of tensors).
    lr       of SGD with momentum and of AdamW.
    steps    of either; none where they would take minutes.
    """
    example: str
    options: dict
    loss: str
    data: Callable
    module: Callable
    torch_loss: Callable
    lr: tuple = (2**-9, 2**-14)
    steps: int = 10


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


def auxiliary(weight):
    """Logits and auxiliary logits, as torchvision's networks give them while they train."""
    def loss(module, batch):
        main, *others = (F.cross_entropy(logits, batch["label"]) for logits in module(batch["image"]))
        return main + weight * sum(others)
    return loss


def windows(module, batch):
    """The sum over a window's words: the paper's loss."""
    return batch["x"].shape[1] * predict(module, batch)


def image_case(example, options, module, n=4, size=64, **more):
    fields = {"loss": f"loss = cross_entropy({example}(batch.image), batch.label)", "torch_loss": classify, **more}
    return Case(example, {"N": n, "size": size, "classes": 10, **options}, fields.pop("loss"),
                images(n, size, 10), module, **fields)


# The keys are the names of the tests (tests/peers/CMakeLists.txt reads them).
CASES = {
    "resnet18": image_case("resnet", {"depth": 18}, lambda: zoo("resnet18")),
    "resnet50": image_case("resnet", {"depth": 50}, lambda: zoo("resnet50")),
    "densenet121": image_case("densenet", {"depth": 121}, lambda: zoo("densenet121")),
    "inception_v3": image_case(
        "inception_v3", {"p": 0.0, "aux": "false"},
        lambda: zoo("inception_v3", init_weights=False, dropout=0.0, aux_logits=False), size=96),
    "inception_v3_aux": image_case(
        "inception_v3", {"p": 0.0}, lambda: zoo("inception_v3", init_weights=False, dropout=0.0), n=3, size=299,
        torch_loss=auxiliary(0.4), steps=0,
        loss="""all = [cross_entropy(y, batch.label) for y in inception_v3(batch.image)]
  loss = all[0] + 0.4 * all[1]"""),
    "darts": image_case("nascell", {"cell": "darts_v2", "C": 8, "layers": 6}, lambda: darts.Network(8, 6, 10), size=32),
    "gpt2": Case("gpt2", {"layers": 3, "heads": 4, "C": 128, "N": 4, "T": 24, "V": 96},
                 "loss = cross_entropy(gpt2(batch.x), batch.y)",
                 words(4, 24, 96), lambda: gpt2.GPT2(3, 4, 128, 96), predict),
    "lstm": Case("lstm_ptb", {"variant": "pytorch", "N": 6, "T": 12, "V": 80, "H": 64, "p": 0.0},
                 "loss = 12 * cross_entropy(lstm_ptb(batch.x), batch.y)",
                 words(6, 12, 80), lambda: lstm.LSTM(80, 64), windows),
}
