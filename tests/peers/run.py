"""Parity with PyTorch: run.py CASE...

From the same weights, on the same batch, scrimp and PyTorch compute the loss, every gradient, the running statistics
after a step, and the weights after ten steps of SGD with momentum and of AdamW.  compare.py has the criterion.  Weights
go to scrimp as a safetensors file of PyTorch's state_dict, and what scrimp saves goes back through load_state_dict.

By hand:  SCRIMP=build/release/scrimp python3 tests/peers/run.py resnet18
As tests: ctest --test-dir build/release -L peers
run.py --wrong-twins CASE... must see that slightly wrong twins of the case differ (mistakes.py).
run.py --seeds CASE... prints which seeds of a case stay away from ties (decisions.py).
"""
import copy
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
from cases import CASES
from compare import compare, report

DECAY = 2**-9
TRIES = 10


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
    """Module and batch of a seed, and how near its decisions come to a tie."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    module = case.module()
    randomize(module, rng)
    arrays = case.data(rng)
    exact = reference.in_precision(module, torch.float64)
    with decisions.watched() as margins, torch.no_grad():
        case.torch_loss(exact, reference.as_batch(arrays, torch.float64))
    return module, arrays, margins


def clear_draw(case):
    """Module and batch on which rounding errors change no decision of the first step: those of the case's seed, and of
    the seeds after it where another version of PyTorch draws other weights."""
    for seed in range(case.seed, case.seed + TRIES):
        module, arrays, margins = drawn(case, seed)
        if decisions.clear(margins):
            return module, arrays
        print(f"  seed {seed}: a decision is within {min(margins):.1e} of a tie")
    raise AssertionError("every draw has decisions near a tie: give the case another seed, or fewer decisions")


def print_seeds(names):
    for name in names:
        for seed in range(TRIES):
            margins = drawn(CASES[name], seed)[2]
            print(f"{name}: seed {seed}: smallest margin {min(margins, default=math.inf):.1e}"
                  f"{'' if decisions.clear(margins) else ', near a tie'}", flush=True)


FIRST_STEP = ("loss", "gradients", "running statistics")


def trained(case, module, arrays, dtype):
    """What PyTorch makes of the steps in dtype: {what: {name: array}}, under the names that scrimp_results uses, and
    the set of those in which a decision was near a tie."""
    results, unclear = {}, set()
    for (name, optimizer), lr in zip(reference.OPTIMIZERS.items(), case.lr):
        losses, weights = f"losses, {name}", f"{case.steps} steps of {name}"
        with decisions.watched() as margins:
            results[losses], results[weights] = reference.train(
                module, case.torch_loss, arrays, dtype, lambda p: optimizer(p, lr, DECAY), case.steps)
        if not decisions.clear(margins, case.drift):
            unclear.update((losses, weights))
    return results, unclear


def peer_results(case, module, arrays):
    """{what: {name: array}} of float64, a list of such of float32, and what was near a tie."""
    first = dict(zip(FIRST_STEP, reference.gradient(module, case.torch_loss, arrays, torch.float64)))
    later, unclear = trained(case, module, arrays, torch.float64)
    later32, _ = trained(case, module, arrays, torch.float32)
    first32 = [dict(zip(FIRST_STEP, g)) for g in reference.float32_gradients(module, case.torch_loss, arrays)]
    float32 = {what: [r[what] for r in first32] for what in FIRST_STEP}
    float32.update({what: [later32[what]] for what in later32})
    return {**first, **later}, float32, unclear


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
    gradients = {n[len("m."):]: a for n, a in momentum.items() if n.startswith("m.")}
    results = dict(zip(FIRST_STEP, ({"loss": losses["loss"][0]}, gradients, {n: state[n] for n in statistics})))
    for name, lr in zip(reference.OPTIMIZERS, case.lr):
        extra = "momentum = 0.9" if name == "sgd" else f"eps = {reference.ADAM_EPS}"
        losses, state, _ = train(name, f"{name}(lr = {lr}, {extra}, weight_decay = {DECAY})", case.steps)
        results[f"losses, {name}"], results[f"{case.steps} steps of {name}"] = losses, state
    return results


def in_folder(case, module, arrays):
    with tempfile.TemporaryDirectory(prefix="scrimp-peers-") as folder:
        return scrimp_results(case, module, arrays, pathlib.Path(folder))


def compared(mine, case, module, arrays):
    """Rows of scrimp's results against those of a twin."""
    truth, float32, unclear = peer_results(case, module, arrays)
    start = reference.state(module)
    return [row for what in truth for row in compare(what, mine[what], float32[what], truth[what],
                                                     start if what in unclear else None)]


def run_case(name):
    start = time.monotonic()
    case = CASES[name]
    module, arrays = clear_draw(case)
    rows = compared(in_folder(case, module, arrays), case, module, arrays)
    print(f"{name}: {time.monotonic() - start:.1f} s")
    return report(rows, sys.stdout)


def wrong_twins(name):
    """The test of the test: against a twin that is slightly wrong, what the mistake reaches must fail, and what it does not
    reach must not."""
    case = CASES[name]
    module, arrays = clear_draw(case)
    mine, right = in_folder(case, module, arrays), True
    for mistake, (reached, unreached) in mistakes.MISTAKES.items():
        rows = compared(mine, *mistake(case, copy.deepcopy(module)), arrays)
        kinds, failed = {r.what for r in rows}, {r.what for r in rows if not r.passed}
        right = right and {k for k in kinds if k.startswith(reached)} <= failed
        right = right and not any(k.startswith(unreached) for k in failed)
        print(f"{mistake.__name__}: failed: {', '.join(sorted(failed)) or 'nothing'}")
    return right


def main(names):
    torch.set_num_threads(1)
    if names[:1] == ["--wrong-twins"]:
        return 0 if all([wrong_twins(name) for name in names[1:]]) else 1
    if names[:1] == ["--seeds"]:
        return print_seeds(names[1:])
    results = [run_case(name) for name in names or CASES]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
