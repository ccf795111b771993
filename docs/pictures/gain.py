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
    """By program, with its MPI where it has several, how many times as fast it is over lmt with 2 ranks."""
    page = (HERE.parent / "applications.md").read_text()
    row = re.compile(r"(\w\S*) +(\w+) [\d.]+ +2 (?:loop|time|total) .* ([\d.]+) +[\d.]+\.\.[\d.]+ ")
    found = [row.match(line) for line in page.splitlines()]
    found = [(one[1], one[2], float(one[3])) for one in found if one]
    assert len(found) >= 10, "the table of programs is another"
    names = [name for name, *_ in found]
    return [(f"{name}, {mpi}" if names.count(name) > 1 else name, ratio) for name, mpi, ratio in found]


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
    left, top, scale = 700, 62, 350
    step = 250 / len(gains())
    parts = [text(470, 24, "Programs of MPI on 2 ranks", "title")]
    parts.append(text(470, 44, "times as fast as over their MPI's own transport", "soft"))
    for at, (name, ratio) in enumerate(gains()):
        y, length = top + at * step, abs(ratio - 1) * scale
        start = left if ratio >= 1 else left - length
        parts.append(text(470, y + step - 4, name, "soft"))
        parts.append(f'<rect x="{start:g}" y="{y:.1f}" width="{length:.1f}" height="{step - 3:.1f}" style="fill:var(--s{0 if ratio >= 1 else 1})"/>')
        parts.append(text(max(left, start + length) + 6, y + step - 4, f"{ratio:.2f}", "soft"))
    parts.append(f'<path class="one" style="stroke-dasharray:none" d="M{left} {top - 6}V{top + 250}"/>')
    return parts


def main():
    words = "Messages in use against the fastest MPI by size, and programs of MPI over lmt against their own transport"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 330" role="img" aria-label="{words}"'
        f' font-family="system-ui,sans-serif" font-size="13"><style>{STYLE}</style>'
    )
    (HERE / "gain.svg").write_text("\n".join([head, *line_panel(), *bar_panel(), "</svg>", ""]))


if __name__ == "__main__":
    main()
