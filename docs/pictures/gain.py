#!/usr/bin/env python3
"""Draws gain.svg, the README's picture, from the tables of performance.md and applications.md."""

import math
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = ["64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB", "2 MiB", "4 MiB", "8 MiB", "16 MiB"]
MACHINES = ["Intel", "Zen 5", "Zen 3"]
STYLE = """:root{color-scheme:light dark;--s0:#0072b2;--s1:#c65102;--s2:#007a5a;--paper:#fff;--ink:#1a1a1a;--soft:#555;--faint:#ececec}
@media(prefers-color-scheme:dark){:root{--s0:#56b4e9;--s1:#ff9e4a;--s2:#2ed3a4;--paper:#16181c;--ink:#e8e8e8;--soft:#aaa;--faint:#2a2d33}}
svg{background:var(--paper)}text{fill:var(--ink)}.title{font-weight:600;font-size:15px}.soft{fill:var(--soft);font-size:12px}
.grid{stroke:var(--faint)}.one{stroke:var(--ink);stroke-dasharray:5 4}.line{fill:none;stroke-width:2.4;stroke-linejoin:round}"""


def rows(page):
    """The cells of each line of a table of this page of docs/."""
    lines = (HERE.parent / page).read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


def speeds():
    """By machine, how many times as fast as the best MPI messages in use are, by size, on cache."""
    table = [row for row in rows("performance.md") if row[0] in SIZES and len(row) == 7 and row[1].count(",") == 2]
    assert [row[0] for row in table] == SIZES, "the table of large messages is another"
    return {name: [1 / float(row[1 + at].split(",")[1]) for row in table] for at, name in enumerate(MACHINES)}


def gains():
    """By application and ranks, how much faster auto is than shm, in percent."""
    text = (HERE.parent / "applications.md").read_text()
    found, name, ranks = [], "", ""
    for line in text.split("## Measured", 1)[1].splitlines():
        if command := re.search(r"`lmt app (is|asp)(?: --class (\w))?", line):
            name = {"is": f"integer sort, class {command[2]}", "asp": "shortest paths"}[command[1]]
        if number := re.search(r"-n (\d)", line):
            ranks = number[1]
        if line.startswith("| `auto` |"):
            found.append((f"{name}, {ranks} ranks", float(line.split("|")[5].strip(" %"))))
    return found


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def line_panel():
    left, right, top, bottom = 50, 440, 70, 300
    across = lambda at: left + at * (right - left - 50) / (len(SIZES) - 1)
    down = lambda speed: bottom - (math.log2(speed) + 0.5) / 1.6 * (bottom - top)
    parts = [text(10, 24, "One message in use, there and back", "title")]
    parts.append(text(10, 44, "times as fast as the fastest of MPICH, Open MPI, Intel MPI", "soft"))
    for speed in (0.8, 1, 1.25, 1.5, 2):
        kind = "one" if speed == 1 else "grid"
        parts.append(f'<path class="{kind}" d="M{left} {down(speed):.1f}H{right - 50}"/>')
        parts.append(text(left - 6, down(speed) + 4, f"{speed:g}", "soft", "end"))
    for at in range(0, len(SIZES), 2):
        parts.append(text(across(at), bottom + 18, SIZES[at], "soft", "middle"))
    for at, (name, points) in enumerate(speeds().items()):
        path = "L".join(f"{across(x):.1f} {down(speed):.1f}" for x, speed in enumerate(points))
        parts.append(f'<path class="line" style="stroke:var(--s{at})" d="M{path}"/>')
        parts.append(text(right - 44, down(points[-1]) + 4 + (0, 7, -1)[at], name))
    return parts


def bar_panel():
    left, top, step, scale = 660, 78, 37, 3.2
    parts = [text(470, 24, "Two programs of collective operations", "title")]
    parts.append(text(470, 44, "percent faster than by copies through shared memory (shm)", "soft"))
    for at, (name, percent) in enumerate(gains()):
        y, length = top + at * step, abs(percent) * scale
        start = left + 40 if percent >= 0 else left + 40 - length
        parts.append(text(470, y + 15, name, "soft"))
        parts.append(f'<rect x="{start:g}" y="{y}" width="{length:.1f}" height="20" style="fill:var(--s{0 if percent >= 0 else 1})"/>')
        parts.append(text(left + 46 + length if percent >= 0 else left + 46, y + 15, f"{percent:+.0f} %", "soft"))
    parts.append(f'<path class="one" style="stroke-dasharray:none" d="M{left + 40} {top - 8}V{top + len(gains()) * step}"/>')
    return parts


def main():
    words = "Messages in use against the fastest MPI by size, and programs against copies through shared memory"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 330" role="img" aria-label="{words}"'
        f' font-family="system-ui,sans-serif" font-size="13"><style>{STYLE}</style>'
    )
    (HERE / "gain.svg").write_text("\n".join([head, *line_panel(), *bar_panel(), "</svg>", ""]))


if __name__ == "__main__":
    main()
