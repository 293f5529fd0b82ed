#!/usr/bin/env python3
"""Writes the tables of docs/models.md from what scrimp says of the example files.

  docs/models.py build/release/scrimp            counts anew, keeps the memory table
  docs/models.py build/release/scrimp --plans    the memory table, too (minutes)
  docs/models.py build/release/scrimp --check    exit status 1 when the counts are not up to date
"""
import ast
import csv
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "models.md")

# Paper, file, options, batch: the batch sizes at which the papers report memory; without a paper the file's own.
BATCHES = [
    ("Kusumoto 2019", "resnet", "depth=50 variant=chainer", 96),
    ("Kusumoto 2019", "resnet", "depth=152 variant=chainer", 48),
    ("Kusumoto 2019", "vgg", "depth=19 variant=chainer", 64),
    ("Kusumoto 2019", "densenet", "depth=161", 32),
    ("Kusumoto 2019", "googlenet", "variant=chainer", 256),
    ("Kusumoto 2019", "unet", "", 8),
    ("Kusumoto 2019", "pspnet", "", 2),
    ("Feng 2018", "alexnet", "", 1024),
    ("Feng 2018", "vgg", "depth=16 variant=chainer", 64),
    ("Feng 2018", "resnet", "depth=18", 256),
    ("Feng 2018", "resnet", "depth=50", 64),
    ("Feng 2018", "resnet", "depth=152", 16),
    ("Feng 2018", "densenet", "depth=121", 32),
    ("Feng 2021", "nascell", "cell=nasnet", 64),
    ("Feng 2021", "nascell", "cell=amoebanet", 64),
    ("Feng 2021", "nascell", "cell=darts_v2", 64),
    ("Zaremba 2014", "lstm_ptb", "size_name=medium", 20),
    ("", "ffn", "layers=100", 32),
    ("", "transformer", "", 32),
    ("", "gpt2", "", 8),
]


# File, and what a user of PyTorch writes for it: classes and functions of tests/peers, or how many lines they are in
# torchvision 0.14 (tests/peers has no copy of those).
LINES = [
    ("lenet", {"modern": "LeNet"}),
    ("audio", {"modern": "M5"}),
    ("vit", {"modern": "MLP Patches ViTAttention ViTLayer ViT"}),
    ("mixer", {"modern": "MLP Patches MixerLayer Mixer"}),
    ("mobilenet_v2", {"torchvision": 112}),
    ("efficientnet", {"torchvision": 226}),
    ("convnext", {"torchvision": 122}),
    ("llama", {"modern": "rope LlamaAttention LlamaMLP LlamaLayer LlamaDecoder Llama"}),
    ("moe", {"mixtral": "*", "modern": "rope LlamaAttention"}),
    ("bert", {"bert": "*"}),
    ("ssm", {"modern": "MambaMixer MambaLayer MambaBackbone Mamba"}),
    ("gru", {"modern": "GRU"}),
    ("ode", {"modern": "Slope ODE"}),
    ("dcgan", {"modern": "Generator Discriminator"}),
    ("vae", {"modern": "VAE"}),
    ("ddpm", {"ddpm": "*"}),
    ("simclr", {"modern": "BasicBlock SimCLR similarities"}),
    ("tabular", {"modern": "Embeddings TabularBlock TabularMLP"}),
    ("gpt2", {"gpt2": "*"}),
    ("transformer", {"transformer": "*"}),
    ("unet", {"unet": "*"}),
]


def run(scrimp, verb, file, options, batch, *more):
    """The JSON that a verb prints about a file."""
    command = [scrimp, verb, os.path.join(ROOT, "examples", file + ".scrimp"), "--json", *more]
    for option in options.split() + ["N=%d" % batch]:
        command += ["-D", option]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def default_batch(scrimp, file, options):
    """The batch size with these options: the first line of a dump has the value of every option."""
    command = [scrimp, "dump", os.path.join(ROOT, "examples", file + ".scrimp"), "--stage=ir"]
    for option in options.split():
        command += ["-D", option]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()
    return int(re.search(r" N=(\d+)\b", text.split("\n")[0]).group(1))


def table(columns, rows):
    """columns: (title, right-aligned)."""
    yield "| " + " | ".join(title for title, _ in columns) + " |"
    yield "|" + "|".join("--:" if right else "---" for _, right in columns) + "|"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"


def zoo():
    """Every network that the tests know, those of zoo_papers.csv with options of their own behind their family."""
    rows = []
    for name in ("zoo.csv", "zoo_papers.csv"):
        with open(os.path.join(ROOT, "tests", name)) as lines:
            rows += [(r["file"], r["options"]) for r in csv.DictReader(l for l in lines if not l.startswith("#"))]
    files = list(dict.fromkeys(file for file, _ in rows))
    known = {(file, frozenset(options.split())): (file, options) for file, options in reversed(rows)}
    return sorted(known.values(), key=lambda row: (files.index(row[0]), rows.index(row)))


def count_row(scrimp, file, options):
    summary = run(scrimp, "summary", file, options, 1)
    ops = run(scrimp, "summary", file, options, 1, "--count", "ops")
    vertices = [run(scrimp, "summary", file, options, 1, "--count", rule)["vertices"]
                for rule in ("kusumoto", "feng2021_nas" if file == "nascell" else "feng2021", "feng2018")]
    if file == "nascell":
        vertices[2] = ""
    operations = sum(v["class"] == "activation" for v in ops["graph"])
    numbers = [summary["params"], summary["buffers"], summary["macs"], operations, ops["activation_elements"]]
    return ["`%s`" % file, "`%s`" % options if options else ""] + ["{:,}".format(n) for n in numbers] + vertices


def counts(scrimp):
    columns = [("file", False), ("options", False), ("parameters", True), ("buffers", True), ("multiply-adds", True),
               ("operations", True), ("activation elements", True), ("kusumoto", True), ("feng2021", True),
               ("feng2018", True)]
    return table(columns, (count_row(scrimp, *row) for row in zoo()))


def code_lines(lines):
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def lines_here(file):
    """Of blocks and models, those of other example files that are imported included."""
    with open(os.path.join(ROOT, "examples", file)) as f:
        text = f.read()
    own, open_brackets = 0, 0
    for line in text.split("\n"):
        begins = not open_brackets and re.match("(block|model) ", line)
        if begins or open_brackets:
            own += code_lines([line])
            code = line.split(" #")[0]
            open_brackets += sum(code.count(c) for c in "{(") - sum(code.count(c) for c in "})")
        elif re.match("(train|remat) ", line):
            break
    imports = re.findall(r'^import "(?!std/)(.*)"', text, re.M)
    return own + sum(lines_here(name) for name in imports)


def docstring(node):
    first = node.body[0] if isinstance(node, (ast.ClassDef, ast.FunctionDef)) else None
    return first if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) else None


def lines_there(module, names):
    if module == "torchvision":
        return names
    with open(os.path.join(ROOT, "tests", "peers", module + ".py")) as f:
        text = f.read()
    total, lines = 0, text.split("\n")
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or (names != "*" and node.name not in names.split()):
            continue
        total += code_lines(lines[node.lineno - 1:node.end_lineno])
        for inner in ast.walk(node):
            said = docstring(inner)
            if said:
                total -= code_lines(lines[said.lineno - 1:said.end_lineno])
    return total


def lines():
    columns = [("file", False), ("lines here", True), ("lines in PyTorch", True), ("counted there", False)]
    return table(columns, (["`%s`" % file, lines_here(file + ".scrimp"),
                            sum(lines_there(module, names) for module, names in there.items()),
                            ", ".join("torchvision" if m == "torchvision" else "`tests/peers/%s.py`" % m for m in there)]
                           for file, there in LINES))


def gib(size):
    return "%.2f" % (size / 2**30)


def plan_row(scrimp, paper, file, options, batch):
    plan = run(scrimp, "plan", file, options, batch, "--budget", "min")
    share = 100 * plan["arena_bytes"] / plan["keep_all_peak_bytes"]
    return [paper, "`%s`" % file, "`%s`" % options if options else "", batch,
            gib(plan["persistent_bytes"]), gib(plan["keep_all_peak_bytes"]), gib(plan["arena_bytes"]), "%.0f%%" % share,
            "%.0f%%" % plan["overhead_percent"], default_batch(scrimp, file, options)]


def plans(scrimp):
    columns = [("batch of", False), ("file", False), ("options", False), ("batch", True), ("persistent", True),
               ("all kept", True), ("smallest", True), ("of all kept", True), ("more time", True),
               ("default batch", True)]
    return table(columns, (plan_row(scrimp, *row) for row in BATCHES))


def replaced(page, name, lines):
    """The page with new lines between <!-- name --> and <!-- end -->."""
    pattern = r"(<!-- %s -->\n).*?(<!-- end -->)" % name
    return re.sub(pattern, lambda m: m.group(1) + "\n".join(lines) + "\n" + m.group(2), page, count=1, flags=re.S)


def main():
    if len(sys.argv) < 2 or sys.argv[2:] not in ([], ["--plans"], ["--check"]):
        sys.exit(__doc__)
    scrimp = os.path.abspath(sys.argv[1])
    with open(PAGE) as f:
        old = f.read()
    new = replaced(replaced(old, "counts", counts(scrimp)), "lines", lines())
    if sys.argv[2:] == ["--plans"]:
        new = replaced(new, "plans", plans(scrimp))
    if sys.argv[2:] == ["--check"]:
        for was, now in zip(old.split("\n"), new.split("\n")):
            if was != now:
                sys.exit("docs/models.md is not up to date (docs/models.py SCRIMP):\n-%s\n+%s" % (was, now))
        sys.exit(old != new)
    with open(PAGE, "w") as f:
        f.write(new)


main()
