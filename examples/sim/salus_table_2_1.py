#!/usr/bin/env python3
"""Salus's Table 2.1 beside ours, on many traces.

The paper's trace is not published. Each seed gives a trace of 100 lognormal jobs that a single server completes as
FIFO's row and SRTF's mean of the table say, within 3 % (laneway sim --generate salus): these were fitted. So was a
parameter of PACK, how much of their time models compute for which nobody published it (--busy): it was chosen with
PACK's row known. All other figures are predictions.

Prints the mean over the seeds, the paper's figure, and how far the mean is from it, with the 95 % interval of the mean
over such traces (percentile bootstrap of the seeds). An expectation holds when its figure's whole interval lies within
its bounds, fails when all of it lies outside, and is undecided between.

    salus_table_2_1.py [--seeds N] [--busy PERCENT] [--json] [--svg FILE]

Exit code: 0 when no expectation fails, 1 when one does.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LANEWAY = pathlib.Path(os.environ.get("LANEWAY_BUILD_DIR", ROOT / "build")) / "bin" / "laneway"
FIGURES = ("makespan", "queueing", "mean", "p95")
PAPER = {  # minutes
    "fifo": (303.4, 167.6, 170.6, 251.1),
    "srtf": (306.0, 28.6, 53.4, 217.0),
    "pack": (287.4, 129.9, 145.5, 266.1),
    "fair": (301.6, 58.5, 96.6, 281.2),
}
FITTED = {("fifo", figure) for figure in FIGURES} | {("srtf", "mean")} | {("pack", figure) for figure in FIGURES}
DRAWS = 2000
# As in the paper: 16 GB of device memory, and nobody's turn is promised. Unlike there, idle jobs are swapped out.
DEVICE = ["--memory-mib", "16280", "--starvation-s", "1000000"]


def with_busy(text, percent):
    """The jobs with another share of computing for the models that nobody published any for."""
    lines = text.decode().splitlines(keepends=True)
    head = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    column = lines[head].strip().split(",").index("busy_percent")
    for i in range(head + 1, len(lines)):
        cells = lines[i].split(",")
        if cells[0].startswith(("vae", "speech", "seq2seq")):
            cells[column] = str(percent)
        lines[i] = ",".join(cells)
    return "".join(lines).encode()


def simulate(seed, busy):
    """policy -> figure -> minutes"""
    jobs = subprocess.run([LANEWAY, "sim", "--generate", "salus", "--seed", str(seed)], check=True,
                          stdout=subprocess.PIPE).stdout
    if busy is not None:
        jobs = with_busy(jobs, busy)
    output = subprocess.run([LANEWAY, "sim", "-", "--policy", ",".join(PAPER), "--json", *DEVICE], check=True,
                            input=jobs, stdout=subprocess.PIPE).stdout
    return {policy["policy"]: {
        "makespan": policy["makespan_s"] / 60, "queueing": policy["queueing_s"]["mean"] / 60,
        "mean": policy["jct_s"]["mean"] / 60, "p95": policy["jct_s"]["p95"] / 60,
    } for policy in json.loads(output)["policies"]}


def means(runs):
    return {policy: {figure: statistics.fmean(run[policy][figure] for run in runs) for figure in FIGURES}
            for policy in PAPER}


def off(policy, figure):
    paper = dict(zip(FIGURES, PAPER[policy]))[figure]
    return lambda mean: mean[policy][figure] / paper - 1


def apart(mean):
    spans = [mean[policy]["makespan"] for policy in ("fifo", "srtf", "fair")]
    return max(spans) / min(spans) - 1


# what is expected, its figure as a function of the means, and the bounds
EXPECTATIONS = [
    ("SRTF's p95 within 15 % of the paper's", off("srtf", "p95"), (-0.15, 0.15)),
    ("FAIR's p95 within 15 % of the paper's", off("fair", "p95"), (-0.15, 0.15)),
    ("FAIR's mean within 25 % of the paper's", off("fair", "mean"), (-0.25, 0.25)),
    ("makespans of FIFO, SRTF and FAIR within 3 % of each other", apart, (0, 0.03)),
    ("PACK's makespan 2-8 % shorter than FIFO's (fitted)",
     lambda mean: 1 - mean["pack"]["makespan"] / mean["fifo"]["makespan"], (0.02, 0.08)),
    ("PACK's mean above FAIR's", lambda mean: mean["pack"]["mean"] / mean["fair"]["mean"] - 1, (0, float("inf"))),
    ("PACK's mean below FIFO's", lambda mean: mean["pack"]["mean"] / mean["fifo"]["mean"] - 1, (float("-inf"), 0)),
]


def interval(drawn, figure):
    """Where 95 % of the figure's values lie when the seeds are drawn again (percentile bootstrap)."""
    values = sorted(figure(mean) for mean in drawn)
    return values[DRAWS // 40], values[-DRAWS // 40 - 1]


def judge(between, bounds):
    low, high = between
    if bounds[0] <= low and high <= bounds[1]:
        return "holds"
    return "FAILS" if high < bounds[0] or bounds[1] < low else "undecided"


def show(rows, verdicts, seeds):
    print(f"minutes, means of seeds 1 to {seeds} and their 95 % intervals; f: fitted, all else is predicted")
    print(f"{'':6}{'figure':10}{'paper':>8}{'ours':>8}  {'interval':>15}{'traces':>17}{'off':>9}")
    for row in rows:
        print(f"{row['policy']:6}{row['figure']:10}{row['paper']:8.1f}{row['mean']:8.1f}  "
              f"{row['interval'][0]:6.1f} - {row['interval'][1]:6.1f}  {row['traces'][0]:6.1f} - {row['traces'][1]:6.1f}"
              f"{row['mean'] / row['paper'] - 1:+9.1%} {'f' if row['fitted'] else ''}".rstrip())
    for verdict in verdicts:
        low, high = verdict["interval"]
        print(f"{verdict['verdict']:9}  {verdict['what']}: {verdict['value']:+.1%} ({low:+.1%} to {high:+.1%})")


def svg(rows, seeds):
    """A bar of ours and a line of the paper's for each figure; the interval is a whisker, fitted ones are pale."""
    width, height, bottom, scale = 760, 330, 270, 0.75
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="20" y="22">Minutes: Laneway\'s simulator (bars: means of {seeds} traces, 95 % intervals; pale: '
             'fitted) and Salus\'s Table 2.1 (red)</text>']
    for minutes in range(0, 301, 100):
        y = bottom - minutes * scale
        parts.append(f'<path d="M50 {y:.1f}H740" stroke="#ddd"/><text x="44" y="{y + 4:.1f}" text-anchor="end">{minutes}</text>')
    for place, row in enumerate(rows):
        x = 62 + place * 40 + place // len(FIGURES) * 12
        top, (low, high) = bottom - row["mean"] * scale, row["interval"]
        colour = "#b9cde5" if row["fitted"] else "#4f81bd"
        parts.append(f'<rect x="{x}" y="{top:.1f}" width="26" height="{bottom - top:.1f}" fill="{colour}"/>'
                     f'<path d="M{x + 13} {bottom - low * scale:.1f}V{bottom - high * scale:.1f}" stroke="black" stroke-width="3"/>'
                     f'<path d="M{x - 4} {bottom - row["paper"] * scale:.1f}h34" stroke="#c00" stroke-width="2"/>'
                     f'<text x="{x + 13}" y="{bottom + 16}" text-anchor="middle" font-size="9">{row["figure"]}</text>')
        if place % len(FIGURES) == 0:
            parts.append(f'<text x="{x + 73}" y="{bottom + 38}" text-anchor="middle">{row["policy"].upper()}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=96)
    parser.add_argument("--busy", type=float, metavar="PERCENT",
                        help="how much of their time vae, speech and seq2seq compute, instead of what the trace drew")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="draws the figures there, too")
    options = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda seed: simulate(seed, options.busy), range(1, options.seeds + 1)))
    draw, mean = random.Random(1), means(runs)
    drawn = [means(draw.choices(runs, k=len(runs))) for _ in range(DRAWS)]
    rows = []
    for policy, row in PAPER.items():
        for figure, paper in zip(FIGURES, row):
            values = [run[policy][figure] for run in runs]
            rows.append({"policy": policy, "figure": figure, "paper": paper, "mean": mean[policy][figure],
                         "interval": interval(drawn, lambda mean, of=(policy, figure): mean[of[0]][of[1]]),
                         "traces": (min(values), max(values)), "fitted": (policy, figure) in FITTED})
    verdicts = []
    for what, figure, bounds in EXPECTATIONS:
        between = interval(drawn, figure)
        verdicts.append({"what": what, "value": figure(mean), "interval": between, "verdict": judge(between, bounds)})
    if options.svg:
        options.svg.write_text(svg(rows, options.seeds))
    if options.json:
        print(json.dumps({"seeds": options.seeds, "minutes": rows, "expectations": verdicts}, indent=2))
    else:
        show(rows, verdicts, options.seeds)
    sys.exit(1 if any(verdict["verdict"] == "FAILS" for verdict in verdicts) else 0)


if __name__ == "__main__":
    main()
