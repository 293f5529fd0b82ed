#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both columns of the tables "PyTorch | scrimp" of docs/from-pytorch.md compute the same.

PyTorch evaluates the left cell, `scrimp predict` the right one, on the same tensors; layers have PyTorch's weights.
Rows of random numbers have no values to compare, and rows that this version of PyTorch does not know are told.
"""
import pathlib
import re
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import safefile
import scrimp

N = 8
INPUTS = {"x": "f32[8, 16, 32, 32]", "t": "f32[8, 32, 16]", "s": "f32[8, 16, 32]", "v": "f32[8, 4, 8, 8, 8]",
          "ids": "i32[8, 32]", "a": "f32[8, 16]", "b": "f32[8, 16]", "y": "i32[8]", "m": "bool[8, 16]"}
RANDOM = ("Dropout", "randn", "rand(", "randint", "bernoulli")
ROWS = 24          # results of one model
TOLERANCE = 2e-5   # of the largest element: sums of thousands of f32
LEAST = 95         # rows that have to be compared


def arrays():
    rng = np.random.default_rng(1)
    made = {}
    for name, kind in INPUTS.items():
        shape = [int(d) for d in re.findall(r"\d+", kind.split("[")[1])]
        if kind.startswith("f32"):
            made[name] = rng.standard_normal(shape).astype(np.float32)
        else:
            made[name] = rng.integers(0, 2 if kind.startswith("bool") else 16, shape).astype(
                np.bool_ if kind.startswith("bool") else np.int32)
    return made


def rows():
    """(cell of PyTorch, cell of scrimp)"""
    page = (scrimp.SOURCE / "docs/from-pytorch.md").read_text(encoding="utf-8")
    for table in re.findall(r"\| PyTorch \| scrimp \|\n\|---\|---\|\n((?:\|.*\n)+)", page):
        for row in table.strip().split("\n"):
            left, right = (c.strip().strip("`").replace("\\|", "|") for c in re.split(r"(?<!\\)\|", row)[1:3])
            yield left, right


def evaluate(cell, tensors, label):
    """The value, and the weights of the layer under its label."""
    layer = re.match(r"(nn\.\w+\(.*\))\((\w+)\)(\[1\])?$", cell)
    if not layer:
        return eval(cell, {"torch": torch, "F": F, **tensors}), {}
    module = eval(layer[1], {"nn": nn})
    for p in module.parameters():
        nn.init.normal_(p, std=0.3)
    module.eval()
    value = module(tensors[layer[2]])
    weights = {f"{label}.{n}": w.detach().numpy() for n, w in module.state_dict().items() if "num_batches" not in n}
    return value[1] if layer[3] else value, weights


def predicted(folder, number, cells, weights):
    """What scrimp makes of these cells: flat arrays of N equal rows."""
    lines = []
    for i, cell in enumerate(cells):
        lines.append(f"  r{i} = {cell}\n  r{i} = reshape(to_f32(r{i}), [1, -1])\n"
                     f"  r{i} = broadcast(r{i}, [{N}, r{i}.shape[1]])")
    inputs = ", ".join(f"{name}: {kind}" for name, kind in INPUTS.items())
    # every input is read, so that each can be given
    read = " + ".join(f"sum(to_f32({name}))" for name in INPUTS)
    path = folder / f"rows{number}.scrimp"
    path.write_text(f"""import "std/all"
model m({inputs}) {{
{chr(10).join(lines)}
  return zeros([{N}, 1]) + ({read}), {", ".join(f"r{i}" for i in range(len(cells)))}
}}
""", encoding="utf-8")
    safefile.write(folder / f"w{number}.safetensors", weights or {"none": np.zeros(1, np.float32)})
    given = [word for name in INPUTS for word in ("--input", f"{name}={folder / name}.npy")]
    out = folder / f"out{number}.npy"
    scrimp.call("predict", path, "--checkpoint", folder / f"w{number}.safetensors", *given, "-o", out, "-q")
    return [np.load(folder / f"out{number}.{i + 1}.npy") for i in range(len(cells))]


def main():
    compared, wrong, batch = 0, [], []
    made = arrays()
    tensors = {name: torch.from_numpy(a) if a.dtype != np.int32 else torch.from_numpy(a).long()
               for name, a in made.items()}
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory(prefix="scrimp-peers-") as name, torch.no_grad():
        folder = pathlib.Path(name)
        scrimp.write_data(folder, made)
        for number, (left, right) in enumerate(rows()):
            if any(word in left for word in RANDOM):
                continue
            label = re.search(r"\|> (\w+): ", right)
            # labels of different rows are not to meet
            mine = right.replace(f"|> {label[1]}:", f"|> row{number}:") if label else right
            try:
                value, weights = evaluate(left, tensors, f"row{number}")
            except (AttributeError, NameError) as e:
                print(f"not compared: {left}: {e}")
                continue
            batch.append((left, mine, value, weights))
        for first in range(0, len(batch), ROWS):
            part = batch[first:first + ROWS]
            weights = {n: w for _, _, _, ws in part for n, w in ws.items()}
            for (left, right, value, _), got in zip(part, predicted(folder, first, [p[1] for p in part], weights)):
                want = value.to(torch.float32).numpy().reshape(1, -1)
                compared += 1
                same = got.shape[1] == want.shape[1]
                apart = np.abs(got - want).max() / max(np.abs(want).max(), 1e-6) if same else np.inf
                if not apart <= TOLERANCE:
                    wrong.append(f"{left} and {right} are {apart:.2g} apart")
    print(f"{compared} rows compared")
    if compared < LEAST:
        wrong.append(f"only {compared} rows were compared")
    sys.exit("\n".join(wrong) or 0)


main()
