#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""keyboard.py SCRIMP: whether who has no pointer, or does not see the page, can use the report.

Tab goes through the page: it reaches everything that can be used, shows where it is, and each stop has a name.  What a
screen reader is told of pictures and controls has names, too (devtools.py)."""
import os
import subprocess
import sys
import tempfile

from devtools import Browser, chromium

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TAB = 9
# Of the focused element: a number of its own, what it is, and whether something shows that it is focused.
FOCUSED = """(() => {
  const e = document.activeElement, style = getComputedStyle(e), ring = e.querySelector?.(".ring");
  const isRinged = ring && getComputedStyle(ring).opacity === "1" && getComputedStyle(ring).stroke !== "none";
  const box = e.getBoundingClientRect();
  e.dataset.stop ??= String(window.stops = (window.stops || 0) + 1);
  return {stop: e.dataset.stop, what: e.outerHTML.slice(0, 120), body: e === document.body,
    shown: isRinged || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2),
    seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight};
})()"""
# What can be used, and what Tab has not reached of it: of a list of tabs, and of a tree, one element is reached.
MISSED = """[...document.querySelectorAll("a[href], button, select, input, summary, [tabindex]")]
  .filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility() && !e.dataset.stop)
  .map(e => e.outerHTML.slice(0, 120))"""
# Roles that have to have a name.
NAMED = {"button", "link", "image", "img", "application", "combobox", "searchbox", "checkbox", "tab", "tabpanel",
         "treeitem", "tree", "region", "table", "navigation", "textbox", "figure", "Canvas", "DisclosureTriangle"}


def check_stops(browser):
    faults, stops = [], 0
    while stops < 3000:
        browser.press("Tab", TAB)
        at = browser.value(FOCUSED)
        if at["body"] or int(at["stop"]) <= stops:
            break
        stops += 1
        if not at["shown"]:
            faults.append("nothing shows that this is focused: " + at["what"])
        if not at["seen"]:
            faults.append("focused, and out of sight: " + at["what"])
    missed = browser.value(MISSED)
    faults += ["Tab does not reach " + what for what in missed]
    if stops < 30:
        faults.append("only %d stops" % stops)
    print("%d stops" % stops)
    return faults


def check_names(browser):
    faults, named = [], 0
    for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        if node.get("ignored") or role not in NAMED:
            continue
        named += 1
        if not node.get("name", {}).get("value", "").strip():
            faults.append("a %s without a name, node %s" % (role, node.get("backendDOMNodeId")))
    print("%d names" % named)
    return faults if named > 30 else faults + ["only %d names" % named]


def check_charts(browser):
    """Every chart has a table behind it, or one beside it."""
    charts = browser.value("""[...document.querySelectorAll(".plot, .chart svg")].map(c => {
      const section = c.closest("section"), label = c.getAttribute("aria-label");
      return [label, section.querySelectorAll("table, details").length];
    })""")
    return ["a chart without name or table: %s" % c for c in charts if not c[0] or not c[1]]


def main():
    if not chromium():
        print("no chromium")
        sys.exit(77)
    faults = []
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        out = os.path.join(folder, "report.html")
        options = ["--budget", "40%", "--measure", "--steps", "2", "-o", out, "-q"]
        subprocess.run([sys.argv[1], "report", os.path.join(ROOT, "examples", "chargpt.scrimp"), *options], check=True)
        for width in (1300, 390):
            browser.open(out, width)
            faults += ["at %d pixels: %s" % (width, f)
                       for check in (check_stops, check_names, check_charts) for f in check(browser)]
    for fault in faults[:30]:
        print("  " + fault)
    print("%d faults" % len(faults))
    sys.exit(bool(faults))


main()
