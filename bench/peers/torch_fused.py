#!/usr/bin/env python3
"""cos(cos(x)) of bench/fused_bench.cpp in PyTorch: eager, and through torch.compile."""
import torch

from peer import median_ns, serve
from torch_peer import facts


def twice(x):
    return torch.cos(torch.cos(x))


def main():
    known = facts()
    x = torch.randn(1 << 22)
    compiled = torch.compile(twice)
    with torch.no_grad():
        serve(**known, cases={"cos_cos": lambda: {"eager": median_ns(lambda: twice(x))},
                              "cos_cos_compiled": lambda: {"compile": median_ns(lambda: compiled(x))}})


if __name__ == "__main__":
    main()
