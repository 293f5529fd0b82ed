#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does every part of the solver and the planner earn its place?  Switches each off alone and plans again.

    earned.py check [COMMANDS]   only look for stale entries of parts.txt and, with the compile_commands.json of a build,
                                 for files that do not compile with a switch for each part
    earned.py build              a copy of the tree with a switch for each part of parts.txt, built
    earned.py run [REGEX]        plan every network and budget without each part that REGEX finds (and with all);
                                 goes on where it was stopped; --networks A,B plans only these, in this order;
                                 --undecided leaves out parts that have gained something on a network before
    earned.py arenas FILE...     place the buffers of files (scrimp plan --arena-csv) without each part of the placement
    earned.py gaps [REGEX]       plan the networks whose placement is hardest without each part of it that REGEX finds
    earned.py report             write docs/results/parts.md; what is not measured here stays as the page has it

What is measured: the time that recomputation adds within 50, 30 and 20% (the budget in bytes is that of all parts),
the smallest arena, what the arena of every plan is above its lower bound, and the processor's seconds.  Plans do not
depend on the clock, so a busy machine changes only the seconds."""

import argparse
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE.parent / "mutation"), str(ROOT / "docs")]
import mutate  # noqa: E402  the patched tree
import results  # noqa: E402  the networks

WORK = ROOT / "build" / "earned"
PAGE = ROOT / "docs" / "results" / "parts.md"
mutate.WORK, mutate.TREE = WORK, WORK / "tree"
mutate.BUILD = mutate.TREE / "build" / "parts"
EVERYTHING = "everything"
PERCENTS = [50, 30, 20]
# Beside the networks of docs/results.py: small ones, as they stand in examples/.
EXAMPLES = ["chargpt", "convnet", "ffn", "gpt2", "lstm_ptb"]
# Many buffers of many sizes, of which no more than a few plans reach the bound without searching for it.
HARD = [("Inception-v3", "inception_v3", "aux=false", 4), ("Inception-v3, auxiliary head", "inception_v3", "aux=true", 4),
        ("Inception-v3, 300 x 300", "inception_v3", "aux=false size=300", 4)]
HARD_BUDGETS = {None: "all", "50%": "50%", "min": "min"}


# --- the list ---


class Part:
    def __init__(self, name, what, number):
        self.name, self.what, self.number, self.files = name, what, number, []


def read_parts():
    parts, edits, file = [], [], None
    for i, line in enumerate((HERE / "parts.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("= "):
            name, _, what = line[2:].partition(": ")
            parts.append(Part(name, what, len(parts) + 1))
        elif line.startswith("@ "):
            file = line[2:].strip()
        else:
            text, _, new = (line + " ").partition(" => ")
            edit = mutate.Mutant(i, file, text.strip(), new.strip(), "parts.txt")
            edit.number = parts[-1].number
            edits.append(edit)
            parts[-1].files.append(file)
    return parts, edits


def model_options(file, options, batch):
    return [str(ROOT / "examples" / (file + ".scrimp"))] + [
        a for o in options.split() + ["N=%d" % batch] for a in ("-D", o)]


def networks():
    everything = results.KUSUMOTO + results.FENG2021 + results.TRANSFORMERS
    out = {name: [str(ROOT / "examples" / (name + ".scrimp"))] for name in EXAMPLES}
    for name, file, options, batch in everything:
        out["%s %s N=%d" % (file, options, batch)] = model_options(file, options, batch)
    return out


# --- building and planning ---


def command_check(args):
    mutate.check_list(read_parts()[1], args.commands)


def command_build(args):
    parts, edits = read_parts()
    mutate.write_tree(edits)
    mutate.BUILD.mkdir(parents=True, exist_ok=True)
    if not (mutate.BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "-G", "Ninja", "-S", mutate.TREE, "-B", mutate.BUILD, "-DCMAKE_BUILD_TYPE=Release",
                        "-DCMAKE_C_FLAGS=-w"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", mutate.BUILD, "--target", "scrimp"], check=True)
    print(f"{len(parts)} parts built")


def plan(model, number, cache, budget):
    env = os.environ | ({"SCRIMP_MUTANT": str(number)} if number else {})
    budgeted = ["--budget", budget] if budget else []
    done = subprocess.run([mutate.BUILD / "scrimp", "plan", *model, *budgeted, "--json", "-q", "--cache", cache],
                          env=env, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"part {number}, {' '.join(model)} at {budget}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def cache_for(network, part):
    """One search answers all budgets: it is kept in a cache of this part's own, or, where the part does not take part
    in searches, in that of everything."""
    shared = WORK / "searches" / re.sub(r"\W+", "_", network)
    if part and all(f.startswith("passes/memplan/") for f in part.files) and shared.exists():
        return shared
    if part:
        return pathlib.Path(tempfile.mkdtemp(dir=WORK))
    shutil.rmtree(shared, ignore_errors=True)
    shared.mkdir(parents=True)
    return shared


def plan_all(network, model, part, budgets):
    number, cache, out = part.number if part else 0, cache_for(network, part), {}
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    for name, budget in [("all", "100%"), *budgets.items(), ("min", "min")]:
        p = plan(model, number, cache, budget)
        out[name] = p and {k: p[k] for k in ("overhead_percent", "arena_bytes", "arena_lower_bound_bytes", "budget_bytes",
                                             "persistent_bytes", "keep_all_peak_bytes")}
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    out["seconds"] = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    if cache.parent == WORK:
        shutil.rmtree(cache)
    return out


def load():
    path = WORK / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def save(known):
    temporary = WORK / "results.tmp"
    temporary.write_text(json.dumps(known, indent=1))
    temporary.replace(WORK / "results.json")


def chosen_networks(names):
    known = networks()
    if not names:
        return known
    return {k: v for name in names.split(",") for k, v in known.items() if name in k}


def gains(known, part):
    """Whether a plan gets worse without it, on the networks that have been planned."""
    base = known[EVERYTHING]
    other = {k: v for k, v in known.get(part.name, {}).items() if k in base}
    if not other:
        return False
    worse, _, _, _, _, least_most, gap, _ = compare(base, other)
    return worse > 0 or least_most > 0 or gap > 0


def command_run(args):
    parts, _ = read_parts()
    known = load()
    chosen_parts = [p for p in parts if re.search(args.regex, p.name)]
    for network, model in chosen_networks(args.networks).items():
        for part in [None, *chosen_parts]:
            name = part.name if part else EVERYTHING
            mine = known.setdefault(name, {})
            if network in mine or (part and args.undecided and gains(known, part)):
                continue
            base = known[EVERYTHING].get(network)
            budgets = {f"{p}%": f"{base[f'{p}%']['budget_bytes']}B" if base else f"{p}%" for p in PERCENTS
                       if not base or base[f"{p}%"]}
            mine[network] = plan_all(network, model, part, budgets)
            save(known)
            print(f"{name:26} {network:44} {mine[network]['seconds']:7.1f} s", flush=True)


def place(path, number):
    env = os.environ | ({"SCRIMP_MUTANT": str(number)} if number else {})
    begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([mutate.BUILD / "scrimp", "arena", path, "--json"], env=env, check=True, capture_output=True)
    found = json.loads(done.stdout)
    return [found["arena_bytes"], found["lower_bound_bytes"], resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin]


def command_arenas(args):
    placing = [p for p in read_parts()[0] if p.name.startswith("place_")]
    known = load()
    for path in args.files:
        mine = known.setdefault("arenas", {}).setdefault(pathlib.Path(path).stem, {})
        for name, number in [(EVERYTHING, 0)] + [(p.name, p.number) for p in placing]:
            if name not in mine:
                mine[name] = place(path, number)
        save(known)


def gap_percent(plan):
    return 100 * (plan["arena_bytes"] / plan["arena_lower_bound_bytes"] - 1)


def command_gaps(args):
    placing = [p for p in read_parts()[0] if p.name.startswith("place_") and re.search(args.regex, p.name)]
    known = load()
    for title, *model in HARD:
        cache = WORK / "searches" / re.sub(r"\W+", "_", title)
        cache.mkdir(parents=True, exist_ok=True)
        for budget, short in HARD_BUDGETS.items():
            mine = known.setdefault("gaps", {}).setdefault(f"{title}, {short}", {})
            for name, number in [(EVERYTHING, 0)] + [(p.name, p.number) for p in placing]:
                if name not in mine:
                    mine[name] = gap_percent(plan(model_options(*model), number, cache, budget))
                    save(known)
                    print(f"{name:26} {title:32} {short:4} {mine[name]:8.4f}%", flush=True)


# --- the page ---


HEAD = """# What each part gains

Written by `tests/earned/earned.py report` on {date}, from {n} networks. Each part is switched off alone, on
all of them or until it was seen to gain something.

- *worse*, *better*: at how many of the {budgets} budgets (50, 30 and 20%) recomputation then takes more or less time by
  at least 0.01 points, with the sum of these points and the largest;
- *least*: the change of the smallest arena, in percent of what is needed beyond the persistent bytes, on average and at
  most;
- *gap*: of the arena above its lower bound, in percent, summed over all plans;
- *seconds*: of the processor, in all.

| part | what it is | worse | better | points | most | least | most | gap | seconds |
|---|---|---|---|---|---|---|---|---|---|
"""


ARENAS_HEAD = """
## Placement alone

The buffers of {n} files, placed without each part: training steps under budgets, MiniMalloc's instances and random
ones. *larger*, *smaller*: how many arenas become so, and the largest change in percent.

| part | larger | most | smaller | most | seconds |
|---|---|---|---|---|---|
"""


def arenas_table(arenas, parts):
    text = ARENAS_HEAD.format(n=len(arenas))
    for p in parts:
        both = [(x[EVERYTHING], x[p.name]) for x in arenas.values() if p.name in x]
        change = [100 * (without[0] / base[0] - 1) for base, without in both]
        if both:
            text += (f"| `{p.name}` | {sum(d > 0 for d in change)} | {max(change):+.2f} | {sum(d < 0 for d in change)} "
                     f"| {min(change):+.2f} | {sum(w[2] - b[2] for b, w in both):+.1f} |\n")
    return text


def compare(base, other):
    worse = better = points = most = 0
    least, seconds, gap, unmet = [], 0, 0, 0
    for network, without in other.items():
        with_it = base[network]
        for p in PERCENTS:
            a, b = with_it.get(f"{p}%"), without.get(f"{p}%")
            if not a or not b:
                unmet += bool(a) - bool(b)
                continue
            d = b["overhead_percent"] - a["overhead_percent"]
            worse, better, points, most = worse + (d >= 0.01), better + (d <= -0.01), points + d, max(most, d)
        needed = with_it["all"]["keep_all_peak_bytes"] - with_it["all"]["persistent_bytes"]
        least.append(100 * (without["min"]["arena_bytes"] - with_it["min"]["arena_bytes"]) / needed)
        seconds += without["seconds"] - with_it["seconds"]
        for key in without:
            if key != "seconds" and without[key] and with_it[key]:
                gap += sum(s * 100 * (x["arena_bytes"] / x["arena_lower_bound_bytes"] - 1)
                           for s, x in ((1, without[key]), (-1, with_it[key])))
    return worse + max(unmet, 0), better, points, most, sum(least) / len(least), max(least), gap, seconds


GAPS_HEAD = """
## Where placement is hard

`tests/earned/earned.py gaps` on {date}: how far the arena lies above its lower bound, in percent of the bound, at
batch 4, with everything kept (*all*) and under budgets. Plans that reach the bound without any of these parts are left
out. The same plans are asked for by `SCRIMP_EFFORT=1 SCRIMP_ALL=1 unit_zoo_test_gap`. All attempts share one limit of
steps, so that without a part another may get further.

"""


def gaps_table(gaps, parts):
    plans = [f"{title}, {short}" for title, *_ in HARD for short in HARD_BUDGETS.values()]
    some = {plan: gaps[plan] for plan in plans if any(gaps.get(plan, {}).values())}
    rows = [("with all parts", EVERYTHING)] + [(f"`{p.name}`", p.name) for p in parts if any(p.name in m for m in some.values())]
    text = GAPS_HEAD.format(date=datetime.date.today().isoformat()) + "| without | " + " | ".join(some) + " |\n|---|" + "---|" * len(some) + "\n"
    for title, name in rows:
        text += f"| {title} | " + " | ".join(f"{m[name]:.3f}" if name in m else "" for m in some.values()) + " |\n"
    return text


def networks_table(known, parts):
    base = known[EVERYTHING]
    text = HEAD.format(date=datetime.date.today().isoformat(), n=len(base), budgets=len(base) * len(PERCENTS))
    for p in parts:
        if known.get(p.name):
            other = {k: v for k, v in known[p.name].items() if k in base}
            w, b, points, most, least, least_most, gap, seconds = compare(base, other)
            some = "" if len(other) == len(base) else f" ({len(other)} networks)"
            text += (f"| `{p.name}` | {p.what}{some} | {w} | {b} | {points:+.2f} | {most:.2f} | {least:+.2f} | {least_most:+.2f} "
                     f"| {gap:+.2f} | {seconds:+.0f} |\n")
    return text


def command_report(args):
    known, (parts, _) = load(), read_parts()
    networks, *rest = re.split(r"(?m)^(?=\n## )", PAGE.read_text())
    page = {re.search("## (.*)", section)[1]: section for section in rest}
    if EVERYTHING in known:
        networks = networks_table(known, parts)
    if "arenas" in known:
        page["Placement alone"] = arenas_table(known["arenas"], parts)
    if "gaps" in known:
        page["Where placement is hard"] = gaps_table(known["gaps"], parts)
    PAGE.write_text(networks + "".join(page.values()))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(required=True)
    for name, call in [("check", command_check), ("build", command_build), ("run", command_run), ("arenas", command_arenas),
                       ("gaps", command_gaps), ("report", command_report)]:
        s = sub.add_parser(name)
        s.set_defaults(call=call)
        if name == "check":
            s.add_argument("commands", nargs="?")
        if name == "arenas":
            s.add_argument("files", nargs="+")
        if name in ("run", "gaps"):
            s.add_argument("regex", nargs="?", default="")
        if name == "run":
            s.add_argument("--networks", help="only networks with one of these in their names")
            s.add_argument("--undecided", action="store_true", help="only parts that have not gained anything yet")
    args = p.parse_args()
    if args.call != command_check:
        WORK.mkdir(parents=True, exist_ok=True)
    args.call(args)


if __name__ == "__main__":
    main()
