#!/usr/bin/env python3
"""Writes docs/results/: the tables and curves of the papers beside what scrimp says of the same networks.

  docs/results.py build/release/scrimp                          everything (about an hour; pareto alone 12 minutes)
  docs/results.py build/release/scrimp --only kusumoto,kumar    some pages: kusumoto fig3 feng kumar solvers pareto
  docs/results.py build/release/scrimp --cache DIR              where answers are kept (default: build/results)
  docs/results.py build/release/scrimp --minutes M              asks nothing new after M minutes; pages name what is left out

Every answer of scrimp is kept in the cache under its command and the program's hash: a run that is
interrupted continues where it was. What the papers print comes from docs/results/papers.csv.
"""
import argparse
import csv
import hashlib
import json
import math
import os
import subprocess
import sys
import textwrap
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "docs", "results")
SOLVERS = ["none", "chen", "kusumoto_approx", "kusumoto_exact", "feng_linear", "feng_closeset", "feng_acg", "random",
           "twremat", "xla_greedy", "mincut", "dtr", "revolve", "chain_dp", "scrimp"]
GB, GIB, MIB = 1e9, 2**30, 2**20

# Name in papers.csv, file, options, batch.
KUSUMOTO = [("PSPNet", "pspnet", "aux=true", 2), ("U-Net", "unet", "", 8),
            ("ResNet50", "resnet", "depth=50 variant=chainer", 96),
            ("ResNet152", "resnet", "depth=152 variant=chainer", 48),
            ("VGG19", "vgg", "variant=chainer depth=19", 64), ("DenseNet161", "densenet", "depth=161", 32),
            ("GoogLeNet", "googlenet", "variant=chainer aux=true", 256)]
FENG2018 = [("Alexnet", "alexnet", "", 1024), ("VGG11", "vgg", "variant=chainer depth=11", 64),
            ("VGG13", "vgg", "variant=chainer depth=13", 64), ("VGG16", "vgg", "variant=chainer depth=16", 64),
            ("VGG19", "vgg", "variant=chainer depth=19", 64), ("ResNet18", "resnet", "depth=18", 256),
            ("ResNet34", "resnet", "depth=34", 128), ("ResNet50", "resnet", "depth=50", 64),
            ("ResNet101", "resnet", "depth=101", 32), ("ResNet152", "resnet", "depth=152", 16),
            ("DenseNet121", "densenet", "depth=121", 32), ("DenseNet161", "densenet", "depth=161", 16),
            ("DenseNet169", "densenet", "depth=169", 32), ("DenseNet201", "densenet", "depth=201", 16),
            ("InceptionV3", "inception_v3", "aux=false size=300", 32)]
NAS = [("NASNet", "nascell", "cell=nasnet", 64), ("AmoebaNet", "nascell", "cell=amoebanet", 64),
       ("DARTS", "nascell", "cell=darts_v2", 64)]
FENG2021 = FENG2018 + NAS
RESNET_DEPTHS = [18, 34, 50, 101, 152, 200]
FFN_DEPTHS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
TRANSFORMERS = [("Transformer Base", "transformer", "", 32), ("Transformer Big", "transformer", "size_name=big", 64)]
# The papers' networks store the scores of attention, all logits, and images behind batch normalization.
AS_PRINTED = {"transformer": ["--no-attention", "--no-chunks"]}
STORED = ["--no-norms"]


# ---- asking scrimp ----

class OutOfTime(Exception):
    pass


class Scrimp:
    """Runs the program, one command at a time, and remembers what it said."""

    def __init__(self, program, cache, minutes):
        self.program, self.cache, self.left_out = program, cache, []
        self.deadline = time.time() + 60 * minutes
        with open(program, "rb") as f:
            self.version = hashlib.sha256(f.read()).hexdigest()
        os.makedirs(cache, exist_ok=True)

    def text(self, *command):
        """Standard output; None when the budget cannot be met (exit status 3)."""
        key = hashlib.sha256("\0".join((self.version,) + command).encode()).hexdigest()[:24]
        path = os.path.join(self.cache, key)
        if not os.path.exists(path):
            begin = time.time()
            if begin > self.deadline:
                raise OutOfTime
            done = subprocess.run((self.program,) + command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if done.returncode not in (0, 3):
                sys.exit("%s: exit status %d\n%s" % (" ".join(command), done.returncode, done.stderr.decode()))
            print("%6.1f s  scrimp %s" % (time.time() - begin, " ".join(command)), flush=True)
            with open(path + ".part", "wb") as f:
                f.write(b"%d\n" % done.returncode + done.stdout)
            os.replace(path + ".part", path)
        with open(path) as f:
            code, text = f.read().split("\n", 1)
        return None if code == "3" and not text.strip() else text

    def json(self, verb, network, *more):
        _, file, options, batch = network
        command = [verb, "examples/%s.scrimp" % file, "--json"]
        for option in options.split() + ([] if batch is None else ["N=%d" % batch]):
            command += ["-D", option]
        if verb != "summary":  # which plans nothing
            command += STORED + AS_PRINTED.get(file, [])
        text = self.text(*command, *more)
        return text and json.loads(text)

    def graph(self, name, verb, network, *more):
        """A graph in the cache's folder; returns its path."""
        _, file, options, batch = network
        path = os.path.join(self.cache, name + "." + self.version[:8] + ".json")
        if not os.path.exists(path):
            command = [self.program, verb, os.path.join(ROOT, "examples", file + ".scrimp")]
            for option in options.split() + ["N=%d" % batch]:
                command += ["-D", option]
            command += STORED + AS_PRINTED.get(file, [])
            text = subprocess.run(command + list(more), check=True, stdout=subprocess.PIPE).stdout
            with open(path + ".part", "wb") as f:
                f.write(text)
            os.replace(path + ".part", path)
        return path

    def each(self, items, name, row):
        """[row(item)], without those for which there is no time."""
        rows = []
        for item in items:
            try:
                rows.append(row(item))
            except OutOfTime:
                self.left_out.append(name(item))
        return rows

    def left_out_text(self):
        """For the end of a page; starts anew for the next."""
        names, self.left_out = sorted(set(self.left_out)), []
        return "\nLeft out for lack of time (run the script again): %s.\n" % ", ".join(names) if names else ""

    def plan_graph(self, path, *more):
        return json.loads(self.text("plan", "--graph", path, "--json", *more))


def printed(paper, table, network, method, metric):
    """What a paper prints, as text; "" when it does not."""
    for row in PAPERS:
        if (row["paper"], row["network"], row["method"], row["metric"]) == (paper, network, method, metric) \
                and row["table"].startswith(table):
            return row["value"]
    return ""


def printed_text(*what):
    """The same with its qualifier: ">=11.4"."""
    for row in PAPERS:
        if (row["paper"], row["network"], row["method"], row["metric"]) == (what[0],) + what[2:] \
                and row["table"].startswith(what[1]):
            return row["qualifier"] + row["value"]
    return ""


def name_of(network):
    return network[0]


def read_papers():
    with open(os.path.join(OUT, "papers.csv")) as f:
        return list(csv.DictReader(f))


# ---- writing ----

def wrapped(text):
    """Prose in lines of at most 120 columns; tables, headings and pictures stay as they are."""
    lines, paragraph = [], []
    for line in text.split("\n") + [""]:
        if line and line[0] not in "|#!<":
            paragraph.append(line)
            continue
        if paragraph:
            lines += textwrap.wrap(" ".join(paragraph), 120, break_long_words=False, break_on_hyphens=False)
            paragraph = []
        lines.append(line)
    return "\n".join(lines[:-1])


def write(name, text):
    text = wrapped(text) if name.endswith(".md") else text
    with open(os.path.join(OUT, name), "w") as f:
        f.write(text)


def write_csv(name, columns, rows):
    with open(os.path.join(OUT, name), "w", newline="") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow(columns)
        w.writerows(rows)


def table(columns, rows):
    """Columns that start with '<' are left-aligned."""
    lines = ["| " + " | ".join(c.lstrip("<") for c in columns) + " |",
             "|" + "|".join("---" if c.startswith("<") else "--:" for c in columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(x) for x in row) + " |" for row in rows]) + "\n"


def number(x, digits=2):
    return "–" if x is None or x == "" else "%.*f" % (digits, float(x))


def percent(x):
    return "–" if x is None else "%.1f%%" % x


COLOURS = ["#1b6ca8", "#d1495b", "#3a7d44", "#e08e1b", "#7b4ea3", "#0f9d9a", "#8a6d3b", "#c2569b", "#5c6b73", "#9aa636",
           "#2f4b7c", "#b04a2f", "#4f9d69", "#a0a0a0", "#000000"]


def ticks(low, high, n=6):
    """About n round numbers from low to high."""
    power = 10.0 ** math.floor(math.log10((high - low) / n))
    step = next(m * power for m in (1, 2, 5, 10) if (high - low) / (m * power) <= n)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def svg(name, title, x_label, y_label, series, y_max=None):
    """Lines with marks. series: (label, [(x, y)])."""
    series = [(label, sorted(points)) for label, points in series if points]
    width, height, left, top, right, bottom = 860, 460, 70, 40, 190, 50
    xs = [x for _, points in series for x, _ in points]
    ys = [y for _, points in series for _, y in points]
    x0, x1, y0, y1 = min(xs), max(xs), 0, y_max or max(ys + [1e-9])
    x1 = x1 if x1 > x0 else x0 + 1

    def at(x, y):
        return (left + (x - x0) / (x1 - x0) * (width - left - right),
                height - bottom - (min(y, y1) - y0) / (y1 - y0) * (height - top - bottom))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' %
           (width, height), '<rect width="%d" height="%d" fill="white"/>' % (width, height),
           '<text x="%d" y="22" font-size="15">%s</text>' % (left, title)]
    for x in ticks(x0, x1):
        px, py = at(x, y0)
        out.append('<path d="M%.1f %.1fV%d" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="middle">%g</text>' %
                   (px, py, top, px, py + 18, x))
    for y in ticks(y0, y1):
        px, py = at(x0, y)
        out.append('<path d="M%.1f %.1fH%d" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%g</text>' %
                   (px, py, width - right, px - 6, py + 4, y))
    out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % ((left + width - right) // 2, height - 10, x_label))
    out.append('<text x="16" y="%d" text-anchor="middle" transform="rotate(-90 16 %d)">%s</text>' %
               (height // 2, height // 2, y_label))
    for k, (label, points) in enumerate(series):
        colour, placed = COLOURS[k % len(COLOURS)], [at(x, y) for x, y in points if y <= y1]
        out.append('<path d="M%s" fill="none" stroke="%s" stroke-width="%s"/>' %
                   ("L".join("%.1f %.1f" % p for p in placed) or "0 0", colour, 2.5 if label == "scrimp" else 1.5))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (p + (colour,)) for p in placed]
        y = top + 10 + 18 * k
        out.append('<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>' %
                   (width - right + 14, y, colour, width - right + 32, y + 10, label))
    write(name, "\n".join(out) + "\n</svg>\n")


# ---- Kusumoto et al. 2019 ----

COLUMNS = [("ApproxDP+MC", "kusumoto_approx", "memory-centric"), ("ApproxDP+TC", "kusumoto_approx", "time-centric"),
           ("ExactDP+MC", "kusumoto_exact", "memory-centric"), ("ExactDP+TC", "kusumoto_exact", "time-centric"),
           ("Chen", "chen", "articulation points")]


def model_rows(scrimp, network, rule):
    """What plan --count says, by (solver, strategy)."""
    answer = scrimp.json("plan", network, "--count", rule)
    return answer, {(r["solver"], r["strategy"]): r for r in answer["rows"]}


def best_printed(name):
    """The smallest peak that table 1 prints for a network, in bytes."""
    return min(GB * float(printed("Kusumoto2019", "Table1", name, m, "peak_memory")) for m, _, _ in COLUMNS)


def kusumoto_models(scrimp, rows_csv):
    with_liveness, without = [], []
    for network in KUSUMOTO:
        name, weights = network[0], 8 * scrimp.json("summary", network)["params"]
        answer, rows = model_rows(scrimp, network, "kusumoto")
        lines = [[name, network[3]], [name, network[3]]]
        for method, solver, strategy in COLUMNS:
            row = rows[solver, strategy]
            for line, tab, key in ((lines[0], "Table1", "live_bytes"), (lines[1], "Table2", "model_bytes")):
                theirs = printed_text("Kusumoto2019", tab, name, method, "peak_memory")
                ours = (row[key] + weights) / GB if row[key] else None  # None: stopped before it found any
                more = row["live_overhead" if tab == "Table1" else "model_overhead"] / answer["graph_time"]
                line.append("%s / %s%s" % (theirs, number(ours, 1), "*" if row["limited"] else ""))
                rows_csv.append(["Kusumoto2019", tab, name, network[3], method, theirs, number(ours, 4), "GB",
                                 "%.4f" % more if ours else "–", "limit" if row["limited"] else ""])
        vanilla = printed("Kusumoto2019", "Table1", name, "Vanilla", "peak_memory")
        lines[0].append("%s / %.1f" % (vanilla, (answer["all_kept_bytes"] + weights) / GB))
        with_liveness.append(lines[0])
        without.append(lines[1])
    return with_liveness, without


HALVINGS = 7


def least_and_within(scrimp, network):
    """The smallest arena, and the smallest that a search by halves finds at which recomputation is at most one forward
    pass."""
    least = within = scrimp.json("plan", network, "--budget", "min")
    low, high = least["arena_bytes"], least["keep_all_peak_bytes"]
    for _ in range(0 if least["overhead_percent"] <= least["forward_percent"] else HALVINGS):
        middle = (low + high) // 2
        plan = scrimp.json("plan", network, "--budget", "%dB" % middle)
        if plan["overhead_percent"] <= plan["forward_percent"]:
            within, high = plan, min(middle, plan["arena_bytes"])
        else:
            low = middle
    return least, within


def with_overhead(text, plan):
    return "%s at %.1f%%" % (text, plan["overhead_percent"])


def kusumoto_steps(scrimp, rows_csv):
    """The whole step: the smallest arena, the smallest within a forward pass, and the overhead at the best column's
    bytes."""
    lines = []
    for network in KUSUMOTO:
        name, best = network[0], best_printed(network[0])
        least, within = least_and_within(scrimp, network)
        there = scrimp.json("plan", network, "--budget", "%dB" % best)
        kept = least["keep_all_peak_bytes"]
        lines.append([name, network[3], number(kept / GB), number(best / GB, 1), percent(there["overhead_percent"]),
                      percent(there["overhead_lower_bound_percent"]), percent(least["forward_percent"]),
                      with_overhead(number(within["arena_bytes"] / GB), within),
                      with_overhead(number(least["arena_bytes"] / GB), least)])
        for what, plan in (("min", least), ("within a forward pass", within), ("best column", there)):
            rows_csv.append(["Kusumoto2019", "step, " + what, name, network[3], plan["solver"], "%.1f" % (best / GB),
                             "%.4f" % (plan["arena_bytes"] / GB), "GB", "%.4f" % plan["overhead_percent"],
                             "%% of a step; one forward pass is %.4f" % plan["forward_percent"]])
    return lines


def compared(scrimp, network, *more):
    return {r["solver"]: r for r in scrimp.json("plan", network, "--compare", *more)}


def kusumoto_solvers(scrimp):
    """Every solver at the bytes of the best column."""
    rows_csv = []

    def row(network):
        budget, line = best_printed(network[0]), [network[0]]
        rows = compared(scrimp, network, "--budget", "%dB" % budget)
        for solver in SOLVERS:
            row = rows[solver]
            fits = row["arena_bytes"] is not None
            line.append(percent(row["overhead_percent"]) if fits else "(%.2f)" % (row["min_feasible_bytes"] / GB))
            rows_csv.append([network[0], network[3], int(budget), solver, row["status"],
                             row["arena_bytes"] if fits else "", row["peak_bytes"], "%.4f" % row["overhead_percent"],
                             row["recomputed_ops"]])
        return line
    lines = scrimp.each(KUSUMOTO, name_of, row)
    write_csv("kusumoto_solvers.csv", ["network", "batch", "budget_bytes", "solver", "status", "arena_bytes", "peak_bytes",
                                       "overhead_percent", "recomputed_ops"], rows_csv)
    return lines


def kusumoto(scrimp):
    rows_csv = []
    with_liveness, without = kusumoto_models(scrimp, rows_csv)
    steps = kusumoto_steps(scrimp, rows_csv)
    solvers = kusumoto_solvers(scrimp)
    write_csv("kusumoto.csv", ["paper", "table", "network", "batch", "method", "printed", "ours", "unit",
                               "overhead_in_forward_passes_or_percent", "note"], rows_csv)
    columns = ["<network", "batch"] + [m for m, _, _ in COLUMNS]
    write("kusumoto.md", KUSUMOTO_PAGE % {
        "with": table(columns + ["Vanilla"], with_liveness), "without": table(columns, without),
        "most": percent(100 * max(float(r[8]) / float(r[9].split()[-1]) for r in rows_csv if r[1] == "step, best column")),
        "steps": table(["<network", "batch", "all kept", "best printed", "overhead there", "at least", "one forward pass",
                        "smallest within a forward pass", "smallest"], steps),
        "solvers": table(["<network"] + SOLVERS, solvers)} + scrimp.left_out_text())


KUSUMOTO_PAGE = """# Kusumoto et al. 2019
Written by `docs/results.py`; the numbers are in [kusumoto.csv](kusumoto.csv) and [kusumoto_solvers.csv](kusumoto_solvers.csv). The paper's figures are of Chainer on
a Tesla K40c, with parameters and their gradients.

## Table 1, under the paper's own model
Printed / ours, in GB. Ours is the strategy with the smallest budget under equation 2, replayed with liveness on the paper's graph (`scrimp plan --count kusumoto`),
plus 8 bytes a parameter. `*`: the exact method stopped at its limit of steps (4·10^9); shown is what it had by then, – when it had nothing.

%(with)s
Why they differ: in ours the backward part of every operation reads its inputs and its outputs ([graphs.md](../graphs.md)), while Chainer's reads what it needs: a convolution's not its output, a ReLU's not its
input. That is why "Vanilla" is so much smaller there ("local memory reduction", the paper's appendix C), and why some of ours are larger. Those above equation 2 (the next table) also hold one gradient
for every reader of a value until they are summed, where the equation has one. Smaller ones are without the workspaces of cuDNN and Chainer's
memory pool. GoogLeNet has one vertex more than the paper's. The whole step below has no such differences: it is what runs.

## Table 2 (without liveness)
Printed / ours, in GB: equation 2 as printed, plus 8 bytes a parameter. The printed GB and percentages of this table contradict each other in all rows but GoogLeNet's;
the GB are shown. With the smallest budget, both strategies have the same peak under equation 2. The paper measured this table, with the temporary memory of convolutions (appendix C); ours is the formula.

%(without)s

## The whole step, in bytes of the real arena
scrimp's own solver, on the step that really runs: weights, gradients, optimizer state (the file's own: momentum, where it has any) and statistics included. In GB; times are those of the cost model `roofline`, in %% of a
step. "overhead there" is that of the arena of the smallest GB printed in table 1, "at least" the proven bound for any solver at that budget. "smallest within a forward pass" is the smallest found by halving seven times at which the
recomputation takes no longer than one forward pass. At the printed figure the overhead is at most %(most)s of a forward pass.

%(steps)s

## Every solver at the best printed figure
Overhead in %% of a step within the smallest GB of table 1, whole step and real arena; in brackets the smallest arena in GB that a solver finds when that is more (also for those that stopped at a limit of steps: status in the CSV). The Checkmate solvers are for graphs of up to 40 and 80 nodes.

%(solvers)s
"""

# ---- Kusumoto, figure 3 ----

FIG3 = [("scrimp", ["--solver", "scrimp", "--effort", "0.25"]), ("time-centric", ["--solver", "kusumoto_approx", "--objective", "time"]),
        ("memory-centric", ["--solver", "kusumoto_approx", "--objective", "memory"]), ("Chen", ["--solver", "chen"])]
FIG3_BUDGET = 11400000000


def fig3(scrimp):
    rows_csv = []

    def row(network):
        line, rows = [network[0]], []
        for name, options in FIG3:
            answer = scrimp.json("plan", network[:3] + (None,), "--max-batch", "--budget", "%dB" % FIG3_BUDGET, *options)
            line.append("%d at %s" % (answer["batch"], number(answer["relative_time_per_sample"])))
            rows.append([network[0], name, FIG3_BUDGET, answer["batch"], answer["arena_bytes"],
                         "%.4f" % answer["overhead_percent"], "%.6g" % answer["cost_per_sample"],
                         answer["batch_without_recomputation"], number(answer["relative_time_per_sample"], 5)])
        rows_csv.extend(rows)
        return line + [rows[-1][-2]]
    lines = scrimp.each(KUSUMOTO, name_of, row)
    write_csv("fig3.csv", ["network", "method", "budget_bytes", "batch", "arena_bytes", "overhead_percent",
                           "cost_per_sample", "batch_without_recomputation", "relative_time_per_sample"], rows_csv)
    double = scrimp.each([scrimp], lambda _: "the curve of ResNet-152", fig3_curves)
    page = FIG3_PAGE % table(["<network"] + [n for n, _ in FIG3] + ["without recomputation"], lines)
    write("fig3.md", page + (FIG3_CURVE % double[0] if double else "") + scrimp.left_out_text())


def fig3_curves(scrimp):
    """ResNet-152: time of a step over the batch, as the figure has it, and the paper's one number."""
    network, rows, series = KUSUMOTO[3][:3], [], []
    vanilla = scrimp.json("plan", network + (None,), "--max-batch", "--budget", "%dB" % FIG3_BUDGET, "--solver", "chen")
    kept = vanilla["batch_without_recomputation"]
    double = {}
    for name, options in FIG3:
        points = []
        for k in range(2, 13):
            batch = kept * k // 4
            plan = scrimp.json("plan", network + (batch,), "--budget", "%dB" % FIG3_BUDGET, *options)
            if plan["arena_bytes"] is None:
                break
            points.append((batch, batch / kept * (1 + plan["overhead_percent"] / 100)))
            rows.append([name, batch, plan["arena_bytes"], "%.4f" % plan["overhead_percent"], "%.5f" % points[-1][1]])
            if batch == 2 * kept:
                double[name] = points[-1][1]
        series.append((name, points))
    write_csv("fig3_resnet152.csv", ["method", "batch", "arena_bytes", "overhead_percent", "relative_time_of_a_step"], rows)
    svg("fig3_resnet152.svg", "ResNet-152 in 11.4 GB: time of a step", "batch",
        "time, 1 = largest batch without recomputation", series)
    if "Chen" not in double:
        return "Chen's segments do not fit at that batch here."
    return ", ".join("%s %.2f" % (n, double["Chen"] / t) for n, t in double.items() if n != "Chen")


FIG3_PAGE = """# Kusumoto et al. 2019, figure 3: the largest batch in 11.4 GB
Written by `docs/results.py`; the numbers are in [fig3.csv](fig3.csv). `scrimp plan --max-batch --budget 11400000000B`: the largest batch whose step fits the arena, and its predicted
time per sample against the largest batch that fits without recomputation (cost model `roofline`). "time-centric" is `kusumoto_approx`, which looks at both of
the paper's strategies and takes the fastest schedule that fits; "memory-centric" takes the one with the smallest peak; `scrimp` searches with `--effort 0.25`.

%s
The figure has no data labels; its text says that PSPNet goes from 2 to 8. Batches are larger than the paper's because the vanilla run here frees values by liveness, writes in place and has no
workspaces of cuDNN.
"""

FIG3_CURVE = """
## ResNet-152
The paper: at twice the largest vanilla batch 1.16 times faster than Chen's. Ours there, Chen's time over theirs: %s. The
paper's advantage is not reproduced: our `chen` searches over segment sizes and gives back what saves most time per byte (docs/remat.md, "On the forward graph"), so that with this much memory
it recomputes as little as the others.

![ResNet-152](fig3_resnet152.svg)
"""

# ---- Feng and Huang ----


def feng_step(scrimp, network):
    """The whole step: what the smallest plan within a forward pass saves beyond the persistent bytes."""
    _, plan = least_and_within(scrimp, network)
    rest = plan["keep_all_peak_bytes"] - plan["persistent_bytes"]
    return plan, 100 - 100 * (plan["arena_bytes"] - plan["persistent_bytes"]) / rest


def feng2021_row(scrimp, rows_csv, network):
    name = network[0]
    answer, rows = model_rows(scrimp, network, "feng2021_nas" if network in NAS else "feng2021")
    best = rows["feng_acg", "checkpoints"]
    model = 100 - 100 * best["model_bytes"] / answer["graph_bytes"]
    live = 100 - 100 * best["live_bytes"] / answer["all_kept_bytes"]
    plan, saved = feng_step(scrimp, network)
    cut = printed("FengHuang2021", "Table2", name, "Ours (optimal GC)", "memory_cutoff")
    more = printed("FengHuang2021", "Table2", name, "GCP", "time_overhead")
    size = printed("FengHuang2021", "Table2", name, "Ours (optimal GC)", "training_memory")
    beyond = plan["arena_bytes"] - plan["persistent_bytes"]
    rows_csv.append(["FengHuang2021", "Table2", name, network[3], cut, "%.3f" % model, "%.3f" % live, "%.3f" % saved, more,
                     "%.3f" % plan["overhead_percent"], "%.3f" % plan["forward_percent"], plan["arena_bytes"],
                     plan["persistent_bytes"], plan["keep_all_peak_bytes"]])
    return [name, network[3], cut and cut + "%", percent(model), percent(live), percent(saved), size,
            number(beyond / MIB, 0), more and more + "%",
            percent(plan["overhead_percent"]), percent(plan["forward_percent"])]


def feng2018_row(scrimp, rows_csv, network):
    name = network[0]
    answer, rows = model_rows(scrimp, network, "feng2018")
    ours = {s: rows[s, "checkpoints"]["model_bytes"] / answer["graph_bytes"]
            for s in ("feng_linear", "feng_closeset", "feng_acg")}
    theory = printed("FengHuang2018", "Table1", name, "Re-forwarding/Regular", "theoretical_ratio")
    measured = printed("FengHuang2018", "Table1", name, "Re-forwarding/Regular", "measured_ratio")
    rows_csv.append(["FengHuang2018", "Table1", name, network[3], theory] + ["%.5f" % r for r in ours.values()] + [measured])
    return [name, network[3], theory] + [number(r, 4) for r in ours.values()] + \
        ["%.4f" % (round(ours["feng_acg"] - float(theory), 4) + 0.0) if theory else "–", measured]


def feng(scrimp):
    csv2021, csv2018 = [], []
    old = scrimp.each(FENG2018, name_of, lambda n: feng2018_row(scrimp, csv2018, n))
    new = scrimp.each(FENG2021, name_of, lambda n: feng2021_row(scrimp, csv2021, n))
    write_csv("feng2021.csv", ["paper", "table", "network", "batch", "printed_cutoff", "model_cutoff", "live_cutoff",
                               "step_cutoff", "printed_overhead", "step_overhead", "forward_percent", "arena_bytes",
                               "persistent_bytes", "keep_all_peak_bytes"], csv2021)
    write_csv("feng2018.csv", ["paper", "table", "network", "batch", "printed_ratio", "feng_linear", "feng_closeset",
                               "feng_acg", "printed_measured_ratio"], csv2018)
    write("feng.md", FENG_PAGE % {
        "new": table(["<network", "batch", "printed cut-off", "their model", "with liveness", "scrimp, whole step", "printed MB", "scrimp, MiB", "printed time",
                      "scrimp's time", "one forward pass"], new),
        "old": table(["<network", "batch", "printed", "feng_linear", "feng_closeset", "feng_acg", "feng_acg − printed",
                      "printed, measured"], old)} + scrimp.left_out_text())


FENG_PAGE = """# Feng and Huang 2018 and 2021
Written by `docs/results.py`; the numbers are in [feng2021.csv](feng2021.csv) and [feng2018.csv](feng2018.csv).

## 2021, table 2
"Their model" is 1 − (checkpoints + largest segment) / all vertices on their graph (`scrimp plan --count feng2021`, solver `feng_acg`; its optima are those of their
published solver, `tests/zoo_optima.csv`); "with liveness" is the replay of the same checkpoints, against keeping every vertex. The printed cut-offs are measured in PyTorch: peak without weights, gradients included. "scrimp, whole step" is
the real arena without the persistent bytes, the smallest found by halving seven times at which recomputation takes no longer than one forward pass, against the same step without recomputation; where the cut-off is below the printed one, our step without recomputation is
already smaller (in place, fused, freed by liveness, ordered): the columns in MB and MiB compare what remains. Times are %% of a step (theirs measured, ours predicted).

%(new)s

## 2018, table 1: the theoretical ratio
(checkpoints + largest segment) / all vertices. VGG and Inception-v3 differ by up to 0.006: their graphs of 2018 are other graphs in a way that is not known (`tests/zoo_papers.csv`). ResNet-34 is
.2726 in print and .2725 with their own published solver, too.

%(old)s
"""

# ---- Kumar et al. 2019 ----


def kumar_rows(scrimp, label, network):
    """Peak beyond the persistent bytes and length of NoRemat, GreedyRemat, TWRemat and scrimp, unit costs."""
    path = scrimp.graph("step-%s-%s" % (network[1], label.replace(" ", "")), "dump", network, "--stage=grad", "--json",
                        "--cost", "unit")
    kept = scrimp.plan_graph(path)
    rows = {"NoRemat": (kept["peak_bytes"] - kept["persistent_bytes"], 1.0)}
    for name, solver in (("GreedyRemat", "xla_greedy"), ("TWRemat", "twremat"), ("scrimp", "scrimp")):
        plan = scrimp.plan_graph(path, "--solver", solver, "--budget", "min")
        rows[name] = (plan["peak_bytes"] - plan["persistent_bytes"], plan["time"] / plan["time_once"])
    return path, kept, rows


METHODS = ["NoRemat", "GreedyRemat", "TWRemat", "scrimp"]


def kumar_depths(scrimp, name, file, networks, rows_csv):
    memory, length = {m: [] for m in METHODS}, {m: [] for m in METHODS}

    def row(item):
        depth, network = item
        _, _, rows = kumar_rows(scrimp, "%s%d" % (name, depth), network)
        for m in METHODS:
            memory[m].append((depth, rows[m][0] / MIB))
            length[m].append((depth, rows[m][1]))
            rows_csv.append(["figures 2, 3", "%s-%d" % (name, depth), network[3], m, "", rows[m][0], "%.4f" % rows[m][1]])
        return [depth] + ["%.0f / %.2f" % (rows[m][0] / MIB, rows[m][1]) for m in METHODS]
    lines = scrimp.each(networks, lambda item: "%s-%d" % (name, item[0]), row)
    if lines:
        svg("kumar_fig2_%s.svg" % file, "%s: peak memory (figure 2)" % name, "layers", "MiB beyond the weights",
            list(memory.items()))
        svg("kumar_fig3_%s.svg" % file, "%s: schedule length (figure 3)" % name, "layers", "runs / operations",
            list(length.items()))
    return lines


def kumar_table2_rows(scrimp, rows_csv, network):
    path, kept, rows = kumar_rows(scrimp, network[0], network)
    floor, lines = rows["NoRemat"][0], []
    their_base = float(printed("Kumar2019", "Table2", network[0], "NoRemat", "peak_memory"))
    target = their_base / float(printed("Kumar2019", "Table2", network[0], "TWRemat", "peak_memory"))
    budget = "%dB" % int(kept["persistent_bytes"] + floor / target)
    plan = scrimp.plan_graph(path, "--solver", "scrimp", "--budget", budget)
    if plan["status"] != "infeasible":
        rows["scrimp, their ratio"] = (plan["peak_bytes"] - plan["persistent_bytes"], plan["time"] / plan["time_once"])
    rows["proven bound"] = (plan["peak_lower_bound_bytes"] - plan["persistent_bytes"], None)
    real = scrimp.json("plan", network, "--cost", "unit", "--budget", budget)
    rows["scrimp, real arena"] = ((real["arena_bytes"] or real["peak_bytes"]) - real["persistent_bytes"],
                                  1 + real["overhead_percent"] / 100)
    for m, (size, length) in rows.items():
        theirs = printed("Kumar2019", "Table2", network[0], m, "peak_memory")
        their_length = printed("Kumar2019", "Table2", network[0], m, "relative_schedule_length")
        lines.append([network[0], m, theirs or "–", number(their_base / float(theirs)) if theirs else "–",
                      their_length or "–", number(size / GIB, 3), number(floor / size), number(length)])
        rows_csv.append(["table 2", network[0], network[3], m, theirs, size, number(length, 4)])
    return lines


def kumar_table1_row(scrimp, name, network):
    path = scrimp.graph("step-%s-%s" % (network[1], "table1"), "dump", network, "--stage=grad", "--json", "--cost", "unit")
    with open(path) as f:
        nodes = json.load(f)["nodes"]
    width = scrimp.plan_graph(path, "--solver", "twremat", "--stop-at", "1", "--budget", "min")["treewidth"]
    return [name] + [printed("Kumar2019", "Table1", name, m, c) for m, c in
                     (("-", "num_nodes_n"), ("-", "num_edges_m"), ("min-fill", "tree_decomposition_width_tw"))] + \
        [len(nodes), sum(len(n["inputs"]) for n in nodes), width]


def kumar_fig4(scrimp):
    network = ("", "resnet", "depth=200 variant=tf_v2", 32)
    path = scrimp.graph("step-resnet-table1", "dump", network, "--stage=grad", "--json", "--cost", "unit")
    points, rows, k = [], [], 1
    while k <= 4096:
        plan = scrimp.plan_graph(path, "--solver", "twremat", "--stop-at", str(k), "--budget", "min")
        size, length = plan["peak_bytes"] - plan["persistent_bytes"], plan["time"] / plan["time_once"]
        points.append((length, size / GIB))
        rows.append([k, size, "%.5f" % length])
        k *= 2
    sweep = scrimp.plan_graph(path, "--solver", "scrimp", "--sweep", "10")
    ours = [(r["time"] / r["time_once"], (r["peak_bytes"] - r["persistent_bytes"]) / GIB) for r in sweep]
    rows += [["scrimp", r["peak_bytes"] - r["persistent_bytes"], "%.5f" % (r["time"] / r["time_once"])] for r in sweep]
    write_csv("kumar_fig4.csv", ["k", "bytes_beyond_persistent", "schedule_length"], rows)
    svg("kumar_fig4.svg", "ResNet-200: memory against length (figure 4)", "runs / operations", "GiB beyond the weights",
        [("TWRemat(k)", points), ("scrimp", ours)])


def kumar(scrimp):
    rows_csv = []
    resnets = [(d, ("", "resnet", "depth=%d variant=tf_v2" % d, 32)) for d in RESNET_DEPTHS]
    ffns = [(d, ("", "ffn", "layers=%d" % d, 32)) for d in FFN_DEPTHS]
    two = scrimp.each(TRANSFORMERS, name_of, lambda n: kumar_table2_rows(scrimp, rows_csv, n))
    one = scrimp.each([("ResNet200", ("", "resnet", "depth=200 variant=tf_v2", 32)),
                       ("FFN (100 layers)", ("", "ffn", "layers=100", 32)), ("Transformer Base", TRANSFORMERS[0])],
                      name_of, lambda item: kumar_table1_row(scrimp, *item))
    ffn = kumar_depths(scrimp, "FFN", "ffn", ffns, rows_csv)
    resnet = kumar_depths(scrimp, "ResNet", "resnet", resnets, rows_csv)
    page = KUMAR_PAGE % {
        "one": table(["<network", "n printed", "m printed", "width printed", "n", "m", "width"], one),
        "two": table(["<network", "<method", "printed GiB", "printed ratio", "printed length", "GiB", "ratio", "length"],
                     [line for lines in two for line in lines]),
        "resnet": table(["depth"] + METHODS, resnet), "ffn": table(["layers"] + METHODS, ffn)}
    fig4 = scrimp.each([scrimp], lambda _: "figure 4", kumar_fig4)
    write_csv("kumar.csv", ["table", "network", "batch", "method", "printed_GiB", "bytes_beyond_persistent",
                            "schedule_length"], rows_csv)
    write("kumar.md", page + (KUMAR_FIG4 if fig4 else "") + scrimp.left_out_text())


KUMAR_PAGE = """# Kumar et al. 2019
Written by `docs/results.py`; the numbers are in [kumar.csv](kumar.csv) and [kumar_fig4.csv](kumar_fig4.csv). As in the paper every operation costs 1, nothing is written in place, fused or aliased, and
NoRemat is the step in topological order: `scrimp dump --stage=grad --json --cost unit`, then `scrimp plan --graph`. Memory is that beyond the persistent bytes (weights, optimizer state, statistics).
The solvers look for the smallest peak (`--budget min`).

## Table 1
The paper's graphs are TensorFlow's, with many helper operations for shapes and variables; ours have an operation where something is computed. TensorFlow's version, its pruning and the width of the FFN
are not given, so n and m cannot be reproduced; widths are of the same order.

%(one)s

## Table 2: Transformer base and big, 2,048 and 4,096 tokens
Ratio: NoRemat over this. "scrimp, their ratio", where it fits, is given TWRemat's printed ratio of memory as its budget, and "scrimp, real arena" the same bytes for the step that really runs (in place, fused): the ratio
that TWRemat has at 10.6 times the length. "proven bound": no schedule of the graph needs less, so that without writing in place some printed ratios do not exist on this graph. The printed GiB are larger because TensorFlow's graph
has 15,842 operations and keeps what they make; the batch's division into sequences is not given (here 64 tokens a sentence).

%(two)s

## Figures 2 and 3: memory and length over depth
MiB / length. The figures have no data labels, and the batch (here 32) and the width of the FFN (here 1,024) are not given: their shape can be compared. The paper sees memory grow linearly without and hardly with TWRemat, at a length of 3 to 4. Our
`twremat` stays shorter because it tries k = 1, 2, 4, ... and deletes recomputations of values that are still in memory.

%(resnet)s
![memory](kumar_fig2_resnet.svg)
![length](kumar_fig3_resnet.svg)

%(ffn)s
![memory](kumar_fig2_ffn.svg)
![length](kumar_fig3_ffn.svg)

"""

KUMAR_FIG4 = """
## Figure 4: ResNet-200, TWRemat(k)
`--stop-at K` for K = 1, 2, 4, ..., and a sweep of scrimp's solver.

![ResNet-200](kumar_fig4.svg)
"""

# ---- Pareto curves ----

# Each architecture in one size.
PARETO = KUSUMOTO + [n for n in FENG2018 if n[0] in ("Alexnet", "InceptionV3")] + NAS + \
    [("FFN100", "ffn", "layers=100", 32), TRANSFORMERS[0]]
BUDGETS, FEW_BUDGETS = 6, 4
SLOW = ("kusumoto_exact", "twremat", "xla_greedy")
MOST_OVERHEAD = 60  # where the vertical axis ends at the latest


def pareto_sweep(scrimp, rows_csv, network, label, solver, *more):
    points = []
    budgets = FEW_BUDGETS if solver in SLOW else BUDGETS
    for r in scrimp.json("plan", network, "--sweep", str(budgets), "--solver", solver, *more):
        rest = r["keep_all_peak_bytes"] - r["persistent_bytes"]
        points.append((100 * (r["arena_bytes"] - r["persistent_bytes"]) / rest, r["overhead_percent"]))
        rows_csv.append([network[0], network[3], label, r["budget_bytes"], r["arena_bytes"], "%.4f" % points[-1][0],
                         "%.4f" % r["overhead_percent"]])
    return label, sorted(set(points))


def pareto_curves(scrimp, rows_csv, network):
    rows = []  # all of a network's or none
    series = [pareto_sweep(scrimp, rows, network, s, s, "--no-views") for s in SOLVERS[1:-1]]
    series.append(pareto_sweep(scrimp, rows, network, "scrimp, copies", "scrimp", "--no-views"))
    series.append(pareto_sweep(scrimp, rows, network, "scrimp", "scrimp"))
    name = "pareto_%s.svg" % "".join(c if c.isalnum() else "_" for c in network[0].lower().replace("-", ""))
    highest = max(y for _, y in series[-1][1])
    svg(name, "%s, batch %d: overhead against budget" % (network[0], network[3]),
        "arena beyond the persistent bytes, % of keeping everything", "overhead, % of a step", series,
        max(1, min(2 * highest, MOST_OVERHEAD)))
    rows_csv.extend(rows)
    return "## %s\n![%s](%s)\n" % (network[0], network[0], name)


def pareto(scrimp):
    rows_csv = []
    pictures = scrimp.each(PARETO, name_of, lambda n: pareto_curves(scrimp, rows_csv, n))
    write_csv("pareto.csv", ["network", "batch", "solver", "budget_bytes", "arena_bytes", "percent_of_all_kept",
                             "overhead_percent"], rows_csv)
    write("pareto.md", PARETO_PAGE % {"most": MOST_OVERHEAD, "budgets": BUDGETS, "few": FEW_BUDGETS,
                                      "slow": ", ".join("`%s`" % s for s in SLOW)} +
          "\n".join(pictures) + scrimp.left_out_text())


PARETO_PAGE = """# Overhead against budget, all solvers
Written by `docs/results.py`; the numbers are in [pareto.csv](pareto.csv). `scrimp plan --sweep N --solver NAME --no-views`: %(budgets)d budgets (%(few)d for %(slow)s, which take longest) from the smallest that a solver meets to keeping
everything; real arenas, whole steps, cost model `roofline`. Each architecture of the papers stands here in one size; the others are compared at 50%% in [solvers.md](solvers.md).

With `--no-views` concatenations and slices copy their pieces, for all solvers alike: with pieces in place the planner asks a solver without a front again at up to 64 targets for every budget, minutes a curve on DenseNet. The
curve "scrimp" is that of the program as it comes, pieces in place; "scrimp, copies" compares solvers on equal terms. The vertical axis ends at twice the overhead of scrimp's smallest plan, at %(most)d%% at the latest: what lies
above is in the CSV. The Checkmate solvers are left out: they are for graphs of up to 40 and 80 nodes.

"""


def solver_row(scrimp, rows_csv, network):
    """Every solver at half of what the step has to spare."""
    rows, line = compared(scrimp, network, "--budget", "50%"), [network[0], network[3]]
    line.append(number(rows["none"]["keep_all_peak_bytes"] / GB))
    line.append(percent(rows["scrimp"]["overhead_lower_bound_percent"]))
    for solver in SOLVERS[1:]:
        row = rows[solver]
        fits = row["arena_bytes"] is not None
        line.append(percent(row["overhead_percent"]) if fits else "(%.2f)" % (row["min_feasible_bytes"] / GB))
        rows_csv.append([network[0], network[3], row["budget_bytes"], solver, row["status"],
                         row["arena_bytes"] if fits else "", row["peak_bytes"], "%.4f" % row["overhead_percent"],
                         row["recomputed_ops"]])
    return line


def solvers(scrimp):
    known = {(n[1], n[2]) for n in FENG2021}
    networks = FENG2021 + [n for n in KUSUMOTO if (n[1], n[2]) not in known] + TRANSFORMERS
    rows_csv = []
    lines = scrimp.each(networks, name_of, lambda n: solver_row(scrimp, rows_csv, n))
    write_csv("solvers.csv", ["network", "batch", "budget_bytes", "solver", "status", "arena_bytes", "peak_bytes",
                              "overhead_percent", "recomputed_ops"], rows_csv)
    write("solvers.md", SOLVERS_PAGE + table(["<network", "batch", "all kept, GB", "at least"] + SOLVERS[1:], lines) +
          scrimp.left_out_text())


SOLVERS_PAGE = """# Every solver on every network of the papers, at 50%
Written by `docs/results.py`; the numbers are in [solvers.csv](solvers.csv). Overhead in percent of the step's time (cost model `roofline`) where half of the bytes beyond the persistent ones
are to spare; in brackets, where a solver has no such plan, the GB (10^9 bytes) of its smallest. "At least" is the lower bound. Batches are the papers'. Without the
Checkmate solvers, which are for graphs of up to 40 and 80 nodes, and `kusumoto_exhaustive`, which ends at its limit.

"""

PAGES = {"kusumoto": kusumoto, "fig3": fig3, "feng": feng, "kumar": kumar, "solvers": solvers, "pareto": pareto}


def main():
    global PAPERS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scrimp")
    parser.add_argument("--only", default=",".join(PAGES))
    parser.add_argument("--cache", default=os.path.join(ROOT, "build", "results"))
    parser.add_argument("--minutes", type=float, default=1e6)
    args = parser.parse_args()
    PAPERS = read_papers()
    scrimp = Scrimp(os.path.abspath(args.scrimp), args.cache, args.minutes)
    for page in args.only.split(","):
        if page not in PAGES:
            sys.exit("no page is called '%s': %s" % (page, " ".join(PAGES)))
        PAGES[page](scrimp)


if __name__ == "__main__":
    main()
