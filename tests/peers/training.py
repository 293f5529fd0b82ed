# SPDX-License-Identifier: GPL-3.0-or-later
"""Optimizers, learning rates and groups of parameters, against PyTorch's own: training.py

A small network takes ten steps in scrimp and in PyTorch (in float64) from the same weights on the same batch; every
weight must agree to TOLERANCE of the largest of its tensor.  Optimizers that the installed PyTorch does not have are
left out, and named.

By hand:  SCRIMP=build/dev/scrimp python3 tests/peers/training.py
As test:  ctest --preset peers -R peers_training
"""
import pathlib
import sys
import tempfile

import numpy as np
import torch

import safefile
import scrimp

STEPS = 10
TOLERANCE = 2e-6

MODEL = """model net(x: f32[16, 12]) {{
  return x |> body: seq {{ linear(20); tanh(); linear(20); tanh() }} |> head: linear(5)
}}
train {{
  batch = {source}
  loss = cross_entropy(net(batch.x), batch.y)
  {section}
  steps = {steps}
  eval_every = 1000
}}
"""


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        tanh = torch.nn.Tanh
        self.body = torch.nn.Sequential(torch.nn.Linear(12, 20), tanh(), torch.nn.Linear(20, 20), tanh())
        self.head = torch.nn.Linear(20, 5)

    def forward(self, x):
        return self.head(self.body(x))


def frozen_body(m):
    for p in m.body[0].parameters():
        p.requires_grad_(False)
    return torch.optim.SGD([
        {"params": [m.body[2].bias, m.head.bias], "weight_decay": 0},
        {"params": [m.body[2].weight], "lr": 0.01},
        {"params": [m.head.weight]}], lr=0.1, momentum=0.9, weight_decay=0.01)


def clipped(m):
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    norm, value = torch.nn.utils.clip_grad_norm_, torch.nn.utils.clip_grad_value_
    return optimizer, lambda: (norm(m.head.parameters(), 0.05), norm(m.body.parameters(), 0.02),
                               value(m.body[0].parameters(), 0.001))


def one_cycle(m):
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=STEPS, pct_start=0.4, cycle_momentum=False)
    return optimizer, None, schedule


O = torch.optim
# {name: (the train section, what makes the optimizer, what clips and the schedule; the last two need not be there)}
CASES = {
    "rmsprop": ("optim = rmsprop(lr = 0.01, eps = 1e-3, weight_decay = 0.01)",
                lambda m: O.RMSprop(m.parameters(), lr=0.01, eps=1e-3, weight_decay=0.01)),
    "rmsprop, centered": ("optim = rmsprop(lr = 0.002, alpha = 0.9, eps = 1e-3, momentum = 0.8, centered = true)",
                          lambda m: O.RMSprop(m.parameters(), lr=0.002, alpha=0.9, eps=1e-3, momentum=0.8, centered=True)),
    "adagrad": ("optim = adagrad(lr = 0.05, lr_decay = 0.1, initial = 0.01, weight_decay = 0.02)",
                lambda m: O.Adagrad(m.parameters(), lr=0.05, lr_decay=0.1, initial_accumulator_value=0.01,
                                    weight_decay=0.02)),
    "adafactor": ("optim = adafactor(lr = 0.01, weight_decay = 0.1)",
                  lambda m: O.Adafactor(m.parameters(), lr=0.01, weight_decay=0.1)),
    "groups": ("""optim = sgd(lr = 0.1, momentum = 0.9, weight_decay = 0.01)
  groups = [group("body.0.*", frozen = true), group("*.bias", weight_decay = 0), group("body.*", lr = 10%)]""",
               frozen_body),
    "clipping": ("""optim = sgd(lr = 0.1, clip = 0.02)
  groups = [group("head.*", clip = 0.05), group("body.0.*", clip_value = 0.001)]""", clipped),
    "one cycle": ("optim = sgd(lr = one_cycle(0.2, warmup = 40%), momentum = 0.9)", one_cycle),
}


def in_torch(module, arrays, make):
    """{name: weight} after the steps, in float64."""
    m = Net().double()
    m.load_state_dict({n: t.double() for n, t in module.state_dict().items()})
    made = make(m)
    optimizer, clip, schedule = (*(made if isinstance(made, tuple) else (made,)), None, None)[:3]
    x, y = torch.from_numpy(arrays["x"]).double(), torch.from_numpy(arrays["y"]).long()
    for step in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(m(x), y).backward()
        if clip:
            clip()
        optimizer.step()
        if schedule and step + 1 < STEPS:
            schedule.step()
    return {n: t.detach().numpy() for n, t in m.state_dict().items()}


def in_scrimp(folder, name, module, arrays, section):
    weights = folder / "weights.safetensors"
    safefile.write(weights, {n: t.numpy() for n, t in module.state_dict().items()})
    path, out = folder / f"{name}.scrimp", folder / name
    path.write_text(MODEL.format(source=scrimp.source(folder, arrays), section=section, steps=STEPS), encoding="utf-8")
    scrimp.call("train", path, "--checkpoint", weights, "--out", out, "--threads", 1, "--quiet")
    return safefile.read(out / "model.safetensors")


def main():
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    module = Net()
    arrays = {"x": rng.standard_normal((16, 12)).astype(np.float32), "y": rng.integers(0, 5, 16).astype(np.int32)}
    worst = 0.0
    with tempfile.TemporaryDirectory(prefix="scrimp-peers-") as folder:
        scrimp.write_data(pathlib.Path(folder), arrays)
        for name, (section, make) in CASES.items():
            try:
                expected = in_torch(module, arrays, make)
            except AttributeError as missing:
                if "torch.optim" not in str(missing):
                    raise
                print(f"{name}: left out, {missing}")
                continue
            mine = in_scrimp(pathlib.Path(folder), name.replace(", ", "_"), module, arrays, section)
            error = max(np.abs(mine[n] - a).max() / np.abs(a).max() for n, a in expected.items())
            moved = max(np.abs(t.numpy() - expected[n]).max() for n, t in module.state_dict().items())
            print(f"{name}: weights move by {moved:.2g} and agree to {error:.2g}")
            worst = max(worst, error)
    sys.exit(f"FAIL: {worst:.2g} is more than {TOLERANCE:g}" if worst > TOLERANCE else 0)


main()
