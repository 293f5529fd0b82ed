#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs.py SCRIMP: whether README.md, CONTRIBUTING.md and docs/ fit the tree and the program.

  - lines have at most 120 columns, rows of tables 160 (those of figures in docs/models.md and docs/results/ apart)
  - every file that is named exists, and so does every section that a link leads to
  - every `scrimp VERB --option` is a verb and an option of it
  - no dates: what was measured when stands in docs/results/
  - every test that is named exists
  - every part of the search and the placement that tests/earned knows is described
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS, ROW_COLUMNS = 120, 160
SUFFIXES = "c h y l def py sh md svg csv txt cmake scrimp run".split()
faults = []


def fault(page, line, text):
    faults.append("%s:%d: %s" % (page, line, text))


def tracked():
    """Every file of the tree, also where there is no git."""
    files = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in (".git", "__pycache__") and (folder != ROOT or f != "build")]
        files += [os.path.relpath(os.path.join(folder, name), ROOT) for name in names]
    return files


FILES = tracked()
FOLDERS = {os.path.dirname(f) + "/" for f in FILES} | {f.split("/")[0] + "/" for f in FILES if "/" in f}


def exists(path):
    """A file or folder, named from the root or by the end of its path; with * and {a,b}."""
    if "{" in path:
        head, rest = path.split("{", 1)
        middle, tail = rest.split("}", 1)
        return all(exists(head + word + tail) for word in middle.split(","))
    pattern = re.compile(r"(^|/)" + re.escape(path).replace(r"\*", "[^/]*") + "$")
    return any(pattern.search(f) for f in (FOLDERS if path.endswith("/") else FILES))


# Files that a user has or gets.
MADE = set("""model.scrimp my_resnet.scrimp blocks.scrimp tiny.scrimp FILE.json step.json buffers.csv placed.csv FILE.svg
  plan.svg step.so step.h FILE.so FILE.h book.txt tinyshakespeare.txt model.safetensors trainer.json x.npy y.npy
  *.c image.npy label.npy weight.npy MODEL.scrimp FILE.scrimp NAME.scrimp scan.l parse.y""".split())


def check_paths(page, number, line):
    for span in re.findall(r"`([^`\s]+)`", line):
        if re.fullmatch(r"[\w./{},*-]+\.(%s)" % "|".join(SUFFIXES), span) and os.path.basename(span) not in MADE and \
           "NAME" not in span and not exists(span):
            fault(page, number, "no file is called %s" % span)
        elif re.fullmatch(r"(\w+/)+", span) and span.split("/")[0] + "/" in FOLDERS and not exists(span):
            fault(page, number, "no folder is called %s" % span)


def anchors(path):
    found = set()
    with open(os.path.join(ROOT, path)) as f:
        for line in f:
            if line.startswith("#"):
                text = re.sub(r"[^\w\- ]", "", line.strip("# \n").lower())
                found.add(text.replace(" ", "-"))
    return found


def check_links(page, number, line):
    for target in re.findall(r"\]\(([^)\s]+)\)", line):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(os.path.join(ROOT, path)):
            fault(page, number, "the link leads to %s, which is not there" % path)
        elif anchor and path.endswith(".md") and anchor not in anchors(path):
            fault(page, number, "%s has no section #%s" % (path, anchor))


def help_of(program, verb):
    done = subprocess.run([program, verb, "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode() if done.returncode == 0 else None


def check_command(page, number, command, helps, program):
    words = re.split(r"\s+", command.strip())
    if len(words) < 2 or not re.fullmatch(r"[a-z]+", words[1]):
        return
    verb = words[1]
    if verb not in helps:
        helps[verb] = help_of(program, verb)
    if helps[verb] is None:
        fault(page, number, "no verb is called %s" % verb)
        return
    for word in words[2:]:
        option = re.match(r"\[?(--[a-z][a-z-]*|-[a-zA-Z])(?![\w-])", word)
        if option and option.group(1) != "--help" and not re.search(r"(^|[\s,])%s\b" % re.escape(option.group(1)), helps[verb]):
            fault(page, number, "`scrimp %s` has no option %s" % (verb, option.group(1)))


def commands_of(line, is_code):
    """`scrimp ...` in a line of prose or of a block of code; not what another program gets."""
    for text in [line] if is_code else re.findall(r"`(scrimp [^`]*)`", line):
        for part in re.split(r"[|;&]|\s#\s", text):
            if re.match(r"\s*(\$ )?(build/\w+/)?scrimp [a-z]", part):
                yield part.strip().lstrip("$ ")


def check_page(page, program, helps, tests):
    is_result = page.startswith("docs/results/")
    with open(os.path.join(ROOT, page)) as f:
        lines = f.read().split("\n")
    code, joined = False, []
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            code = not code
        is_row = line.startswith("|")
        is_free = page == "docs/results/mutation.md" or (is_row and (is_result or page == "docs/models.md"))
        if len(line) > (ROW_COLUMNS if is_row else COLUMNS) and not is_free:
            fault(page, number, "%d columns" % len(line))
        if re.search(r"\b20\d\d-\d\d-\d\d\b", line) and not is_result:
            fault(page, number, "a date: what was measured when belongs into docs/results/")
        if code:
            for command in commands_of(line, True):
                check_command(page, number, command, helps, program)
        else:
            joined.append((number, line))
    check_prose(page, joined, program, helps, tests)


def check_prose(page, lines, program, helps, tests):
    """Spans and links may go over a line's end: a paragraph is looked at as one line."""
    paragraph, first = [], 0
    for number, line in lines + [(0, "")]:
        if line.strip() and not line.startswith("|"):
            first = first or number
            paragraph.append(line.strip())
            continue
        for where, text in ([(first, " ".join(paragraph))] if paragraph else []) + [(number, line)]:
            if not page.startswith("docs/results/"): # these are of the tree as it was
                check_paths(page, where, text)
            check_links(page, where, text)
            for command in commands_of(text, False):
                check_command(page, where, command, helps, program)
            for name in re.findall(r"`((?:unit|property|e2e|golden)_[\w*]*[a-z*])`", text):
                if tests and not any(re.fullmatch(name.replace("*", ".*"), t) for t in tests):
                    fault(page, where, "no test is called %s" % name)
        paragraph, first = [], 0


def test_names(build):
    """What CTest knows in the build; empty where it cannot be asked."""
    done = subprocess.run(["ctest", "--test-dir", build, "-N", "-C", "Slow"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return set(re.findall(r"Test +#\d+: (\S+)", done.stdout.decode()))


def check_parts():
    """What earned.py can switch off has its row in a table."""
    pages = ["docs/remat.md", "docs/memory-plan.md"]
    text = "".join(open(os.path.join(ROOT, page)).read() for page in pages)
    with open(os.path.join(ROOT, "tests", "earned", "parts.txt")) as f:
        for number, line in enumerate(f, 1):
            part = re.match(r"= (\w+):", line)
            if part and "`%s`" % part.group(1) not in text:
                fault("tests/earned/parts.txt", number, "%s is in no table of %s" % (part.group(1), " or ".join(pages)))


def main():
    program = os.path.abspath(sys.argv[1])
    helps, tests = {}, test_names(os.path.dirname(program))
    pages = ["README.md", "CONTRIBUTING.md"] + sorted(os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, "docs", "*.md")))
    pages += sorted(os.path.relpath(p, ROOT) for p in glob.glob(os.path.join(ROOT, "docs", "results", "*.md")))
    for page in pages:
        check_page(page, program, helps, tests)
    check_parts()
    print("\n".join(faults) if faults else "%d pages" % len(pages))
    sys.exit(bool(faults))


main()
