# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the scrimp program on a model file of examples/ with the data, weights and optimizer of a test."""
import json
import os
import pathlib
import shutil
import subprocess

import numpy as np

import safefile

SOURCE = pathlib.Path(os.environ.get("SCRIMP_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
PROGRAM = os.environ.get("SCRIMP") or os.path.join(os.environ.get("SCRIMP_BUILD", SOURCE / "build/release"), "scrimp")

# Longer than any run: a checkpoint is written at its end only.
STEPS = 1000

DTYPES = {"<f4": "f32", "<i4": "i32", "|u1": "u8", "|b1": "bool"}


class ScrimpError(Exception):
    pass


def call(*arguments):
    """Runs scrimp; what it says on standard output."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ScrimpError(f"scrimp {' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def write_data(folder, arrays):
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def source(folder, arrays):
    """The data source: all examples are one batch, so that each step sees all of them (in an order of scrimp's,
    which a mean does not depend on)."""
    files = ", ".join(f'"{folder}/{name}.npy"' for name in arrays)
    fields = ", ".join(f"{name} = {DTYPES[a.dtype.str]}{list(a.shape)}" for name, a in arrays.items())
    count = len(next(iter(arrays.values())))
    return f"npy([{files}], batch = {count}, {fields})"


def write_model(path, example, arrays, loss, optim):
    """A model file that imports an example and trains it in its own way: `loss` are the statements up to the key
    loss, `optim` the optimizer.  The example's own train section does not come with the import."""
    copy = path.parent / "examples"  # a model imports what is below its own folder
    if not copy.exists():
        shutil.copytree(SOURCE / "examples", copy)
    path.write_text(f"""import "examples/{example}.scrimp"
train {{
  batch = {source(path.parent, arrays)}
  {loss}
  optim = {optim}
  steps = {STEPS}
  eval_every = {STEPS}
}}
""", encoding="utf-8")


def train(path, options, weights, steps, out):
    """Trains from the weights in a safetensors file.  Losses of the steps, {name: weight or statistic} and
    {name: optimizer state} after the last."""
    log = out.with_suffix(".log")
    defines = [text for name, value in options.items() for text in ("-D", f"{name}={value}")]
    call("train", path, *defines, "--checkpoint", weights, "--steps", steps, "--out", out, "--log", log,
         "--threads", 1, "--quiet")
    with open(log, encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    (optimizer,) = out.glob("optimizer-*.safetensors")
    losses = np.asarray([e["loss"] for e in entries if "loss" in e])
    return {"loss": losses}, safefile.read(out / "model.safetensors"), safefile.read(optimizer)
