# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of the machine other programs used meanwhile (Linux)."""
import os
import pathlib
import time

TICK = os.sysconf("SC_CLK_TCK")


def all_programs():
    """Seconds that all cores have been busy, or were taken away by a hypervisor."""
    user, nice, system, _, _, irq, soft, steal = map(int, pathlib.Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + soft + steal) / TICK


def this_program(living):
    """Seconds of this process, of its children that have ended, and of the living ones."""
    fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in living]
    return sum(os.times()[:4]) + sum(int(f[11]) + int(f[12]) for f in fields) / TICK


class Watch:
    """others(): cores that other programs used since this was made, on average."""

    def __init__(self, living):
        self.living = living
        self.start = self.now()

    def now(self):
        return time.perf_counter(), all_programs() - this_program(self.living)

    def others(self):
        (t0, a), (t1, b) = self.start, self.now()
        return max(0.0, (b - a) / (t1 - t0))
