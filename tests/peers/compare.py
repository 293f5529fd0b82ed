# SPDX-License-Identifier: GPL-3.0-or-later
"""The criterion.  Three results of the same computation are compared tensor by tensor: scrimp's f32, PyTorch's f32
and PyTorch's float64, which counts as the truth.  scrimp passes when its error is at most FACTOR times the error of
PyTorch's f32, or at most FLOOR: PyTorch is sometimes right by luck.  PyTorch's f32 is the median of a few ways to
compute the same (reference.py), since of one way a single tensor's error is a matter of luck.  Errors are norms relative to the norm of the truth, ||a - truth|| / ||truth||, so that one unlucky element of a large tensor counts
for little.  With n numbers, errors of the same size are more than FACTOR times apart by chance in 1% of tensors for
n = 4, in 0.04% for n = 8, in less than one of a million for n = 16: where there are fewer than FEW, PyTorch's error
counts as at least what is typical of such tensors, their median.  A single number, such as the loss, has nothing to
average over: rounding it to f32 alone makes an error of up to 6e-8, and its floor is two to four units in the last place.
"""
import math
import statistics
from dataclasses import dataclass

import numpy as np

FACTOR = 4.0
FEW = 16
FLOOR = 1e-7
SCALAR_FLOOR = 2.0**-22

# An error of PyTorch's float32 above this is a decision that fell otherwise, and excuses nothing.
CAP = 2.0**-12

# Below this part of its scale a gradient is zero: what float64 leaves of a sum that cancels.
ZERO = 1e-12

# Below this part of the gradient of the weight before, the gradient of a normalization that is named as one has cancelled.
CANCELLED = 1e-3


@dataclass
class Row:
    """One compared tensor: its errors, and whether scrimp's is good enough."""
    what: str
    name: str
    error: float
    yardstick: float
    floor: float = FLOOR

    @property
    def ratio(self):
        return self.error / max(min(self.yardstick, CAP), self.floor / FACTOR)

    @property
    def passed(self):
        return self.ratio <= FACTOR  # false for NaN


def norm(a):
    return float(np.linalg.norm(np.asarray(a, np.float64).ravel()))


def sibling(name, truth):
    """The weight of the layer whose bias `name` is, or None."""
    weight = name[:-len("bias")] + "weight" if name.endswith("bias") else None
    return truth.get(weight)


def scale_of(name, truth, cancels):
    """What an error of a tensor is relative to: the truth's norm.  The gradient of a bias in front of a batch
    normalization is zero, and what is computed in its place is rounding: that is judged against the gradient of
    the weight beside it, whose terms are the same ones before they cancel.  Where a normalization is followed by
    another one (Case.cancels) both of its gradients cancel; they are judged against that of the weight before."""
    scale = norm(truth[name])
    before = truth.get(cancels.get(name.rpartition(".")[0]))
    if before is not None and scale < CANCELLED * norm(before):
        return norm(before)
    beside = sibling(name, truth)
    if beside is not None and scale < ZERO * norm(beside):
        return norm(beside)
    return scale or 1.0


def expect_typical(rows):
    """Raises PyTorch's error of tensors with few numbers to the median of theirs."""
    typical = statistics.median(row.yardstick for row in rows) if rows else 0.0
    for row in rows:
        row.yardstick = max(row.yardstick, typical)


def compare(what, scrimp, torch32, truth, cancels):
    """Rows for {name: array} of the three; torch32 is a list of them, of whose errors the median counts.  A name that
    only one has is an error of the harness or of scrimp."""
    if set(scrimp) != set(truth):
        raise AssertionError(f"{what}: names differ: {sorted(set(scrimp) ^ set(truth))[:6]}")
    rows, few = [], []
    for name, exact in truth.items():
        if scrimp[name].shape != exact.shape:
            raise AssertionError(f"{what}: {name} is {scrimp[name].shape}, PyTorch has {exact.shape}")
        scale = scale_of(name, truth, cancels)
        error = norm(scrimp[name].astype(np.float64) - exact) / scale
        yardstick = statistics.median(norm(t[name].astype(np.float64) - exact) for t in torch32) / scale
        rows.append(Row(what, name, error, yardstick, FLOOR if exact.size > 1 else SCALAR_FLOOR))
        if 1 < exact.size < FEW:
            few.append(rows[-1])
    expect_typical(few)
    return rows


def compare_loss(scrimp, torch32, truth):
    """The row of the first loss.  The error of one number is luck, so PyTorch's is that of a typical loss of the steps
    that follow."""
    exact = truth["loss"]
    error = abs(scrimp["loss"] - exact[0]) / abs(exact[0])
    return Row("loss", "loss", float(error), norm(torch32["loss"] / exact - 1) / math.sqrt(exact.size), SCALAR_FLOOR)


def report(rows, out):
    """Prints one line for each kind of tensor and one for each failure; returns whether all passed."""
    for what in dict.fromkeys(r.what for r in rows):
        group = [r for r in rows if r.what == what]
        worst = max(group, key=lambda r: math.inf if math.isnan(r.ratio) else r.ratio)
        median = sorted(r.ratio for r in group)[len(group) // 2]
        print(f"  {what:30} {len(group):4} tensors   median ratio {median:5.2f}   worst {worst.ratio:5.2f}: "
              f"scrimp {worst.error:.1e}, torch f32 {worst.yardstick:.1e}, {worst.name}", file=out)
    failed = [r for r in rows if not r.passed]
    for r in failed[:40]:
        print(f"  FAIL {r.what}: {r.name}: error {r.error:.2e}, PyTorch's own {r.yardstick:.2e}, "
              f"ratio {r.ratio:.1f} > {FACTOR:g}", file=out)
    if len(failed) > 40:
        print(f"  ... and {len(failed) - 40} more", file=out)
    return not failed
