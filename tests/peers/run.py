# SPDX-License-Identifier: GPL-3.0-or-later
"""Parity with PyTorch: run.py CASE...

From the same weights, on the same batch, scrimp and PyTorch compute the loss, every gradient, the running statistics
after a step, and the weights and the optimizer's state after ten steps of SGD with momentum and of AdamW.  compare.py
has the criterion.  Weights go to scrimp as a safetensors file of PyTorch's state_dict, and what scrimp saves goes back
through load_state_dict.

By hand:  SCRIMP=build/release/scrimp python3 tests/peers/run.py resnet18
As tests: ctest --preset peers
run.py --wrong-twins CASE... must see that slightly wrong twins of the case differ (mistakes.py).
run.py --decisions tests the watching of poolings.
run.py --seeds CASE... prints which seeds of a case stay away from ties (decisions.py), run.py --rates CASE... at which
learning rates its steps do.
"""
import copy
import functools
import itertools
import math
import pathlib
import sys
import tempfile
import time

import numpy as np
import torch

import decisions
import mistakes
import reference
import safefile
import scrimp
import test_decisions
from cases import CASES
from compare import compare, compare_loss, report
from settle import settle

DECAY = 2**-9
TRIES = 30


def randomize(module, rng):
    """Weights and statistics that are all different: ones and zeros would hide a mistake.  What a batch normalization
    gives to a relu is mostly positive, so that there are few decisions near a tie (decisions.py)."""
    shifted = {f"{n}.bias" for n, m in module.named_modules() if isinstance(m, torch.nn.BatchNorm2d)}
    for name, t in itertools.chain(module.named_parameters(), module.named_buffers()):
        if t.dim() == 1 and t.is_floating_point():
            middle = 2.0 if name in shifted else 0.0
            t.data += torch.from_numpy(rng.uniform(middle - 0.25, middle + 0.25, t.shape)).to(t.dtype)


def check_interchange(module, saved):
    """What scrimp saved is a state_dict of the module."""
    tensors = {n: torch.from_numpy(a.copy()) for n, a in saved.items()}
    counters = {n: t for n, t in module.state_dict().items() if n.endswith("num_batches_tracked")}
    reference.in_precision(module, torch.float32).load_state_dict({**tensors, **counters}, strict=True)


def drawn(case, seed):
    """Module and batch of a seed, and how clear their decisions are: as a multiple of float32's errors."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    module = case.module()
    randomize(module, rng)
    arrays = case.data(rng)
    batches = [reference.as_batch(arrays, dtype) for dtype in (torch.float64, torch.float32)]
    settle(module, case.torch_loss, batches[0], case.pools)
    modules = [reference.in_precision(module, dtype) for dtype in (torch.float64, torch.float32)]
    exact, rounded = (functools.partial(case.torch_loss, *pair) for pair in zip(modules, batches))
    with torch.no_grad():
        return module, arrays, decisions.clearance(exact, rounded)


def clear_draw(case):
    """Module and batch on which rounding errors change no decision of the first step: those of the case's seed, and of
    the seeds after it where another version of PyTorch draws other weights."""
    for seed in range(case.seed, case.seed + TRIES):
        module, arrays, clearance = drawn(case, seed)
        if clearance >= decisions.CLEAR:
            print(f"  seed {seed}: decisions of the first step are {clearance:.1f} times float32's errors away from ties")
            return module, arrays
        print(f"  seed {seed}: a decision is {clearance:.2f} times float32's error away from a tie")
    raise AssertionError("every draw has decisions near a tie: give the case another seed, or fewer decisions")


def print_seeds(names):
    for name in names:
        for seed in range(TRIES):
            print(f"{name}: seed {seed}: clearance {drawn(CASES[name], seed)[2]:.2f}", flush=True)


def print_rates(names):
    """The choice of a case's rates: how clear the steps stay at its rate and at lower ones, and how far the loss falls."""
    for name in names:
        case = CASES[name]
        module, arrays = clear_draw(case)
        for optimizer, lr in zip(reference.OPTIMIZERS, case.lr):
            for rate in (lr * 4.0**-k for k in range(8)):
                (losses, _, _), _, clear = reference.train(
                    [(module, arrays)], case.torch_loss, lambda p: reference.OPTIMIZERS[optimizer](p, rate, DECAY), case.steps)
                first, *_, last = losses["loss"]
                print(f"{name}: {optimizer} at 2^{math.log2(rate):g}: clearance {min(clear):.2f} "
                      f"({' '.join(f'{c:.1f}' for c in clear)}), loss {first:.6g} to {last:.6g}", flush=True)
                if min(clear) >= decisions.CLEAR_LATER:
                    break


FIRST_STEP = ("loss", "gradients", "running statistics")


def first_step(case, module, arrays, dtype):
    return dict(zip(FIRST_STEP, reference.gradient(module, case.torch_loss, arrays, dtype)))


def labelled(case, optimizer, losses, state, moments):
    """Results of training as {what: {name: array}}."""
    steps = f"{case.steps} steps of {optimizer}"
    return {f"losses, {optimizer}": losses, steps: state,
            **{f"{kind} after {steps}": tensors for kind, tensors in moments.items()}}


def training(case, module, arrays):
    """What PyTorch makes of the steps: in float64, in float32 in some ways, and {optimizer: clearance of each step}."""
    variants = reference.variants(module, arrays)
    exact, rounded, clear = {}, [{} for _ in variants], {}
    for (name, optimizer), lr in zip(reference.OPTIMIZERS.items(), case.lr):
        its, its32, clear[name] = reference.train(variants, case.torch_loss, lambda p: optimizer(p, lr, DECAY), case.steps)
        for results, some in zip([exact, *rounded], [its, *its32]):
            results.update(labelled(case, name, *some))
    return exact, rounded, clear


def well_conditioned(clear):
    """Whether rounding errors change no decision of the steps.  If they may, comparing says nothing about scrimp."""
    for name, steps in clear.items():
        least = min(steps)
        if least == math.inf:
            continue  # a network that decides nothing
        print(f"  {len(steps)} steps of {name}: decisions are {least:.1f} times float32's errors away from ties, "
              f"the least in step {steps.index(least) + 1}")
    ill = [name for name, steps in clear.items() if min(steps) < decisions.CLEAR_LATER]
    for name in ill:
        print(f"  FAIL ill-conditioned case, scrimp was not run: {name} has to stay {decisions.CLEAR_LATER:g} errors away; "
              "give it a lower rate (--rates)")
    return not ill


def by_kind(optimizer):
    """The optimizer's state of a checkpoint, {"m.NAME": array}, as {"m": {NAME: array}}."""
    kinds = {}
    for name, array in optimizer.items():
        kind, _, weight = name.partition(".")
        if kind in reference.MOMENTS.values():
            kinds.setdefault(kind, {})[weight] = array
    return kinds


def scrimp_results(case, module, arrays, folder):
    """What scrimp computes.  Momentum starts as the gradient, so that a checkpoint after one step without weight decay
    holds it."""
    weights = folder / "weights.safetensors"
    safefile.write(weights, reference.state(module))
    scrimp.write_data(folder, arrays)

    def train(name, optim, steps):
        path = folder / f"{name}.scrimp"
        scrimp.write_model(path, case.example, arrays, case.loss, optim)
        return scrimp.train(path, case.options, weights, steps, folder / name)

    losses, state, momentum = train("gradient", f"sgd(lr = {case.lr[0]}, momentum = 0.9)", 1)
    check_interchange(module, state)
    statistics = reference.buffers(module)
    results = dict(zip(FIRST_STEP, ({"loss": losses["loss"][0]}, by_kind(momentum)["m"], {n: state[n] for n in statistics})))
    for name, lr in zip(reference.OPTIMIZERS, case.lr):
        extra = "momentum = 0.9" if name == "sgd" else f"eps = {reference.ADAM_EPS}"
        losses, state, optimizer = train(name, f"{name}(lr = {lr}, {extra}, weight_decay = {DECAY})", case.steps)
        results.update(labelled(case, name, losses, state, by_kind(optimizer)))
    return results


def in_folder(case, module, arrays):
    with tempfile.TemporaryDirectory(prefix="scrimp-peers-") as folder:
        return scrimp_results(case, module, arrays, pathlib.Path(folder))


def compared(mine, case, module, arrays, later, later32):
    """Rows of scrimp's results against those of a twin, whose training gave later and later32."""
    truth = first_step(case, module, arrays, torch.float64)
    float32 = [first_step(case, *variant, torch.float32) for variant in reference.variants(module, arrays)]
    rows = [compare_loss(mine["loss"], later32[0]["losses, sgd"], later["losses, sgd"])]
    rows += [row for what in FIRST_STEP[1:]
             for row in compare(what, mine[what], [r[what] for r in float32], truth[what], case.cancels)]
    return rows + [row for what in later for row in compare(what, mine[what], [r[what] for r in later32], later[what], case.cancels)]


def run_case(name):
    start = time.monotonic()
    case = CASES[name]
    print(f"{name}:")
    module, arrays = clear_draw(case)
    later, later32, clear = training(case, module, arrays)
    if not well_conditioned(clear):
        return False
    rows = compared(in_folder(case, module, arrays), case, module, arrays, later, later32)
    print(f"  {time.monotonic() - start:.1f} s")
    return report(rows, sys.stdout)


def wrong_twins(name):
    """The test of the test: against a twin that is slightly wrong, what the mistake reaches must fail, and what it does not
    reach must not."""
    case = CASES[name]
    module, arrays = clear_draw(case)
    mine, right = in_folder(case, module, arrays), True
    for mistake, (reached, unreached) in mistakes.MISTAKES[name].items():
        wrong_case, wrong = mistake(case, copy.deepcopy(module))
        later, later32, _ = training(wrong_case, wrong, arrays)
        rows = compared(mine, wrong_case, wrong, arrays, later, later32)
        kinds, failed = {r.what for r in rows}, {r.what for r in rows if not r.passed}
        right = right and {k for k in kinds if k.startswith(reached)} <= failed
        right = right and not any(k.startswith(unreached) for k in failed)
        print(f"{mistake.__name__}: failed: {', '.join(sorted(failed)) or 'nothing'}")
    return right


def main(names):
    torch.set_num_threads(1)
    if names[:1] == ["--wrong-twins"]:
        return 0 if all([wrong_twins(name) for name in names[1:]]) else 1
    if names[:1] == ["--decisions"]:
        return test_decisions.main()
    if names[:1] == ["--seeds"]:
        return print_seeds(names[1:])
    if names[:1] == ["--rates"]:
        return print_rates(names[1:])
    results = [run_case(name) for name in names or CASES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
