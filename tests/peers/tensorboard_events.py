# SPDX-License-Identifier: GPL-3.0-or-later
"""What TensorBoard shows of a run that was continued from a checkpoint older than its last step: every step once, with
the numbers of the log."""
import csv
import math
import pathlib
import shutil
import struct
import tempfile

from tensorboard.backend.event_processing import event_accumulator

import scrimp

MODEL = """
model net(x: f32[16, 12]) { return x |> fc1: linear(24) |> relu() |> fc2: linear(4) }
train {
  batch = synthetic(x = f32[16, 12], label = i32[16])
  loss  = cross_entropy(net(batch.x), batch.label)
  optim = adamw(lr = cosine(1e-2, warmup = 5))
  steps = 60
  eval_every = 20
}
"""


def train(folder, *options):
    scrimp.call("train", folder / "net.scrimp", "--log", folder / "log.csv", "--tensorboard", folder / "board", "--out",
                folder / "run", "--quiet", *options)


def rows_of_log(path):
    """{tag: [(step, value)]}, with the precision that events have."""
    tags = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for tag, text in row.items():
                if tag not in ("step", "skipped") and text:
                    tags.setdefault(tag, []).append((int(row["step"]), float(text)))
    return tags


def rows_of_board(path):
    reader = event_accumulator.EventAccumulator(str(path), size_guidance={"tensors": 0, "scalars": 0})
    reader.Reload()
    shown = {}
    for tag in reader.Tags()["scalars"]:
        shown[tag] = [(e.step, e.value) for e in reader.Scalars(tag)]
        times = [e.wall_time for e in reader.Scalars(tag)]
        assert times == sorted(times), f"{tag}: times go back"
    return shown


def same(a, b):
    return math.isclose(a, b, rel_tol=1e-6) or struct.pack("f", a) == struct.pack("f", b)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "net.scrimp").write_text(MODEL, encoding="utf-8")
        train(folder, "--steps", 20)
        shutil.copytree(folder / "run", folder / "early")
        train(folder, "--steps", 40, "--resume")
        shutil.rmtree(folder / "run")
        (folder / "early").rename(folder / "run")
        train(folder, "--resume")
        log, board = rows_of_log(folder / "log.csv"), rows_of_board(folder / "board")
    assert set(log) == set(board) and "loss" in log, f"{sorted(log)} and {sorted(board)}"
    for tag, rows in log.items():
        assert [step for step, _ in rows] == [step for step, _ in board[tag]], f"{tag}: other steps"
        assert all(same(x, y) for (_, x), (_, y) in zip(rows, board[tag])), f"{tag}: other values"
    assert [step for step, _ in log["loss"]] == list(range(1, 61))


main()
