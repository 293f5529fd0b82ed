# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what is compared: model files of examples/, at sizes that take seconds, and the same network in PyTorch."""
from dataclasses import dataclass, field
from typing import Callable
from unittest import mock

import numpy as np
import torch
from torch.nn import functional as F

import bert
import darts
import ddpm
import gpt2
import lstm
import mixtral
import modern
import philox
import transformer
import unet
from vision import VGG, without_dropout, zoo


@dataclass
class Case:
    """A model file and its PyTorch twin.

    options  of the model file (-D).
    loss     statements of the train section; batch is the data, whose fields are the names of `data`.
    data     arrays of one batch, from a numpy generator; the first axis counts examples.
    module   makes the twin, whose state_dict has scrimp's names.
    torch_loss  the loss of (module, batch of tensors).
    lr       of SGD with momentum and of AdamW: such that no decision of the steps is near a tie (run.py --rates).
    steps    of either.
    seed     of weights and batch: one on which no decision of the first step is near a tie (run.py --seeds finds one).
    pools    which convolutions are max pooled, and how: their weights are chosen for it (settle.py).
    cancels  {layer: the weight in front of it} of normalizations that are followed, through decisions that all fall the
             same way, by another one, which takes out what they scale and add: their gradients cancel (compare.py).
    """
    example: str
    options: dict
    loss: str
    data: Callable
    module: Callable
    torch_loss: Callable
    lr: tuple = (2**-9, 2**-14)
    steps: int = 10
    seed: int = 1
    pools: dict = field(default_factory=dict)
    cancels: dict = field(default_factory=dict)


def balanced(module, batch):
    logits, spread = module(batch["x"])
    return F.cross_entropy(logits.flatten(0, 1), batch["y"].flatten()) + 0.02 * spread


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


def translations(n, source, target, vocabulary):
    """Sentences of different lengths, which end with padding."""
    def make(rng):
        def sentences(length):
            ids = rng.integers(1, vocabulary, (n, length)).astype(np.int32)
            ends = rng.integers(length // 2, length + 1, (n, 1))
            return np.where(np.arange(length) < ends, ids, 0).astype(np.int32)
        y = sentences(target)
        return {"src": sentences(source), "x": np.pad(y, ((0, 0), (1, 0)))[:, :-1].copy(), "y": y}
    return make


def translate(module, batch):
    return F.cross_entropy(module(batch["src"], batch["x"]).flatten(0, 1), batch["y"].flatten(), ignore_index=0,
                           label_smoothing=0.1)


def lstm_case(form):
    return Case("lstm_ptb", {"variant": "pytorch", "form": form, "N": 6, "T": 12, "V": 80, "H": 64, "p": 0.0},
                "loss = 12 * cross_entropy(lstm_ptb(batch.x), batch.y)",
                words(6, 12, 80), lambda: lstm.LSTM(80, 64), windows)


def translation_case(variant, lr):
    return Case("transformer",
                {"variant": variant, "N": 4, "S": 14, "T": 12, "V": 90, "C": 64, "heads": 4, "layers": 2, "p": 0.0},
                "loss = cross_entropy(transformer(batch.src, batch.x), batch.y, label_smoothing = 0.1, ignore_index = 0)",
                translations(4, 14, 12, 90), lambda: transformer.Transformer(variant, 2, 64, 256, 4, 90), translate, lr)


def segmented(n, size, labels, classes):
    """Gray images with a map of labels."""
    def make(rng):
        return {"image": rng.standard_normal((n, 1, size, size)).astype(np.float32),
                "label": rng.integers(0, classes, (n, labels, labels)).astype(np.int32)}
    return make


def image_case(example, options, module, n=2, size=64, **more):
    fields = {"loss": f"loss = cross_entropy({example}(batch.image), batch.label)", "torch_loss": classify,
              "lr": (2**-14, 2**-19), **more}
    return Case(example, {"N": n, "size": size, "classes": 10, **options}, fields.pop("loss"),
                images(n, size, 10), module, **fields)


def denoise(module, batch):
    return F.mse_loss(module(batch["image"], batch["t"]), batch["noise"])


def contrast(module, batch):
    """Both views of each example, first all of the one kind, then all of the other."""
    n = len(batch["views"])
    s = modern.similarities(module(batch["views"].transpose(0, 1).flatten(0, 1)), 0.5)
    return F.cross_entropy(s, (torch.arange(2 * n) + n) % (2 * n))


def income(module, batch):
    fields = ("number", "one_hot", "workclass", "education", "occupation", "country")
    return F.cross_entropy(module(*(batch[name] for name in fields)), batch["label"])


def people(n, rows):
    def make(rng):
        codes = {name: rng.integers(0, k, n).astype(np.int32)
                 for name, k in zip(("workclass", "education", "occupation", "country"), rows)}
        return {"number": rng.standard_normal((n, 6)).astype(np.float32),
                "one_hot": rng.integers(0, 2, (n, 20)).astype(np.float32), **codes,
                "label": rng.integers(0, 2, n).astype(np.int32)}
    return make


def reconstruct(module, batch):
    """With the noise that scrimp draws in this step: a module that is copied to be trained counts from its first."""
    step = module.steps = getattr(module, "steps", -1) + 1
    def draw(like):
        return torch.from_numpy(philox.normal(like.shape, "", 0, step)).to(like.dtype)
    with mock.patch.object(torch, "randn_like", draw):
        y, mu, logvar = module(batch["image"])
    divergence = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum()
    return F.binary_cross_entropy_with_logits(y, batch["image"], reduction="sum") + divergence


def pool(stride, kernel=3, **more):
    return {"kernel_size": kernel, "stride": stride, **more}


# Which convolutions are pooled, and how: for settle.py.
SAME = pool(1, padding=1)
GOOGLENET_POOLS = {r"conv[13]\.conv": [pool(2, ceil_mode=True), SAME],
                   r"inception(3a|4[abcd]|5a)\.branch(1|[234]\.1)\.conv": [SAME],
                   r"inception3b\.branch(1|[234]\.1)\.conv": [pool(2, ceil_mode=True), SAME],
                   r"inception4e\.branch(1|[234]\.1)\.conv": [pool(2, 2, ceil_mode=True), SAME]}
INCEPTION_V3_POOLS = {r"Conv2d_(2b_3x3|4a_3x3)\.conv": [pool(2)],
                      r"Mixed_5d\.branch(1x1|5x5_2|3x3dbl_3|_pool)\.conv": [pool(2)],
                      r"Mixed_6e\.branch(1x1|7x7_3|7x7dbl_5|_pool)\.conv": [pool(2)]}
RESNET_POOLS = {"conv1": [pool(2, padding=1)]}
DENSENET_POOLS = {r"features\.conv0": [pool(2, padding=1)]}

# The keys are the names of the tests (tests/peers/CMakeLists.txt reads them).
CASES = {
    "resnet18": image_case("resnet", {"depth": 18}, lambda: zoo("resnet18"), n=4, lr=(2**-18, 2**-19), pools=RESNET_POOLS),
    "resnet50": image_case("resnet", {"depth": 50}, lambda: zoo("resnet50"), n=4, lr=(2**-20, 2**-21), pools=RESNET_POOLS),
    "convnext": image_case("convnext", {"drop": 0.0}, lambda: zoo("convnext_tiny", stochastic_depth_prob=0.0), n=2,
                           lr=(2**-9, 2**-14)),
    "densenet121": image_case("densenet", {"depth": 121}, lambda: zoo("densenet121"), n=4,
                              lr=(2**-18, 2**-21), pools=DENSENET_POOLS, cancels={"features.norm0": "features.conv0.weight"}),
    "vgg11": image_case("vgg", {"depth": 11, "hidden": 64, "p": 0.0}, lambda: VGG("A", 64, 10), size=32, seed=11),
    "googlenet": image_case(
        "googlenet", {"p": 0.0, "p_aux": 0.0},
        lambda: zoo("googlenet", init_weights=False, dropout=0.0, dropout_aux=0.0), n=4, lr=(2**-20, 2**-22),
        torch_loss=auxiliary(0.3), pools=GOOGLENET_POOLS,
        loss="""all = [cross_entropy(y, batch.label) for y in googlenet(batch.image)]
  loss = all[0] + 0.3 * (all[1] + all[2])"""),
    "inception_v3": image_case(
        "inception_v3", {"p": 0.0, "aux": "false"},
        lambda: zoo("inception_v3", init_weights=False, dropout=0.0, aux_logits=False), size=112, n=4,
        lr=(2**-24, 2**-26), pools=INCEPTION_V3_POOLS),
    "inception_v3_aux": image_case(
        "inception_v3", {"p": 0.0}, lambda: zoo("inception_v3", init_weights=False, dropout=0.0), size=299, n=3, steps=2, lr=(2**-24, 2**-26),
        torch_loss=auxiliary(0.4), pools=INCEPTION_V3_POOLS,
        loss="""all = [cross_entropy(y, batch.label) for y in inception_v3(batch.image)]
  loss = all[0] + 0.4 * all[1]"""),
    "darts": image_case("nascell", {"cell": "darts_v2", "C": 8, "layers": 6}, lambda: darts.Network(8, 6, 10),
                        n=4, size=32, seed=4, lr=(2**-24, 2**-29)),
    "gpt2": Case("gpt2", {"layers": 3, "heads": 4, "C": 128, "N": 4, "T": 24, "V": 96},
                 "loss = cross_entropy(gpt2(batch.x), batch.y)",
                 words(4, 24, 96), lambda: gpt2.GPT2(3, 4, 128, 96), predict),
    "lstm": lstm_case("unrolled"),
    "lstm_layers": lstm_case("layers"),
    "transformer_tf": translation_case("tf", (2**-9, 2**-18)),
    "transformer_paper": translation_case("paper", (2**-11, 2**-18)),
    "vit": image_case("vit", {"C": 48, "heads": 3, "layers": 3, "patch": 8, "drop": 0.0},
                      lambda: modern.ViT(48, 3, 3, 32, 8, 10), n=4, size=32, lr=(2**-9, 2**-14)),
    "mixer": image_case("mixer", {"C": 32, "layers": 3, "patch": 8}, lambda: modern.Mixer(32, 3, 32, 8, 10), n=4, size=32,
                        lr=(2**-9, 2**-14)),
    "efficientnet": image_case("efficientnet", {"p": 0.0, "drop": 0.0},
                               lambda: without_dropout(zoo("efficientnet_b0", stochastic_depth_prob=0.0)), n=4,
                               lr=(2**-20, 2**-21)),
    "mobilenet_v2": image_case("mobilenet_v2", {"p": 0.0}, lambda: zoo("mobilenet_v2", dropout=0.0), n=4, seed=9,
                               lr=(2**-26, 2**-31)),
    "lenet": Case("lenet", {"N": 4}, "loss = cross_entropy(lenet(batch.image), batch.label)", images(4, 28, 10, channels=1),
                  modern.LeNet, classify, lr=(2**-12, 2**-20), seed=15),
    "audio": Case("audio", {"N": 4, "classes": 10, "length": 8000},
                  "loss = cross_entropy(m5(batch.audio), batch.label)",
                  lambda rng: {"audio": rng.standard_normal((4, 1, 8000)).astype(np.float32),
                               "label": rng.integers(0, 10, 4).astype(np.int32)},
                  lambda: modern.M5(10), lambda m5, batch: F.cross_entropy(m5(batch["audio"]), batch["label"]),
                  lr=(2**-21, 2**-20), seed=2),
    "dcgan": Case("dcgan", {"N": 4, "nz": 10, "ngf": 4, "ndf": 4},
                  """fake = netG: generator(batch.z)
  on_fake = softplus(shared netD: discriminator(fake))
  loss = mean(softplus(-(shared netD: discriminator(batch.image)))) + mean(on_fake)""",
                  lambda rng: {"image": rng.standard_normal((4, 3, 64, 64)).astype(np.float32),
                               "z": rng.standard_normal((4, 10, 1, 1)).astype(np.float32)},
                  lambda: modern.GAN(10, 4),
                  lambda gan, batch: (F.softplus(gan.netD(gan.netG(batch["z"]))).mean()
                                      + F.softplus(-gan.netD(batch["image"])).mean()), lr=(2**-14, 2**-20)),
    "llama": Case("llama", {"C": 64, "F": 96, "layers": 3, "heads": 8, "kv_heads": 4, "V": 80, "base": 10000, "N": 4, "T": 20},
                  "loss = cross_entropy(llama(batch.x), batch.y)",
                  words(4, 20, 80), lambda: modern.Llama(80, 64, 96, 3, 8, 4, 10000.0), predict),
    "moe": Case("moe", {"C": 48, "F": 64, "layers": 2, "heads": 4, "kv_heads": 2, "V": 80, "base": 10000, "E": 4, "k": 2,
                        "room": 4.0, "N": 4, "T": 12},
                """logits, spread, passed = moe(batch.x)
  loss = cross_entropy(logits, batch.y) + 0.02 * spread""", words(4, 12, 80),
                lambda: mixtral.Mixtral(80, 48, 2, hidden=64, heads=4, kv_heads=2, base=10000.0, experts=4, top=2), balanced,
                lr=(2**-12, 2**-17)),
    "bert": Case("bert", {"size_name": "tiny", "C": 48, "heads": 3, "layers": 2, "V": 80, "p": 0.0, "N": 4, "T": 14},
                 "loss = cross_entropy(bert(batch.x), batch.y)",
                 words(4, 14, 80), lambda: bert.MaskedLM(80, 48, 3, 2), predict),
    "ssm": Case("ssm", {"width": 32, "depth": 2, "V": 80, "state": 8, "N": 4, "T": 12},
                "loss = cross_entropy(ssm(batch.x), batch.y)",
                words(4, 12, 80), lambda: modern.Mamba(80, 32, 2, 8), predict),
    "gru": Case("gru", {"N": 6, "T": 12, "V": 80, "H": 48}, "loss = cross_entropy(lm(batch.x), batch.y)",
                words(6, 12, 80), lambda: modern.GRU(80, 48, 2), predict),
    "ode": Case("ode", {"N": 16, "H": 32, "steps": 6}, "loss = cross_entropy(ode(batch.image), batch.label)",
                lambda rng: {"image": rng.standard_normal((16, 784)).astype(np.float32),
                             "label": rng.integers(0, 10, 16).astype(np.int32)},
                lambda: modern.ODE(32, 6), classify),
    # One example: the noise belongs to places of a batch, which scrimp fills in an order of its own.
    "vae": Case("vae", {"N": 1, "hidden": 48},
                """y, mu, logvar = vae(batch.image)
  divergence = -0.5 * sum(1 + logvar - mu ** 2 - exp(logvar))
  loss = bce_with_logits(y, batch.image, reduction = sum) + divergence""",
                lambda rng: {"image": rng.random((1, 784)).astype(np.float32)}, lambda: modern.VAE(48), reconstruct,
                lr=(2**-14, 2**-14)),
    "ddpm": Case("ddpm", {"N": 2, "width": 16, "factors": "[1, 2]", "layers": 1, "groups": 4, "p": 0.0},
                 "loss = mse(ddpm(batch.image, batch.t), batch.noise)",
                 lambda rng: {"image": rng.standard_normal((2, 3, 32, 32)).astype(np.float32),
                              "t": rng.integers(0, 1000, 2).astype(np.int32),
                              "noise": rng.standard_normal((2, 3, 32, 32)).astype(np.float32)},
                 lambda: ddpm.UNet(16, (1, 2), 1, 4, p=0.0), denoise),
    "simclr": Case("simclr", {"N": 3, "size": 16, "features": 12},
                   """views = concat([batch.views[.., 0], batch.views[.., 1]], axis = 0)
  loss = cross_entropy(similarities(simclr(views)), concat([iota(3) + 3, iota(3)], axis = 0))""",
                   lambda rng: {"views": rng.standard_normal((3, 2, 3, 16, 16)).astype(np.float32)},
                   lambda: modern.SimCLR(12), contrast, lr=(2**-18, 2**-19)),
    "tabular": Case("tabular", {"N": 8, "width": 32, "p": 0.0},
                    """logits = mlp(batch.number, batch.one_hot, batch.workclass, batch.education, batch.occupation, batch.country)
  loss = cross_entropy(logits, batch.label)""",
                    people(8, [9, 16, 15, 42]), lambda: modern.TabularMLP(26, [9, 16, 15, 42], 8, 32, 2, p=0.0), income),
    "unet": Case("unet", {"N": 1, "size": 188, "width": 4, "classes": 3, "p": 0.0},
                 "loss = cross_entropy(unet(batch.image), batch.label)",
                 segmented(1, 188, 4, 3), lambda: unet.UNet(4, 3), classify, lr=(2**-15, 2**-22), seed=8),
}
