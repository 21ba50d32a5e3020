#!/usr/bin/env python3
"""The small eager ops of bench/eager_bench.cpp in PyTorch."""
import time

import torch

from peer import serve
from torch_peer import facts


def best_ns(function, seconds=0.2, trials=5):
    """Best of several trials: the cost without what else the machine does."""
    count, spent = 1, 0.0
    while spent < seconds / 4:
        count *= 2
        start = time.perf_counter()
        for _ in range(count):
            function()
        spent = time.perf_counter() - start
    best = spent / count
    for _ in range(trials):
        start = time.perf_counter()
        for _ in range(count):
            function()
        best = min(best, (time.perf_counter() - start) / count)
    return best * 1e9


def main():
    one, other = torch.ones(1), torch.ones(1)
    square, leaf = torch.ones(32, 32), torch.ones(32, 32, requires_grad=True)
    a, b = torch.ones(16, 16), torch.ones(16, 16)

    def scale_sum_backward():
        leaf.grad = None
        (leaf * 2).sum().backward()

    cases = {
        "add_one_element": lambda: one + other,
        "add_number": lambda: one + 2.0,
        "transpose_view": lambda: square.transpose(0, 1),
        "scale_sum_backward_32x32": scale_sum_backward,
        "matmul_16x16": lambda: a @ b,
    }
    serve(**facts(), cases={name: lambda case=case: {"eager": best_ns(case)} for name, case in cases.items()})


if __name__ == "__main__":
    main()
