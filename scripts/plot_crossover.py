#!/usr/bin/env python3
"""Draws how fast kernels are over K, and which of them the planner chooses, as SVG on standard output.

    for K in 128 256 ... 16384: a line 4096,4096,K in crossover.csv
    sluice bench --suite crossover.csv --against none --kernel bf16_rc_coop_128x128x64_c2x1 --out coop.json
    sluice bench --suite crossover.csv --against none --kernel bf16_rc_ping_128x128x64_c2x1 --out ping.json
    scripts/plot_crossover.py "4096 x 4096 x K, bf16" coop.json ping.json > docs/pictures/crossover.svg
"""
import json
import math
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 360, 64, 210, 40, 56
COLOURS = ["#1f6fb4", "#d95f02", "#2a9d4b", "#8c4fb4"]


def rates(results):
    return [(r["k"], 2 * r["m"] * r["n"] * r["k"] / r["sluice"]["us"] * 1e-6) for r in sorted(results, key=lambda r: r["k"])]


def label(results):
    kernels = {r["kernel"] for r in results}
    return kernels.pop() if len(kernels) == 1 else "the planner's choice"


def svg(title, measured):
    lines = [(label(one["results"]), rates(one["results"])) for one in measured]
    ks = [k for k, _ in lines[0][1]]
    top = 100 * (1 + int(max(rate for _, line in lines for _, rate in line) / 100))
    low, high = math.log2(min(ks)), math.log2(max(ks))
    x = lambda k: LEFT + (WIDTH - LEFT - RIGHT) * (math.log2(k) - low) / (high - low)
    y = lambda rate: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="22" font-size="14">TFLOP/s over K, {title}</text>']
    for rate in range(0, top + 1, 200 if top > 700 else 100):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(rate):.1f}" y2="{y(rate):.1f}" stroke="#eeeeee"/>'
                   f'<text x="{LEFT - 8}" y="{y(rate) + 4:.1f}" text-anchor="end">{rate}</text>')
    out += [f'<text x="{x(k):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{k}</text>' for k in ks]
    for i, (name, line) in enumerate(lines):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x(k):.1f},{y(rate):.1f}" for k, rate in line)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(k):.1f}" cy="{y(rate):.1f}" r="3" fill="{colour}"><title>{name}, K = {k}: {rate:.0f}</title></circle>'
                for k, rate in line]
        at = TOP + 20 * i + 8
        out.append(f'<line x1="{WIDTH - RIGHT + 14}" x2="{WIDTH - RIGHT + 34}" y1="{at}" y2="{at}" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{WIDTH - RIGHT + 40}" y="{at + 4}" font-size="10">{name}</text>')
    where = measured[0]["environment"]
    out.append(f'<text x="{LEFT}" y="{HEIGHT - 12}" fill="#777777">'
               + ", ".join(str(where[key]) for key in ("gpu", "commit", "date") if key in where) + "</text></svg>")
    return "\n".join(out)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    measured = []
    for path in sys.argv[2:]:
        with open(path) as file:
            measured.append(json.load(file))
    print(svg(sys.argv[1], measured))


if __name__ == "__main__":
    main()
