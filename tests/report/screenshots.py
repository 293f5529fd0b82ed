#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""screenshots.py SCRIMP: writes the pictures under docs/pictures/, the upper part of `scrimp report` of four examples.

Needs chromium and pngquant.  Pictures are of one pixel a CSS pixel; they differ a little between versions of
Chromium and the fonts that a machine has."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "docs", "pictures")
# name, options, height, dark
PICTURES = [("chargpt", ["examples/chargpt.scrimp"], 1960, False),
            ("resnet50", ["examples/resnet.scrimp", "-D", "depth=50"], 1960, True),
            ("unet", ["examples/unet.scrimp"], 1960, False),
            ("densenet121", ["examples/densenet.scrimp"], 1960, True)]
WIDTH = 1300


def picture(page, width, height, dark, out):
    """A frame of this size holds the page: a window is never narrower than 500 pixels."""
    folder = os.path.dirname(page)
    frame, shot = os.path.join(folder, "frame.html"), os.path.join(folder, "shot.png")
    with open(frame, "w") as f:
        f.write('<body style="margin:0"><iframe src="file://%s" width="%d" height="%d" style="border:0"></iframe>'
                % (page, width, height))
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
               "--user-data-dir=" + os.path.join(folder, "profile"), "--virtual-time-budget=10000",
               "--blink-settings=preferredColorScheme=%d" % (0 if dark else 1),
               "--window-size=%d,%d" % (width, height), "--screenshot=" + shot]
    subprocess.run(["chromium", *options, "file://" + frame], check=True, stderr=subprocess.DEVNULL)
    subprocess.run(["pngquant", "--force", "--speed", "1", "--strip", "96", "--output", out, shot], check=True)
    print("%s: %d KB" % (os.path.relpath(out, ROOT), os.path.getsize(out) // 1000))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    scrimp = os.path.abspath(sys.argv[1])
    for name, options, height, dark in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(ROOT, "examples"), os.path.join(folder, "examples")) # the page shows its command
            command = [scrimp, "report", *options, "--budget", "40%", "-o", "report.html"]
            subprocess.run(command, check=True, cwd=folder, stderr=subprocess.DEVNULL)
            picture(os.path.join(folder, "report.html"), WIDTH, height, dark, os.path.join(FOLDER, name + ".png"))


main()
