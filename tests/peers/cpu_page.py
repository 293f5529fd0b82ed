# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/results/cpu.md from what bench.py measured."""
import statistics
import textwrap

import table

INTRO = """# Training steps on the CPU, beside PyTorch's

Written by `tests/peers/bench.py`; a row is the last run of its case. The example and the same network in PyTorch
(`tests/peers/steps.py`), of the same sizes, loss, optimizer, clipping, dropout and number of parameters, in f32 on
random data, take turns, each in processes of its own: `scrimp bench --budget 100%`, PyTorch contiguous, channels last
(pictures) and compiled by `torch.compile` (where products lead), and back in the opposite order. A turn is the median
of its steps, a figure the median of the turns. PyTorch's attention is `scaled_dot_product_attention`, its optimizer
the fastest of fused, foreach and a loop; a batch is there before its step begins. scrimp takes denormal numbers for
zeros, PyTorch by default does not; both start from the same distributions, with which few numbers are denormal.

Rows that say bf16 are `precision = bf16` in the train section beside `torch.autocast("cpu", torch.bfloat16)` around
the loss, but not the backward pass, as PyTorch advises, with attention in one call or by its parts, whichever is
faster; on both sides parameters, their gradients and the optimizer's state are f32.

Rows that say Winograd are `winograd = true` in the train section, beside the same PyTorch, which chooses the form of
its convolutions itself; their GFLOP/s count the operations of that form, which are fewer.

**Ratio** is the time of the fastest PyTorch (bold) by scrimp's: above 1 scrimp is faster. In brackets the least and
the most of the rounds; **!** marks rows in which other programs used more than a tenth of a core. GFLOP/s and share
of the peak are what `scrimp bench` says of its step; it measures the peak before, of multiply-adds in f32.

To repeat it: `python3 -m venv torch && torch/bin/pip install torch torchvision`, a C++ compiler for `torch.compile`,
then `torch/bin/python tests/peers/bench.py CASE --threads 1,2`, with nothing else running (`--help`); `CASE:bf16` is a
case in bf16, `CASE:winograd` one in Winograd's form.
"""
LITTLE = 5  # percent of the peak
MODES = ["contiguous", "channels_last", "compile"]


def milliseconds(turns):
    return f"{1e3 * statistics.median(turns):,.1f}"


def fastest(record):
    """The way of running PyTorch with the least median, or None."""
    them = {mode: statistics.median(c["turns"]) for mode, c in record["contenders"].items() if mode != "scrimp"}
    return min(them, key=them.get) if them else None


def ratio(record):
    """(PyTorch's time by scrimp's, the least and the most of the rounds)."""
    ours, theirs = (record["contenders"][who]["turns"] for who in ("scrimp", fastest(record)))
    each = [b / a for a, b in zip(ours, theirs)]
    return statistics.median(theirs) / statistics.median(ours), min(each), max(each)


def row(record):
    who = record["contenders"]
    cells = [record["title"], str(record["threads"])]
    cells.append(milliseconds(who["scrimp"]["turns"]) if "scrimp" in who else "failed")
    best = fastest(record)
    for mode in MODES:
        if mode not in who:
            cells.append("failed" if mode in record["missing"] else "")
        else:
            cells.append(f"**{milliseconds(who[mode]['turns'])}**" if mode == best else milliseconds(who[mode]["turns"]))
    cells.append("{:.2f} ({:.2f} to {:.2f})".format(*ratio(record)) + (" !" if max(record["others"]) > 0.1 else "") if best and "scrimp" in who else "")
    ours = who.get("scrimp", {})
    cells += [f"{ours['gflops']:.1f}", f"{ours['percent_of_peak']:.1f}%"] if ours else ["", ""]
    return cells


def speed(kernel, peak):
    """Share of the peak, or GB/s of what hardly multiplies."""
    share = 100 * (kernel["gflops"] or 0) / peak
    return f"{share:.0f}%" if share >= LITTLE else f"{kernel['gbytes_per_second'] or 0:.1f} GB/s"


def kernels(record):
    """The kernels that take most of scrimp's step."""
    ours = record["contenders"]["scrimp"]
    peak = ours["peak_gflops"]
    shown = [f"{100 * k['seconds'] / ours['seconds_per_step']:.0f}% `{k['name']}`" + (f" × {k['calls']}" if k["calls"] > 1 else "")
             + f" at {speed(k, peak)}" for k in ours["kernels"]]
    return [record["title"], str(record["threads"]), ", ".join(shown)]


def machine_text(m):
    return ", ".join(f"{k}: {v}" for k, v in m.items())


def origins(rows):
    """Who made which row: one line for each run that made some of them."""
    lines = {}
    for r in rows:
        torch = next((c["torch"] for who, c in r["contenders"].items() if who != "scrimp"), "none")
        optimizers = {f"{who} {c['optimizer']}" for who, c in r["contenders"].items() if who != "scrimp"}
        ran = f"{r['date']}, {r['scrimp']}, commit {r['commit']}, torch {torch}, {r['rounds']} rounds"
        lines.setdefault(ran, []).append(f"{r['case']}, {r['threads']} ({', '.join(sorted(optimizers))})")
    return [textwrap.fill(f"- {ran}: {'; '.join(cases)}", 120, subsequent_indent="  ") for ran, cases in lines.items()]


def page(records):
    """The last record of each case and number of threads, a section for each machine."""
    machines = {}
    for r in records:
        machines.setdefault(machine_text(r["machine"]), {})[r["case"], r["threads"]] = r
    parts = [INTRO]
    for where, last in machines.items():
        titles = list(dict.fromkeys(r["title"] for r in last.values()))
        rows = sorted(last.values(), key=lambda r: (titles.index(r["title"]), r["threads"]))
        parts.append(f"## {where.split(',')[0].removeprefix('Model name: ')}\n\n{textwrap.fill(where + '.', 120)}\n")
        parts.append(table.table(["step", "threads", "scrimp, ms", "contiguous", "channels last", "compiled", "ratio", "GFLOP/s",
                                  "of peak"], [row(r) for r in rows]))
        parts.append("Where scrimp's step goes: share of the step, kernel, calls, share of the measured peak or GB/s.\n")
        parts.append(table.table(["step", "threads", "kernels"], [kernels(r) for r in rows if "scrimp" in r["contenders"]]))
        parts.append("Runs (case, threads, and PyTorch's fastest optimizer):\n")
        parts.append("\n".join(origins(rows)) + "\n")
    return "\n".join(parts)
