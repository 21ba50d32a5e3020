#!/usr/bin/env python3
"""Runs a benchmark of ours and its peer in turns, case by case, and compares times.

  bench/compare.py build/bin/bench/eager_bench bench/peers/torch_eager.py --python PEER_ENVIRONMENT/bin/python

A shared machine drifts; two measurements one after the other drift little. Of the rounds the median counts, and the
quietest (the smallest: what others run only ever adds time) stands beside it. The peer is one process for the whole run
(bench/peers/peer.py has the conversation), so what it compiles stays compiled. Where it has several modes, the fastest
counts. Prints a table and writes bench/results/<benchmark>.json with commit, machine, compilers and versions.
"""
import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


class Ours:
    """A program of Google Benchmark, started once for every measurement."""

    def __init__(self, program):
        self.program, self.context, self.rates = program, {}, {}
        listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True, check=True).stdout
        self.cases = [line.split("/")[0] for line in listed.splitlines()]

    def time(self, case):
        out = subprocess.run([self.program, "--benchmark_format=json", f"--benchmark_filter=^{case}(/|$)"],
                             capture_output=True, text=True, check=True).stdout
        report = json.loads(out)
        row = report["benchmarks"][0]
        self.context = report["context"]
        for unit in ("bytes", "flops"):
            if unit in row:
                self.rates.setdefault(case, (unit, []))[1].append(row[unit])
        return row["real_time"] * NS[row["time_unit"]]


class Peer:
    """A script that answers the name of a case with {mode: ns}."""

    def __init__(self, python, script):
        self.process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts = self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the peer has ended with status {self.process.wait()}")
        return json.loads(line)

    def time(self, case):
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return self.answer()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def cpu_name():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout.strip()
    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain", "--", "src") else "")


def measure(ours, peer, cases, rounds):
    """{case: [ns]} and {case: {mode: [ns]}}."""
    our_times, peer_times = {}, {}
    for _ in range(rounds):
        for case in cases:
            our_times.setdefault(case, []).append(ours.time(case))
            for mode, ns in peer.time(case).items():
                peer_times.setdefault(case, {}).setdefault(mode, []).append(ns)
    return our_times, peer_times


def to_row(case, our_ns, peer_ns, rate):
    ours = statistics.median(our_ns)
    modes = {mode: round(statistics.median(times), 1) for mode, times in peer_ns.items()}
    best = min(modes, key=modes.get)
    quietest = min(min(times) for times in peer_ns.values()) / min(our_ns)
    row = {"name": case, "brrr_ns": round(ours, 1), "peer_ns": modes[best], "peer_mode": best, "peer_modes_ns": modes,
           "times_faster": round(modes[best] / ours, 3), "times_faster_quietest": round(quietest, 3)}
    if rate:
        unit, values = rate
        row[f"brrr_{unit}_per_second"] = round(max(values))
    return row


def print_table(rows, mean, title):
    width = max(len(row["name"]) for row in rows)
    print(f"{'':{width}}  {'brrr':>12}  {'peer':>12}  times faster  quietest   ({title})")
    for row in rows:
        print(f"{row['name']:{width}}  {row['brrr_ns']:>9.0f} ns  {row['peer_ns']:>9.0f} ns  {row['times_faster']:>12.2f}"
              f"  {row['times_faster_quietest']:>8.2f}   {row['peer_mode']}")
    print(f"{'geometric mean':{width}}  {'':>12}  {'':>12}  {mean:>12.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ours", help="the benchmark program")
    parser.add_argument("peer", help="the peer's script")
    parser.add_argument("--python", default="python3", help="an interpreter that has the peer installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--name", help="of the file under bench/results (default: the benchmark's)")
    parser.add_argument("--filter", default="", help="only cases that this regular expression finds; nothing is written")
    args = parser.parse_args()

    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"the load is {load:.1f}: other work runs here, and threads that wait for each other suffer most from it")
    ours, peer = Ours(args.ours), Peer(args.python, args.peer)
    cases = [case for case in ours.cases if re.search(args.filter, case) and case in peer.facts["cases"]]
    our_times, peer_times = measure(ours, peer, cases, args.rounds)
    peer.stop()

    rows = [to_row(case, our_times[case], peer_times[case], ours.rates.get(case)) for case in cases]
    mean = math.exp(statistics.mean(math.log(row["times_faster"]) for row in rows))
    print_table(rows, mean, f"{peer.facts['peer']}, {args.rounds} rounds")
    for case in ours.cases:
        if case not in peer.facts["cases"]:
            print(f"not measured, the peer does not have it: {case}")
    if args.filter:
        return

    result = {"benchmark": Path(args.ours).name, "commit": commit(), "cpu": cpu_name(), "cores": os.cpu_count(),
              "load_before": round(load, 2), "threads": int(ours.context["threads"]), "compiler": ours.context["compiler"],
              "peer": peer.facts["peer"], "peer_threads": peer.facts["threads"], "peer_compiler": peer.facts["compiler"],
              "rounds": args.rounds, "statistic": "median over the rounds of the median of calls; of the peer's modes the fastest",
              "geometric_mean_times_faster": round(mean, 3), "rows": rows}
    target = ROOT / "bench" / "results" / f"{args.name or Path(args.ours).name}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"written to {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
