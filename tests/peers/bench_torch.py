# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch's side of bench.py: a process that keeps one of steps.py's training steps, and takes some when it is told to.

bench_torch.py STEP MODE THREADS: prints a line of JSON when it is ready, with what it counts and runs; then, for each line
of its input, which says how many, takes that many steps and prints their seconds.
"""
import copy
import json
import sys
import time

import torch

import attention
import steps

WAYS = ["fused", "foreach", "for"]
TRIES = 3


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def fastest_optimizer(trainer):
    """Settles on the way of running the optimizer that is fastest on gradients of a step; returns what each takes.  Weights
    and statistics are then as before."""
    before = copy.deepcopy(trainer.step.module.state_dict())
    trainer.use(WAYS[-1])
    batch = trainer.batch()
    trainer.backward(batch)
    took = {}
    for way in WAYS:
        try:
            trainer.use(way)
            trainer.optimizer.step()
        except RuntimeError:  # this PyTorch has no such optimizer
            continue
        took[way] = min(seconds(trainer.optimizer.step) for _ in range(TRIES))
    trainer.step.module.load_state_dict(before)
    trainer.use(min(took, key=took.get))
    return took


def faster_attention(trainer):
    """Settles on PyTorch's own attention in one call or on its parts: in bf16 the gradient of the first is the slower one
    for short sequences."""
    before = copy.deepcopy(trainer.step.module.state_dict())
    trainer.use(WAYS[-1])
    batch, took = trainer.batch(), {}
    for way in (attention.fused, attention.written_out):
        attention.way = way
        trainer.backward(batch)
        took[way] = min(seconds(lambda: trainer.backward(batch)) for _ in range(TRIES))
    attention.way = min(took, key=took.get)
    trainer.step.module.load_state_dict(before)


def one_step(trainer):
    """Seconds of a step and its loss; the batch is there before."""
    batch = trainer.batch()
    start = time.perf_counter()
    loss = trainer.backward(batch)
    trainer.optimizer.step()
    return time.perf_counter() - start, loss.item()


def main():
    name, mode, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(threads)
    trainer = steps.Trainer(name, mode)
    if trainer.half and mode != "compile":
        faster_attention(trainer)
    took = fastest_optimizer(trainer)
    first, _ = one_step(trainer)
    print(json.dumps({"parameters": trainer.step.parameters(), "optimizer": trainer.way, "optimizer_seconds": took,
                      "threads": torch.get_num_threads(), "first": first, "torch": torch.__version__,
                      "mkl": torch.backends.mkl.is_available(), "onednn": torch.backends.mkldnn.is_available()}), flush=True)
    for line in sys.stdin:
        one_step(trainer)  # warms the caches, which the others have used since
        taken = [one_step(trainer) for _ in range(int(line))]
        print(json.dumps({"seconds": [s for s, _ in taken], "loss": taken[-1][1]}), flush=True)


if __name__ == "__main__":
    main()
