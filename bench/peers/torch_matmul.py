#!/usr/bin/env python3
"""The products of bench/matmul_bench.cpp in PyTorch."""
import torch

from peer import median_ns, serve
from torch_peer import facts

LAYERS = {"qkv": (768, 2304), "projection": (768, 768), "up": (768, 3072), "down": (3072, 768), "head": (768, 50304)}


def product(rows, inner, columns, transpose_a=False, transpose_b=False):
    def time_it():
        a = torch.randn(inner, rows).T if transpose_a else torch.randn(rows, inner)
        b = torch.randn(columns, inner).T if transpose_b else torch.randn(inner, columns)
        return {"eager": median_ns(lambda: a @ b)}
    return time_it


def main():
    cases = {}
    for tokens in (256, 1024):
        for name, (inputs, outputs) in LAYERS.items():
            cases[f"{name}_{tokens}_forward"] = product(tokens, inputs, outputs, transpose_b=True)
            cases[f"{name}_{tokens}_dx"] = product(tokens, outputs, inputs)
            cases[f"{name}_{tokens}_dw"] = product(outputs, tokens, inputs, transpose_a=True)
    serve(**facts(), cases=cases)


if __name__ == "__main__":
    main()
