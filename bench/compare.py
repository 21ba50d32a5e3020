#!/usr/bin/env python3
"""Runs a benchmark of ours and its peer in turns and compares medians: a shared machine drifts, a ratio in one run does not.

  bench/compare.py build/bin/bench/eager_bench bench/peers/torch_eager.py --python PEER_ENVIRONMENT/bin/python

Prints a table and writes bench/results/<benchmark>.json with commit, machine and versions.
"""
import argparse
import json
import math
import os
import platform
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run_ours(program):
    out = subprocess.run([program, "--benchmark_format=json"], capture_output=True, text=True, check=True).stdout
    unit = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    rows = json.loads(out)["benchmarks"]
    return {row["name"].removesuffix("/real_time"): row["real_time"] * unit[row["time_unit"]] for row in rows}


def run_peer(python, script):
    out = subprocess.run([python, script], capture_output=True, text=True, check=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def cpu_name():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain", "--", "src") else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", help="the benchmark program")
    parser.add_argument("peer", help="the peer's script")
    parser.add_argument("--python", default="python3", help="an interpreter that has the peer installed")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()

    ours, theirs, peer = {}, {}, {}
    for _ in range(args.rounds):
        for name, ns in run_ours(args.ours).items():
            ours.setdefault(name, []).append(ns)
        peer = run_peer(args.python, args.peer)
        for name, ns in peer["ns"].items():
            theirs.setdefault(name, []).append(ns)

    rows = []
    for name in ours:
        if name in theirs:
            a, b = statistics.median(ours[name]), statistics.median(theirs[name])
            rows.append({"name": name, "brrr_ns": round(a, 1), "peer_ns": round(b, 1), "times_faster": round(b / a, 2)})
    mean = math.exp(statistics.mean(math.log(row["times_faster"]) for row in rows))
    width = max(len(row["name"]) for row in rows)
    print(f"{'':{width}}  {'brrr':>12}  {'peer':>12}  times faster   ({peer['peer']}, {args.rounds} rounds)")
    for row in rows:
        print(f"{row['name']:{width}}  {row['brrr_ns']:>9.0f} ns  {row['peer_ns']:>9.0f} ns  {row['times_faster']:>12.2f}")

    print(f"{'geometric mean':{width}}  {'':>12}  {'':>12}  {mean:>12.2f}")

    result = {"benchmark": Path(args.ours).name, "commit": commit(), "cpu": cpu_name(), "cores": os.cpu_count(),
              "peer": peer["peer"], "rounds": args.rounds, "statistic": "median of rounds",
              "geometric_mean_times_faster": round(mean, 3), "rows": rows}
    target = ROOT / "bench" / "results" / f"{Path(args.ours).name}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
