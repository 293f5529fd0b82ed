#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plants mistakes into scrimp and looks whether the default tests notice.

    mutate.py check [COMMANDS]   only look for stale entries of mutants.txt and, with the compile_commands.json of a build,
                                 for files that do not compile with every mutant in them
    mutate.py build              patch a copy of the tree with every mutant of mutants.txt and build it
    mutate.py trace [REGEX]      run the tests without a mutant: how long each takes, which mutants it reaches
    mutate.py run [REGEX]        run the mutants (file or key matches) that have no verdict yet
    mutate.py report             write docs/results/mutation.md

All mutants are in one build; the environment's SCRIMP_MUTANT chooses one when a program starts.  Each runs
the tests that reach it, the most likely and cheapest first, until one fails or hangs.  What is known is kept in
build/mutation/state.json by a hash of the mutant's text, so that `run` may be stopped and started again."""

import argparse
import concurrent.futures
import datetime
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "mutation"
TREE = WORK / "tree"
BUILD = TREE / "build" / "mutant"
SCRATCH = pathlib.Path("/tmp/scrimp-mutation")
PAGE = ROOT / "docs" / "results" / "mutation.md"
AREAS = ["autodiff", "rewrites", "codegen", "planner", "solvers", "runtime"]
# What the simulated device's compiler puts before a kernel's text, which has no include of its own.
KERNEL_HEADER = "tests/cuda/sim/kernel.h"
# Long ones, run in their parts: an operation each.
BY_OPERATION = {"property_test_compiled_ops", "property_test_cuda_ops"}
# They look at the sources, not at what these do.
ABOUT_SOURCES = {"layering", "format", "source_id", "install", "stale"}

HEADER = """/* Written by tests/mutation/mutate.py: which mutant is on, and which were reached. */
#ifndef SCRIMP_MUTANT_H
#define SCRIMP_MUTANT_H
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MUTANTS_MOST = 4096 };
__attribute__((weak, visibility("hidden"))) int mutant_now = -1;
__attribute__((weak, visibility("hidden"))) volatile unsigned char *mutant_seen;
__attribute__((constructor)) static void mutant_start(void)
{
    const char *now = getenv("SCRIMP_MUTANT"), *seen = getenv("SCRIMP_MUTANT_SEEN");
    mutant_now = now ? atoi(now) : -1;
    int fd = seen && !mutant_seen ? open(seen, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *p = mmap(NULL, MUTANTS_MOST, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    mutant_seen = p == MAP_FAILED ? NULL : p;
    close(fd);
}
static inline _Bool mutant_on(int n)
{
    if (__builtin_expect(mutant_seen != NULL, 0))
        mutant_seen[n] = 1;
    return __builtin_expect(mutant_now == n, 0);
}
#endif
"""


# --- the list ---


class Mutant:
    def __init__(self, line, file, text, new, listed="mutants.txt"):
        self.line, self.file, self.text, self.new, self.listed, self.number = line, file, text, new, listed, 0
        # Of the name only, so that a file that moves keeps its verdicts.
        self.key = hashlib.sha1(f"{pathlib.Path(file).name}\n{text}\n{new}".encode()).hexdigest()[:8]
        self.area = area_of(file)
        self.old = text[text.index("«") + 1 : text.index("»")]

    def locate(self, source):
        """Where the marked text is: (begin, end), or None unless it is there exactly once."""
        before, rest = self.text.split("«")
        old, after = rest.split("»")
        pattern = pieces(before) + "(" + pieces(old) + ")" + pieces(after)
        found = list(re.finditer(pattern, source))
        return found[0].span(1) if len(found) == 1 else None


def pieces(text):
    """A regular expression for the text with any white space for white space."""
    return r"\s+".join(re.escape(p) for p in re.split(r"\s+", text))


def area_of(file):
    for prefix, area in [("passes/remat", "solvers"), ("ir/support/", "solvers"), ("passes/memplan/", "planner"), ("codegen/", "codegen"),
                         ("runtime/", "runtime"), ("passes/autodiff/", "autodiff"), ("passes/", "rewrites")]:
        if file.startswith(prefix):
            return area
    sys.exit(f"{file} is in no area")


def read_list():
    mutants, file = [], None
    for i, line in enumerate((HERE / "mutants.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("@ "):
            file = line[2:].strip()
            continue
        text, arrow, new = (line + " ").partition(" => ")
        if not arrow or text.count("«") != 1 or text.count("»") != 1 or text.index("«") > text.index("»"):
            sys.exit(f"mutants.txt:{i}: expected: text «old» text => new")
        mutants.append(Mutant(i, file, text.strip(), new.strip()))
    keys = [m.key for m in mutants]
    twice = [m.line for m in mutants if keys.count(m.key) > 1]
    if twice:
        sys.exit(f"mutants.txt: the same twice in lines {twice}")
    return mutants


# --- the patched tree ---


def nest(source, spans):
    """The source with every mutant of spans, [(begin, end, mutant)], built in.  Spans may be nested."""
    spans = sorted(spans, key=lambda s: (s[0], -s[1]))

    def render(begin, end, inside):
        out, at, i = [], begin, 0
        while i < len(inside):
            b, e, _ = inside[i]
            same = [s for s in inside if s[:2] == (b, e)]
            within = [s for s in inside[i:] if s[0] >= b and s[1] <= e and s[:2] != (b, e)]
            crossing = [s for s in inside[i:] if s[0] < e < s[1]]
            if crossing:
                sys.exit(f"{same[0][2].listed}: lines {same[0][2].line} and {crossing[0][2].line} overlap")
            old = render(b, e, within)
            for _, _, m in same:
                if m.old.rstrip().endswith(";"):
                    old = f"if (mutant_on({m.number})) {{ {m.new} }} else {{ {old} }}"
                else:
                    old = f"(mutant_on({m.number}) ? ({m.new}) : ({old}))"
            out += [source[at:b], old]
            at = e
            i += len(same) + len(within)
        return "".join(out) + source[at:end]

    return render(0, len(source), spans)


def number_mutants(state, mutants):
    """Numbers stay when the list changes: only files with new mutants are compiled anew."""
    numbers = state.data["numbers"]
    for m in mutants:
        if m.key not in numbers:
            state.put("numbers", m.key, 1 + max(numbers.values(), default=0))
            numbers = state.data["numbers"]
        m.number = numbers[m.key]


def patched(file, source, mutants):
    spans, stale = [], []
    for m in mutants:
        place = m.locate(source)
        if place:
            spans.append((*place, m))
        else:
            stale.append(f"{m.listed}:{m.line}: stale: not exactly once in {file}: {m.text}")
    head = "" if file.endswith(".cuh") else '#include "mutant.h"\n#line 1\n'
    return head + nest(source, spans), stale


def grouped(mutants):
    by_file = {}
    for m in mutants:
        by_file.setdefault(m.file, []).append(m)
    return by_file


def stale_entries(mutants):
    """What in a list no longer fits the sources, a line each."""
    stale = []
    for file, here in grouped(mutants).items():
        path = ROOT / file
        stale += patched(file, path.read_text(), here)[1] if path.is_file() else [f"{here[0].listed}: {file}: no such file"]
    return stale


def syntax_command(entry, folder):
    """How a file is compiled, but first with what lies in folder, without output and warnings."""
    words, kept = shlex.split(entry["command"]), []
    while words:
        word = words.pop(0)
        if word == "-o":
            words.pop(0)
        elif word != "-c" and word != entry["file"] and not word.startswith("-W"):
            kept.append(word)
    file = os.path.relpath(entry["file"], ROOT)
    here = folder if os.path.exists(os.path.join(folder, file)) else ROOT
    return [*kept, "-w", "-fsyntax-only", "-iquote", folder, os.path.join(here, file)]


def concerned(entry, files):
    """Whether an entry of compile_commands.json compiles one of the files, or includes it."""
    path = pathlib.Path(entry["file"])
    if not path.is_relative_to(ROOT):
        return False
    return str(path.relative_to(ROOT)) in files or any(f'#include "{f}"' in path.read_text() for f in files if f.endswith(".h"))


def compiler_errors(mutants, commands):
    """What the compiler says of the files with all of a list in them."""
    files = grouped(mutants)
    with tempfile.TemporaryDirectory() as folder:
        put(pathlib.Path(folder, "mutant.h"), HEADER.encode())
        for file, here in files.items():
            put(pathlib.Path(folder, file), patched(file, (ROOT / file).read_text(), here)[0].encode())

        def errors_of(entry):
            done = subprocess.run(syntax_command(entry, folder), cwd=entry["directory"], capture_output=True, text=True)
            return done.stderr.replace(folder + "/", "") if done.returncode else None

        entries = [e for e in json.loads(pathlib.Path(commands).read_text()) if concerned(e, files)]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            return [e for e in pool.map(errors_of, entries) if e]


def check_list(mutants, commands):
    sys.exit("\n".join(stale_entries(mutants) or (commands and compiler_errors(mutants, commands)) or []) or None)


def put(path, text):
    """Leaves a file alone that is right: the build goes by times."""
    if path.exists() and path.read_bytes() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def test_source(text):
    # The first failure ends a test; what a killed test leaves lies in one folder.
    text = text.replace(b"check_failures++; ", b"_exit(1);        ")
    text = text.replace(b"#include <stdio.h>\n\nstatic int check_failures;",
                        b"#include <stdio.h>\n#include <unistd.h>\n\nstatic int check_failures;")
    return text.replace(b'"/tmp/scrimp-', b'"/tmp/scrimp-mutation/')


def write_tree(mutants):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    files, by_file, stale = [f for f in listed if f and (ROOT / f).is_file()], grouped(mutants), stale_entries(mutants)
    if stale:
        sys.exit("\n".join(stale))
    for f in files:
        text = (ROOT / f).read_bytes()
        if f in by_file:
            text = patched(f, text.decode(), by_file[f])[0].encode()
        elif f.startswith("tests/") and f.endswith((".c", ".h")):
            text = test_source(text)
        if f == KERNEL_HEADER:
            text = f'#include "{TREE}/mutant.h"\n'.encode() + text
        put(TREE / f, text)
        shutil.copymode(ROOT / f, TREE / f)
    put(TREE / "mutant.h", HEADER.encode())
    for old in TREE.rglob("*.[ch]"):
        name = str(old.relative_to(TREE))
        if not name.startswith("build/") and name != "mutant.h" and name not in files:
            old.unlink()


def command_check(args):
    check_list(read_list(), args.commands)


def command_build(args):
    state, mutants = State(), read_list()
    number_mutants(state, mutants)
    write_tree(mutants)
    BUILD.mkdir(parents=True, exist_ok=True)
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                        "-DCMAKE_C_FLAGS=-w"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD], check=True)
    for m in mutants:
        if m.key not in state.data["built"]:
            state.put("built", m.key, True)
    print(f"{len(mutants)} mutants built")


# --- what is known ---


class State:
    """state.json: tests {name: seconds, failed, known and reached keys}, verdicts {key: test, how, seconds}."""

    def __init__(self):
        self.path, self.lock = WORK / "state.json", threading.RLock()
        self.data = {"tests": {}, "verdicts": {}, "numbers": {}, "built": {}}
        self.read()

    def read(self):
        if self.path.exists():
            self.data.update(json.loads(self.path.read_text()))

    def put(self, section, key, value):
        """Other processes may write the file as well."""
        with self.lock, open(WORK / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.read()
            self.data[section][key] = value
            temporary = self.path.with_suffix(".tmp")
            temporary.write_text(json.dumps(self.data, indent=1))
            temporary.replace(self.path)


def number_of(state, mutant):
    n = state.data["numbers"].get(mutant.key)
    if n is None or mutant.key not in state.data["built"]:
        sys.exit(f"mutants.txt:{mutant.line} is not in the build: mutate.py build")
    return n


# --- running tests ---


class Test:
    def __init__(self, name, command, env, folder):
        self.name, self.command, self.env, self.folder = name, command, env, folder


def read_tests():
    """The default tests."""
    text = subprocess.run(["ctest", "--test-dir", BUILD, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    tests = []
    for t in json.loads(text)["tests"]:
        props = {p["name"]: p["value"] for p in t["properties"]}
        env = dict(e.split("=", 1) for e in props.get("ENVIRONMENT", []))
        if t["name"] in ABOUT_SOURCES or "command" not in t:
            continue
        test = Test(t["name"], t["command"], env, props.get("WORKING_DIRECTORY", str(BUILD)))
        tests += split(test) if t["name"] in BY_OPERATION else [test]
    return {t.name: t for t in tests}


def split(test):
    """For each operation with code, of either backend, and as a whole."""
    ops = re.findall(r"^OP\(\s*(\w+),(?:[^,]*,){11}\s*\w+,\s*(\w+)", (ROOT / "ir/ops.def").read_text(), re.M)
    return [Test(f"{test.name}[{op}]", test.command, test.env | {"SCRIMP_TEST_OP": op, "SCRIMP_TEST_MARCH": "native"}, test.folder)
            for op, code in ops if code != "lower_none"] + [test]


def run_test(test, cache, limit, **more):
    """(how it failed or None, seconds)"""
    SCRATCH.mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(dir=SCRATCH)
    env = os.environ | test.env | more | {"SCRIMP_CACHE": str(cache), "XDG_CACHE_HOME": folder, "TMPDIR": folder}
    start = time.monotonic()
    with open(os.path.join(folder, "output"), "wb") as out:
        p = subprocess.Popen(test.command, cwd=test.folder, env=env, stdin=subprocess.DEVNULL, stdout=out,
                             stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=lambda: os.nice(2))
        try:
            code = p.wait(limit)
            how = None if code in (0, 77) else f"exit code {code}" if code > 0 else f"signal {-code}"
        except subprocess.TimeoutExpired:
            how = "hang"
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()
    seconds = time.monotonic() - start
    said = pathlib.Path(folder, "output").read_bytes()[-400:].decode(errors="replace")
    shutil.rmtree(folder, ignore_errors=True)
    return how, seconds, said


def command_trace(args):
    state = State()
    mutants = [m for m in read_list() if m.key in state.data["built"]]
    tests = [t for t in read_tests().values() if re.search(args.regex, t.name)]
    warm = WORK / "cache"
    names = {number_of(state, m): m.key for m in mutants}
    known = sorted(m.key for m in mutants)

    def trace(t):
        old = state.data["tests"].get(t.name, {})
        if not args.again and set(known) <= set(old.get("known", [])):
            return
        # A cache of its own: in a filled one nothing is generated, and mutants of codegen seem out of reach.
        cold = tempfile.mkdtemp(dir=WORK)
        with tempfile.NamedTemporaryFile(dir=WORK) as seen:
            seen.truncate(4096)
            how, seconds, said = run_test(t, cold, args.limit, SCRIMP_MUTANT_SEEN=seen.name)
            reached = [names[i] for i, b in enumerate(open(seen.name, "rb").read()) if b and i in names]
        subprocess.run(["cp", "-al", "--update", cold + "/.", warm], stderr=subprocess.DEVNULL)
        shutil.rmtree(cold, ignore_errors=True)
        state.put("tests", t.name, {"seconds": round(seconds, 2), "failed": how, "known": known, "reached": sorted(reached)})
        print(f"{t.name:50} {seconds:7.1f} s {len(reached):4} reached {how or ''}", flush=True)
        if how:
            print(said, flush=True)

    warm.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(trace, tests))


def chances(state):
    """(test, file) -> how many mutants of the file it noticed, and met."""
    file_of, out = {m.key: m.file for m in read_list()}, {}
    for key, v in state.data["verdicts"].items():
        for name in v.get("passed", []) + ([v["test"]] if "test" in v else []):
            hits, runs = out.get((name, file_of.get(key)), (0, 0))
            out[name, file_of.get(key)] = hits + (name == v.get("test")), runs + 1
    return out


def candidates(state, tests, mutant, known_only):
    """Tests that reach the mutant or may; the most likely and cheapest first."""
    out = []
    with state.lock:
        tried = chances(state)
        for t in tests.values():
            facts = state.data["tests"].get(t.name)
            if not facts or facts["failed"] or (mutant.key in facts["known"] and mutant.key not in facts["reached"]):
                continue
            if known_only and mutant.key not in facts["known"]:
                continue
            hits, runs = tried.get((t.name, mutant.file), (0, 0))
            chance = (hits + 0.2) / (runs + 1)
            if mutant.key not in facts["known"]: # it may not reach the mutant
                chance /= 100
            out.append((facts["seconds"] / chance, t))
    parts = {t.name.split("[")[0] for _, t in out if "[" in t.name}
    return [t for _, t in sorted(out, key=lambda x: x[0]) if t.name not in parts]


def cache_for(mutant):
    """What other builds left there is right for mutants that change neither kernels nor plans."""
    folder = tempfile.mkdtemp(dir=WORK)
    if mutant.area == "codegen" or not (WORK / "cache").exists():
        return folder
    subprocess.run(["cp", "-al", str(WORK / "cache") + "/.", folder], stderr=subprocess.DEVNULL)
    if mutant.area in ("solvers", "planner"):
        for path in pathlib.Path(folder).glob("*.plans"):
            path.unlink()
    return folder


def judge(state, tests, mutant, args):
    cache, start, verdict = cache_for(mutant), time.monotonic(), None
    done = set() if args.again else set(state.data["verdicts"].get(mutant.key, {}).get("passed", []))
    for t in candidates(state, tests, mutant, args.known):
        facts = state.data["tests"][t.name]
        if t.name in done or facts["seconds"] > args.most:
            continue
        limit = max(60, 12 * facts["seconds"])
        how, seconds, said = run_test(t, cache, limit, SCRIMP_MUTANT=str(number_of(state, mutant)))
        if how == "hang" and run_test(t, cache, limit)[0]: # the machine is busy, that is all
            continue
        if how:
            verdict = {"test": t.name, "how": how, "seconds": round(seconds, 1), "said": said[-200:], "passed": sorted(done)}
            break
        done.add(t.name)
    shutil.rmtree(cache, ignore_errors=True)
    state.put("verdicts", mutant.key, verdict or {"passed": sorted(done)})
    text = f"{verdict['test']} ({verdict['how']})" if verdict else f"NOT NOTICED by {len(done)} tests"
    print(f"{mutant.key} {mutant.file}: {mutant.text} => {mutant.new}: {text}, {time.monotonic() - start:.0f} s", flush=True)


def command_run(args):
    state, tests = State(), read_tests()
    todo = [m for m in read_list() if re.search(args.regex, f"{m.key} {m.file}") and m.key in state.data["built"]
            and "test" not in state.data["verdicts"].get(m.key, {})]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda m: judge(state, tests, m, args), todo))


# --- the page ---


def code(text):
    return "`" + re.sub(r"\s+", " ", text).replace("|", "\\|") + "`"


def shown(mutant):
    return code(mutant.text.replace("«", "").replace("»", ""))


def command_report(args):
    state, mutants = State(), read_list()
    verdicts = state.data["verdicts"]
    noticed = {m.key: verdicts[m.key] for m in mutants if "test" in verdicts.get(m.key, {})}
    reasons = dict(re.findall(r"^# survivor (\w+): (.*)$", (HERE / "mutants.txt").read_text(), re.M))
    out = [PAGE_HEAD.format(date=datetime.date.today().isoformat(), n=len(mutants), noticed=len(noticed),
                            percent=100 * len(noticed) / len(mutants)), "| area | mutants | noticed | |", "|---|---|---|---|"]
    for area in AREAS:
        mine = [m for m in mutants if m.area == area]
        hit = sum(m.key in noticed for m in mine)
        out.append(f"| {area} | {len(mine)} | {hit} | {100 * hit / max(1, len(mine)):.0f}% |")
    out += ["", "## Not noticed", ""]
    for m in mutants:
        if m.key not in noticed:
            ran = len(verdicts.get(m.key, {}).get("passed", []))
            out.append(f"- `{m.file}`: in {shown(m)}, {code(m.old)} became {code(m.new) if m.new else 'nothing'}; {ran} tests that reach it "
                       f"passed. {reasons.get(m.key, '')}".rstrip())
    out += ["", "## Which test noticed which", "", "| file | text | old | new | test | how |", "|---|---|---|---|---|---|"]
    for m in mutants:
        if m.key in noticed:
            v = noticed[m.key]
            out.append(f"| {m.file} | {shown(m)} | {code(m.old)} | {code(m.new) if m.new else ''} | {v['test']} | {v['how']} |")
    PAGE.write_text("\n".join(out) + "\n")


PAGE_HEAD = """# Planted mistakes

Written by `tests/mutation/mutate.py report` on {date}. Every mutant of `tests/mutation/mutants.txt` is one small mistake: a sign, an
index, an operand, a comparison, a missing term or update. A mutant counts as noticed when one of the default tests (a plain
`ctest`) fails or hangs with it; tests about the text of the sources are left out, and so were here those that take minutes. **{noticed} of {n} are noticed
({percent:.1f}%).**
"""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(required=True)
    for name, call in [("check", command_check), ("build", command_build), ("trace", command_trace), ("run", command_run), ("report", command_report)]:
        s = sub.add_parser(name)
        s.set_defaults(call=call)
        if name == "check":
            s.add_argument("commands", nargs="?")
        if name in ("trace", "run"):
            s.add_argument("regex", nargs="?", default="")
            s.add_argument("--jobs", type=int, default=1)
            s.add_argument("--again", action="store_true", help="also tests that have been run with these mutants")
        if name == "trace":
            s.add_argument("--limit", type=float, default=900, help="seconds for a test")
        if name == "run":
            s.add_argument("--known", action="store_true", help="only tests that are known to reach the mutant")
            s.add_argument("--most", type=float, default=1e9, help="only tests that take no more seconds")
    args = p.parse_args()
    if args.call != command_check:
        WORK.mkdir(parents=True, exist_ok=True)
    args.call(args)


if __name__ == "__main__":
    main()
