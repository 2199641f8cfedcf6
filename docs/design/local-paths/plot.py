#!/usr/bin/env python3
"""Draws curve.csv: docs/design/local-paths/plot.py > docs/images/large-windows.svg"""

import csv
import math
import pathlib

ROWS = list(csv.DictReader((pathlib.Path(__file__).parent / "curve.csv").open()))
PANELS = [("Gbit/s", "gbps", 140, 20), ("CPU time, ns per byte", "ns", 0.5, 0.1)]
SERIES = [("cubic", "CUBIC", "#1f6feb"), ("bbr", "BBR", "#c2410c")]
WIDTH, HEIGHT, LEFT, TOP = 300, 200, 50, 34


def label(kib):
    return f"{kib} KiB" if kib < 1024 else f"{kib // 1024} MiB"


print('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 290" '
      'font-family="sans-serif" font-size="11" role="img">')
print("<title>Goodput and CPU time per byte against the window, four streams</title>")
print('<rect width="760" height="290" fill="white"/>')
for number, (title, key, top, step) in enumerate(PANELS):
    x0 = LEFT + number * 370
    first, last = (math.log2(int(ROWS[i]["window_kib"])) for i in (0, -1))

    def x(kib):
        return x0 + (math.log2(kib) - first) / (last - first) * WIDTH

    def y(value):
        return TOP + HEIGHT - value / top * HEIGHT

    print(f'<text x="{x0}" y="20" font-weight="bold">{title}</text>')
    for line in range(round(top / step) + 1):
        at = y(line * step)
        print(f'<path d="M{x0} {at:.1f}h{WIDTH}" stroke="#ddd"/>')
        print(f'<text x="{x0 - 6}" y="{at + 4:.1f}" text-anchor="end">{line * step:g}</text>')
    for row in ROWS[::2] + ROWS[-1:]:
        kib = int(row["window_kib"])
        if kib != 65536:
            print(f'<text x="{x(kib):.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle" '
                  f'font-size="9">{label(kib)}</text>')
    print(f'<text x="{x0 + WIDTH / 2}" y="{TOP + HEIGHT + 36}" text-anchor="middle">window</text>')
    for name, shown, colour in SERIES:
        points = [(x(int(r["window_kib"])), y(float(r[f"{name}_{key}"]))) for r in ROWS]
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        print(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for a, b in points:
            print(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{colour}"/>')
        a, b = points[8]
        print(f'<text x="{a:.1f}" y="{b - 8:.1f}" fill="{colour}" font-weight="bold">{shown}</text>')
print("</svg>")
