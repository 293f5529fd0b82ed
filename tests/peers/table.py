# SPDX-License-Identifier: GPL-3.0-or-later
"""A table in Markdown."""


def line(cells):
    return f"| {' | '.join(str(c).replace('|', '/') for c in cells)} |"


def heading(columns):
    return f"{line(columns)}\n|{'---|' * len(columns)}"


def table(columns, rows):
    return "\n".join([heading(columns), *map(line, rows)]) + "\n"
