#!/usr/bin/env python3
"""Draws the throughput over N of a suite's results, Sluice beside its rivals, as SVG on standard output.

    sluice bench --suite wave --against cublaslt,cublaslt-best --out wave.json
    scripts/plot_wave.py wave.json > docs/pictures/wave.svg
"""
import json
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 64, 150, 40, 52
COLOURS = {"sluice": "#1f6fb4", "cublaslt": "#b9b9b9", "cublaslt-best": "#d95f02"}


def series(results):
    """Name of a competitor -> [(n, TFLOP/s)], in the order of N."""
    lines = {}
    for r in sorted(results, key=lambda r: r["n"]):
        flops = 2 * r["m"] * r["n"] * r["k"]
        for name, timing in [("sluice", r["sluice"]), *r["rivals"].items()]:
            lines.setdefault(name, []).append((r["n"], flops / timing["us"] * 1e-6))
    return lines


def svg(results, environment):
    lines = series(results)
    most_n = max(n for line in lines.values() for n, _ in line)
    top = 100 * (1 + int(max(rate for line in lines.values() for _, rate in line) / 100))
    x = lambda n: LEFT + (WIDTH - LEFT - RIGHT) * n / most_n
    y = lambda rate: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="14">TFLOP/s over N, M = {results[0]["m"]}, K = {results[0]["k"]}, bf16</text>']
    for rate in range(0, top + 1, 100):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(rate):.1f}" y2="{y(rate):.1f}" stroke="#eeeeee"/>'
                   f'<text x="{LEFT - 8}" y="{y(rate) + 4:.1f}" text-anchor="end">{rate}</text>')
    for n in range(0, most_n + 1, 1024):
        out.append(f'<text x="{x(n):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{n}</text>')
    for name, line in sorted(lines.items(), key=lambda item: item[0] == "sluice"):
        points = " ".join(f"{x(n):.1f},{y(rate):.1f}" for n, rate in line)
        colour = COLOURS.get(name, "#444444")
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(n):.1f}" cy="{y(rate):.1f}" r="3" fill="{colour}"><title>{name}, N = {n}: {rate:.0f}</title></circle>'
                for n, rate in line]
    for i, name in enumerate(sorted(lines, key=lambda name: name != "sluice")):
        at = TOP + 20 * i + 8
        out.append(f'<line x1="{WIDTH - RIGHT + 14}" x2="{WIDTH - RIGHT + 38}" y1="{at}" y2="{at}" stroke="{COLOURS.get(name, "#444444")}" '
                   f'stroke-width="3"/><text x="{WIDTH - RIGHT + 44}" y="{at + 4}">{name}</text>')
    out += [f'<text x="{LEFT}" y="{HEIGHT - 10}" fill="#777777">{environment}</text>', "</svg>"]
    return "\n".join(out)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        measured = json.load(file)
    results = [r for r in measured["results"] if r["suite"] == "wave"]
    if not results:
        sys.exit(f"{sys.argv[1]} has no results of the suite wave")
    where = measured["environment"]
    print(svg(results, ", ".join(str(where[key]) for key in ("gpu", "commit", "date") if key in where)))


if __name__ == "__main__":
    main()
