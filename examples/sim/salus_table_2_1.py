#!/usr/bin/env python3
"""Salus's Table 2.1 beside ours, on several traces.

The paper's trace is not published. Each seed gives a trace of 100 lognormal jobs that a single server completes as
FIFO's row and SRTF's mean of the table say, within 3 % (laneway sim --generate salus); all other figures are
predictions. Prints the mean over the seeds and the range, the paper's figure, and how far the mean is from it.

    salus_table_2_1.py [--seeds N] [--busy PERCENT] [--json]

Exit code: 0 when the expectations at the end of the output hold for the means, 1 when one does not.
"""
import argparse
import json
import os
import pathlib
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
FITTED = {("fifo", figure) for figure in FIGURES} | {("srtf", "mean")}
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


def expectations(mean):
    """(what, whether it holds)"""
    paper = {policy: dict(zip(FIGURES, row)) for policy, row in PAPER.items()}

    def off(policy, figure):
        return abs(mean[policy][figure] / paper[policy][figure] - 1)

    spans = [mean[policy]["makespan"] for policy in ("fifo", "srtf", "fair")]
    shorter = 1 - mean["pack"]["makespan"] / mean["fifo"]["makespan"]
    return [
        ("SRTF's p95 within 15 % of the paper's", off("srtf", "p95") <= 0.15),
        ("FAIR's p95 within 15 % of the paper's", off("fair", "p95") <= 0.15),
        ("FAIR's mean within 25 % of the paper's", off("fair", "mean") <= 0.25),
        ("makespans of FIFO, SRTF and FAIR within 3 % of each other", max(spans) / min(spans) <= 1.03),
        (f"PACK's makespan 2-8 % shorter than FIFO's (it is {shorter:.1%})", 0.02 <= shorter <= 0.08),
        ("PACK's mean between FAIR's and FIFO's", mean["fair"]["mean"] < mean["pack"]["mean"] < mean["fifo"]["mean"]),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--busy", type=float, metavar="PERCENT",
                        help="how much of their time vae, speech and seq2seq compute, instead of what the trace drew")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = [simulate(seed, options.busy) for seed in range(1, options.seeds + 1)]
    values = {policy: {figure: [run[policy][figure] for run in runs] for figure in FIGURES} for policy in PAPER}
    mean = {policy: {figure: statistics.mean(values[policy][figure]) for figure in FIGURES} for policy in PAPER}
    verdicts = expectations(mean)
    if options.json:
        print(json.dumps({"seeds": options.seeds, "minutes": values,
                          "expectations": [{"what": what, "holds": holds} for what, holds in verdicts]}, indent=2))
        sys.exit(0 if all(holds for _, holds in verdicts) else 1)
    print(f"minutes, seeds 1 to {options.seeds}; f: fitted, all else is predicted")
    print(f"{'':6}{'figure':10}{'paper':>8}{'ours':>8}  {'range':>15}{'off':>9}")
    for policy, row in PAPER.items():
        for figure, paper in zip(FIGURES, row):
            ours = values[policy][figure]
            fitted = "f" if (policy, figure) in FITTED else " "
            print(f"{policy:6}{figure:10}{paper:8.1f}{mean[policy][figure]:8.1f}  "
                  f"{min(ours):6.1f} - {max(ours):6.1f}{mean[policy][figure] / paper - 1:+9.1%} {fitted}")
    for what, holds in verdicts:
        print(f"{'holds' if holds else 'FAILS'}  {what}")
    sys.exit(0 if all(holds for _, holds in verdicts) else 1)


if __name__ == "__main__":
    main()
