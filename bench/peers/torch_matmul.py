#!/usr/bin/env python3
"""The products of bench/matmul_bench.cpp in PyTorch. Prints {"peer": ..., "ns": {name: ns}}."""
import json
import statistics
import time

import torch

LAYERS = {"qkv": (768, 2304), "projection": (768, 768), "up": (768, 3072), "down": (3072, 768), "head": (768, 50304)}


def nanoseconds(function, seconds=0.3):
    function()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e9


def main():
    torch.set_num_threads(2)
    torch.set_float32_matmul_precision("highest")
    result = {}
    for tokens in (256, 1024):
        for name, (inputs, outputs) in LAYERS.items():
            x, dy, weight = torch.randn(tokens, inputs), torch.randn(tokens, outputs), torch.randn(outputs, inputs)
            result[f"{name}_{tokens}_forward"] = nanoseconds(lambda: x @ weight.T)
            result[f"{name}_{tokens}_dx"] = nanoseconds(lambda: dy @ weight)
            result[f"{name}_{tokens}_dw"] = nanoseconds(lambda: dy.T @ x)
    print(json.dumps({"peer": f"torch {torch.__version__} eager", "threads": torch.get_num_threads(), "ns": result}))


if __name__ == "__main__":
    main()
