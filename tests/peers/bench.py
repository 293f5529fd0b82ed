# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole training steps on the processor, by scrimp and by PyTorch: bench.py [CASE...] [--threads 1,2]

Both take turns: scrimp, PyTorch contiguous, channels last (pictures), torch.compile, and then in the opposite order.  A
turn's figure is the median of its steps.  Network, sizes, loss, optimizer with its settings, clipping, initial values and
dropout are the example's, data is random, numbers are f32; bench.py compares the number of parameters.  PyTorch runs as it
comes, except that its optimizer is the fastest of fused, foreach and a loop.

CASE:bf16 is the case with `precision = bf16`, beside PyTorch with torch.autocast around the loss;
parameters, their gradients and the optimizer are f32 on both sides.  CASE:winograd is the case with `winograd = true`,
beside PyTorch as before, which chooses the form of its convolutions itself.

Results are added to docs/results/cpu.jsonl, from which --render writes docs/results/cpu.md; a new run does, too.  Needs a
Python with torch and torchvision, a C++ compiler for torch.compile, and build/release/scrimp ($SCRIMP names another).
"""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import cpu_page
import noise
import scrimp

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORDS = ROOT / "docs/results/cpu.jsonl"
PAGE = RECORDS.with_suffix(".md")
DISTURBED = 0.1  # so many cores used by other programs make a round worthless
KERNELS = 6  # so many of a step's kernels are kept in a record

PICTURES = ("contiguous", "channels_last")
MATRICES = ("contiguous", "compile")


@dataclasses.dataclass
class Case:
    """An example with its options, what it is called in the page, how PyTorch runs it, the precision of both, and what
    the train section says beyond the example's."""
    example: str
    options: dict
    title: str
    modes: tuple
    precision: str = "f32"
    setting: str = ""

    def in_bf16(self):
        return dataclasses.replace(self, title=f"{self.title}, bf16", precision="bf16", setting="precision = bf16")

    def in_winograds_form(self):
        return dataclasses.replace(self, title=f"{self.title}, Winograd", setting="winograd = true")

    def text(self):
        """For standard input: the example, which has no option for it, with its setting."""
        path = ROOT / f"examples/{self.example}.scrimp"
        section = f"train {{\n  {self.setting}"
        text, sections = re.subn(r"^train {$", section, path.read_text(), flags=re.M)
        if sections != 1:
            raise Failed(f"{path} has {sections} train sections")
        return text

    def command(self):
        defines = [word for name, value in self.options.items() for word in ("-D", f"{name}={value}")]
        return [f"examples/{self.example}.scrimp", *defines]


def picture(example, title, modes=PICTURES, **options):
    return Case(example, options, f"{title}, {options.get('size', 224)}², batch {options['N']}", modes)


# The keys are names of steps.py.
CASES = {
    "mlp": Case("mlp", {"N": 256, "hidden": 1024}, "MLP 784-1024-1024-10, batch 256", MATRICES),
    "chargpt": Case("chargpt", {}, "character GPT, batch 12 × 64", MATRICES),
    "gpt2-2x256": Case("gpt2", {"N": 2, "T": 256}, "GPT-2 124M, batch 2 × 256", MATRICES),
    "gpt2-1x1024": Case("gpt2", {"N": 1, "T": 1024}, "GPT-2 124M, batch 1 × 1024", MATRICES),
    "resnet18": picture("resnet", "ResNet-18", depth=18, N=16, size=64),
    "resnet50": picture("resnet", "ResNet-50", depth=50, N=8),
    "densenet121": picture("densenet", "DenseNet-121", N=8),
    "vgg16": picture("vgg", "VGG-16", depth=16, N=4),
    "mobilenet_v2": picture("mobilenet_v2", "MobileNetV2", N=8),
    "vit": picture("vit", "ViT-S/16", MATRICES, size_name="small", N=8),
    "unet": picture("unet", "U-Net", N=1, size=188),
    "lstm": Case("lstm_ptb", {"variant": "pytorch"}, "LSTM, PTB medium, batch 20 × 35", MATRICES),
    "lstm_layers": Case("lstm_ptb", {"variant": "pytorch", "form": "layers"},
                        "LSTM by layers, PTB medium, batch 20 × 35", MATRICES),
    "transformer": Case("transformer", {}, "Transformer base, batch 32 × 64 + 64", MATRICES),
}
WINOGRAD = ("resnet18", "resnet50", "vgg16", "unet")  # with many 3x3 convolutions of stride 1
ALL = (CASES | {f"{name}:bf16": case.in_bf16() for name, case in CASES.items()}
       | {f"{name}:winograd": CASES[name].in_winograds_form() for name in WINOGRAD})


class Failed(Exception):
    pass


def environment(threads):
    """This one without what others set for libraries that run threads."""
    kept = {k: v for k, v in os.environ.items() if not re.match(r"OMP_|GOMP_|KMP_|MKL_|OPENBLAS_|DNNL_|ONEDNN_", k)}
    return kept | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


class Scrimp:
    """A process a turn, which measures the machine's peak, too."""

    def __init__(self, case, threads):
        self.folder, self.text, model = ROOT, None, case.command()
        if case.setting:
            self.folder, self.text, model = ROOT / "examples", case.text(), ["-", *model[1:]]
        program = ROOT / scrimp.PROGRAM
        self.command = [program, "bench", *model, "--budget", "100%", "--threads", str(threads),
                        "--json"]
        self.answers = []
        summary = json.loads(self.run([program, "summary", *model, "--json"]))
        self.facts = {"parameters": summary["params"]}

    def first(self):
        """Seconds of a step, to say how many make a turn."""
        return json.loads(self.run([*self.command, "--steps", "1"]))["seconds_per_step"]

    def run(self, command):
        done = subprocess.run(command, input=self.text, capture_output=True, text=True, check=False,
                              cwd=self.folder)
        if done.returncode:
            raise Failed(done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit status {done.returncode}")
        return done.stdout

    def turn(self, steps):
        self.answers.append(json.loads(self.run([*self.command, "--steps", str(steps)])))
        return self.answers[-1]["seconds_per_step"]

    def describe(self):
        """Of the turn in the middle: its share of the peak, and the kernels that take most of the step."""
        middle = sorted(self.answers, key=lambda a: a["seconds_per_step"])[(len(self.answers) - 1) // 2]
        self.facts |= {k: middle[k] for k in ("gflops", "percent_of_peak", "peak_gflops", "peak_gbytes_per_second", "arena_bytes",
                                              "seconds_per_step")}
        kernels = sorted(middle["kernels"], key=lambda k: -k["seconds"])[:KERNELS]
        self.facts["kernels"] = [{k: kernel.get(k) for k in ("name", "calls", "seconds", "gflops", "gbytes_per_second")}
                                 for kernel in kernels]
        return self.facts

    def end(self):
        pass


class PyTorch:
    """A process that lives for all turns."""

    def __init__(self, name, mode, threads):
        command = [sys.executable, "-B", str(HERE / "bench_torch.py"), name, mode, str(threads)]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, env=environment(threads))
        self.facts = self.line()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Failed((self.errors.read().strip().splitlines() or ["ended without a word"])[-1])
        return json.loads(line)

    def first(self):
        return self.facts["first"]

    def turn(self, steps):
        print(steps, file=self.process.stdin, flush=True)
        answer = self.line()
        if answer["loss"] != answer["loss"]:
            raise Failed("the loss is not a number")
        return statistics.median(answer["seconds"])

    def describe(self):
        return self.facts

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def contenders(name, threads, modes):
    yield "scrimp", lambda: Scrimp(ALL[name], threads)
    for mode in modes:
        yield mode, lambda: PyTorch(name, mode, threads)


def start(name, threads, modes):
    """({who: contender}, {who: why it is missing}).  All have the same number of parameters."""
    running, missing = {}, {}
    for who, make in contenders(name, threads, modes):
        try:
            running[who] = make()
        except Failed as reason:
            missing[who] = str(reason)
            print(f"  {who}: {reason}", flush=True)
    counts = {who: c.facts["parameters"] for who, c in running.items()}
    if len(set(counts.values())) > 1:
        raise Failed(f"not the same network: parameters {counts}")
    return running, missing


def take_turns(running, arguments):
    """{who: [median of a turn, ...]}, steps of a turn, and the cores that others used in each round.  A round that others
    disturbed is taken again, as often as there are rounds.  At the limit there may be fewer."""
    turns = {who: [] for who in running}
    steps = {who: arguments.steps or max(1, min(50, round(arguments.seconds / c.first()))) for who, c in running.items()}
    others, again, longest = [], arguments.rounds, 0.0
    while len(others) < arguments.rounds and (not others or time.perf_counter() + longest < arguments.end):
        began = time.perf_counter()
        watch = noise.Watch([c.process.pid for c in running.values() if isinstance(c, PyTorch)])
        order = list(running)[::-1 if len(others) % 2 else 1]
        taken = {who: running[who].turn(steps[who]) for who in order}
        used, longest = watch.others(), max(longest, time.perf_counter() - began)
        print(f"  round {len(others) + 1}: " + ", ".join(f"{who} {1e3 * taken[who]:.1f} ms" for who in running)
              + f"; others used {used:.2f} cores", flush=True)
        if used > DISTURBED and again:
            again -= 1
            continue
        others.append(round(used, 3))
        for who, seconds_of_turn in taken.items():
            turns[who].append(seconds_of_turn)
    return turns, steps, others


def measure(name, threads, modes, arguments):
    """A record."""
    running, missing = start(name, threads, modes)
    try:
        if arguments.prepare:
            return None
        turns, steps, others = take_turns(running, arguments)
        who = {w: {"turns": turns[w], "steps": steps[w], **c.describe()} for w, c in running.items()}
    finally:
        for contender in running.values():
            contender.end()
    case = ALL[name]
    return {"case": name, "title": case.title, "precision": case.precision, "threads": threads,
            "command": " ".join(case.command()), "rounds": len(others), "others": others,
            "contenders": who, "missing": missing}


def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine():
    """What lscpu says that matters for speed."""
    wanted = ["Model name", "CPU family", "Model", "CPU(s)", "Thread(s) per core", "L1d cache", "L2 cache", "L3 cache",
              "Hypervisor vendor"]
    fields = dict(re.findall(r"^([^:]+):\s*(.*)$", said("env", "LC_ALL=C", "lscpu"), re.M))
    vectors = [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_tile") if f in fields.get("Flags", "").split()]
    return {k: fields[k] for k in wanted if k in fields} | {"vectors": " ".join(vectors)}


def origin(arguments):
    """When, where and by what a record was made."""
    changed = said("git", "status", "--porcelain", "--untracked-files=no", "--", ":!docs")
    ours = [a for a in arguments if not a.startswith("--prepare")]
    return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
            "commit": said("git", "rev-parse", "--short=10", "HEAD") + (" with changes" if changed else ""),
            "scrimp": said(scrimp.PROGRAM, "--version").splitlines()[0], "machine": machine(),
            "bench": " ".join(["tests/peers/bench.py", *ours])}


def records():
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE",
                        help=f"of {', '.join(CASES)} (default: all); CASE:bf16: in bf16; "
                        f"CASE:winograd, of {', '.join(WINOGRAD)}: in Winograd's form")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="with commas between (default: 1 and all)")
    parser.add_argument("--rounds", type=int, default=4, help="an even number lets everyone be first as often as last")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a turn's steps take, about")
    parser.add_argument("--steps", type=int, help="so many steps a turn")
    parser.add_argument("--limit", type=float, default=3600.0, help="begin no more rounds of a case that would end later (seconds)")
    parser.add_argument("--modes", help="of contiguous, channels_last, compile (default: what suits the case)")
    parser.add_argument("--prepare", action="store_true", help="only fill the caches of compiled code, measure nothing")
    parser.add_argument("--render", action="store_true", help="only write the page from what was measured")
    arguments = parser.parse_args()
    unknown = set(arguments.cases) - set(ALL)
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    return arguments


def main():
    arguments = parse()
    failures = 0
    for name in [] if arguments.render else arguments.cases or CASES:
        modes = arguments.modes.split(",") if arguments.modes else ALL[name].modes
        for threads in map(int, arguments.threads.split(",")):
            arguments.end = time.perf_counter() + arguments.limit
            print(f"{name}, {threads} thread{'s' * (threads > 1)}", flush=True)
            try:
                record = measure(name, threads, modes, arguments)
            except Failed as reason:
                print(f"  failed: {reason}", flush=True)
                failures += 1
                continue
            if record:
                with RECORDS.open("a") as out:
                    print(json.dumps(origin(sys.argv[1:]) | record), file=out)
    if not arguments.prepare:
        PAGE.write_text(cpu_page.page(records()))
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
