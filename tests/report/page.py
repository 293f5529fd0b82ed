#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""page.py SCRIMP [use|paper|measured|imports|sizes|large]...: what `scrimp report` writes, in a headless Chromium.
Without a name: the first four.

use: the page is used (harness.js), and every figure on its first screen compared with what `scrimp plan --json` says
for the same options; then the same page with names that hold HTML, and with parts of its data missing.  paper: what
is printed has the charts.  measured: a page with measurements.  imports: one of a model in several files.  sizes:
pages of the largest examples are small.  large: a step of 5,000 operations is shown and used. `page.py --page
REPORT.html` looks at one page."""
import base64
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from devtools import Browser, chromium

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HOSTILE = "%<img src=x onerror=\"harnessFaults.push('script in a name')\">&lt;'\"</script>"
# Runs before the page's own script, so that no error is missed.
WATCH = """<script>
window.harnessFaults = [];
addEventListener("error", e => harnessFaults.push("error: " + (e.message || e.target?.outerHTML)), true);
addEventListener("unhandledrejection", e => harnessFaults.push("rejected: " + e.reason));
addEventListener("securitypolicyviolation", e => harnessFaults.push("refused: " + e.violatedDirective));
console.error = (...words) => harnessFaults.push("console: " + words.join(" "));
</script>"""
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0"><script>
addEventListener("message", e => { document.getElementById("answer").textContent = e.data; });
</script><iframe src="page.html" width="%d" height="%d" style="border:0"></iframe><pre id="answer"></pre>"""


def use(page, width, height=900):
    """Opens a page in a frame of this size, lets the harness use it, and returns its answer."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(HERE, "harness.js")) as f:
            harness = f.read()
        at = page.rindex("</body>")
        page = page.replace("<head>", "<head>" + WATCH, 1) if "<head>" in page else WATCH + page
        at = page.rindex("</body>")
        with open(os.path.join(folder, "page.html"), "w") as f:
            f.write(page[:at] + "<script>\n" + harness + "</script>" + page[at:])
        with open(os.path.join(folder, "frame.html"), "w") as f:
            f.write(FRAME % (width, height))
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--user-data-dir=" + os.path.join(folder, "profile"), "--virtual-time-budget=60000",
                   "--window-size=%d,%d" % (max(width, 500), height), "--dump-dom"]
        done = subprocess.run([chromium(), *options, "file://" + os.path.join(folder, "frame.html")],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout.decode(), re.S)
    if not found or not found.group(1):
        return {"faults": ["the harness gave no answer: " + done.stderr.decode()[-2000:]], "seen": {}}
    answer = found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(answer)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))


def with_data(page, data):
    text = json.dumps(data).replace("<", "\\u003c")
    return re.sub(r'(id="data">).*?(</script>)', lambda m: m.group(1) + text + m.group(2), page, count=1, flags=re.S)


# What figures look like: bytes rounded up to a tenth.

def bytes_text(n):
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            tenths = -(-10 * n // size)
            return "%d%s%s" % (tenths // 10, ".%d" % (tenths % 10) if tenths % 10 else "", unit)
    return "%dB" % n


def percent_text(x):
    return "<0.1%" if 0 < x < 0.05 else "%.1f%%" % x


def check_figures(plan, seen):
    """The first screen against `scrimp plan --json`."""
    faults, figures = [], seen.get("figures", {})

    def same(what, shown, expected):
        if shown != expected:
            faults.append("%s: the page says %s, plan --json %s" % (what, shown, expected))
    for key in ("keep_all_peak_bytes", "budget_bytes", "arena_bytes", "peak_lower_bound_bytes", "persistent_bytes"):
        if plan.get(key) is not None:
            shown = figures.get(key, {})
            same(key, shown.get("text"), bytes_text(plan[key]))
            same(key, shown.get("title"), "%s (%s bytes)" % (bytes_text(plan[key]), format(plan[key], ",")))
    same("overhead_percent", figures.get("overhead_percent", {}).get("text"), percent_text(plan["overhead_percent"]))
    same("overhead_lower_bound_percent", figures.get("overhead_percent", {}).get("small"),
         "at least " + percent_text(plan["overhead_lower_bound_percent"]))
    same("recomputed_ops", figures.get("recomputed_ops", {}).get("text"), format(plan["recomputed_ops"], ","))
    sizes = {key: bytes_text(plan[key]) for key in ("arena_bytes", "keep_all_peak_bytes", "peak_lower_bound_bytes")}
    for what in (sizes["arena_bytes"], sizes["keep_all_peak_bytes"], percent_text(plan["overhead_percent"]),
                 "no schedule needs less than " + sizes["peak_lower_bound_bytes"]):
        if plan["recomputed_ops"] > 0 and what not in seen.get("headline", ""):
            faults.append("the headline does not say %s: %s" % (what, seen.get("headline")))
    expected = ["this plan", plan["solver"], plan["status"]]
    expected += [bytes_text(plan[key]) for key in ("budget_bytes", "peak_bytes", "arena_bytes")]
    expected += [percent_text(plan[key]) for key in ("overhead_percent", "overhead_lower_bound_percent")]
    same("the plan's row of the table", seen.get("plan_row", []), expected + [format(plan["recomputed_ops"], ",")])
    return faults


def column(step, table, key):
    """By row, texts included; None where a row has no value."""
    columns = step[table]
    return columns[key] if key in columns else columns["$" + key]


def hostile(data):
    """The largest activation at the peak, and what makes it, have a name that holds HTML."""
    step, peak = data["planned"], data["planned"]["peak_slot"]
    rows = zip(*(column(step, "buffers", key) for key in ("name", "kind", "bytes", "first", "end")))
    there = [(size, name) for name, kind, size, first, end in rows
             if first <= peak < end and data["strings"][kind] == "activation"]
    data["strings"][max(there)[1]] = HOSTILE
    for r in data["recomputations"]:
        r["instead"] = [HOSTILE]
    data["title"] = data["source"]["name"] = HOSTILE
    data["source"]["text"] = HOSTILE + "\n" + data["source"]["text"].split("\n", 1)[1]
    data["ir"]["after"].insert(0, HOSTILE)
    return data


def bare(data):
    """No recomputation, no other plans, no source, no text of the IR, no measurement."""
    data["planned"]["operations"].pop("again", None)
    data.update(recomputations=[], frontier=[], solvers=[], source={"name": "", "text": "", "lines": []},
                ir={"before": "", "after": []}, measured=None)
    for step in (data["kept"], data["planned"]):
        step["buffers"]["line"] = [0] * len(step["buffers"]["$name"])
    return data


def report(name, faults):
    print("%s: %s" % (name, "ok" if not faults else "%d faults" % len(faults)))
    for fault in faults[:20]:
        print("  " + fault)
    return len(faults)


def text_after(ir):
    before = ir["before"].split("\n")
    return [line for item in ir["after"]
            for line in ([item] if isinstance(item, str) else before[item[0]:item[0] + item[1]])]


def check_difference(ir, seen):
    """Both texts have at least as many lines in common as difflib finds."""
    matcher = difflib.SequenceMatcher(None, ir["before"].split("\n"), text_after(ir), autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    found = seen.get("same_rows", 0)
    return [] if found >= same else ["the difference has %s lines in common, difflib %d" % (found, same)]


def check_page(page, plan, name):
    answer = use(page, 1300)
    faults = answer["faults"] + check_figures(plan, answer["seen"])
    return report(name, faults + check_difference(data_of(page)["ir"], answer["seen"]))


def made(scrimp, *options):
    """The page of an example."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "report.html")
        subprocess.run([scrimp, "report", *options, "-o", out, "-q"], check=True, cwd=ROOT)
        with open(out) as f:
            return f.read()


def check_variants(page, plan):
    faults = check_page(page, plan, "at 1,300 pixels")
    phone = use(with_data(page, hostile(data_of(page))), 390, 800)
    faults += report("on a phone, with names that hold HTML", phone["faults"])
    return faults + report("with data missing", use(with_data(page, bare(data_of(page))), 1300)["faults"])


def check_words(plan, terminal):
    """Bytes are the words that the terminal writes."""
    words = terminal.split()
    keys = ("keep_all_peak_bytes", "budget_bytes", "arena_bytes", "peak_lower_bound_bytes", "persistent_bytes")
    return report("words of the terminal", ["%s: scrimp plan does not say %s" % (key, bytes_text(plan[key]))
                                            for key in keys if bytes_text(plan[key]) not in words])


def case_use(scrimp):
    options = ["examples/chargpt.scrimp", "--budget", "40%"]
    terminal, plan = (subprocess.run([scrimp, "plan", *options, *more], check=True, stdout=subprocess.PIPE,
                                     cwd=ROOT).stdout.decode() for more in ([], ["--json"]))
    plan = json.loads(plan)
    return check_variants(made(scrimp, *options), plan) + check_words(plan, terminal)


def case_measured(scrimp):
    page = made(scrimp, "examples/chargpt.scrimp", "--budget", "40%", "--frontier", "0", "--measure", "--steps", "3")
    data = data_of(page)
    answer = use(page, 1300)
    faults, shown = answer["faults"], answer["seen"].get("measured", {})
    if not shown or min(shown.get(what, 0) for what in ("kernels", "circles", "events")) == 0:
        faults.append("nothing measured is shown: %s" % shown)
    times = [data["planned"]["operations"].get("seconds"), [k["seconds"] for k in data["measured"]["kernels"]]]
    faults += ["nothing took time" for of in times if not of or sum(of) <= 0]
    return report("measured", faults)


def case_imports(scrimp):
    """Tensors of imported files name the file and its line."""
    answer = use(made(scrimp, "examples/googlenet.scrimp", "--budget", "50%", "--frontier", "0"), 1300)
    return report("imports", answer["faults"] + ([] if answer["seen"].get("imported") else ["nothing is imported"]))


SIZES = [["examples/resnet.scrimp", "-D", "depth=152"], ["examples/densenet.scrimp"]]
MOST_BYTES = 3500000 # the page of ResNet-152 has to be under 5 MB


def case_sizes(scrimp):
    faults = 0
    for options in SIZES:
        size = len(made(scrimp, *options, "--budget", "40%", "--frontier", "0").encode())
        print("%s: %s bytes" % (" ".join(options), format(size, ",")))
        faults += report("its size", ["more than %s bytes" % format(MOST_BYTES, ",")] if size > MOST_BYTES else [])
    return faults


def case_large(scrimp):
    page = made(scrimp, "examples/chargpt.scrimp", "-D", "L=128", "--budget", "60%", "--frontier", "0")
    operations = len(column(data_of(page)["planned"], "operations", "name"))
    began = time.monotonic()
    faults = use(page, 1300)["faults"]
    took = time.monotonic() - began
    print("%s operations, %.1f MB: used in %.0f s" % (format(operations, ","), len(page) / 1e6, took))
    return report("large", faults + (["only %d operations" % operations] if operations < 5000 else []))


def share_of(colours, picture):
    """Of a PPM: the share of pixels that have one of the colours."""
    kind, size, most, pixels = picture.split(b"\n", 3)
    found = sum(pixels[k:k + 3] in colours for k in range(0, len(pixels), 3))
    assert kind == b"P6" and most == b"255"
    return found / (len(pixels) // 3)


def case_paper(scrimp):
    """The charts of memory are on the first two pages of what is printed."""
    if not shutil.which("pdftoppm"):
        print("paper: not looked at, there is no pdftoppm")
        return 0
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        path, paper = (os.path.join(folder, name) for name in ("report.html", "report.pdf"))
        with open(path, "w") as f:
            f.write(made(scrimp, "examples/chargpt.scrimp", "--budget", "40%", "--frontier", "0"))
        browser.open(path)
        with open(paper, "wb") as f:
            f.write(base64.b64decode(browser.call("Page.printToPDF")["data"]))
        draw = ["pdftoppm", "-r", "50", "-f", "1", "-l", "2", paper, os.path.join(folder, "paper")]
        subprocess.run(draw, check=True)
        pages = sorted(name for name in os.listdir(folder) if name.endswith(".ppm"))
        shares = []
        for name in pages:
            with open(os.path.join(folder, name), "rb") as f:
                shares.append(share_of({bytes.fromhex("62b0e8"), bytes.fromhex("eda63a")}, f.read()))
    return report("paper", [] if sum(shares) > 0.04 else ["the charts cover %s of the first pages" % shares])


CASES = {"use": case_use, "paper": case_paper, "measured": case_measured, "imports": case_imports,
         "sizes": case_sizes, "large": case_large}


def main():
    if not chromium():
        print("no chromium")
        sys.exit(77)
    if sys.argv[1] == "--page":
        with open(sys.argv[2]) as f:
            page = f.read()
        sys.exit(bool(check_variants(page, data_of(page)["plan"])))
    scrimp = os.path.abspath(sys.argv[1])
    sys.exit(bool(sum(CASES[name](scrimp) for name in sys.argv[2:] or ["use", "paper", "measured", "imports"])))


main()
