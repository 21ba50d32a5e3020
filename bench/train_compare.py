#!/usr/bin/env python3
"""Trains with brrr and with a PyTorch script in turns, process by process, and compares steps and memory.

  bench/train_compare.py build/bin/brrr TORCH_SCRIPT TEXT --python PEER_ENVIRONMENT/bin/python \\
      --case NAME --tokenizer T --shape SHAPE --batch 4 --context 64 --ours '--model gpt2-124m'

TORCH_SCRIPT takes --shape, --batch, --seq, --mode and prints JSON with step_ms (the median) on its last line. Ours is the real
`brrr train`, with its data, guard, log and checkpoint; --ours has more for it. A step counts with the median of a
run's steps after the first two; of the rounds the median counts, and of PyTorch's modes the faster. Memory is the high-water
mark of the process as the kernel saw it, whole runs of both. Writes bench/results/train_NAME.json.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from compare import ROOT, commit, cpu_name


def run(words, **options):
    """The output of a process and its high-water mark in bytes."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, **options) as process:
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{words[0]} ended with {process.returncode}\n{out}")
    return out, usage.ru_maxrss * 1024


def time_ours(args):
    folder = Path(tempfile.mkdtemp(prefix="train_compare_"))
    try:
        _, memory = run([args.brrr, "train", args.text, "--tokenizer", args.tokenizer, "--batch", str(args.batch), "--context",
                         str(args.context), "--steps", str(args.steps + 2), "--threads", str(args.threads), "--eval-every", "100000",
                         "--eval-batches", "1", "--sample-every", "0", "--sample-tokens", "1", "--save-every", "100000",
                         "--activations-every", "0", "--json", "--out", str(folder / "run"), *args.ours],
                        stderr=subprocess.DEVNULL)
        steps = [json.loads(line)["ms"] for line in (folder / "run" / "log.jsonl").read_text().splitlines()]
        return statistics.median(steps[2:]), memory
    finally:
        shutil.rmtree(folder)


def time_torch(args, mode):
    out, memory = run([args.python, args.torch, "--shape", args.shape, "--batch", str(args.batch), "--seq", str(args.context),
                       "--device", "cpu", "--mode", mode, "--steps", str(args.steps), "--threads", str(args.threads)],
                      stderr=subprocess.DEVNULL)
    facts = json.loads(out.strip().splitlines()[-1])
    return facts["ms"], memory, facts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brrr")
    parser.add_argument("torch", help="PyTorch's script")
    parser.add_argument("text", help="what ours learns")
    parser.add_argument("--python", default="python3", help="an interpreter that has PyTorch")
    parser.add_argument("--case", required=True, help="names the result")
    parser.add_argument("--tokenizer", default="char")
    parser.add_argument("--shape", required=True, help="for PyTorch's script")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ours", type=str.split, default=[], help="more words for brrr train")
    args = parser.parse_args()

    load = os.getloadavg()[0]
    ours, torch, facts = [], {"eager": [], "compile": []}, {}
    for index in range(args.rounds):
        ours.append(time_ours(args))
        for mode, seen in torch.items():
            ms, memory, facts = time_torch(args, mode)
            seen.append((ms, memory))
        print(f"round {index + 1}: brrr {ours[-1][0]:.0f} ms, " + ", ".join(f"{mode} {seen[-1][0]:.0f} ms" for mode, seen in torch.items()))

    medians = {mode: statistics.median(ms for ms, _ in seen) for mode, seen in torch.items()}
    mode = min(medians, key=medians.get)
    our_ms = statistics.median(ms for ms, _ in ours)
    our_bytes, torch_bytes = (max(memory for _, memory in seen) for seen in (ours, torch[mode]))
    result = {"benchmark": f"train {args.case}", "commit": commit(), "cpu": cpu_name(), "cores": os.cpu_count(), "threads": args.threads,
              "load_before": round(load, 2), "peer": f"{facts['peer']} {mode}", "batch": args.batch, "context": args.context,
              "rounds": args.rounds, "steps": args.steps, "brrr_ms": [round(ms, 1) for ms, _ in ours],
              "peer_ms": {name: [round(ms, 1) for ms, _ in seen] for name, seen in torch.items()},
              "times_faster": round(medians[mode] / our_ms, 3), "brrr_tokens_per_second": round(args.batch * args.context / our_ms * 1e3, 1),
              "brrr_high_water_bytes": our_bytes, "peer_high_water_bytes": {name: max(m for _, m in seen) for name, seen in torch.items()},
              "memory_share": round(our_bytes / torch_bytes, 3)}
    target = ROOT / "bench" / "results" / f"train_{args.case}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{args.case}: {our_ms:.0f} ms a step, PyTorch ({mode}) {medians[mode]:.0f} ms: {result['times_faster']:.2f} times faster; "
          f"memory {our_bytes / 2**30:.2f} GiB of {torch_bytes / 2**30:.2f} GiB ({100 * result['memory_share']:.0f} %)")
    print(f"written to {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
