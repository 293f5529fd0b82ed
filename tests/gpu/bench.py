# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole training steps on a CUDA device, by scrimp under budgets, PyTorch and JAX: bench.py SCRIMP [--cases A,B:bf16]

Prints Markdown.  A peer runs in a process of its own, and is a row that says why where it is not installed or does not
fit.  Bytes of scrimp are the arena and the inputs' buffer, bytes of a peer the most that its allocator had at one time;
both hold weights, optimizer, a batch and the step; neither holds the context.
"""
import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
BUDGET_NOT_MET = 3
BUDGETS = ("100%", "50%", "25%", "min")
PYTORCH = {"eager": ("PyTorch, eager", ["peer_torch.py", "eager"]),
           "compiled": ("PyTorch, compiled", ["peer_torch.py", "compile"]),
           "half": ("PyTorch, compiled, half the activations", ["peer_torch.py", "compile", "--activations", "0.5"]),
           "least": ("PyTorch, compiled, least activations", ["peer_torch.py", "compile", "--activations", "0"])}
JAX = {"jax": ("JAX", ["peer_jax.py", "keep"]),
       "checkpoint": ("JAX, each layer computed again", ["peer_jax.py", "checkpoint"])}


@dataclasses.dataclass
class Case:
    """A step: an example with its options, and what of it is counted: so many units a step."""
    example: str
    options: dict
    unit: str
    per_step: int
    peers: dict
    precisions: tuple

    def defines(self):
        return [word for name, value in self.options.items() for word in ("-D", f"{name}={value}")]


def gpt2(n, t):
    return Case("gpt2", {"N": n, "T": t}, "tokens", n * t, PYTORCH | JAX, ("f32", "bf16"))


def resnet(n):
    return Case("resnet", {"depth": 50, "N": n}, "images", n, PYTORCH, ("tf32", "bf16"))


CASES = {"gpt2-64": gpt2(64, 1024), "gpt2-8": gpt2(8, 1024), "resnet50-256": resnet(256), "resnet50-32": resnet(32)}
SMALL = {"mlp": Case("mlp", {"N": 4, "hidden": 16}, "images", 4, {}, ("f32", "bf16"))}


def reason(text):
    """The line that says what went wrong: scrimp's error, or the last one of a Python program."""
    lines = text.strip().splitlines() or ["nothing said"]
    return next((line for line in lines if "error" in line), lines[-1]).replace("|", "/")


def answer(command, seconds, may_fail=()):
    """What a program printed as JSON, or why it did not.  may_fail: exit statuses that are answers, too; of scrimp, which
    has to answer in time."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {seconds} s", "failed": bool(may_fail)}
    if run.returncode == 0:
        return json.loads(run.stdout)
    return {"error": reason(run.stderr or run.stdout), "failed": run.returncode not in may_fail}


def model(case, precision, folder):
    """The example; for a precision that it does not have, a copy that says so."""
    path = EXAMPLES / f"{case.example}.scrimp"
    if precision == "f32":
        return path
    text, sections = re.subn(r"^train {$", f"train {{\n  precision = {precision}", path.read_text(), flags=re.M)
    assert sections == 1, f"{path} has {sections} train sections"
    copy = pathlib.Path(folder) / f"{case.example}-{precision}.scrimp"
    copy.write_text(text)
    return copy


def scrimp_row(scrimp, case, path, budget, seconds, *more):
    command = [scrimp, "bench", str(path), *case.defines(), "--device", "cuda", "--json"]
    result = answer([*command, "--budget", budget, *more], seconds, may_fail=[BUDGET_NOT_MET])
    if "device" in result:
        result["arena_bytes"] += result["device"]["staging_bytes"]
    return result


def peer_row(name, precision, peer, seconds):
    program, *mode = peer
    return answer([sys.executable, "-B", str(HERE / program), name, precision, *mode], seconds)


def table_row(what, result, case):
    if "error" in result:
        return f"| {what} | | | | {result['error']} |"
    step = result["seconds_per_step"]
    return f"| {what} | {1e3 * step:.2f} | {case.per_step / step:,.0f} | {result['arena_bytes'] / 2**20:,.1f} | |"


def print_case(name, case, precision, wanted, arguments, folder):
    """Whether no row failed.  wanted: which rows, or None: all."""
    path = model(case, precision, folder)
    print(f"### {name}, {precision}\n")
    said = "" if precision == "f32" else f", with `precision = {precision}` in the train section"
    print(f"`scrimp bench examples/{case.example}.scrimp {' '.join(case.defines())} --device cuda`{said}\n")
    print(f"| | ms a step | {case.unit} a second | MiB | |\n|---|---|---|---|---|")
    rows = {}
    for budget in BUDGETS:
        rows[budget] = (f"scrimp, budget {budget}",
                        lambda b=budget: scrimp_row(arguments.scrimp, case, path, b, arguments.seconds))
    rows["exact"] = ("scrimp, --exact",
                     lambda: scrimp_row(arguments.scrimp, case, path, BUDGETS[0], arguments.seconds, "--exact"))
    for key, (what, peer) in case.peers.items():
        rows[key] = (what, lambda p=peer: peer_row(name, precision, p, arguments.seconds))
    results = []
    for what, measure in (rows[key] for key in wanted or rows):
        results.append(measure())
        print(table_row(what, results[-1], case), flush=True)
    print()
    return not any(result.get("failed") for result in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scrimp", help="the program")
    parser.add_argument("--cases", help="of --list, with commas between; CASE:PRECISION: in one precision; "
                        "CASE:PRECISION:ROW+ROW: some rows, of " + ", ".join([*BUDGETS, "exact", *PYTORCH, *JAX]).replace("%", "%%"))
    parser.add_argument("--seconds", type=int, default=300, help="the longest that a row may take")
    parser.add_argument("--simulated", action="store_true", help="a small case, without peers")
    parser.add_argument("--list", action="store_true", help="the names of the cases")
    arguments = parser.parse_args()
    cases = SMALL if arguments.simulated else CASES
    asked = [word.split(":") for word in arguments.cases.split(",")] if arguments.cases else [[name] for name in cases]
    if arguments.list or not {name for name, *_ in asked} <= set(cases):
        print("cases:", *cases, file=sys.stdout if arguments.list else sys.stderr)
        return 0 if arguments.list else 1
    with tempfile.TemporaryDirectory() as folder:
        fine = [print_case(name, cases[name], precision, rows[0].split("+") if rows else None, arguments, folder)
                for name, *only in asked for precision in only[:1] or cases[name].precisions for rows in [only[1:]]]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
